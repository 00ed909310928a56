"""Writes records one by one as JSON: as an array, or one per line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal

from chatledger.models.json import JsonValue


def json_text(value: JsonValue, *, indent: int | None = None) -> str:
    """JSON text that UTF-8 can encode: text with a lone surrogate is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


class RecordWriter:
    """Call `add` for each record, then `close` once, which ends an array."""

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
