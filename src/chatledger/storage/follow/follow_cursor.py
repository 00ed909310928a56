"""The position of a follower, and its cursor: the position as an opaque text, bound to the thread."""

from __future__ import annotations

import struct
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Self
from zlib import crc32

from chatledger.errors import InvalidArgument, InvalidCursor
from chatledger.storage.follow.words import Words
from chatledger.storage.history.window_request import END, MAX_BRANCH
from chatledger.storage.schema.text import ends_partial, read_mark

_CHECKS = struct.Struct(">BII")  # the form and its flags, the checksums of the thread's key and of its creation
_WORDS = struct.Struct(">I")
_FORM = 2
_SETTLED, _PARTIAL, _AT_END = 16, 32, 64
"""Flags: `settled` is another number than `version`; a message is being written; it is the one at `version`."""
_OLD = struct.Struct(">BIIqqqqI")  # form 1, which the candidate writes
_OLD_SHARED = struct.Struct(">Iq")


@dataclass(frozen=True, slots=True)
class Position:
    """The state of a reader: it has everything up to `version` of `branch`, in the thread with this checksum of its
    creation. Changes up to `settled`, if that is further, are contained in the messages that follow, and are not
    reported.

    `partial` is the seq of the message that was being written, and what the reader has of it, None if unknown.
    `shared` says how far the reader has the revisions of each other branch that this one rests on.
    """

    branch: int
    version: int
    settled: int
    created: int
    partial: tuple[int, Words | None] | None
    shared: tuple[tuple[int, int], ...]

    def write(self, thread: str) -> str:
        """`thread` is the key as stored."""
        seq, words = self.partial or (self.version, None)
        flags = _SETTLED * (self.settled != self.version) | _PARTIAL * (self.partial is not None)
        flags |= _AT_END * (seq == self.version)
        packed = bytearray(_CHECKS.pack(_FORM | flags, crc32(thread.encode()), self.created))
        numbers = [self.branch, self.version, *([self.settled] if flags & _SETTLED else [])]
        if self.partial is not None:
            numbers += [] if flags & _AT_END else [seq]
            packed += _WORDS.pack(words.checksum if words else 0)
            numbers += [len(words.lengths), *words.lengths] if words else [0]
        for number in [*numbers, *chain(*self.shared)]:
            _add(packed, number)
        return urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def read(cls, cursor: str, thread: str) -> Self:
        """Raises InvalidCursor for a text that is no cursor, and for that of another thread."""
        try:
            packed = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            checksum, position = cls._unpack_old(packed) if packed[:1] == b"\x01" else cls._unpack(packed)
        except (ValueError, IndexError, struct.error) as error:
            raise InvalidCursor(cursor, _NONE) from error
        seqs = (position.version, position.settled, *(position.partial or ())[:1], *(end for _, end in position.shared))
        numbers = (position.branch, *(number for number, _ in position.shared))
        if not all(0 <= seq <= END for seq in seqs) or not all(0 <= number <= MAX_BRANCH for number in numbers):
            raise InvalidCursor(cursor, _NONE)
        if checksum != crc32(thread.encode()):
            raise InvalidCursor(cursor, "is of another thread")
        return position

    @classmethod
    def _unpack(cls, packed: bytes) -> tuple[int, Self]:
        """The checksum of the thread, and the position. Raises ValueError, IndexError and struct.error."""
        form, thread, created = _CHECKS.unpack_from(packed)
        if form & 15 != _FORM:
            raise ValueError("another form")
        checksum = _WORDS.unpack_from(packed, _CHECKS.size)[0] if form & _PARTIAL else 0
        rest = list(_numbers(packed[_CHECKS.size + (_WORDS.size if form & _PARTIAL else 0) :]))
        branch, version = rest.pop(0), rest.pop(0)
        settled = rest.pop(0) if form & _SETTLED else version
        partial = None
        if form & _PARTIAL:
            seq = version if form & _AT_END else rest.pop(0)
            count = rest.pop(0)
            partial = (seq, Words(tuple(rest[:count]), checksum) if checksum else None)
            rest = rest[count:]
        shared = tuple(zip(rest[::2], rest[1::2], strict=True))
        return thread, cls(branch, version, settled, created, partial, shared)

    @classmethod
    def _unpack_old(cls, packed: bytes) -> tuple[int, Self]:
        """Its checksum of the message that was being written covers more than the words, so it counts as unknown."""
        _, thread, branch, version, settled, created, seq, _ = _OLD.unpack(packed[: _OLD.size])
        shared = tuple(_OLD_SHARED.iter_unpack(packed[_OLD.size :]))
        return thread, cls(branch, version, settled, check_of(created), (seq, None) if seq else None, shared)


def check_of(created: int) -> int:
    """The checksum of the time at which a thread was created, in microseconds: it tells threads of one id apart."""
    return crc32(str(created).encode())


def _add(packed: bytearray, number: int) -> None:
    """Seven bits a byte, the lowest first; all but the last have the eighth."""
    while number > 127:
        packed.append(number & 127 | 128)
        number >>= 7
    packed.append(number)


def _numbers(packed: bytes) -> Iterator[int]:
    """Raises ValueError where the last number is cut off, or has more bits than one of ours."""
    number = bits = 0
    for byte in packed:
        number |= (byte & 127) << bits
        bits += 7
        if byte < 128:
            yield number
            number = bits = 0
        elif bits > 63:
            raise ValueError("a number of too many bits")
    if bits:
        raise ValueError("a number is cut off")


_NONE = "not the cursor of a change that `follow` gave, nor the mark of a history or of an append"


@dataclass(frozen=True, slots=True)
class Read:
    """The state in a mark: that of a reader after a history or an append. `partial`: the last message that the reader
    has was still being written.
    """

    branch: int
    version: int
    stamp: int
    partial: bool


def read_start(after: str, thread: str) -> Position | Read:
    """Reads a cursor or a mark. Raises InvalidCursor."""
    try:
        mark = read_mark(after, thread, "after")
    except InvalidArgument:
        return Position.read(after, thread)
    if not 0 <= mark.version <= END:
        raise InvalidCursor(after, _NONE)
    return Read(*mark, ends_partial(after))
