"""Taking typed values out of a source object, or saying at which path another thing stands."""

from __future__ import annotations

from typing import Any

from chatledger.errors import DecodeError
from chatledger.models.json import JsonValue

_NAMES = {type(None): "null", bool: "a boolean", dict: "an object", list: "a list", str: "text"}


def wrong(path: str, wanted: str, given: object) -> DecodeError:
    """The error for a value of another type than the format has there."""
    return DecodeError(path, f"{wanted} is expected, not {_NAMES.get(type(given), type(given).__name__)}")


def text_at(source: dict[str, JsonValue], key: str, path: str) -> str:
    if key not in source:
        raise DecodeError(f"{path}.{key}", "missing")
    value = source[key]
    if not isinstance(value, str):
        raise wrong(f"{path}.{key}", "text", value)
    return value


def optional_text_at(source: dict[str, JsonValue], key: str, path: str) -> str | None:
    """The text under a key; None where it is null or absent, which only the residual tells apart."""
    return None if source.get(key) is None else text_at(source, key, path)


def object_at(source: dict[str, JsonValue], key: str, path: str) -> dict[str, JsonValue]:
    if key not in source:
        raise DecodeError(f"{path}.{key}", "missing")
    return as_object(source[key], f"{path}.{key}")


def as_object(value: JsonValue, path: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise wrong(path, "an object", value)
    return value


def nested(residual: JsonValue, *keys: str) -> Any:
    """What a residual holds under a path of keys; None where it has another shape."""
    for key in keys:
        residual = residual.get(key) if isinstance(residual, dict) else None
    return residual
