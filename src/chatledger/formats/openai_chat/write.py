"""A message as the object that it was read from.

The reader compares the object of the typed fields with the source; the residual has the differences:

    keys, extra      of the message itself, as in `wire.residual`: unknown keys, absent keys, their order
    parts, calls     the residuals of content parts and of tool calls, by index
    spelled          the other key under which the source had a field: `reasoning`, `function_call`; for the content of
                     a message without one, `refusal`, or `audio` with its transcript
"""

from __future__ import annotations

from chatledger.formats.openai_chat.parts import REFUSAL, write_call, write_function_call, write_part
from chatledger.formats.wire.residual import EXTRA, nested, restore
from chatledger.models import (
    ChatMessage,
    ToolCall,
)
from chatledger.models.json import JsonValue

NAME = "openai-chat"
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
REASONING_KEYS = ("reasoning_content", "reasoning")
"""The keys of reasoning that is text, the usual one first."""
FUNCTION_CALL = "function_call"
AUDIO = "audio"


def write_message(message: ChatMessage, *, calls: list[JsonValue] | None = None) -> dict[str, JsonValue]:
    """The object that the message was read from; for a message of another format, the object of its typed fields.

    `calls` are the calls of the message, if they are written already.
    """
    residual = message.residual if message.format == NAME else None
    wire: dict[str, JsonValue] = {"role": message.role}
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        wire["name"] = message.name
    wire |= _content(message, residual)
    if isinstance(message.reasoning, str):
        wire[_reasoning_key(residual)] = message.reasoning
    if message.tool_calls and is_function_call(message):
        wire[FUNCTION_CALL] = write_function_call(message.tool_calls[0], nested(residual, "calls", "0"))
    elif message.tool_calls is not None:
        wire["tool_calls"] = _write_calls(message.tool_calls, residual) if calls is None else calls
    return _restored(wire, residual) if residual else wire


def is_function_call(message: ChatMessage) -> bool:
    """Whether the message's single call was in the legacy key `function_call`, where calls have no id."""
    legacy = nested(message.residual, "spelled", "tool_calls") == FUNCTION_CALL
    return legacy and message.format == NAME and len(message.tool_calls or ()) == 1


def is_function_result(message: ChatMessage) -> bool:
    """Whether the message was a result of the legacy role `function`, which names its call only by the name."""
    return message.format == NAME and nested(message.residual, "extra", "role") == "function"


def _write_calls(calls: list[ToolCall], residual: JsonValue) -> list[JsonValue]:
    return [write_call(call, nested(residual, "calls", str(idx))) for idx, call in enumerate(calls)]


def _restored(wire: dict[str, JsonValue], residual: JsonValue) -> dict[str, JsonValue]:
    """The object of the source, with the typed fields that were absent or null there: a program has set them later.

    A residual that no reader wrote may hide the role, or have calls that are no list. Then it changes nothing.
    """
    restored = restore(wire, residual)
    if not isinstance(restored.get("role"), str) or not isinstance(restored.get("tool_calls"), list | None):
        return wire
    typed = {key: value for key, value in wire.items() if value is not None and restored.get(key) is None}
    return {**restored, **typed}


def _content(message: ChatMessage, residual: JsonValue) -> dict[str, JsonValue]:
    """The content under its key; an unedited text under the key of the source."""
    content = message.content
    if isinstance(content, list):
        parts = (write_part(part, nested(residual, "parts", str(idx))) for idx, part in enumerate(content))
        return {"content": [part for part in parts if part is not None]}
    spelled = None if residual is None else nested(residual, "spelled", "content")
    if spelled == REFUSAL and content:
        return {"content": None, REFUSAL: content}
    if spelled == AUDIO and content and content == nested(residual, EXTRA, AUDIO, "transcript"):
        return {"content": None}
    return {"content": content}


def _reasoning_key(residual: JsonValue) -> str:
    spelled = nested(residual, "spelled", "reasoning")
    return spelled if spelled in REASONING_KEYS else REASONING_KEYS[0]
