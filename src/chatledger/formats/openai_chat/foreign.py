"""Fits messages of other formats to chat completions.

The result is a `ChatMessage`, which is then written like one of the format itself.
"""

from __future__ import annotations

import re

from chatledger.formats.openai_chat.parts import write_part
from chatledger.formats.openai_chat.write import NAME, ROLES, is_function_call
from chatledger.formats.wire.call_pairs import Answered, made_id
from chatledger.formats.wire.parts import split_data_uri
from chatledger.models import AudioPart, ChatMessage, FilePart, ImagePart, MediaPart, Part, TextPart, ToolCall
from chatledger.models.base import build
from chatledger.models.json import dumps

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
"""The names of participants that the API accepts."""
_FILE_ID_FORMATS = (None, "openai-responses")
"""The formats whose file ids are valid here: an upload belongs to the provider that received it."""


def fit(message: ChatMessage, position: int, answered: Answered | None) -> ChatMessage | None:
    """The message without what the format cannot hold; None for a message that is not sent to a model."""
    if message.role == "custom":
        return None
    role = message.role if message.role in ROLES and message.role != "function" else "user"
    calls = _fit_calls(message, position) if role == "assistant" else None
    fields: dict[str, object] = {"role": role, "tool_calls": calls, "content": _fit_content(message, role, calls)}
    fields |= _fit_result(message, position, answered) if role == "tool" else {"name": _fit_name(message.name)}
    return build(ChatMessage, fields)


def fit_part(part: Part, *, role: str, source_format: str | None) -> Part | None:
    """The part in a form for the role; None if there is none."""
    if isinstance(part, TextPart):
        return part
    if role != "user" or not isinstance(part, MediaPart):
        return None
    fitted = _fit_medium(part, source_format)
    return None if fitted is None or write_part(fitted) is None else fitted


def _fit_name(name: str | None) -> str | None:
    return name if name is not None and _NAME.fullmatch(name) else None


def _fit_result(message: ChatMessage, position: int, answered: Answered | None) -> dict[str, object]:
    """The fields of a result, which names its call only by the id."""
    if answered is not None and is_function_call(answered.asker):
        return {"role": "function", "name": answered.call.name}
    if message.tool_call_id is not None:
        return {"tool_call_id": message.tool_call_id}
    return {"tool_call_id": made_id(message, position) if answered is None else _id_of(answered)}


def _id_of(answered: Answered) -> str | None:
    """The id of the call; None for a call without an id in a message of this format, which is written as it came in."""
    return answered.call.id if answered.asker.format == NAME else answered.id


def _fit_calls(message: ChatMessage, position: int) -> list[ToolCall] | None:
    """The calls of an assistant; None for an empty list, which the API rejects."""
    if not message.tool_calls:
        return None
    return [_fit_call(call, made_id(message, position, idx)) for idx, call in enumerate(message.tool_calls)]


def _fit_call(call: ToolCall, made_id: str) -> ToolCall:
    arguments = call.arguments if isinstance(call.arguments, str) else dumps(call.arguments or {})
    return build(ToolCall, {"id": made_id if call.id is None else call.id, "name": call.name, "arguments": arguments})


def _fit_content(message: ChatMessage, role: str, calls: list[ToolCall] | None) -> str | list[Part] | None:
    """Content other than an empty list; the API accepts null only with calls."""
    if isinstance(message.content, str):
        return message.content
    parts = (fit_part(part, role=role, source_format=message.format) for part in message.content or ())
    return [part for part in parts if part is not None] or (None if calls else "")


def _fit_medium(part: MediaPart, source_format: str | None) -> Part | None:
    if isinstance(part, AudioPart):
        return _fit_audio(part)
    if isinstance(part, FilePart) and part.id is not None and source_format not in _FILE_ID_FORMATS:
        return None if part.url is None and part.data is None else part.model_copy(update={"id": None})
    return part if isinstance(part, (ImagePart, FilePart)) else None


def _fit_audio(part: AudioPart) -> AudioPart | None:
    """Audio needs data and a format; a data URI has both."""
    split = split_data_uri(part.url) if part.url is not None and part.data is None else None
    if split is not None:
        mime_type, data = split
        part = part.model_copy(update={"url": None, "data": data, "mime_type": mime_type or part.mime_type})
    return part if part.mime_type else None
