"""Losses are measured: the messages are written, read back with the format's own decode, and compared.

    written = write(codec, messages)          # what a caller gets
    losses_of(codec, messages)                # only when somebody asks

A codec does not predict its losses. It only reports from which messages it wrote each message of the payload. The
comparison finds the rest, so a bug in a codec shows as a loss and is never silent. It costs more than writing does, so
it is done only on demand, and then from the messages: a payload belongs to its caller, who may have changed it.
"""

from __future__ import annotations

import marshal
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.codec import Codec, Origins, Written
from chatledger.formats.losses.codes import LEFT_OUT, MADE_UP, MERGED, ORDER, SPLIT
from chatledger.formats.losses.compare import compare
from chatledger.models import ChatMessage, Loss, OpaquePart, Part, ToolCall
from chatledger.models.base import copy_with
from chatledger.models.json import MAX_DEPTH, JsonValue, dumps, json_problem

_DEPTH = MAX_DEPTH - 16
"""The depth that remains when a payload nests a value in its own envelope and in one that carries it."""


def write(codec: Codec, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
    """The messages as a payload that the format reads. Values that are too deep for it are left out."""
    written = codec.encode(messages, carry=carry)
    if not _is_deep(written.payload) or _is_readable(codec, messages, carry):
        return written
    return codec.encode(_readable_ones(codec, messages, carry), carry=carry)


def losses_of(codec: Codec, messages: Sequence[ChatMessage], *, carry: bool = False) -> list[Loss]:
    """What the format cannot express of the messages, in their order."""
    return measure(codec, messages, write(codec, messages, carry=carry), carry=carry)


def measure(codec: Codec, messages: Sequence[ChatMessage], written: Written, *, carry: bool = False) -> list[Loss]:
    """The losses of a payload that was just written from the messages, and that nobody can have changed."""
    try:
        decoded = codec.decode(written.payload, rules="lenient").messages
    except DecodeError:  # a residual that no reader wrote
        written = codec.encode(_readable_ones(codec, messages, carry), carry=carry)
        decoded = codec.decode(written.payload, rules="lenient").messages
    return losses_between(messages, decoded, written)


def origins_of(written: Written, count: int) -> Origins:
    """The origins of the `count` messages that reading the payload gives."""
    origins = written.origins() if callable(written.origins) else written.origins
    return [*origins[:count], *[()] * (count - len(origins))]  # more only with a residual that no reader wrote


def _readable_ones(codec: Codec, messages: Sequence[ChatMessage], carry: bool) -> list[ChatMessage]:
    return [message if _is_readable(codec, [message], carry) else _readable(message) for message in messages]


def _is_readable(codec: Codec, messages: Sequence[ChatMessage], carry: bool) -> bool:
    try:
        codec.decode(codec.encode(messages, carry=carry).payload, rules="lenient")
    except DecodeError:
        return False
    return True


def losses_between(messages: Sequence[ChatMessage], decoded: Sequence[ChatMessage], written: Written) -> list[Loss]:
    """The differences between messages and the messages that were read back."""
    losses, origins = _LossesByMessage(messages), origins_of(written, len(decoded))
    _note_places(losses, origins)
    for sources, pieces in groups_of(len(messages), origins):
        if sources and pieces:
            originals = [(index, messages[index]) for index in sources]
            for index, code, path in compare(originals, [decoded[piece] for piece in pieces], written.kept):
                losses.add(index, code, path)
    return losses.losses


def _note_places(losses: _LossesByMessage, origins: Origins) -> None:
    """The losses of messages as a whole."""
    pieces = _places_of(origins)
    moved = unordered(origins)
    for index in range(losses.count):
        own = pieces.get(index, [])
        if not own:
            losses.add(index, LEFT_OUT, "")
        if len(own) > 1:
            losses.add(index, SPLIT, "")
        if any(min(origins[piece]) < index for piece in own):
            losses.add(index, MERGED, "")
        if index in moved:
            losses.add(index, ORDER, "")
    for piece, sources in enumerate(origins):
        if not sources:
            losses.add(_follower(origins, piece), MADE_UP, "")


def _follower(origins: Origins, piece: int) -> int | None:
    """The message after a made-up message; at the end, the last message."""
    after = (sources[0] for sources in origins[piece:] if sources)
    before = (sources[0] for sources in reversed(origins[:piece]) if sources)
    return next(after, next(before, None))


class _LossesByMessage:
    """The losses by message, one for each path."""

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
            for index, of_message in ordered
            for code, path in of_message
        ]


def _places_of(origins: Origins) -> dict[int, list[int]]:
    """For each message, the positions of the pieces that were written from it."""
    places: dict[int, list[int]] = {}
    for piece, sources in enumerate(origins):
        for source in sources:
            places.setdefault(source, []).append(piece)
    return places


def groups_of(count: int, origins: Origins) -> Iterator[tuple[list[int], list[int]]]:
    """Groups of messages and the pieces that were written from them, in the order of the messages.

    One message in two pieces is a group, and so are two messages in one piece. A message that was left out is a group
    without pieces.
    """
    places = _places_of(origins)
    seen: set[int] = set()
    for first in range(count):
        if first not in seen:
            sources, pieces = _connected(first, places, origins)
            seen |= sources
            yield sorted(sources), sorted(pieces)


