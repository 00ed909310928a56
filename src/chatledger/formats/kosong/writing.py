"""A ChatMessage as the dict of a kosong message, and that dict as upstream's object would dump it.

`write` says what the typed fields say and no more: empty content, null and a list of one text stay apart, and the
inverse of `reading` gives the same message. What kosong cannot say was put right before, by `adapting`.
"""

from __future__ import annotations

from typing import Any

from chatledger.formats.kosong.reading_parts import type_of
from chatledger.formats.kosong.revision import PARTIAL, Revision, residual_of
from chatledger.models import ChatMessage, MediaPart, OpaquePart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.json import JsonValue

Row = dict[str, JsonValue]


def write(message: ChatMessage, revision: Revision) -> Row:
    content = message.content
    calls = message.tool_calls
    return {
        "role": message.role,
        "name": message.name,
        "content": [_part(part) for part in content] if isinstance(content, list) else content,
        "tool_calls": None if calls is None else [_call(call, revision) for call in calls],
        "tool_call_id": message.tool_call_id,
        "partial": residual_of(message).get(PARTIAL),
    }


def dump(row: Row, revision: Revision) -> Row:
    """The row as `model_dump` of the revision's message gives it."""
    return {**row, "content": _dumped_content(row["content"], revision)}


def _dumped_content(content: Any, revision: Revision) -> JsonValue:
    if revision.null_is_empty:
        return content or None
    if isinstance(content, list) and len(content) == 1 and _is_text(content[0]):
        return content[0]["text"]
    return [] if content is None else content


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and "text" in part


def shortened(row: Row) -> Row:
    """The row as `model_dump(exclude_none=True)` gives it: parts keep their None, and so does content."""
    short = {key: value for key, value in row.items() if value is not None or key == "content"}
    if isinstance(short.get("tool_calls"), list):
        short["tool_calls"] = [_shortened_call(call) for call in short["tool_calls"]]
    return short


def _shortened_call(call: Row) -> Row:
    return {key: _present(value) if key == "function" else value for key, value in _present(call).items()}


def _present(row: Row) -> Row:
    return {key: value for key, value in row.items() if value is not None}


def _part(part: Part) -> JsonValue:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ThinkPart):
        return {"type": "think", "think": part.text, "encrypted": part.signature}
    if isinstance(part, MediaPart):
        return {"type": type_of(part), type_of(part): {"url": part.url, "id": part.id}}
    assert isinstance(part, OpaquePart)
    return part.value


def _call(call: ToolCall, revision: Revision) -> Row:
    row: Row = {"type": "function", "id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
    return {**row, "extras": call.extras} if revision.has_extras else row
