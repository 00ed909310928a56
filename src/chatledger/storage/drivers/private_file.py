"""Reads a file of secrets, once it is known that nobody else can read it or has written it."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotPrivate(Exception):
    """Others can read the file, or others than root and this user own it. The text says what to do."""


def read_private(path: str | os.PathLike[str]) -> tuple[str, os.stat_result]:
    """The text of the file and its state. It is opened once: between two looks at a name, another file may get it.
    Raises OSError, UnicodeDecodeError and NotPrivate.
    """
    with open(path, encoding="utf-8") as file:
        state = os.fstat(file.fileno())
        if os.name == "posix":
            _require_private(Path(path), state)
        return file.read(), state


def _require_private(path: Path, state: os.stat_result) -> None:
    if stat.S_IMODE(state.st_mode) & 0o077:
        raise NotPrivate(f"others than its owner may read {path}; run: chmod 600 {path}")
    if state.st_uid not in (0, os.geteuid()):
        advice = f"run this as its owner, or: chown {os.geteuid()} {path}"
        raise NotPrivate(f"another user owns {path}, and could change it; {advice}")