def _connected(first: int, places: dict[int, list[int]], origins: Origins) -> tuple[set[int], set[int]]:
    sources, pieces, pending = {first}, set[int](), [first]
    while pending:
        for piece in places.get(pending.pop(), ()):
            if piece not in pieces:
                pieces.add(piece)
                pending += [source for source in origins[piece] if source not in sources]
                sources.update(origins[piece])
    return sources, pieces


def unordered(origins: Origins) -> set[int]:
    """The smallest set of messages to remove so that the others are in order."""
    firsts = [min(sources) for sources in origins if sources]
    if all(left <= right for left, right in pairwise(firsts)):
        return set()
    return set(firsts) - set(_longest_rise(list(dict.fromkeys(firsts))))


def _longest_rise(values: Sequence[int]) -> list[int]:
    """The longest rising subsequence. `ends` holds the smallest end for each length, `before` its predecessor."""
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for value in values:
        place = bisect_right(ends, value)
        before[value] = ends[place - 1] if place else None
        ends[place : place + 1] = [value]
    rise: list[int] = []
    value_: int | None = ends[-1] if ends else None
    while value_ is not None:
        rise.append(value_)
        value_ = before[value_]
    return rise


def _readable(message: ChatMessage) -> ChatMessage:
    """A copy that can always be read back: without deep JSON, and without a format.

    Two things can prevent reading: JSON that is too deep a few levels further down in a payload, and an invalid
    residual on a message whose `format` is the format itself.
    """
    changes: dict[str, Any] = {"format": None, "residual": None}
    changes |= {name: None for name in ("response_metadata", "custom_data") if _is_deep(getattr(message, name))}
    for name in ("content", "reasoning"):
        parts = getattr(message, name)
        if isinstance(parts, list):
            changes[name] = [_shallow_part(part) for part in parts if not _is_deep(getattr(part, "value", None))]
    if message.tool_calls is not None:
        changes["tool_calls"] = [_shallow_call(call) for call in message.tool_calls]
    return message.model_copy(update=changes)


def _shallow_part(part: Part) -> Part:
    return part.model_copy(update={"extras": None}) if _is_deep(getattr(part, "extras", None)) else part


def _shallow_call(call: ToolCall) -> ToolCall:
    arguments = dumps(call.arguments) if _is_deep(call.arguments) else call.arguments
    return call.model_copy(update={"arguments": arguments, "extras": None if _is_deep(call.extras) else call.extras})


def _is_deep(value: JsonValue) -> bool:
    return isinstance(value, (dict, list)) and json_problem(value, max_depth=_DEPTH) is not None


# --- Later ------------------------------------------------------------------------------------------------------------
# Losses that are found when somebody asks for them, from the messages as they were when the payload was written.
#
# A payload may share JSON values with its messages: arguments, metadata, values of a residual. Its caller may change
# it, so a copy of these values is kept. Copying is cheap, since most messages have none.


@dataclass(frozen=True, slots=True)
class LossesLater:
    """Call it to find the losses of the messages that were given to `of`."""

    codec: Codec
    messages: tuple[ChatMessage, ...]
    values: bytes
    carry: bool

    @classmethod
    def of(cls, codec: Codec, messages: Sequence[ChatMessage], *, carry: bool = False) -> LossesLater:
        return cls(codec, tuple(messages), marshal.dumps([_values(message) for message in messages]), carry)

    def __call__(self) -> tuple[Loss, ...]:
        pairs = zip(self.messages, marshal.loads(self.values), strict=True)  # noqa: S302 - bytes of our own
        return tuple(losses_of(self.codec, [_with(*pair) for pair in pairs], carry=self.carry))


def _values(message: ChatMessage) -> list[JsonValue]:
    """The JSON values of a message, in the order in which `_with` takes them."""
    values = [message.residual, message.response_metadata, message.custom_data]
    for call in message.tool_calls or ():
        values += (call.arguments, call.extras)
    for content in (message.content, message.reasoning):
        if isinstance(content, list):
            values += [getattr(part, _field(part)) for part in content]
    return values


def _field(part: Part) -> str:
    return "value" if isinstance(part, OpaquePart) else "extras"


def _with(message: ChatMessage, values: list[JsonValue]) -> ChatMessage:
    """The message with these values in place of its own."""
    if not any(isinstance(value, (dict, list)) for value in values):
        return message
    left = iter(values)
    changes: dict[str, Any] = {name: next(left) for name in ("residual", "response_metadata", "custom_data")}
    if message.tool_calls is not None:
        changes["tool_calls"] = [
            copy_with(call, {"arguments": next(left), "extras": next(left)}) for call in message.tool_calls
        ]
    for name in ("content", "reasoning"):
        content = getattr(message, name)
        if isinstance(content, list):
            changes[name] = [copy_with(part, {_field(part): next(left)}) for part in content]
    return copy_with(message, changes)
