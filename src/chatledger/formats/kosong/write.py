"""A ChatMessage as the dict of a kosong message.

`write_fields` writes only the typed fields: empty content, null and a list of one text stay distinct, and `read`
returns the same message. `write_message` adds the residual. Before that, `foreign` fits messages of other formats.
"""

from __future__ import annotations

from typing import Any

from chatledger.formats.kosong.parts import (
    AS_DICT,
    DUMP,
    FIELDS,
    PARTIAL,
    SHORT,
    KosongRevision,
    residual_of,
    write_part,
)
from chatledger.formats.wire.residual import restore_deep
from chatledger.models import ChatMessage, ToolCall
from chatledger.models.json import JsonObject, JsonValue


def write_message(message: ChatMessage, revision: KosongRevision) -> JsonObject:
    """The dict of a message of the revision."""
    encoded = write_fields(message, revision)
    written = _restored(encoded, residual_of(message), revision)
    # A residual that no reader wrote may hide the role. Then it changes nothing.
    return written if isinstance(written.get("role"), str) else dump(encoded, revision)


def _restored(encoded: JsonObject, residual: JsonObject, revision: KosongRevision) -> JsonObject:
    if AS_DICT in residual:
        return restore_deep(shortened(encoded) if SHORT in residual else encoded, residual.get(FIELDS))
    return restore_deep(dump(restore_deep(encoded, residual.get(FIELDS)), revision), residual.get(DUMP))


def write_fields(message: ChatMessage, revision: KosongRevision) -> JsonObject:
    content = message.content
    calls = message.tool_calls
    return {
        "role": message.role,
        "name": message.name,
        "content": [write_part(part) for part in content] if isinstance(content, list) else content,
        "tool_calls": None if calls is None else [_call(call, revision) for call in calls],
        "tool_call_id": message.tool_call_id,
        "partial": residual_of(message).get(PARTIAL),
    }


def _call(call: ToolCall, revision: KosongRevision) -> JsonObject:
    function = {"name": call.name, "arguments": call.arguments}
    extras = {"extras": call.extras} if revision.has_extras else {}
    return {"type": "function", "id": call.id, "function": function, **extras}


def dump(encoded: JsonObject, revision: KosongRevision) -> JsonObject:
    """The encoded message as `model_dump` of the revision's class returns it."""
    return {**encoded, "content": _dumped_content(encoded["content"], revision)}


def _dumped_content(content: Any, revision: KosongRevision) -> JsonValue:
    if revision.null_is_empty:
        return content or None
    if isinstance(content, list) and len(content) == 1 and _is_text(content[0]):
        return content[0]["text"]
    return [] if content is None else content


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and "text" in part


def shortened(encoded: JsonObject) -> JsonObject:
    """The encoded message as `model_dump(exclude_none=True)` returns it: parts and content keep their None."""
    short = {key: value for key, value in encoded.items() if value is not None or key == "content"}
    if isinstance(short.get("tool_calls"), list):
        short["tool_calls"] = [_shortened_call(call) for call in short["tool_calls"]]
    return short


def _shortened_call(call: JsonObject) -> JsonObject:
    return {key: _present(value) if key == "function" else value for key, value in _present(call).items()}


def _present(fields: JsonObject) -> JsonObject:
    return {key: value for key, value in fields.items() if value is not None}
