"""A message of the ledger as a row of this format: always a valid one with every field, whatever the message holds."""

from __future__ import annotations

import json

from chatledger.formats.agent_service.sources import Row
from chatledger.formats.agent_service.words import RAW, ROLE, TYPE_OF_ROLE
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models import ToolCall
from chatledger.models.json import MAX_DEPTH, JsonValue, json_problem

_DEPTH = MAX_DEPTH - 8
"""How deep an object may be that stands a few levels down in a row."""


def write(message: LedgerMessage) -> Row:
    return {
        "type": TYPE_OF_ROLE.get(message.role, "custom"),
        "content": message.text,
        "tool_calls": [_call(call) for call in message.tool_calls or ()],
        "tool_call_id": message.tool_call_id,
        "run_id": message.run_id or None,  # no run has an empty id, so reading leniently would leave it out
        "response_metadata": message.response_metadata or {},
        "custom_data": _custom_data(message),
    }


def _custom_data(message: LedgerMessage) -> Row:
    data = message.custom_data or {}
    return data if message.role in TYPE_OF_ROLE else {**data, ROLE: message.role}


def _call(call: ToolCall) -> Row:
    return {"name": call.name, "args": _args(call.arguments), "id": call.id, "type": "tool_call"}


def _args(arguments: str | dict[str, JsonValue] | None) -> Row:
    if not isinstance(arguments, str):
        return arguments or {}
    parsed = parse_object(arguments)
    return {RAW: arguments} if parsed is None else parsed


def parse_object(text: str) -> Row | None:
    """The JSON object that the text is, or None: models also write other things, and objects deeper than we keep."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or json_problem(value, max_depth=_DEPTH) is not None:
        return None
    return value
