"""The source form of a message: the dict that came in, or what an object's own dump would give.

Objects are known by their fields, so the real package's classes and ours are the same to us, and neither is imported.
They are read field by field and not dumped: a dump would turn live objects in `extra` into something that they are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chatledger.formats.qwen_agent.constants import CONTENT_TYPES, MESSAGE_FIELDS
from chatledger.models.json import JsonValue

CALL_FIELDS = ("name", "arguments")


def source_of(message: Any) -> dict[Any, JsonValue] | None:
    """The message as a dict in the order of its fields, without None; None if it is no message at all."""
    if isinstance(message, dict):
        return message
    if not is_message_object(message):
        return None
    source = _given(message, type(message).model_fields)  # those of a subclass too: nothing is left out in silence
    return {key: _field_source(key, value) for key, value in source.items()}


def is_message_object(value: object) -> bool:
    return _has_fields(value, MESSAGE_FIELDS)


def _field_source(key: str, value: Any) -> JsonValue:
    if key in ("content", "reasoning_content") and isinstance(value, list):
        return [_given(item, CONTENT_TYPES) if _has_fields(item, CONTENT_TYPES) else item for item in value]
    if key == "function_call" and _has_fields(value, CALL_FIELDS):
        return _given(value, CALL_FIELDS)
    return value


def _has_fields(value: object, fields: Sequence[str]) -> bool:
    return set(fields) <= getattr(type(value), "model_fields", {}).keys()


def _given(value: object, fields: Iterable[str]) -> dict[str, Any]:
    return {field: getattr(value, field) for field in fields if getattr(value, field) is not None}
