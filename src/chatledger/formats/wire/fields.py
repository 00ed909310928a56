"""Typed values of a source object, or a DecodeError with the path at which something else stands."""

from __future__ import annotations

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
    """The text under a key; None where it is null or absent. Only the residual tells the two apart."""
    return None if source.get(key) is None else text_at(source, key, path)


def object_at(source: dict[str, JsonValue], key: str, path: str) -> dict[str, JsonValue]:
    if key not in source:
        raise DecodeError(f"{path}.{key}", "missing")
    return as_object(source[key], f"{path}.{key}")


def nameless(path: str) -> DecodeError:
    """The error for a call without a name. The rules refuse it at every level, so only lenient reading, which leaves
    it to the residual, can store its message.
    """
    return DecodeError(path, "empty: a call without a name cannot be run; rules='lenient' keeps it beside the message")


def as_object(value: JsonValue, path: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise wrong(path, "an object", value)
    return value
