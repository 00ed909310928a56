"""Taking the fields of a dict one by one, with the path of the first that is not of its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chatledger.errors import DecodeError
from chatledger.models.json import JsonValue

Source = Mapping[str, JsonValue]

_WORDS = {str: "text", bool: "true or false", dict: "an object", list: "a list"}


def optional(source: Source, key: str, kind: type, path: str, *, lenient: bool = False) -> Any:
    """The field if it is of that type, or None. One of another type is refused, or in lenient passed over."""
    value = source.get(key)
    if value is None or isinstance(value, kind):
        return value
    if lenient:
        return None
    raise DecodeError(f"{path}.{key}", f"{_WORDS[kind]} is expected, not {type(value).__name__}")


def required(source: Source, key: str, kind: type, path: str) -> Any:
    """The field, which must be there and of that type."""
    if source.get(key) is None:
        raise DecodeError(f"{path}.{key}", "missing")
    return optional(source, key, kind, path)


def as_object(value: JsonValue, path: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise DecodeError(path, f"an object is expected, not {type(value).__name__}")
    return value
