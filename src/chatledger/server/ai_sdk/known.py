"""How much of an answer a client has: the lengths of the parts of its UI message, in UTF-16 code units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args
from zlib import crc32

from chatledger.errors import InvalidArgument
from chatledger.models.json import loads

UnitKind: TypeAlias = Literal["text", "reasoning", "call", "other"]
Key: TypeAlias = tuple[UnitKind, int]
"""The second text of a step is `("text", 1)`."""
STEP = "step-start"
_CALLS = ("dynamic-tool", "tool-")
OTHERS = ("file", "source-", "data-", "reasoning-file", "custom")
"""The beginnings of the types of parts that come whole."""
_STREAMING = ("streaming", "input-streaming")
_LONGEST = 1 << 31
_ENTRY = 4
"""The type of a part, its length, its state, and its checksum or the id of its call."""


@dataclass(slots=True)
class Sent:
    """What a client has of a text, of a thought or of the input of a call."""

    units: int = 0
    """UTF-16 code units."""
    checksum: int | None = 0
    """The CRC-32 of these, of two bytes each; None if the client does not know it."""
    open: bool = True
    """Whether more may follow: of an input, until it is available."""
    call_id: str | None = None
    characters: int | None = 0
    """The length in Python; None until the stored text is known."""
    asked: bool = False
    """Whether an approval was requested."""
    answered: bool = False
    """Whether the client has the result of the call."""

    def add(self, text: str) -> None:
        units = to_units(text)
        self.units += len(units) // 2
        self.checksum = crc32(units, self.checksum or 0)

    def rest_of(self, text: str, *, grown: bool) -> str | None:
        """What follows in the stored text; None if that does not begin with what the client has, or if the client's end
        is inside a surrogate pair. A text that has only grown is not compared.
        """
        if grown and self.characters is not None:
            return text[self.characters :]
        units, end = to_units(text if self.characters is None else text[: self.characters]), 2 * self.units
        if len(units) < end or (self.checksum is not None and crc32(units[:end]) != self.checksum):
            return None
        if self.characters is not None:
            return text[self.characters :]
        if 0 < end < len(units) and _is_in(units, end - 2, 0xD8) and _is_in(units, end, 0xDC):
            return None
        self.checksum = crc32(units[:end])  # the client may have sent none
        return units[end:].decode("utf-16-le", "surrogatepass")


def to_units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _is_in(units: bytes, at: int, first: int) -> bool:
    """Whether the unit is of the half of the surrogates that begins there."""
    return units[at + 1] & 0xFC == first


@dataclass(slots=True)
class KnownStep:
    sent: dict[Key, Sent] = field(default_factory=dict)

    def count(self, kind: UnitKind) -> int:
        return sum(key[0] == kind for key in self.sent)


@dataclass(slots=True)
class Known:
    """What a client has. With `continues`, the earlier steps are taken for whole, since it cannot begin anew."""

    message_id: str
    steps: Sequence[KnownStep]
    continues: bool = False


def read_have(text: str) -> Known | None:
    """What `have` says: `{"id": …, "parts": [[type, length, state, mark], …]}`. None for a part that no answer has.
    Raises InvalidArgument.
    """
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        value = None
    message_id, parts = (value.get("id"), value.get("parts")) if isinstance(value, dict) else (None, None)
    if not isinstance(message_id, str) or not isinstance(parts, list) or not all(map(_is_entry, parts)):
        raise InvalidArgument("have", 'must be JSON: {"id": "…", "parts": [["text", 12, "streaming", "1f2e3d4c"], …]}')
    steps = _steps_of(parts)
    return None if steps is None else Known(message_id, steps)


def of_message(source: Mapping[str, Any]) -> Known:
    """What the UI message of a request has."""
    parts = [part for part in source.get("parts", ()) if isinstance(part, dict) and isinstance(part.get("type"), str)]
    steps = _steps_of([_entry_of(part) for part in parts if _kind_of(part["type"]) or part["type"] == STEP]) or []
    for step in steps:
        for sent in step.sent.values():
            sent.open = False  # the stream that it came with has ended
    return Known(str(source.get("id")), steps, continues=True)


def _entry_of(part: Mapping[str, Any]) -> list[Any]:
    text = part.get("text", part.get("rawInput"))
    length = len(to_units(text)) // 2 if isinstance(text, str) else 0
    state, call_id = (
        value if isinstance(value, str) else None for value in (part.get("state"), part.get("toolCallId"))
    )
    return [part["type"], length, state, call_id]


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, list) or not 2 <= len(entry) <= _ENTRY:
        return False
    kind, length, *more = entry
    is_length = type(length) is int and 0 <= length < _LONGEST
    return isinstance(kind, str) and is_length and all(isinstance(value, str | None) for value in more)


def _steps_of(entries: Iterable[Sequence[Any]]) -> list[KnownStep] | None:
    steps: list[KnownStep] = []
    for name, length, state, mark in ([*entry, None, None][:_ENTRY] for entry in entries):
        if name == STEP or not steps:
            steps.append(KnownStep())
        if name == STEP:
            continue
        kind = _kind_of(name)
        if kind is None:
            return None
        is_open = state in _STREAMING
        sent = Sent(length, None, open=is_open, characters=None)
        if kind == "call":
            sent.call_id = mark
            sent.asked, sent.answered = (str(state).startswith(word) for word in ("approval-", "output-"))
        elif mark is not None:
            try:
                sent.checksum = int(mark, 16)
            except ValueError:
                return None
        steps[-1].sent[kind, steps[-1].count(kind)] = sent
    return steps


def _kind_of(name: str) -> UnitKind | None:
    if name in ("text", "reasoning"):
        return get_args(UnitKind)[name == "reasoning"]  # type: ignore[no-any-return]
    if name.startswith(_CALLS):
        return "call"
    return "other" if name.startswith(OTHERS) else None
