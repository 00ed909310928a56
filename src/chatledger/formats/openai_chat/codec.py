"""The codec of `format="openai-chat"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.formats.codec import Decoded, Written
from chatledger.formats.openai_chat.detect import is_openai_chat
from chatledger.formats.openai_chat.foreign import fit
from chatledger.formats.openai_chat.read import read_payload
from chatledger.formats.openai_chat.write import NAME, write_message
from chatledger.formats.wire.pairing import Pairing
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """A list of messages of chat completions, dicts or the SDK's objects, each of which becomes one ChatMessage."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_openai_chat(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One message for each object. Lenient rules keep an unknown role as its text and a malformed part whole."""
        return Decoded(read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of dicts. `carry` has no effect: the API refuses unknown keys, so there is no free field."""
        return write_payload(messages)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The list that the API accepts: messages of the format as they came in, others fitted to the format."""
    pairing = Pairing()
    payload: list[dict[str, Any]] = []
    origins: list[tuple[int, ...]] = []
    for index, message in enumerate(messages):
        answered = pairing.follow(message, index + 1)
        fitted = message if message.format == NAME else fit(message, index + 1, answered)
        if fitted is not None:
            payload.append(write_message(fitted))
            origins.append((index,))
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    return Written(payload, origins, own)


CODEC = OpenAIChat()
