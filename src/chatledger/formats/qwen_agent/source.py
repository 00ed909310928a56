"""The source form of a message: the dict that came in, or the dict that an object's own dump would give.

Objects are known by their fields, so the real package's classes and ours are treated alike, and neither is imported.
They are read field by field and not dumped: a dump would convert live objects in `extra`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.qwen_agent.constants import CALL_FIELDS, CONTENT_TYPES, MESSAGE_FIELDS, ROLES
from chatledger.formats.qwen_agent.parts import Found, item_problems, type_problems
from chatledger.formats.wire.plain import COERCED
from chatledger.models import Loss
from chatledger.models.json import MAX_DEPTH, JsonValue, Place, is_long, json_problem, path_of, text_of


def source_of(message: Any) -> dict[Any, JsonValue] | None:
    """The message as a dict in the order of its fields, without None values; None for anything but a message."""
    if isinstance(message, dict):
        return message
    if not is_message_object(message):
        return None
    source = _given(message, type(message).model_fields)  # also the fields of a subclass
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


def make_plain(source: Any, path: str) -> tuple[JsonValue, list[Loss]]:
    """The source with each live object as its repr, tuples as lists and keys as text; and a loss for each of them.

    Raises DecodeError only for a source that is nested too deep.
    """
    if json_problem(source, max_depth=MAX_DEPTH) is None:
        return source, []
    return _copy(source, path)


def _copy(source: Any, path: str) -> tuple[JsonValue, list[Loss]]:
    """The walk does not recurse: a source may be nested deeper than Python's stack allows."""
    holder, losses = [source], list[Loss]()
    pending: list[tuple[Any, Any, Place, int]] = [(holder, 0, (None, path), 1)]
    while pending:
        owner, key, place, depth = pending.pop()
        owner[key] = copy = _plain(owner[key], place, losses)
        steps = _steps(copy)
        if steps and depth > MAX_DEPTH:
            raise DecodeError(path_of(place)[:80], f"nested deeper than {MAX_DEPTH}")
        pending += [(copy, step, (place, step), depth + 1) for step in reversed(steps)]
    return holder[0], losses


def _plain(value: Any, place: Place, losses: list[Loss]) -> JsonValue:
    """A shallow copy in a JSON type: the values inside stay as they are."""
    if value is None or (isinstance(value, (str, int, float)) and not is_long(value)):
        return value
    if isinstance(value, dict):
        return _with_text_keys(value, place, losses)
    if not isinstance(value, list):
        losses.append(Loss(COERCED, None, path_of(place)))
    return list(value) if isinstance(value, (list, tuple)) else text_of(value)


def _with_text_keys(value: dict[Any, Any], place: Place, losses: list[Loss]) -> dict[str, Any]:
    copy = {}
    for key, child in value.items():
        name = key if isinstance(key, str) else text_of(key)
        if name is not key:
            losses.append(Loss(COERCED, None, path_of((place, name))))
        copy[name] = child
    return copy


def _steps(value: JsonValue) -> Sequence[str | int]:
    if isinstance(value, dict):
        return list(value)
    return range(len(value)) if isinstance(value, list) else ()


def problems(source: Mapping[str, Any]) -> Found:
    """(path within the message, problem) for all that upstream's constructors would refuse, in the order of the fields.

    An unknown key of a message is allowed: upstream drops it, and the residual keeps it. An unknown key of an item or a
    call is not: no class could load it again.
    """
    if source.get("role") not in ROLES:
        yield "role", f"unknown role {source.get('role')!r}; known are {', '.join(ROLES)}"
    if "content" not in source:
        yield "content", "missing; it may be empty or None"
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
