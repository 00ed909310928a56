"""Counts the values of a JSON text before it is parsed.

A parsed value takes up to a hundred times the bytes of its text, and each is looked at many times, so a text is limited
in values as well as in bytes. Only the signs outside of strings count: a long string is one value. The digits of long
numbers count too, since the time to read and write a number grows with the square of its digits. While Python parses a
text, no other thread runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from chatledger.models.json import JsonValue, loads
from chatledger.models.limits import MOST_DIGITS, MOST_VALUES

_PIECE = 1 << 16
"""Bytes that are looked at without a pause, in which other threads may run."""
_OPEN = frozenset(b"[{")
_ALL = bytes(range(256))
_NO_SIGN = bytes(set(_ALL) - set(b"[]{},"))
_NO_BRACKET = bytes(set(_ALL) - set(b"[]{}"))
_LONG_NUMBER = re.compile(rb"(?<![0-9])[0-9]{31,}")


@dataclass(slots=True)
class Count:
    values: int = 1
    depth: int = 0
    deepest: int = 0
    digits: int = 0
    """The digits of numbers that have more than 30."""
    long_number: int | None = None
    """The byte at which the first of these numbers begins."""

    @property
    def is_crowded(self) -> bool:
        return self.values > MOST_VALUES or self.digits > MOST_DIGITS


def scan(body: bytes, *, deepest: int = sys.maxsize) -> Count:
    """The values of a text and its depth, where it is deeper than `deepest`. The scan stops at the first piece that is
    deeper, or that goes beyond MOST_VALUES or MOST_DIGITS.
    """
    count, in_text, at = Count(), False, 0
    while at < len(body) and count.deepest <= deepest and not count.is_crowded:
        piece = _piece(body, at)
        parts = piece.replace(b"\\\\", b"__").replace(b'\\"', b"__").split(b'"')
        outside = b"".join(parts[in_text::2])
        _add(count, outside.translate(None, _NO_SIGN), deepest)
        if numbers := _LONG_NUMBER.findall(outside):
            count.digits += sum(map(len, numbers))
            if count.long_number is None:
                count.long_number = at + _place(parts, in_text)
        at += len(piece)
        in_text ^= len(parts) % 2 == 0
    return count


def is_crowded(text: str) -> bool:
    """Whether the text has too many values, or too many digits, to be parsed as JSON."""
    return len(text) > MOST_VALUES and scan(text.encode("utf-8", "surrogatepass")).is_crowded


def read_text(text: str) -> JsonValue:
    """The value of a text that may be JSON. Raises ValueError or RecursionError if it is none, or is crowded."""
    if is_crowded(text):
        raise ValueError("too many values")
    return loads(text)


def _piece(body: bytes, at: int) -> bytes:
    """The next piece. It does not end between a backslash and the sign after it."""
    piece = body[at : at + _PIECE]
    backslashes = len(piece) - len(piece.rstrip(b"\\"))
    return piece[:-1] if backslashes % 2 and len(piece) > 1 else piece


def _place(parts: Sequence[bytes], in_text: bool) -> int:
    """Where the first long number begins. Each second part is a string."""
    at = 0
    for index, part in enumerate(parts):
        if index % 2 == in_text and (found := _LONG_NUMBER.search(part)) is not None:
            return at + found.start()
        at += len(part) + 1
    return 0  # digits on both sides of a string, which is no JSON


def _add(count: Count, signs: bytes, deepest: int) -> None:
    opened = signs.count(b"[") + signs.count(b"{")
    count.values += signs.count(b",") + opened
    if count.depth + opened <= deepest:
        count.depth += opened - (signs.count(b"]") + signs.count(b"}"))
        return
    for sign in signs.translate(None, _NO_BRACKET):
        count.depth += 1 if sign in _OPEN else -1
        count.deepest = max(count.deepest, count.depth)
