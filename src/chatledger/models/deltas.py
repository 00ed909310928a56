"""The pieces of a streamed message, and the message that they form.

Consecutive pieces of one kind are joined: text with text, reasoning with reasoning until a signature ends it, fragments
of arguments with their call. Media are never joined. The message does not depend on where the stream was cut. The
halves of a surrogate pair in two pieces stay two characters, as they do in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from chatledger.errors import DecodeError, InvalidArgument
from chatledger.models.base import Model, Text, refuse_own_fields
from chatledger.models.json import JsonObject, dumps, text_bytes
from chatledger.models.messages import ChatMessage, State, ToolCall
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
    """A piece of text. A plain str is the same."""

    text: Text
    """The text to add."""


class ReasoningDelta(Model):
    """A piece of reasoning."""

    text: Text = ""
    """The text to add."""
    signature: Text | None = None
    """The provider's signature of the reasoning so far. It ends the part: reasoning that follows is another part."""


class ToolCallDelta(Model):
    """A piece of a tool call. `index` tells parallel calls apart. Without it, a piece with a name begins the next call,
    and any other piece belongs to the last call.

    A call keeps the first id and name that it gets. A new id and name on a known index begin a new call, since some
    servers give all calls the index 0. In a draft that continues stored content (`resume="continue"`), the stored
    calls have the indexes 0, 1 … in their order, and a piece with a name and another id, or none, begins a new call.
    """

    index: int | None = None
    """The number that tells parallel calls apart, as the provider sends it."""
    id: Text | None = None
    """The provider's id of the call, usually in its first piece."""
    name: Text | None = None
    """The name of the tool, usually in the first piece of the call."""
    arguments: Text | None = None
    """The piece of the arguments to add, as text."""
    extras: JsonObject | None = None
    """Further fields of the call in its own format."""


Delta: TypeAlias = str | TextDelta | ReasoningDelta | ToolCallDelta | Part
"""A piece of a message that `draft.feed` takes: a text, a delta, or a whole part."""
_PARTS = (TextPart, ThinkPart, ImagePart, AudioPart, VideoPart, FilePart, OpaquePart)
DELTAS = (str, TextDelta, ReasoningDelta, ToolCallDelta, *_PARTS)


@dataclass(slots=True)
class _TextSoFar:
    pieces: list[str]

    @classmethod
    def of(cls, text: str) -> _TextSoFar:
        return cls([text])

    def part(self) -> TextPart:
        return TextPart(text="".join(self.pieces))


@dataclass(slots=True)
class _ThinkSoFar:
    pieces: list[str]
    signature: str | None

    @classmethod
    def of(cls, text: str) -> _ThinkSoFar:
        return cls([text], None)

    def part(self) -> ThinkPart:
        return ThinkPart(text="".join(self.pieces), signature=self.signature)


@dataclass(slots=True)
class _CallSoFar:
    index: int | None
    id: str | None
    name: str | None
    pieces: list[str] | None
    extras: JsonObject | None
    stored: bool = False

    def call(self) -> ToolCall:
        arguments = None if self.pieces is None else "".join(self.pieces)
        return ToolCall(id=self.id, name=self.name or "", arguments=arguments, extras=self.extras)


