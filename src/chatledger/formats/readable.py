"""A message as one that can be read back however it is written, for those that cannot.

Two things stand against it: JSON so deep that no payload could hold it a few levels further down, and a residual that
is none, on a message that says it is of the format itself.
"""

from __future__ import annotations

from typing import Any

from chatledger.models import ChatMessage, Part, ToolCall
from chatledger.models.json import MAX_DEPTH, JsonValue, dumps, json_problem

_DEPTH = MAX_DEPTH - 16
"""What remains when a payload nests a value in its own envelope and in one that carries it."""


def readable(message: ChatMessage) -> ChatMessage:
    """The message without deep JSON, and of no format."""
    changes: dict[str, Any] = {"format": None, "residual": None}
    changes |= {name: None for name in ("response_metadata", "custom_data") if _is_deep(getattr(message, name))}
    for name in ("content", "reasoning"):
        parts = getattr(message, name)
        if isinstance(parts, list):
            changes[name] = [_shallow_part(part) for part in parts if not _is_deep(getattr(part, "value", None))]
    if message.tool_calls is not None:
        changes["tool_calls"] = [_shallow_call(call) for call in message.tool_calls]
    return message.model_copy(update=changes)


def _shallow_part(part: Part) -> Part:
    return part.model_copy(update={"extras": None}) if _is_deep(getattr(part, "extras", None)) else part


def _shallow_call(call: ToolCall) -> ToolCall:
    arguments = dumps(call.arguments) if _is_deep(call.arguments) else call.arguments
    return call.model_copy(update={"arguments": arguments, "extras": None if _is_deep(call.extras) else call.extras})


def _is_deep(value: JsonValue) -> bool:
    return isinstance(value, (dict, list)) and json_problem(value, max_depth=_DEPTH) is not None
