"""The position of a follower, and its cursor: the position as an opaque text, bound to the thread."""

from __future__ import annotations

import struct
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Self
from zlib import crc32

from chatledger.errors import InvalidArgument, InvalidCursor
from chatledger.models import ChatMessage
from chatledger.storage.history.window_request import END, MAX_BRANCH
from chatledger.storage.rows.messages import encode_message
from chatledger.storage.schema.text import ends_partial, read_mark

_FORM = 1
_HEAD = struct.Struct(">BIIqqqqI")  # the form, the checksum of the thread's key, then the fields of a Position
_SHARED = struct.Struct(">Iq")


@dataclass(frozen=True, slots=True)
class Position:
    """The state of a reader: it has everything up to `version` of `branch`, in the thread that was created at
    `created`, in microseconds. Changes up to `settled`, if that is further, are contained in the messages that follow,
    and are not reported.

    `partial` is the seq of the message that was being written, and the checksum of the words that the reader has, 0 if
    unknown. `shared` says how far the reader has the revisions of each other branch that this one rests on.
    """

    branch: int
    version: int
    settled: int
    created: int
    partial: tuple[int, int] | None
    shared: tuple[tuple[int, int], ...]

    def write(self, thread: str) -> str:
        """`thread` is the key as stored."""
        partial = self.partial or (0, 0)
        place = (self.branch, self.version, self.settled, self.created)
        head = _HEAD.pack(_FORM, crc32(thread.encode()), *place, *partial)
        return urlsafe_b64encode(head + b"".join(_SHARED.pack(*end) for end in self.shared)).decode().rstrip("=")

    @classmethod
    def read(cls, cursor: str, thread: str) -> Self:
        """Raises InvalidCursor for a text that is no cursor, and for that of another thread."""
        try:
            packed = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            form, checksum, branch, version, settled, created, *partial = _HEAD.unpack(packed[: _HEAD.size])
            shared = tuple(_SHARED.iter_unpack(packed[_HEAD.size :]))
        except (ValueError, struct.error) as error:
            raise InvalidCursor(cursor, _NONE) from error
        seqs = (version, settled, partial[0], *(end for _, end in shared))
        numbers = (branch, *(number for number, _ in shared))
        if form != _FORM or not all(0 <= seq <= END for seq in seqs) or max(numbers) > MAX_BRANCH:
            raise InvalidCursor(cursor, _NONE)
        if checksum != crc32(thread.encode()):
            raise InvalidCursor(cursor, "is of another thread")
        return cls(branch, version, settled, created, (partial[0], partial[1]) if partial[0] else None, shared)


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


def checksum(message: ChatMessage) -> int:
    """Of what is stored of a message that is being written. It is never 0."""
    return crc32(repr(encode_message(message)).encode("utf-8", "surrogatepass")) or 1