@dataclass(slots=True)
class Growing:
    """The content, the reasoning and the calls of a message that is being written."""

    _content: list[_TextSoFar | _ThinkSoFar | Part] = field(default_factory=list)
    _reasoning: list[_TextSoFar | _ThinkSoFar | Part] = field(default_factory=list)
    _calls: list[_CallSoFar] = field(default_factory=list)
    length: int = 0
    """The characters of all texts and arguments, and 1 for each call, signature and whole part. It is the same for what
    was added and for what is stored of it.
    """

    @classmethod
    def after(cls, stored: ChatMessage) -> Growing:
        """Goes on after the words of a stored message. Its calls have the indexes 0, 1 …, and arguments that are an
        object become their JSON.
        """
        calls = [
            _CallSoFar(index, call.id, call.name, _pieces(call.arguments), call.extras, stored=True)
            for index, call in enumerate(stored.tool_calls or ())
        ]
        content, reasoning = _begun(stored.content, _TextSoFar.of), _begun(stored.reasoning, _ThinkSoFar.of)
        length = sum(map(_length, [*content, *reasoning, *calls]))
        return cls(content, reasoning, calls, length)

    def add(self, delta: Delta) -> None:
        """Raises DecodeError for a piece of a call before any call."""
        if isinstance(delta, ToolCallDelta):
            self._add_call(delta)
            return
        self.length += _length(delta)
        if isinstance(delta, str):
            _add_text(self._content, delta)
        elif isinstance(delta, TextDelta) or (isinstance(delta, TextPart) and delta.extras is None):
            _add_text(self._content, delta.text)
        elif isinstance(delta, ReasoningDelta):
            _add_thought(self._reasoning, delta.text, delta.signature)
        elif isinstance(delta, ThinkPart) and delta.extras is None:
            _add_thought(self._content, delta.text, delta.signature)
        else:
            self._content.append(delta)

    def rest(self, delta: Delta, offset: int) -> Delta | None:
        """Cut off what is here already of a delta that begins at that length; None if all is. Raises InvalidArgument
        for a place beyond the end, and for a call whose first piece has no name, by which its place is known.
        """
        if not 0 <= offset <= self.length:
            raise InvalidArgument("offset", f"must be from 0 to {self.length}, the end of the draft, not {offset}")
        known = self.length - offset
        if known and known >= _length(delta):
            return None
        if isinstance(delta, ToolCallDelta):
            begins = bool(delta.name)
            if not known and begins == (bool(self._calls) and self._find_call(delta) is not None):
                detail = "must have the name of a call in its first piece, and in no other, if it has an offset"
                raise InvalidArgument("delta", detail)
            if known:
                return ToolCallDelta(index=delta.index, arguments=(delta.arguments or "")[known - begins :])
            return delta
        if not known:
            return delta
        if isinstance(delta, str):
            return delta[known:]
        assert isinstance(delta, (TextDelta, ReasoningDelta, TextPart, ThinkPart))  # the others have the length 1
        return delta.model_copy(update={"text": delta.text[known:]})

    def add_from(self, offset: int, deltas: Sequence[Delta]) -> None:
        """Add what of the deltas is not here yet; the first one begins at that length. Raises as `rest` and `add`."""
        for delta in deltas:
            rest = self.rest(delta, offset)
            offset += _length(delta)
            if rest is not None:
                self.add(rest)

    def on(self, message: ChatMessage, state: State) -> ChatMessage:
        """The message with all that was added. A call that has no name yet is only in a complete message."""
        fields = {
            "content": self.content(),
            "reasoning": self.reasoning(),
            "tool_calls": self.tool_calls(nameless=state == "complete"),
            "state": state,
        }
        return message.model_copy(update={name: value for name, value in fields.items() if value is not None})

    def content(self) -> str | list[Part] | None:
        """A str if only text was added, else a list of parts; None if nothing was added."""
        if not self._content:
            return None
        (first, *more) = self._content
        if not more and isinstance(first, _TextSoFar):
            return "".join(first.pieces)
        return _parts(self._content)

    def reasoning(self) -> str | list[Part] | None:
        if not self._reasoning:
            return None
        (first, *more) = self._reasoning
        if not more and isinstance(first, _ThinkSoFar) and first.signature is None:
            return "".join(first.pieces)
        return _parts(self._reasoning)

    def tool_calls(self, *, nameless: bool) -> list[ToolCall] | None:
        """With `nameless`, calls whose name has not come yet are included."""
        calls = [call.call() for call in self._calls if call.name or nameless]
        return calls or None

    def _add_call(self, delta: ToolCallDelta) -> None:
        call = self._find_call(delta)
        if call is None:
            pieces = None if delta.arguments is None else [delta.arguments]
            self._calls.append(_CallSoFar(delta.index, delta.id, delta.name, pieces, delta.extras))
            self.length += 1 + len(delta.arguments or "")
            return
        call.id = call.id if call.id is not None else delta.id
        call.name = call.name or delta.name
        call.extras = delta.extras if call.extras is None else call.extras
        if delta.arguments is not None:
            call.pieces = [] if call.pieces is None else call.pieces
            call.pieces.append(delta.arguments)
            self.length += len(delta.arguments)

    def _find_call(self, delta: ToolCallDelta) -> _CallSoFar | None:
        """The call that the piece belongs to; None if it begins a new one."""
        if delta.index is None:
            if delta.name:
                return None
            if not self._calls:
                raise DecodeError("tool_call", "a piece of a call without a name, before any call began")
            return self._calls[-1]
        earlier = next((call for call in reversed(self._calls) if call.index == delta.index), None)
        if earlier is None or not delta.name:
            return earlier
        if earlier.stored:  # a name begins a call of another response, unless the id says that it is the same call
            return earlier if delta.id and delta.id == earlier.id else None
        return None if delta.id and earlier.id and delta.id != earlier.id else earlier


