"""What a model says piece by piece, and the message that the pieces make.

Pieces of one kind that follow each other are one: text joins text, reasoning joins reasoning until a signature seals
it, fragments of arguments join their call; media stand for themselves. The whole does not depend on where it was cut.
Halves of a surrogate pair that come in two pieces stay two characters, as they would if both came at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from chatledger.errors import DecodeError, InvalidArgument
from chatledger.models.base import Model
from chatledger.models.json import JsonObject
from chatledger.models.messages import ToolCall
from chatledger.models.parts import (
    AudioPart,
    FilePart,
    ImagePart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
    VideoPart,
)


class TextDelta(Model):
    text: str


class ReasoningDelta(Model):
    """More of the reasoning. A `signature` seals what was said so far: reasoning that follows is another part."""

    text: str = ""
    signature: str | None = None


class ToolCallDelta(Model):
    """More of a call. `index` tells parallel calls apart; without it, a piece with a name begins the next call and any
    other belongs to the last. Id and name are those that come first; a new id and name on a known index are a new call,
    since some servers number all of them 0.
    """

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    extras: JsonObject | None = None


Delta: TypeAlias = str | TextDelta | ReasoningDelta | ToolCallDelta | Part
_PARTS = (TextPart, ThinkPart, ImagePart, AudioPart, VideoPart, FilePart, OpaquePart)
DELTAS = (str, TextDelta, ReasoningDelta, ToolCallDelta, *_PARTS)


@dataclass(slots=True)
class _Text:
    pieces: list[str]

    def part(self) -> TextPart:
        return TextPart(text="".join(self.pieces))


@dataclass(slots=True)
class _Think:
    pieces: list[str]
    signature: str | None

    def part(self) -> ThinkPart:
        return ThinkPart(text="".join(self.pieces), signature=self.signature)


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str | None
    name: str | None
    pieces: list[str] | None
    extras: JsonObject | None

    def call(self) -> ToolCall:
        arguments = None if self.pieces is None else "".join(self.pieces)
        return ToolCall(id=self.id, name=self.name or "", arguments=arguments, extras=self.extras)


@dataclass(slots=True)
class Growing:
    """The content, the reasoning and the calls of a message that is being written."""

    _content: list[_Text | _Think | Part] = field(default_factory=list)
    _reasoning: list[_Text | _Think | Part] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)

    def add(self, delta: Delta) -> None:
        """Raises DecodeError for a piece of a call before any call."""
        if isinstance(delta, str):
            _add_text(self._content, delta)
        elif isinstance(delta, TextDelta) or (isinstance(delta, TextPart) and delta.extras is None):
            _add_text(self._content, delta.text)
        elif isinstance(delta, ReasoningDelta):
            _add_thought(self._reasoning, delta.text, delta.signature)
        elif isinstance(delta, ThinkPart) and delta.extras is None:
            _add_thought(self._content, delta.text, delta.signature)
        elif isinstance(delta, ToolCallDelta):
            self._add_call(delta)
        else:
            self._content.append(delta)

    def content(self) -> str | list[Part] | None:
        """A text as long as nothing else came, and None if nothing did."""
        if not self._content:
            return None
        (first, *more) = self._content
        if not more and isinstance(first, _Text):
            return "".join(first.pieces)
        return _parts(self._content)

    def reasoning(self) -> str | list[Part] | None:
        if not self._reasoning:
            return None
        (first, *more) = self._reasoning
        if not more and isinstance(first, _Think) and first.signature is None:
            return "".join(first.pieces)
        return _parts(self._reasoning)

    def tool_calls(self, *, nameless: bool) -> list[ToolCall] | None:
        """`nameless`: with those whose name has not come yet."""
        calls = [call.call() for call in self._calls if call.name or nameless]
        return calls or None

    def _add_call(self, delta: ToolCallDelta) -> None:
        call = self._find_call(delta)
        if call is None:
            pieces = None if delta.arguments is None else [delta.arguments]
            self._calls.append(_Call(delta.index, delta.id, delta.name, pieces, delta.extras))
            return
        call.id = call.id if call.id is not None else delta.id
        call.name = call.name or delta.name
        call.extras = delta.extras if call.extras is None else call.extras
        if delta.arguments is not None:
            call.pieces = [] if call.pieces is None else call.pieces
            call.pieces.append(delta.arguments)

    def _find_call(self, delta: ToolCallDelta) -> _Call | None:
        """The call that it belongs to; None if it begins one."""
        if delta.index is None:
            if delta.name:
                return None
            if not self._calls:
                raise DecodeError("tool_call", "a piece of a call without a name, before any call began")
            return self._calls[-1]
        found = next((call for call in reversed(self._calls) if call.index == delta.index), None)
        another = found is not None and delta.id and delta.name and found.id and delta.id != found.id
        return None if another else found


def size_of(delta: Delta) -> int:
    """Bytes of what it says, as UTF-8. Raises InvalidArgument for what is no delta."""
    if isinstance(delta, str):
        return _bytes(delta)
    if not isinstance(delta, DELTAS):
        raise InvalidArgument("delta", f"must be a str or one of {_NAMES}, not {type(delta).__name__}")
    return sum(_bytes(value) for value in delta.__dict__.values() if isinstance(value, str))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


_NAMES = ", ".join(kind.__name__ for kind in DELTAS[1:])


def _add_text(parts: list[_Text | _Think | Part], text: str) -> None:
    if parts and isinstance(parts[-1], _Text):
        parts[-1].pieces.append(text)
    else:
        parts.append(_Text([text]))


def _add_thought(parts: list[_Text | _Think | Part], text: str, signature: str | None) -> None:
    last = parts[-1] if parts else None
    if not isinstance(last, _Think) or last.signature:
        parts.append(_Think([text], signature))
        return
    last.pieces.append(text)
    last.signature = signature or last.signature


def _parts(parts: list[_Text | _Think | Part]) -> list[Part]:
    return [part.part() if isinstance(part, (_Text, _Think)) else part for part in parts]
