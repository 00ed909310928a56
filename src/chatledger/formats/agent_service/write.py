"""A message of the ledger as a message of this format: always a valid one with every field, whatever the message holds.

`write_message` adds the residual, which holds:

    calls     one residual for each tool call, None if its typed fields are complete
    given     the fields that were set on an object, if not all were
    around    the other keys of a chat history; on the first message of the payload
    keys, extra    those of the message itself, as in chatledger.formats.wire.residual

Storing may add the run of a message: it comes back even if the source had none.
"""

from __future__ import annotations

from typing import Any

from chatledger.formats.wire.arguments import fit_arguments
from chatledger.formats.wire.residual import restore
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models import ToolCall
from chatledger.models.json import JsonObject, JsonValue

NAME = "agent-service"

ROLE_OF_TYPE = {"human": "user", "ai": "assistant", "tool": "tool", "custom": "custom"}
TYPE_OF_ROLE = {role: type_ for type_, role in ROLE_OF_TYPE.items()}

ROLE = "role"
"""The key of custom_data that holds a role for which this format has no type: system, developer, unknown ones."""

CARRIED = "chatledger"
"""The key of custom_data that holds the fields of a message of another format that this format cannot express."""

CALLS = "calls"
GIVEN = "given"
AROUND = "around"

TOOL_CALLS = "tool_calls"
_RUN_ID = "run_id"


class ServiceDump(dict[str, JsonValue]):
    """A message that came in as an object. `set_names` names the fields that had been set on it."""

    set_names: frozenset[str]


def write_message(message: LedgerMessage) -> JsonObject:
    """The source of the message; a ServiceDump if not all of its fields had been set."""
    residual = message.residual if isinstance(message.residual, dict) else {}
    source = restore(with_calls(write_fields(message), residual.get(CALLS)), residual)
    named = {} if message.run_id is None or source.get(_RUN_ID) is not None else {_RUN_ID: message.run_id}
    set_names = residual.get(GIVEN)
    if not isinstance(set_names, list) or not all(isinstance(name, str) for name in set_names):
        return {**source, **named}
    dump = ServiceDump(source, **named)
    dump.set_names = frozenset(set_names if message.run_id is None else [*set_names, _RUN_ID])
    return dump


def write_fields(message: LedgerMessage) -> JsonObject:
    return {
        "type": TYPE_OF_ROLE.get(message.role, "custom"),
        "content": message.text,
        "tool_calls": [_call(call) for call in message.tool_calls or ()],
        "tool_call_id": message.tool_call_id,
        "run_id": message.run_id or None,  # no run has an empty id, so reading leniently would leave it out
        "response_metadata": message.response_metadata or {},
        "custom_data": _custom_data(message),
    }


def _custom_data(message: LedgerMessage) -> JsonObject:
    data = message.custom_data or {}
    return data if message.role in TYPE_OF_ROLE else {**data, ROLE: message.role}


def _call(call: ToolCall) -> JsonObject:
    return {"name": call.name, "args": _args(call.arguments), "id": call.id, "type": "tool_call"}


def _args(arguments: str | JsonObject | None) -> JsonObject:
    return arguments if isinstance(arguments, dict) else fit_arguments(arguments)


def with_calls(encoded: JsonObject, residuals: Any) -> JsonObject:
    """The encoded message with the residuals of its calls put back."""
    calls = encoded[TOOL_CALLS]
    if not isinstance(residuals, list) or len(residuals) != len(calls):
        return encoded
    restored = [restore(call, residual) for call, residual in zip(calls, residuals, strict=True)]
    return {**encoded, TOOL_CALLS: restored}


def around_of(message: LedgerMessage) -> JsonObject | None:
    """The residual of the history around the messages, which the first message of a payload keeps."""
    if message.format != NAME or not isinstance(message.residual, dict):
        return None
    around = message.residual.get(AROUND)
    return around if isinstance(around, dict) else None
