"""Where one JSON value of a stream of bytes ends, without reading what follows.

Only brackets and strings are told apart: whether a value is JSON is the parser's to say. So a broken value does not
hide the ones after it, as long as its brackets and quotes close. UTF-8 never holds an ASCII byte inside a character,
which is why bytes can be searched before they are decoded.
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
class _Text:
    """The buffer as text, as far as it is one: its character `at` begins at the byte `byte` of the buffer."""

    text: str
    at: int
    byte: int

    @classmethod
    def of(cls, data: bytes, byte: int) -> _Text:
        """From that byte up to the first that is no character, or not all of one."""
        rest = data[byte:]
        try:
            return cls(utf_8_decode(rest, "strict", False)[0], 0, byte)
        except UnicodeDecodeError as error:
            return cls(rest[: error.start].decode(), 0, byte)

    def move_to(self, data: bytes, byte: int) -> None:
        """Raises UnicodeDecodeError where what is passed over is no text."""
        self.at += len(data[self.byte : byte].decode())
        self.byte = byte

    def move_over(self, end: int) -> int:
        """To that character; gives how many bytes that is."""
        passed = self.text[self.at : end]
        size = len(passed) if passed.isascii() else len(passed.encode())
        self.at, self.byte = end, self.byte + size
        return size


class ByteSource:
    """The bytes that were not taken yet, in a buffer that grows to the value being read and no further."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._data = b""
        self._at = 0
        self._dropped = 0
        self.skipped_lines = 0
        self._text: _Text | None = None
        self._mark: int | None = None  # a place to go back to, kept in the buffer until then
        if self._has(len(BOM)) and self._data.startswith(BOM):
            self._at = len(BOM)

    @property
    def byte(self) -> int:
        """The place of the next byte in the stream."""
        return self._dropped + self._at

    def peek(self) -> bytes:
        """The next byte that is not blank, left in place; empty at the end."""
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
        """Take the object or list that follows, as `parse` reads it from a text at a place there; it gives the place of
        the end, and raises ValueError or RecursionError for what it does not read. Then nothing is taken: the value is
        no good, or not all of it is in the buffer.
        """
        self._has(CHUNK >> 2)
        here = self._as_text()
        try:
            value, end = parse(here.text, here.at)
        except (ValueError, RecursionError):
            return None
        self._at += here.move_over(end)
        return value

    def _as_text(self) -> _Text:
        """Decoded once for all values in the buffer."""
        try:
            if self._text is not None:
                self._text.move_to(self._data, self._at)
                return self._text
        except UnicodeDecodeError:
            pass
        self._text = _Text.of(self._data, self._at)
        return self._text

    def value_length(self) -> int | None:
        """How long the next value is; None where the stream ends inside it."""
        first = self.peek()
        if first in (b"{", b"["):
            return self._composite_length()
        return self._string_length(1) if first == b'"' else self._scalar_length()

    def look(self, length: int) -> bytes:
        """The next bytes, left in place."""
        return self._data[self._at : self._at + length]

    def first_element(self) -> bytes:
        """The first element of the array that follows, left in place; empty if there is none."""
        self._mark = self.byte
        self._at += 1
        element = self.look(self.value_length() or 0)
        self._at, self._mark = self._mark - self._dropped, None
        return element

    def line_length(self) -> int:
        """How long the next line is, its end included."""
        offset = 0
        while True:
            end = self._data.find(b"\n", self._at + offset)
            if end >= 0:
                return end + 1 - self._at
            offset = len(self._data) - self._at
            if not self._fill():
                return offset

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
        """Up to the end of the string whose opening quote stands before `offset`."""
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
        """More bytes; as many again as the buffer holds, so that a long string is not searched over and over."""
        start = self._at if self._mark is None else self._mark - self._dropped
        kept = self._data[start:]
        chunk = self._stream.read(max(CHUNK, len(kept)))
        if not chunk:
            return False
        self._data = kept + chunk
        self._text = None
        self._at -= start
        self._dropped += start
        return True
