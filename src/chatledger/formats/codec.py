"""The interface of a format: a name, `decode` and `encode`.

A codec is pure and works on sequences. It promises two things:

*Identity*: `encode(decode(payload).messages).payload` is the payload, value by value with key order. What the typed
fields of a ChatMessage cannot carry stays in `ChatMessage.residual`, which only this format reads.

*Conversion*: `encode` takes messages of any origin, never raises, and returns as losses what it could not express.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

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
    """One format. `name` is what is stored in `ChatMessage.format`."""

    @property
    def name(self) -> str: ...

    def recognises(self, payload: object) -> bool:
        """Whether the payload is certainly of this format. Cheap; False in doubt."""
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
