"""The codec of Qwen-Agent: `payload` is a list of messages, dicts or objects or both, as its agents take and give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from chatledger.errors import EncodeError
from chatledger.formats.codec import Decoded, Encoded, Kind
from chatledger.formats.losses.measure import measured
from chatledger.formats.qwen_agent.constants import FUNCTION_ID, ROLES
from chatledger.formats.qwen_agent.decoding import decode_payload
from chatledger.formats.qwen_agent.encoding import write_messages
from chatledger.formats.qwen_agent.messages import Message
from chatledger.formats.qwen_agent.rows import NAME, OBJECT
from chatledger.formats.qwen_agent.sources import is_message_object
from chatledger.formats.qwen_agent.validity import item_problems
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class QwenAgentCodec:
    name: str = NAME

    def recognises(self, payload: object) -> bool:
        """Sure of a list with a message object in it, and of dicts with content items or a function_id."""
        if not isinstance(payload, (list, tuple)):
            return False
        if all(isinstance(message, dict) for message in payload):
            return all(message.get("role") in ROLES for message in payload) and any(map(_is_telling, payload))
        return any(map(is_message_object, payload))

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        return decode_payload(payload, lenient=rules == "lenient")

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """A list of dicts. `carry` puts what they cannot say into the `extra` of a message's first row."""
        return measured(self, messages, lambda given: write_messages(given, carry=carry))

    def as_models(self, payload: Iterable[dict[str, Any]]) -> list[Message]:
        """The dicts of a payload as objects. Raises EncodeError for what no object can hold."""
        return [_model(row, f"[{index}]") for index, row in enumerate(payload)]

    def given_as(self, messages: Iterable[ChatMessage]) -> Kind:
        """What to give back: objects if any of the messages came in as one, as Qwen-Agent itself decides."""
        return "models" if any(map(_was_object, messages)) else "dicts"


def _is_telling(message: dict[str, Any]) -> bool:
    extra, content = message.get("extra"), message.get("content")
    if isinstance(extra, dict) and FUNCTION_ID in extra:
        return True
    items = content if isinstance(content, list) else []
    return any(next(item_problems(item), None) is None for item in items)


def _model(row: dict[str, Any], path: str) -> Message:
    try:
        return Message(**row)
    except (TypeError, ValidationError) as error:
        raise EncodeError(path, f"no message object can hold this: {error}") from error


def _was_object(message: ChatMessage) -> bool:
    return message.format == NAME and isinstance(message.residual, dict) and message.residual.get(OBJECT) is True


CODEC = QwenAgentCodec()
