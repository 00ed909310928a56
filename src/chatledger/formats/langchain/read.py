"""A payload as messages: each of LangChain's messages, an object or its dict, becomes one message.

The reader writes each message again at once, and the residual keeps the difference from the source.
"""

from __future__ import annotations

import re

from chatledger.errors import DecodeError
from chatledger.formats.langchain.parts import read_block
from chatledger.formats.langchain.write import (
    AI_TYPES,
    CALLS,
    DATA,
    NAME,
    PARTS,
    TOOL_TYPES,
    TYPE,
    keep_call,
    reasoning_of,
    role_of,
    type_of,
    with_signer,
    write_data,
)
from chatledger.formats.wire.fields import as_object, built, nameless, object_at, optional_text_at, text_at, wrong
from chatledger.formats.wire.parts import by_index
from chatledger.formats.wire.plain import as_json, dumped
from chatledger.formats.wire.residual import keep, keep_deep
from chatledger.models import ChatMessage, Loss, Part, ToolCall
from chatledger.models.base import copy_with
from chatledger.models.json import JsonObject, JsonValue

_NAMES = re.compile(r"\.type|\.data\.(type|name|id|role|tool_call_id)|\.data\.(invalid_)?tool_calls\[\d+\]\.(id|name)")
"""The paths of ids and names in a message."""
_FIELDS = {
    "role",
    "content",
    "reasoning",
    "name",
    "tool_calls",
    "tool_call_id",
    "is_error",
    "response_metadata",
    "format",
    "residual",
}

_PACKAGE = "langchain_core.messages"


def is_object(value: object) -> bool:
    """Whether the value is a message object: of a class of langchain-core, or of a subclass from elsewhere."""
    return any(cls.__module__.startswith(_PACKAGE) for cls in type(value).__mro__)


def read_payload(payload: object, *, lenient: bool) -> tuple[list[ChatMessage], list[Loss]]:
    """The messages of a list, and a loss for each value that lenient rules kept as the nearest JSON.

    Raises DecodeError for anything else.
    """
    if not isinstance(payload, (list, tuple)):
        raise wrong("$", "a list of messages", payload)
    losses: list[Loss] = []
    messages: list[ChatMessage] = []
    for index, value in enumerate(payload):
        path = f"$[{index}]"
        source = as_json(_plain(value, path), path, _NAMES, losses, lenient=lenient)
        messages.append(_read_message(as_object(source, path), path, lenient=lenient))
    return messages, losses


def _plain(value: object, path: str) -> object:
    """The message as a dict. An object is dumped as `message_to_dict` does."""
    if is_object(value):
        fields = dumped(value, path, lambda model_dump: model_dump())
        return {TYPE: fields.get(TYPE), DATA: fields} if isinstance(fields, dict) else fields
    if not isinstance(value, dict):
        raise DecodeError(path, f"expected a message or its dict, not {type(value).__name__}")
    return value


def _read_message(source: JsonObject, path: str, *, lenient: bool) -> ChatMessage:
    type_ = text_at(source, TYPE, path)
    data = object_at(source, DATA, path)
    path = f"{path}.{DATA}"
    content, parts = _read_content(data, f"{path}.content", lenient=lenient)
    calls, kept_calls = _read_calls(data, path, lenient=lenient) if type_ in AI_TYPES else (None, {})
    is_result = type_ in TOOL_TYPES
    role = role_of(type_, data)
    metadata = data.get("response_metadata")
    if isinstance(content, list):
        content = [with_signer(part, metadata) for part in content]
    message = built(
        {
            "role": role,
            "content": content,
            "reasoning": reasoning_of(data) if type_ in AI_TYPES else None,
            "name": _optional_text(data, "name", path, lenient=lenient),
            "tool_calls": calls,
            "tool_call_id": _optional_text(data, "tool_call_id", path, lenient=lenient) if is_result else None,
            "is_error": True if is_result and data.get("status") == "error" else None,
            "response_metadata": metadata if metadata and isinstance(metadata, dict) else None,
            "format": NAME,
            "residual": None,
        },
        _FIELDS,
    )
    residual: JsonObject = {} if type_of(message, {}) == type_ else {TYPE: type_}
    residual |= keep({**source, DATA: None}, {TYPE: type_, DATA: None}) or {}
    written = write_data(
        message,
        type_,
        data["content"] if isinstance(content, list) else content or "",
        data.get("tool_calls") if calls is not None else [],
        data.get("invalid_tool_calls") or [] if calls is not None else [],
    )
    sections = {DATA: keep_deep(data, written), PARTS: parts, CALLS: kept_calls}
    residual |= {key: value for key, value in sections.items() if value}
    return copy_with(message, {"residual": residual}) if residual else message


def _optional_text(data: JsonObject, key: str, path: str, *, lenient: bool) -> str | None:
    """The text under a key. Lenient rules keep any other value in the residual."""
    value = data.get(key)
    return None if lenient and not isinstance(value, str) else optional_text_at(data, key, path)


def _read_content(data: JsonObject, path: str, *, lenient: bool) -> tuple[str | list[Part] | None, JsonObject]:
    """The content and the residuals of its parts. Lenient rules keep a content of another type in the residual."""
    content = data.get("content")
    if isinstance(content, str):
        return content, {}
    try:
        if not isinstance(content, list):
            raise wrong(path, "text or a list of blocks", content)
        return by_index(read_block(value, f"{path}[{idx}]", lenient=lenient) for idx, value in enumerate(content))
    except DecodeError:
        if not lenient:
            raise
        return None, {}


def _read_calls(data: JsonObject, path: str, *, lenient: bool) -> tuple[list[ToolCall] | None, JsonObject]:
    """The calls and their residuals. Lenient rules keep all calls in the residual if one of them cannot be read."""
    try:
        calls = [
            *_each_call(data, "tool_calls", path, is_valid=True),
            *_each_call(data, "invalid_tool_calls", path, is_valid=False),
        ]
    except DecodeError:
        if not lenient:
            raise
        return None, {}
    residuals = {str(idx): residual for idx, (_, residual) in enumerate(calls) if residual is not None}
    return [call for call, _ in calls] or None, residuals


def _each_call(data: JsonObject, key: str, path: str, *, is_valid: bool) -> list[tuple[ToolCall, JsonObject | None]]:
    values = data.get(key)
    if values is None:
        return []
    if not isinstance(values, list):
        raise wrong(f"{path}.{key}", "a list", values)
    return [_read_call(value, f"{path}.{key}[{idx}]", is_valid=is_valid) for idx, value in enumerate(values)]


def _read_call(value: JsonValue, path: str, *, is_valid: bool) -> tuple[ToolCall, JsonObject | None]:
    """A call, with an object as arguments, or with the text of arguments that are not valid JSON."""
    source = as_object(value, path)
    arguments = object_at(source, "args", path) if is_valid else optional_text_at(source, "args", path)
    name = optional_text_at(source, "name", path)
    if not name:
        raise nameless(path)
    call = ToolCall(id=optional_text_at(source, "id", path), name=name, arguments=arguments)
    return call, keep_call(source, call, is_valid=is_valid)
