"""The codec: what the ledger calls for `format="anthropic"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatledger.formats.anthropic.decode import read_payload
from chatledger.formats.anthropic.encode import write_payload
from chatledger.formats.anthropic.names import NAME
from chatledger.formats.anthropic.recognise import is_anthropic
from chatledger.formats.codec import Decoded, Encoded
from chatledger.formats.losses.measure import measured
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class Anthropic:
    """A request's `{"system", "messages"}`, or its list of messages alone, as dicts or as the SDK's objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_anthropic(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """A message for the system prompt, for each tool result, and for what else each message holds.

        Lenient keeps an unknown role as its text and a malformed block whole.
        """
        return Decoded(*read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """A dict of `messages`, and `system` where there is one, for `client.messages.create(…)`.

        `carry` changes nothing: the API refuses keys that it does not know, so no slot is free.
        """
        return measured(self, messages, write_payload, unsaid=("run_id", "custom_data"))


CODEC = Anthropic()
