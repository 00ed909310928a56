"""What upstream's own constructors would refuse of a source, found without building them, with the path to it.

An unknown key of a message is fine: upstream drops it, and the residual keeps it. An unknown key of an item or of a
call is not: nothing could load it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chatledger.formats.qwen_agent.constants import AUDIO, CONTENT_TYPES, ROLES, VIDEO
from chatledger.formats.qwen_agent.content import EXCLUSIVE, given_types
from chatledger.formats.qwen_agent.sources import CALL_FIELDS

_TYPE_NAMES: dict[type, str] = {str: "text", dict: "an object", list: "a list"}
_CONTAINER: dict[str, type] = {AUDIO: dict, VIDEO: list}

Found = Iterator[tuple[str, str]]


def problems(source: Mapping[str, Any]) -> Found:
    """(path within the message, what is wrong), in the order of the fields."""
    if source.get("role") not in ROLES:
        yield "role", f"unknown role {source.get('role')!r}; known are {', '.join(ROLES)}"
    if "content" not in source:
        yield "content", "missing; it may be empty or None"
    for field in ("content", "reasoning_content"):
        yield from _text_or_items(field, source.get(field))
    yield from _typed("name", source.get("name"), str)
    yield from _call_problems(source.get("function_call"))
    yield from _typed("extra", source.get("extra"), dict)


def item_problems(item: Any) -> Found:
    """What is wrong with one content item; the path is empty or a field of it."""
    if isinstance(item, dict):
        yield from _kind_problems(item)
    else:
        yield "", f"a content item is an object, not {type(item).__name__}"


def _kind_problems(item: dict[str, Any]) -> Found:
    for key in item:
        if key not in CONTENT_TYPES:
            yield f".{key}", f"unknown kind of content; known are {', '.join(CONTENT_TYPES)}"
    for kind in CONTENT_TYPES:
        yield from _typed(f".{kind}", item.get(kind), str, *((_CONTAINER[kind],) if kind in _CONTAINER else ()))
    if len(given_types(item)) != 1:
        yield "", EXCLUSIVE


def _text_or_items(field: str, value: Any) -> Found:
    yield from _typed(field, value, str, list)
    for index, item in enumerate(value if isinstance(value, list) else ()):
        yield from ((f"{field}[{index}]{path}", detail) for path, detail in item_problems(item))


def _call_problems(call: Any) -> Found:
    yield from _typed("function_call", call, dict)
    if isinstance(call, dict):
        for key in call:
            if key not in CALL_FIELDS:
                yield f"function_call.{key}", "unknown key"
        for field in CALL_FIELDS:
            if not isinstance(call.get(field), str):
                yield f"function_call.{field}", "missing or not text"


def _typed(path: str, value: Any, *types: type) -> Found:
    if value is not None and not isinstance(value, types):
        yield path, f"{type(value).__name__}, where {' or '.join(_TYPE_NAMES[kind] for kind in types)} belongs"
