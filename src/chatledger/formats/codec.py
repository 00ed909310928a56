"""The interface of a format: a name, `recognises`, `decode` and `encode`. docs/contribute/write-a-format.md shows one.

A codec is pure and works on sequences. It promises two things:

*Identity*: `encode(decode(payload).messages).payload` is the payload, value by value with key order. What the typed
fields of a ChatMessage cannot carry stays in `ChatMessage.residual`, which only this format reads.

*Conversion*: `encode` takes messages of any origin, never raises, and leaves out what it cannot express. It reports no
losses: `losses.measure` finds them when somebody asks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from chatledger.errors import InvalidArgument
from chatledger.models import ChatMessage, Loss, RulesLevel


@dataclass(frozen=True, slots=True)
class Decoded:
    """The messages that a codec read from a payload."""

    messages: list[ChatMessage]
    """The messages, in order."""
    losses: list[Loss] = field(default_factory=list)
    """The values that cannot be stored as they came. Empty unless lenient rules accepted the payload."""


Origins: TypeAlias = Sequence[tuple[int, ...]]
"""For each message that reading a payload gives, the indexes of the messages that it was written from."""


@dataclass(frozen=True, slots=True)
class Written:
    """A payload that a codec wrote, with the facts from which `losses.measure` finds its losses."""

    payload: Any
    """The payload as the format's own API takes it."""
    origins: Origins | Callable[[], Origins]
    """For each message that the format's lenient `decode` of the payload returns, the indexes of the messages that it
    was written from. [(0,), (0,)] is a message in two pieces, and [(0, 1)] are two messages in one. An index that does
    not occur was left out, and () is a message that was made up. May be a function that finds them, if that takes time:
    only measuring losses needs them.
    """
    kept: Collection[int] = ()
    """The indexes of the messages that are of the format itself and were written with their residual. Their residuals
    are not compared.
    """


Kind: TypeAlias = Literal["models", "dicts"]
"""Whether a payload is made of the format's own objects or of plain dicts."""


class Codec(Protocol):
    """A format: reads payloads as messages, and writes messages as payloads. A class may inherit from this one, or only
    have its members.
    """

    @property
    def name(self) -> str:
        """The name that `format=` takes, and that is stored in `ChatMessage.format`. It must never change."""
        ...

    def recognises(self, payload: object) -> bool:
        """Whether the payload is certainly of this format. Cheap; False in doubt; raises nothing for any object."""
        ...

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """Read a payload as messages. Raises DecodeError with the path of the first value that is not of the format.

        `rules="lenient"` accepts more, so that an import loses nothing: an unknown role is kept as its text.
        """
        ...

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """Write messages of any origin as a payload that lenient rules read, unless a value in them is too deep. Never
        raises for stored messages.

        `carry=True` puts the residual of another format into a free slot of this one, if it has one.
        """
        ...


@runtime_checkable
class ModelCodec(Codec, Protocol):
    """A format that has classes of its own, so that it can return objects instead of dicts."""

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """The kind of payload to return by default: usually the kind that the messages came in as."""
        ...

    def as_models(self, payload: Any) -> Any:
        """A payload that `encode` returned, as objects. Raises EncodeError for a value that no object can hold."""
        ...


@runtime_checkable
class EarlyCodec(Codec, Protocol):
    """A format whose payloads another format recognises too, because they are a special case of that format."""

    @property
    def before(self) -> Sequence[str]:
        """The names of the formats that must be asked after this one whether they recognise a payload."""
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
    """The object as a codec. Raises InvalidArgument with the member that it lacks."""
    kind = codec.__name__ if isinstance(codec, type) else type(codec).__name__
    if isinstance(codec, type):
        raise InvalidArgument("codec", f"must be an instance: pass {kind}(), not the class")
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
            raise InvalidArgument("codec", f"needs the method with the arguments {spelled}") from None
    before = getattr(codec, "before", ())
    if not isinstance(before, (list, tuple)) or not all(isinstance(other, str) for other in before):
        raise InvalidArgument("codec", f"needs a list or tuple of format names in {kind}.before")
    return cast(Codec, codec)
