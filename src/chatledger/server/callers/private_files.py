"""The file of tokens and that of logins: JSON that only their owner may read, and that several processes change."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chatledger.storage.drivers.new_file import text_file

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait for another process that changes such a file of the same folder. Windows has no such lock."""
    if fcntl is None:
        yield
        return
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def state_of(status: os.stat_result) -> tuple[int, ...]:
    """What changes with each replacement of the file."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size


def write(path: Path, content: dict[str, Any]) -> None:
    """Replace the file in one step, so that a server that reads it meets the old or the new one."""
    with text_file(path) as file:
        json.dump(content, file, indent=2)
        file.write("\n")
