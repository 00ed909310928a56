"""Rewrites programs from the calls before 0.1.0 to those of 0.1.0: Python files, and the Python of Markdown pages.

    python tools/codemod.py FILE_OR_FOLDER …        then: ruff check --fix && ruff format

It reads no types, so it changes only what a name alone tells, and leaves the rest to a type checker.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ERRORS = {
    "RevisionConflict": ("VersionConflict", 'about("thread")'),
    "KvConflict": ("VersionConflict", 'about("value")'),
    "AlreadyExists": ("IdConflict", None),
    "KeyUnavailable": ("EncryptionError", 'because("no-key")'),
    "NotAuthentic": ("EncryptionError", 'because("not-authentic")'),
    "NotEncrypted": ("EncryptionError", 'because("not-encrypted")'),
    "TenantEncrypted": ("EncryptionError", 'because("tenant-encrypted")'),
}
"""Old errors: the new one, and the check that a test passes to `pytest.raises` so that it still tells them apart."""
_RAISES = re.compile(rf"pytest\.raises\(({'|'.join(ERRORS)})\b(?=[,)])")
_NAMES = re.compile(rf"\b({'|'.join(ERRORS)})\b")


def rewrite(text: str) -> str:
    text, count = _RAISES.subn(_checked, text)
    if count:
        text = _with_import(text, re.findall(r"check=(about|because)\(", text))
    return _NAMES.sub(lambda found: ERRORS[found[1]][0], text)


def _checked(found: re.Match[str]) -> str:
    new, check = ERRORS[found[1]]
    return f"pytest.raises({new}" + (f", check={check}" if check else "")


def _with_import(text: str, names: list[str]) -> str:
    if not names:
        return text
    line = f"from tests.reasons import {', '.join(sorted(set(names)))}\n"
    at = text.index("\n", text.rindex("import pytest")) + 1
    return text[:at] + line + text[at:]


def files(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        found = path.rglob("*") if path.is_dir() else [path]
        yield from (one for one in found if one.suffix in (".py", ".pyi", ".md") and ".venv" not in one.parts)


if __name__ == "__main__":
    for file in files(sys.argv[1:]):
        before = file.read_text(encoding="utf-8")
        if (after := rewrite(before)) != before:
            file.write_text(after, encoding="utf-8")
            print(file)
