"""The codec: what the ledger calls for `format="openai-responses"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatledger.formats.codec import Decoded, Encoded
from chatledger.formats.losses.measure import measured
from chatledger.formats.openai_responses.encode import write_payload
from chatledger.formats.openai_responses.message import NAME
from chatledger.formats.openai_responses.payload import read_payload
from chatledger.formats.openai_responses.recognise import is_openai_responses
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """The input or the output of a response, as dicts or as the SDK's objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_openai_responses(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """What an assistant thinks, says and calls in one breath is one message; every other item is one.

        Lenient keeps an unknown role as its text, and a malformed item or part whole.
        """
        return Decoded(read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """A list of items, or the shape that came in. `carry` changes nothing: no item has a slot that is free."""
        return measured(self, messages, write_payload)


CODEC = OpenAIResponses()
