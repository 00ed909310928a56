"""One ChatMessage as one message of Qwen-Agent, a dict.

    write_message(read_message(source)) == source    # value by value with key order, for any dict whose role is a text

The typed fields give the message in Qwen-Agent's own form (without None, fields in order). The residual keeps the
differences of the source, object by object: the message itself, each content item and the call have separate residuals,
so that an unknown key of an item does not store the whole content twice. The residuals of inner objects are under
"inner" by their path: `content.0`, `reasoning_content.2`, `function_call`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chatledger.formats.qwen_agent.models import FUNCTION, FUNCTION_ID
from chatledger.formats.qwen_agent.parts import item_of
from chatledger.formats.wire.residual import INNER, keep, restore
from chatledger.models import ChatMessage, Part, ToolCall
from chatledger.models.json import JsonValue

NAME = "qwen-agent"
OBJECT = "object"  # true in the residual of a message that came in as an object; a dict needs no mark


def write_message(message: ChatMessage) -> dict[str, JsonValue]:
    """The source of a message of this format."""
    return restore_source(write_fields(message), message.residual)


def write_fields(message: ChatMessage) -> dict[str, JsonValue]:
    """The typed fields in Qwen-Agent's order, without None; of several calls only the first."""
    call = message.tool_calls[0] if message.tool_calls else None
    id_ = message.tool_call_id if call is None else call.id
    fields = {
        "role": FUNCTION if message.role == "tool" else message.role,
        "content": "" if message.content is None else _write_content(message.content),
        "reasoning_content": None if message.reasoning is None else _write_content(message.reasoning),
        "name": message.name,
        "function_call": None if call is None else {"name": call.name, "arguments": arguments_text(call)},
        "extra": None if id_ is None else {FUNCTION_ID: id_},
    }
    return {key: value for key, value in fields.items() if value is not None}


def arguments_text(call: ToolCall) -> str:
    """The arguments as Qwen-Agent writes them: JSON text that keeps characters beyond ASCII."""
    if call.arguments is None or isinstance(call.arguments, str):
        return call.arguments or ""
    return json.dumps(call.arguments, ensure_ascii=False)


def _write_content(content: str | list[Part]) -> str | list[JsonValue]:
    if isinstance(content, str):
        return content
    return [item for item in map(item_of, content) if item is not None]


_CALL = "function_call"
_LISTS = ("content", "reasoning_content")


def keep_difference(source: Mapping[str, Any], encoded: dict[str, Any]) -> dict[str, JsonValue]:
    """The residual with which `restore_source` gives the source; empty if the encoded message equals it."""
    theirs = _objects(source)
    residuals = {path: keep(theirs[path], ours) for path, ours in _objects(encoded).items() if path in theirs}
    inner = {path: residual for path, residual in residuals.items() if residual is not None}
    return (keep(source, _with_inner(encoded, inner)) or {}) | ({INNER: inner} if inner else {})


def restore_source(encoded: dict[str, JsonValue], residual: Any) -> dict[str, JsonValue]:
    """The source of an encoded message. A residual of another shape changes nothing."""
    if not isinstance(residual, dict):
        return encoded
    return restore(_with_inner(encoded, residual.get(INNER)), residual)


def _objects(message: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The objects inside a message, by their path."""
    objects = {_CALL: message[_CALL]} if isinstance(message.get(_CALL), dict) else {}
    for key in _LISTS:
        items = message.get(key)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict):
                objects[f"{key}.{index}"] = item
    return objects


def _with_inner(encoded: dict[str, Any], inner: Any) -> dict[str, Any]:
    if not isinstance(inner, dict) or not inner:
        return encoded
    restored = {path: restore(object_, inner.get(path)) for path, object_ in _objects(encoded).items()}
    return {key: _replaced(key, value, restored) for key, value in encoded.items()}


def _replaced(key: str, value: Any, restored: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [restored.get(f"{key}.{index}", item) for index, item in enumerate(value)]
    return restored.get(key, value)
