"""Trajectories of SWE-agent: OpenAI messages under `history`. The steps stay with the rest of the record.

A result lists its calls in `tool_call_ids` and answers the first of them. The messages have a format of their own, so
that the keys that the agent adds (`agent`, `thought`, `action`) are never sent to a provider.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats import get_codec
from chatledger.formats.wire.residual import EXTRA, KEYS
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonValue
from chatledger.transfer.envelope import Location
from chatledger.transfer.fields import require_path
from chatledger.transfer.shapes.shape import BranchMessages, Conversation, Measured, measured

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

    def locate(self, record: JsonValue, fieldname: str | None) -> Location:
        path = require_path(record, fieldname or HISTORY)
        return Location(path[:-1], path[-1:])

    def identify(self, record: JsonValue, payload: JsonValue) -> JsonValue:
        return payload

    def decode(self, payload: JsonValue, rules: RulesLevel) -> Conversation:
        decoded = get_codec(WIRE).decode(payload, rules=rules)
        pairs = zip(decoded.messages, payload, strict=True)
        messages = [
            message.model_copy(update={"format": NAME, CALL_ID: message.tool_call_id or _first_id(source)})
            for message, source in pairs
        ]
        return Conversation([BranchMessages(messages)], decoded.losses, payload)

    def encode(self, branches: Sequence[BranchMessages], *, alone: bool = True, carry: bool = False) -> Measured:
        return measured(get_codec(WIRE), [_as_wire(message) for message in branches[0].messages], carry=carry)


SHAPE = SweAgent()


def _is_message(value: JsonValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and "content" in value


def _first_id(source: dict[str, JsonValue]) -> str | None:
    ids = source.get(CALL_IDS)
    return ids[0] if isinstance(ids, list) and ids and isinstance(ids[0], str) else None


def _as_wire(message: ChatMessage) -> ChatMessage:
    """The message as OpenAI's codec read it, without a call id that only the list contains."""
    if message.format != NAME:
        return message
    return message.model_copy(update={"format": WIRE, CALL_ID: None if _is_listed(message) else message.tool_call_id})


def _is_listed(message: ChatMessage) -> bool:
    """Whether the source had the call's id only in the list. The residual then holds the list and all keys."""
    residual = message.residual if isinstance(message.residual, dict) else {}
    extra, keys = residual.get(EXTRA) or {}, residual.get(KEYS) or ()
    own = CALL_ID in keys and extra.get(CALL_ID, message.tool_call_id) is not None
    return _first_id(extra) is not None and not own
