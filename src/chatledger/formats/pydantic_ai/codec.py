"""The codec of `format="pydantic-ai"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.formats.codec import Decoded, Kind, Written
from chatledger.formats.pydantic_ai.detect import is_pydantic_ai
from chatledger.formats.pydantic_ai.foreign import fit
from chatledger.formats.pydantic_ai.names import NAME
from chatledger.formats.pydantic_ai.objects import build, plain
from chatledger.formats.pydantic_ai.read import read_payload
from chatledger.formats.pydantic_ai.write import Writer
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class PydanticAI:
    """A list of requests and responses, in the JSON of the framework's `ModelMessagesTypeAdapter` or as its objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_pydantic_ai(payload)

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """Always dicts: only `as_="models"` needs the framework."""
        return "dicts"

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One row for each part of a request, and one for each response.

        Lenient rules keep a malformed message or part whole.
        """
        return Decoded(read_payload(plain(payload), lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of dicts for `ModelMessagesTypeAdapter.validate_json`. `carry` has no effect."""
        return write_payload(messages)

    def as_models(self, payload: Any) -> Any:
        return build(payload)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The payload: messages of the format as they came in, others fitted to the format."""
    writer = Writer()
    origins: list[tuple[int, ...]] = []
    for index, message in enumerate(messages):
        fitted = fit(message)
        is_own = message.format == NAME
        written = None if fitted is None else writer.write(fitted, index + 1, is_own=is_own)
        if written is not None:
            origins.append((index,))
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    return Written(writer.messages, origins, own)


CODEC = PydanticAI()
