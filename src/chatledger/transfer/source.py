"""Finds the end of a JSON value in a stream of bytes, without reading beyond it.

The search looks only at brackets and strings; the parser decides whether a value is JSON. So a broken value does not
hide the values after it, as long as its brackets and quotes close. UTF-8 never has an ASCII byte inside a character, so
bytes can be searched before they are decoded.
"""

from __future__ import annotations

import re
from codecs import utf_8_decode
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

T = TypeVar("T")

CHUNK = 1 << 18
_STRUCTURE = re.compile(rb'[{}\[\]"]')
_STRING_END = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR_END = re.compile(rb"[,\]}\s]")
_NOT_BLANK = re.compile(rb"[^ \t\r\n]")
BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class _DecodedText:
    """The valid part of the buffer as text. The character at index `at` begins at index `byte` of the buffer."""

    text: str
    at: int
    byte: int

    @classmethod
    def of(cls, data: bytes, byte: int) -> _DecodedText:
        """Decode from byte `byte` up to the first invalid or incomplete character."""
        rest = data[byte:]
        try:
            return cls(utf_8_decode(rest, "strict", False)[0], 0, byte)
        except UnicodeDecodeError as error:
            return cls(rest[: error.start].decode(), 0, byte)

    def move_to(self, data: bytes, byte: int) -> None:
        """Move to byte `byte`. Raises UnicodeDecodeError if the bytes in between are not UTF-8."""
        self.at += len(data[self.byte : byte].decode())
        self.byte = byte

    def move_over(self, end: int) -> int:
        """Move to the character at index `end`, and return the number of bytes passed."""
        passed = self.text[self.at : end]
        size = len(passed) if passed.isascii() else len(passed.encode())
        self.at, self.byte = end, self.byte + size
        return size


class ByteSource:
    """A buffer over a stream. It grows to the size of the value being read, and no larger."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._data = b""
        self._at = 0
        self._dropped = 0
        self.skipped_lines = 0
        self._text: _DecodedText | None = None
        self._mark: int | None = None  # a position to return to; the buffer keeps the bytes from there
        if self._has(len(BOM)) and self._data.startswith(BOM):
            self._at = len(BOM)

    @property
    def byte(self) -> int:
        """The position of the next byte in the stream."""
        return self._dropped + self._at

    def peek(self) -> bytes:
        """The next byte that is not blank, without taking it. Empty at the end of the stream."""
        while True:
            match = _NOT_BLANK.search(self._data, self._at)
            if match is not None:
                self._skip_to(match.start())
                return match[0]
            self._skip_to(len(self._data))
            if not self._fill():
                return b""

    def _skip_to(self, at: int) -> None:
        self.skipped_lines += self._data.count(b"\n", self._at, at)
        self._at = at

    def take(self, length: int) -> bytes:
        taken = self.look(length)
        self._at += len(taken)
        return taken

    def take_rest(self) -> bytes:
        while self._fill():
            pass
        return self.take(len(self._data))

    def take_parsed(self, parse: Callable[[str, int], tuple[T, int]]) -> T | None:
        """Take the next object or list, as `parse` reads it. Returns None and takes nothing if `parse` raises.

        `parse` gets a text and the position of the value, and returns the value and the position of its end. It raises
        ValueError or RecursionError if the value is invalid or not completely buffered.
        """
        self._has(CHUNK >> 2)
        here = self._as_text()
        try:
            value, end = parse(here.text, here.at)
        except (ValueError, RecursionError):
            return None
        self._at += here.move_over(end)
        return value

    def _as_text(self) -> _DecodedText:
        """The buffer as text, decoded once for all values in it."""
        try:
            if self._text is not None:
                self._text.move_to(self._data, self._at)
                return self._text
        except UnicodeDecodeError:
            pass
        self._text = _DecodedText.of(self._data, self._at)
        return self._text

    def value_length(self) -> int | None:
        """The length of the next value in bytes. None if the stream ends inside it."""
        first = self.peek()
        if first in (b"{", b"["):
            return self._composite_length()
        return self._string_length(1) if first == b'"' else self._scalar_length()

    def look(self, length: int) -> bytes:
        """The next `length` bytes, without taking them. Fewer at the end of the stream."""
        self._has(length)
        return self._data[self._at : self._at + length]

    def begins_value(self, offset: int) -> bool:
        """Whether an object or a list begins `offset` bytes from here."""
        self._has(offset + 1)
        return self._data[self._at + offset : self._at + offset + 1] in (b"{", b"[")

    def first_element(self) -> bytes:
        """The first element of the next array, without taking it. Empty if there is none."""
        self._mark = self.byte
        self._at += 1
        element = self.look(self.value_length() or 0)
        self._at, self._mark = self._mark - self._dropped, None
        return element

    def line_length(self) -> int:
        """The length of the next line in bytes, with its line end."""
        return self._line_end(0)

    def _line_end(self, offset: int) -> int:
        """The offset of the end of the line that contains `offset`."""
        while True:
            end = self._data.find(b"\n", self._at + offset)
            if end >= 0:
                return end + 1 - self._at
            offset = len(self._data) - self._at
            if not self._fill():
                return offset

    def lines_to_a_value(self) -> int:
        """The length of the lines from here up to the next line that begins with an object or a list."""
        length = 0
        while (end := self._line_end(length)) > length:
            length = end
            if self.begins_value(length):
                break
        return length

    def _composite_length(self) -> int | None:
        depth = offset = 0
        while True:
            match = _STRUCTURE.search(self._data, self._at + offset)
            if match is None:
                offset = len(self._data) - self._at
                if not self._fill():
                    return None
                continue
            offset = match.end() - self._at
            if match[0] == b'"':
                end = self._string_length(offset)
                if end is None:
                    return None
                offset = end
            else:
                depth += 1 if match[0] in b"{[" else -1
                if depth == 0:
                    return offset

    def _string_length(self, offset: int) -> int | None:
        """The offset of the end of the string whose opening quote is before `offset`."""
        while True:
            match = _STRING_END.match(self._data, self._at + offset)
            if match is not None:
                return match.end() - self._at
            if not self._fill():
                return None

    def _scalar_length(self) -> int:
        while True:
            match = _SCALAR_END.search(self._data, self._at + 1)
            if match is not None:
                return match.start() - self._at
            if not self._fill():
                return len(self._data) - self._at

    def _has(self, length: int) -> bool:
        while len(self._data) - self._at < length:
            if not self._fill():
                return False
        return True

    def _fill(self) -> bool:
        """Read as many bytes as the buffer already holds. Doubling it keeps the search of a long string linear."""
        start = self._at if self._mark is None else self._mark - self._dropped
        unread = self._data[start:]
        chunk = self._stream.read(max(CHUNK, len(unread)))
        if not chunk:
            return False
        self._data = unread + chunk
        self._text = None
        self._at -= start
        self._dropped += start
        return True
