"""The codec: what the ledger calls for `format="openai-chat"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatledger.formats.codec import Decoded, Encoded
from chatledger.formats.losses.measure import measured
from chatledger.formats.openai_chat.decode import read_payload
from chatledger.formats.openai_chat.encode import write_payload
from chatledger.formats.openai_chat.message import NAME
from chatledger.formats.openai_chat.recognise import is_openai_chat
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """A list of chat completions messages, as dicts or as the SDK's objects, becomes one ChatMessage each."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_openai_chat(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One message for each object. Lenient keeps an unknown role as its text and a malformed part whole."""
        return Decoded(read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """A list of dicts. `carry` changes nothing: the API refuses keys that it does not know, so no slot is free."""
        return measured(self, messages, write_payload)


CODEC = OpenAIChat()
