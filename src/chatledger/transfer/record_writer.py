"""Records as text: an array, or one a line, written as they come."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal

from chatledger.models.json import JsonValue


def json_text(value: JsonValue, *, indent: int | None = None) -> str:
    """JSON that any UTF-8 stream takes: as it is where it can be, else escaped (a lone surrogate has no UTF-8)."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


class RecordWriter:
    """Call `add` for each record and `close` once: without it an array has no end."""

    def __init__(self, write: Callable[[str], object], container: Literal["array", "lines"]) -> None:
        self._write = write
        self._array = container == "array"
        self._count = 0

    def add(self, record: JsonValue) -> None:
        before = "[\n" if self._array and not self._count else ",\n" if self._array else ""
        self._write(before + json_text(record) + ("" if self._array else "\n"))
        self._count += 1

    def close(self) -> None:
        if self._array:
            self._write("\n]\n" if self._count else "[]\n")
