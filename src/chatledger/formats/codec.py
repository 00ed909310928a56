"""The interface of a format: a name, `recognises`, `decode` and `encode`. docs/formats/write-a-format.md shows one.

A codec is pure and works on sequences. It promises two things:

*Identity*: `encode(decode(payload).messages).payload` is the payload, value by value with key order. What the typed
fields of a ChatMessage cannot carry stays in `ChatMessage.residual`, which only this format reads.

*Conversion*: `encode` takes messages of any origin, never raises, and returns as losses what it could not express.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from chatledger.errors import InvalidArgument
from chatledger.models import ChatMessage, Loss, RulesLevel


@dataclass(frozen=True, slots=True)
class Decoded:
    """The messages of a payload; `losses` is empty unless lenient rules let something in that cannot be kept."""

    messages: list[ChatMessage]
    losses: list[Loss] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A payload as the format's own API takes it, and the losses of the messages that it could not express.

    `origins` has, for each message that reading the payload gives, the indexes of the messages that it was written
    from: usually one, the same one for each piece of a split message, several for merged ones, none for a made-up one.
    """

    payload: Any
    losses: list[Loss] = field(default_factory=list)
    origins: Sequence[tuple[int, ...]] = ()


Kind: TypeAlias = Literal["models", "dicts"]
"""Whether a payload is made of the format's own objects or of plain dicts."""


class Codec(Protocol):
    """One format. A class may inherit from this one, or only have its members."""

    @property
    def name(self) -> str:
        """The name that `format=` takes, and that is stored in `ChatMessage.format`. It never changes."""
        ...

    def recognises(self, payload: object) -> bool:
        """Whether the payload is certainly of this format. Cheap, False in doubt; raises nothing, whatever it gets."""
        ...

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """The payload as messages. Raises DecodeError with the path of the first thing that is not of the format.

        `rules="lenient"` keeps what an import would otherwise lose: an unknown role is kept as its text.
        """
        ...

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """Messages of any origin as a payload. Never raises on stored messages.

        `carry` puts the residual of another format into a free slot of this one where it has one.
        """
        ...


@runtime_checkable
class ModelCodec(Codec, Protocol):
    """A format that has classes of its own, which can be given back instead of dicts."""

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """The kind of a payload for a reader that asks for none: usually the kind that came in."""
        ...

    def as_models(self, payload: Any) -> Any:
        """A payload that `encode` gave, as objects. Raises EncodeError for what no object can hold."""
        ...


@runtime_checkable
class EarlyCodec(Codec, Protocol):
    """A format whose payloads another format is sure of as well, since they are a special case of it."""

    @property
    def before(self) -> Sequence[str]:
        """The names of the formats that are asked after this one whether they recognise a payload."""
        ...


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,63}")
_CALLS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "recognises": ("payload", {}),
    "decode": ("payload", {"rules": "lenient"}),
    "encode": ("messages", {"carry": False}),
}
_MODEL_CALLS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "given_as": ("messages", {}),
    "as_models": ("payload", {}),
}


def checked(codec: object) -> Codec:
    """The object as a codec. Raises InvalidArgument, which says what it lacks."""
    kind = codec.__name__ if isinstance(codec, type) else type(codec).__name__
    if isinstance(codec, type):
        raise InvalidArgument("codec", f"must be an object: give {kind}() and not the class")
    name = getattr(codec, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArgument("codec", f"needs {kind}.name: 1 to 64 letters, digits and '.', '_', '/', '+', '-'")
    has_models = any(hasattr(codec, call) for call in _MODEL_CALLS)
    for call, (argument, named) in {**_CALLS, **(_MODEL_CALLS if has_models else {})}.items():
        spelled = f"{kind}.{call}({', '.join([argument, *(f'*, {name}=' for name in named)])})"
        method = getattr(codec, call, None)
        if not callable(method):
            raise InvalidArgument("codec", f"needs the method {spelled}")
        try:
            inspect.signature(method).bind(None, **named)
        except TypeError:
            raise InvalidArgument("codec", f"needs the method with these arguments: {spelled}") from None
    before = getattr(codec, "before", ())
    if not isinstance(before, (list, tuple)) or not all(isinstance(other, str) for other in before):
        raise InvalidArgument("codec", f"needs names of formats in {kind}.before, as a list or a tuple")
    return cast(Codec, codec)
