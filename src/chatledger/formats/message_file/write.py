"""Writes messages of this format as items.

    user's message                           a message
    assistant's message with one tool call   a function call, whose name is the id of the call
    message with outputs                     the outputs of the item that the message names in its residual

A message that belongs to an item stores how many positions back that item is (`BACK`). So a call or an output can be
added to a committed item. The residual keeps the values without a typed field, in the form of `wire.residual`.
"""

from __future__ import annotations

import re
from typing import Any

from chatledger.formats.message_file.models import TEXT
from chatledger.formats.wire.residual import restore
from chatledger.models import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    MediaPart,
    Part,
    TextPart,
    ToolCall,
    VideoPart,
)
from chatledger.models.json import JsonObject, JsonValue

NAME = "message-file"

CALL = "call"
"""The index of the call in that message: another format may put several calls into one message."""
OUTPUTS = "outputs"
OBJECT = "object"
"""True for an item that came in as an object."""


def write_item(message: ChatMessage) -> JsonObject:
    """The dict of the item of a message of `read_item`, still without outputs and calls."""
    encoded = _write_call(message) if message.role == "assistant" else _write_text(message)
    return restore(encoded, message.residual)


def _write_text(message: ChatMessage) -> JsonObject:
    parts = _parts(message)
    content, mime_type = (from_part(parts[0]) if parts else None) or ("", "text/plain")
    return text_fields(message.name, content, mime_type)


def _write_call(message: ChatMessage) -> JsonObject:
    call = (message.tool_calls or [ToolCall(name="")])[0]
    return call_fields(call.id, call.name, call.arguments)


def text_fields(name: str | None, content: str, mime_type: str) -> JsonObject:
    own: JsonObject = {"content": content, "mime_type": mime_type, "agent_name": None, "function_calls": []}
    return {**_common_fields(name, "message"), **own}


def call_fields(name: str | None, function_name: str, args: JsonValue) -> JsonObject:
    return {**_common_fields(name, "function_call"), "function_name": function_name, "args": args}


def _common_fields(name: str | None, kind: str) -> JsonObject:
    return {"name": name, "timeout": None, "outputs": [], "type": kind, "history": [], "heading_level": None}


def write_outputs(message: ChatMessage) -> list[JsonObject] | None:
    """The outputs of a message of `read_outputs`; None for any other message."""
    residual = message.residual if isinstance(message.residual, dict) else {}
    of_outputs, parts = residual.get(OUTPUTS), _parts(message)
    if message.format != NAME or not isinstance(of_outputs, list) or len(of_outputs) != len(parts):
        return None
    return [restore(write_output(part), known) for part, known in zip(parts, of_outputs, strict=True)]


def write_output(part: Part) -> JsonObject:
    content, mime_type = from_part(part) or ("", "text/plain")
    return {"content": content, "mime_type": mime_type, "nonce": ""}


def _parts(message: ChatMessage) -> list[Part]:
    if isinstance(message.content, str):
        return [TextPart(text=message.content)]
    return message.content or []


def note(message: ChatMessage, key: str) -> Any:
    """The value under a key in the residual of a message of this format."""
    return message.residual.get(key) if message.format == NAME and isinstance(message.residual, dict) else None


# --- Content parts ----------------------------------------------------------------------------------------------------

BINARY = "application/octet-stream"
URI = "text/uri-list"

_TEXTUAL = re.compile(r"text/.*|application/(json|xml|yaml|javascript|.*\+(json|xml))|[^/]*", re.IGNORECASE | re.DOTALL)
_MEDIA: dict[str, type[MediaPart]] = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}


def to_part(content: str, mime_type: str) -> Part:
    if _TEXTUAL.fullmatch(mime_type):
        return TextPart(text=content)
    kind: Any = _MEDIA.get(mime_type.partition("/")[0].lower(), FilePart)
    part: Part = kind(data=content, mime_type=mime_type)
    return part


def from_part(part: Part) -> tuple[str, str] | None:
    """The content of a part and its mime type; None for a part that is neither a text nor a medium."""
    if isinstance(part, TextPart):
        return part.text, TEXT
    if not isinstance(part, MediaPart):
        return None
    if part.data is not None:
        return part.data, part.mime_type or BINARY
    return (part.url, URI) if part.url is not None else None
