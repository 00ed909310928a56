"""The losses of a conversion, measured: what was written is read back with the format's own decode and compared.

    def encode(self, messages, *, carry=False):
        return measured(self, messages, lambda given: write(given, carry))

A codec predicts nothing. It says of which messages it made each, and the rest is found: a fault in a codec shows as a
loss and never as a silence. It costs a decode of the payload. Messages of the format itself that are written as they
were read are taken at their word, so reading a thread in its own format is never measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.codec import Codec, Encoded
from chatledger.formats.comparing import compare
from chatledger.formats.joining import groups_of, places_of, unordered
from chatledger.formats.losses import FIELDS, LEFT_OUT, MADE_UP, MERGED, ORDER, SPLIT, STATE
from chatledger.formats.readable import readable
from chatledger.models import ChatMessage, Loss

UNSAID = ("is_error", "run_id", "response_metadata", "custom_data")
"""Fields that most formats have no place for."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a codec wrote.

    `origins` is parallel to the messages that the format's lenient decode gives back: for each of them the indexes of
    the messages that it was written from. [(0,), (0,)] is a message in two pieces, [(0, 1)] are two in one; an index
    that appears nowhere was left out, and () is a message that nobody said.

    `kept` has the indexes of the messages that are of the format itself and were written with their residual, so that
    this is not compared: it says how they came in. `as_read`: all messages are such, and none has anything in it but
    what reading gives and the fields that the format never reads.
    """

    payload: Any
    origins: Sequence[tuple[int, ...]]
    kept: Collection[int] = ()
    as_read: bool = False


def measured(
    codec: Codec,
    messages: Sequence[ChatMessage],
    write: Callable[[Sequence[ChatMessage]], Written],
    *,
    unsaid: Sequence[str] = UNSAID,
) -> Encoded:
    """The payload of the messages and its losses, in the order of the messages.

    `unsaid` names the fields which no message has that this format reads; beside them, each is complete.
    """
    written = write(messages)
    if written.as_read:
        return Encoded(written.payload, _unsaid(messages, unsaid), written.origins)
    try:
        decoded = codec.decode(written.payload, rules="lenient").messages
    except DecodeError:
        written = write([message if _is_readable(codec, message, write) else readable(message) for message in messages])
        decoded = codec.decode(written.payload, rules="lenient").messages
    missing = len(decoded) - len(written.origins)  # none, unless somebody's residual took part in the writing
    origins = [*written.origins[: len(decoded)], *[()] * missing]
    written = replace(written, origins=origins)
    return Encoded(written.payload, losses_between(messages, decoded, written), origins)


def _is_readable(codec: Codec, message: ChatMessage, write: Callable[[Sequence[ChatMessage]], Written]) -> bool:
    try:
        codec.decode(write([message]).payload, rules="lenient")
    except DecodeError:
        return False
    return True


def losses_between(messages: Sequence[ChatMessage], decoded: Sequence[ChatMessage], written: Written) -> list[Loss]:
    """What differs between messages and what was read back of them."""
    found = _Found(messages)
    _note_places(found, written.origins)
    for sources, pieces in groups_of(len(messages), written.origins):
        if sources and pieces:
            said = [(index, messages[index]) for index in sources]
            for index, code, path in compare(said, [decoded[piece] for piece in pieces], written.kept):
                found.add(index, code, path)
    return found.losses


def _note_places(found: _Found, origins: Sequence[tuple[int, ...]]) -> None:
    """The losses of messages as a whole."""
    pieces = places_of(origins)
    moved = unordered(origins)
    for index in range(found.count):
        own = pieces.get(index, [])
        if not own:
            found.add(index, LEFT_OUT, "")
        if len(own) > 1:
            found.add(index, SPLIT, "")
        if any(min(origins[piece]) < index for piece in own):
            found.add(index, MERGED, "")
        if index in moved:
            found.add(index, ORDER, "")
    for piece, sources in enumerate(origins):
        if not sources:
            found.add(_follower(origins, piece), MADE_UP, "")


def _follower(origins: Sequence[tuple[int, ...]], piece: int) -> int | None:
    """The message that a made one stands before; at the end, the last."""
    after = (sources[0] for sources in origins[piece:] if sources)
    before = (sources[0] for sources in reversed(origins[:piece]) if sources)
    return next(after, next(before, None))


class _Found:
    """The losses by message; a place is named once."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self._messages = messages
        self._by_message: dict[int | None, dict[tuple[str, str], None]] = {}

    @property
    def count(self) -> int:
        return len(self._messages)

    def add(self, index: int | None, code: str, path: str) -> None:
        self._by_message.setdefault(index, {})[code, path] = None

    @property
    def losses(self) -> list[Loss]:
        ordered = sorted(self._by_message.items(), key=lambda entry: -1 if entry[0] is None else entry[0])
        return [
            Loss(code, None if index is None else self._messages[index].seq, path)
            for index, found in ordered
            for code, path in found
        ]


def _unsaid(messages: Sequence[ChatMessage], unsaid: Sequence[str]) -> list[Loss]:
    """What was set on messages after they were read, and has no place."""
    losses = []
    for message in messages:
        if message.state != "complete":
            losses.append(Loss(STATE, message.seq, "state"))
        losses += [Loss(FIELDS[name], message.seq, name) for name in unsaid if getattr(message, name) is not None]
    return losses
