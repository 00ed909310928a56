"""Counts the values of a JSON body before it is parsed.

A parsed value takes up to a hundred times the bytes of its text, and each is looked at many times, so a body is limited
in values as well as in bytes. Only the signs outside of strings count: a long text is one value.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.models.limits import MOST_VALUES

_PIECE = 1 << 16
"""Bytes that are looked at without a pause, in which other threads may run."""
_OPEN = frozenset(b"[{")
_ALL = bytes(range(256))
_NO_SIGN = bytes(set(_ALL) - set(b"[]{},"))
_NO_BRACKET = bytes(set(_ALL) - set(b"[]{}"))


@dataclass(slots=True)
class Count:
    values: int = 1
    depth: int = 0
    deepest: int = 0


def scan(body: bytes, *, deepest: int) -> Count:
    """The values of a body and its depth, where it is deeper than `deepest`. The scan stops at the first piece that is
    deeper, or that goes beyond MOST_VALUES.
    """
    count, in_text, at = Count(), False, 0
    while at < len(body) and count.deepest <= deepest and count.values <= MOST_VALUES:
        piece = _piece(body, at)
        at += len(piece)
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        _add(count, b"".join(parts[in_text::2]).translate(None, _NO_SIGN), deepest)
        in_text ^= len(parts) % 2 == 0
    return count


def _piece(body: bytes, at: int) -> bytes:
    """The next piece. It does not end between a backslash and the sign after it."""
    piece = body[at : at + _PIECE]
    backslashes = len(piece) - len(piece.rstrip(b"\\"))
    return piece[:-1] if backslashes % 2 and len(piece) > 1 else piece


def _add(count: Count, signs: bytes, deepest: int) -> None:
    opened = signs.count(b"[") + signs.count(b"{")
    count.values += signs.count(b",") + opened
    if count.depth + opened <= deepest:
        count.depth += opened - (signs.count(b"]") + signs.count(b"}"))
        return
    for sign in signs.translate(None, _NO_BRACKET):
        count.depth += 1 if sign in _OPEN else -1
        count.deepest = max(count.deepest, count.depth)