def _length(of: Delta | _TextSoFar | _ThinkSoFar | _CallSoFar) -> int:
    """See `Growing.length`. The piece that names a call begins it."""
    if isinstance(of, str):
        return len(of)
    if isinstance(of, ToolCallDelta):
        return bool(of.name) + len(of.arguments or "")
    if isinstance(of, _CallSoFar):
        return 1 + sum(map(len, of.pieces or ()))
    if isinstance(of, _TextSoFar):
        return sum(map(len, of.pieces))
    if isinstance(of, _ThinkSoFar):
        return sum(map(len, of.pieces)) + bool(of.signature)
    if isinstance(of, TextDelta) or (isinstance(of, TextPart) and of.extras is None):
        return len(of.text)
    if isinstance(of, ReasoningDelta) or (isinstance(of, ThinkPart) and of.extras is None):
        return len(of.text) + bool(of.signature)
    return 1


def size_of(delta: Delta) -> int:
    """The bytes of its texts in UTF-8. Raises InvalidArgument for any other type, and for a subclass with fields of its
    own.
    """
    if isinstance(delta, str):
        return text_bytes(delta)
    if not isinstance(delta, DELTAS):
        raise InvalidArgument("delta", f"must be a str or one of {_NAMES}, not {type(delta).__name__}")
    if type(delta) not in _CLASSES:
        model = next(kind for kind in DELTAS[1:] if isinstance(delta, kind))
        refuse_own_fields(delta, model, "delta", "custom_data when you complete the draft")
    return sum(text_bytes(value) for value in delta.__dict__.values() if isinstance(value, str))


_CLASSES = frozenset(DELTAS)
_NAMES = ", ".join(kind.__name__ for kind in DELTAS[1:])


def _add_text(parts: list[_TextSoFar | _ThinkSoFar | Part], text: str) -> None:
    if parts and isinstance(parts[-1], _TextSoFar):
        parts[-1].pieces.append(text)
    else:
        parts.append(_TextSoFar([text]))


def _add_thought(parts: list[_TextSoFar | _ThinkSoFar | Part], text: str, signature: str | None) -> None:
    last = parts[-1] if parts else None
    if not isinstance(last, _ThinkSoFar) or last.signature:
        parts.append(_ThinkSoFar([text], signature))
        return
    last.pieces.append(text)
    last.signature = signature or last.signature


def _begun(
    stored: str | Sequence[Part] | None, of: Callable[[str], _TextSoFar | _ThinkSoFar]
) -> list[_TextSoFar | _ThinkSoFar | Part]:
    if stored is None or isinstance(stored, str):
        return [] if stored is None else [of(stored)]
    return [_begun_part(part) for part in stored]


def _begun_part(part: Part) -> _TextSoFar | _ThinkSoFar | Part:
    """Parts with extras are never joined."""
    if isinstance(part, TextPart) and part.extras is None:
        return _TextSoFar.of(part.text)
    if isinstance(part, ThinkPart) and part.extras is None:
        return _ThinkSoFar([part.text], part.signature)
    return part


def _pieces(arguments: str | JsonObject | None) -> list[str] | None:
    if arguments is None:
        return None
    return [arguments if isinstance(arguments, str) else dumps(arguments)]


def _parts(parts: list[_TextSoFar | _ThinkSoFar | Part]) -> list[Part]:
    return [part.part() if isinstance(part, (_TextSoFar, _ThinkSoFar)) else part for part in parts]
