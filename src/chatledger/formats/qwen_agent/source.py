"""The source form of a message: the original dict, or the dict that an object's own dump would return.

Objects are identified by their fields, so the real package's classes and ours are treated alike, and neither is
imported. They are read field by field and not dumped: a dump would convert live objects in `extra`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chatledger.formats.qwen_agent.constants import CALL_FIELDS, CONTENT_TYPES, MESSAGE_FIELDS, ROLES
from chatledger.formats.qwen_agent.parts import Found, item_problems, type_problems
from chatledger.models.json import JsonValue


def source_of(message: Any) -> dict[Any, JsonValue] | None:
    """The message as a dict in the order of its fields, without None values; None for anything but a message."""
    if isinstance(message, dict):
        return message
    if not is_message_object(message):
        return None
    source = _given(message)
    return {key: _field_source(key, value) for key, value in source.items()}


def is_message_object(value: object) -> bool:
    return _has_fields(value, MESSAGE_FIELDS)


def _field_source(key: str, value: Any) -> JsonValue:
    if key in ("content", "reasoning_content") and isinstance(value, list):
        return [_given(item) if _has_fields(item, CONTENT_TYPES) else item for item in value]
    if key == "function_call" and _has_fields(value, CALL_FIELDS):
        return _given(value)
    return value


def _has_fields(value: object, fields: Sequence[str]) -> bool:
    return set(fields) <= getattr(type(value), "model_fields", {}).keys()


def _given(value: Any) -> dict[str, Any]:
    """The fields of an object that are not None, including those of a subclass."""
    held = {field: getattr(value, field) for field in type(value).model_fields}
    return {field: one for field, one in {**held, **(value.model_extra or {})}.items() if one is not None}


def problems(source: Mapping[str, Any]) -> Found:
    """(path in the message, problem) for every value that Qwen-Agent's constructors would reject, in field order.

    An unknown key of a message is allowed: Qwen-Agent drops it, and the residual keeps it. An unknown key of an item or
    a call is not allowed: no class could load it again.
    """
    if source.get("role") not in ROLES:
        yield "role", f"unknown role {source.get('role')!r}; known roles: {', '.join(ROLES)}"
    if "content" not in source:
        yield "content", "missing; give a text, a list of items or None"
    for field in ("content", "reasoning_content"):
        yield from _text_or_items(field, source.get(field))
    yield from type_problems("name", source.get("name"), str)
    yield from _call_problems(source.get("function_call"))
    yield from type_problems("extra", source.get("extra"), dict)


def _text_or_items(field: str, value: Any) -> Found:
    yield from type_problems(field, value, str, list)
    for index, item in enumerate(value if isinstance(value, list) else ()):
        yield from ((f"{field}[{index}]{path}", detail) for path, detail in item_problems(item))


def _call_problems(call: Any) -> Found:
    yield from type_problems("function_call", call, dict)
    if isinstance(call, dict):
        for key in call:
            if key not in CALL_FIELDS:
                yield f"function_call.{key}", "unknown key"
        for field in CALL_FIELDS:
            if not isinstance(call.get(field), str):
                yield f"function_call.{field}", "missing or not text"
