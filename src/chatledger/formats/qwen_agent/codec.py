"""The codec of Qwen-Agent. A payload is a list of dicts, objects or both, as its agents accept and return them.

Messages of this format are written as their source. All others are split as Qwen-Agent splits them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from chatledger.errors import EncodeError
from chatledger.formats.codec import Decoded, Kind, Written
from chatledger.formats.qwen_agent.foreign import split, with_carried
from chatledger.formats.qwen_agent.models import FUNCTION_ID, ROLES, Message
from chatledger.formats.qwen_agent.parts import item_problems
from chatledger.formats.qwen_agent.read import is_message_object, read_payload
from chatledger.formats.qwen_agent.write import NAME, OBJECT, write_fields, write_message
from chatledger.formats.wire.call_pairs import Pairing
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonValue


@dataclass(frozen=True, slots=True)
class QwenAgentCodec:
    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_qwen_agent(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        return read_payload(payload, lenient=rules == "lenient")

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of dicts. `carry` puts what they cannot express into the `extra` of the first dict of a message."""
        return _write(messages, carry=carry)

    def as_models(self, payload: Iterable[dict[str, Any]]) -> list[Message]:
        """The dicts of a payload as objects. Raises EncodeError for a dict that no object can hold."""
        return [_model(message, f"[{index}]") for index, message in enumerate(payload)]

    def given_as(self, messages: Iterable[ChatMessage]) -> Kind:
        """Objects if any of the messages came in as one, as Qwen-Agent itself decides."""
        return "models" if any(map(_was_object, messages)) else "dicts"


def _model(message: dict[str, Any], path: str) -> Message:
    try:
        return Message(**message)
    except (TypeError, ValidationError) as error:
        raise EncodeError(path, f"Qwen-Agent's classes reject this message: {error}") from error


def _was_object(message: ChatMessage) -> bool:
    return message.format == NAME and isinstance(message.residual, dict) and message.residual.get(OBJECT) is True


def _write(messages: Sequence[ChatMessage], *, carry: bool) -> Written:
    payload: list[dict[str, JsonValue]] = []
    origins: list[tuple[int, ...]] = []
    own: list[int] = []
    pairing = Pairing()
    for index, message in enumerate(messages):
        answered = pairing.answer(message) if message.role == "tool" else None
        pairing.ask(message, index)
        if message.format == NAME:
            payload.append(write_message(message))
            origins.append((index,))
            own.append(index)
            continue
        encoded = _write_foreign(message, answered.call.name if answered else None, carry)
        payload += encoded
        origins += [(index,)] * (min(len(encoded), 1) if carry else len(encoded))
    return Written(payload, origins, own)


def _write_foreign(message: ChatMessage, result_name: str | None, carry: bool) -> list[dict[str, JsonValue]]:
    encoded = [write_fields(piece) for piece in split(message, result_name=result_name)]
    return with_carried(encoded, message) if encoded and carry else encoded


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is certainly of Qwen-Agent.


def is_qwen_agent(payload: object) -> bool:
    """True for a list with a message object, and for dicts if one of them has content items or a function_id."""
    if not isinstance(payload, (list, tuple)):
        return False
    if all(isinstance(message, dict) for message in payload):
        return all(message.get("role") in ROLES for message in payload) and any(map(_is_telling, payload))
    return any(map(is_message_object, payload))


def _is_telling(message: dict[str, Any]) -> bool:
    extra, content = message.get("extra"), message.get("content")
    if isinstance(extra, dict) and FUNCTION_ID in extra:
        return True
    items = content if isinstance(content, list) else []
    return any(next(item_problems(item), None) is None for item in items)


CODEC = QwenAgentCodec()
