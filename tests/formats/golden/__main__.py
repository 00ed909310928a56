"""Writes the golden files again."""

from __future__ import annotations

from tests.formats.golden import NAMES, path_of, read_now

for name in NAMES:
    path_of(name).write_text(read_now(name), encoding="utf-8")
