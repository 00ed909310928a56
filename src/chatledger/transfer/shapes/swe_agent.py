"""Trajectories of SWE-agent: the messages are those of OpenAI under `history`, the steps stay with the record.

A result names its call in a list, `tool_call_ids`; the first of them is the call that it answers. The messages have a
format of their own, so that no provider is sent the keys that the agent adds to each (`agent`, `thought`, `action`).
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.errors import DecodeError
from chatledger.formats import Encoded, get_codec
from chatledger.formats.wire.residual import EXTRA, KEYS
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonValue
from chatledger.transfer.envelope import Place
from chatledger.transfer.fields import find_path
from chatledger.transfer.shapes.shape import Conversation, Line

NAME = "swe-agent"
HISTORY, STEPS = "history", "trajectory"
WIRE = "openai-chat"
CALL_ID, CALL_IDS = "tool_call_id", "tool_call_ids"


class SweAgent:
    name = NAME
    branching = False

    def recognises(self, record: JsonValue) -> bool:
        if not isinstance(record, dict) or not isinstance(record.get(STEPS), list):
            return False
        history = record.get(HISTORY)
        return isinstance(history, list) and bool(history) and all(map(_is_message, history))

    def locate(self, record: JsonValue, fieldname: str | None) -> Place:
        path = find_path(record, fieldname or HISTORY)
        if path is None:
            raise DecodeError(fieldname or HISTORY, "the record has no such field")
        return Place(path[:-1], path[-1:])

    def identify(self, record: JsonValue, payload: JsonValue) -> JsonValue:
        return payload

    def decode(self, payload: JsonValue, rules: RulesLevel) -> Conversation:
        decoded = get_codec(WIRE).decode(payload, rules=rules)
        pairs = zip(decoded.messages, payload, strict=True)
        messages = [
            message.model_copy(update={"format": NAME, CALL_ID: message.tool_call_id or _first_id(source)})
            for message, source in pairs
        ]
        return Conversation([Line(messages)], decoded.losses, payload)

    def encode(self, lines: Sequence[Line], *, alone: bool = True, carry: bool = False) -> Encoded:
        return get_codec(WIRE).encode([_as_wire(message) for message in lines[0].messages], carry=carry)


SHAPE = SweAgent()


def _is_message(value: JsonValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and "content" in value


def _first_id(source: dict[str, JsonValue]) -> str | None:
    ids = source.get(CALL_IDS)
    return ids[0] if isinstance(ids, list) and ids and isinstance(ids[0], str) else None


def _as_wire(message: ChatMessage) -> ChatMessage:
    """As OpenAI's codec read it: without an id that only the list names."""
    if message.format != NAME:
        return message
    return message.model_copy(update={"format": WIRE, CALL_ID: None if _is_listed(message) else message.tool_call_id})


def _is_listed(message: ChatMessage) -> bool:
    """Whether the source named the call in its list alone; the residual then holds the list and all keys."""
    residual = message.residual if isinstance(message.residual, dict) else {}
    extra, keys = residual.get(EXTRA) or {}, residual.get(KEYS) or ()
    own = CALL_ID in keys and extra.get(CALL_ID, message.tool_call_id) is not None
    return _first_id(extra) is not None and not own
