"""Typed values of a source object. A value of another type raises DecodeError with its path."""

from __future__ import annotations

from chatledger.errors import DecodeError
from chatledger.models.json import JsonValue

_NAMES = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    dict: "an object",
    list: "a list",
    str: "text",
}


def kind_of(value: object) -> str:
    """The JSON word for the type of a value, for error texts; the name of its class if it is not JSON."""
    return _NAMES.get(type(value), type(value).__name__)


def wrong(path: str, wanted: str, given: object) -> DecodeError:
    """The error for a value of the wrong type."""
    return DecodeError(path, f"expected {wanted}, not {kind_of(given)}")


def text_at(source: dict[str, JsonValue], key: str, path: str) -> str:
    if key not in source:
        raise DecodeError(f"{path}.{key}", "missing")
    value = source[key]
    if not isinstance(value, str):
        raise wrong(f"{path}.{key}", "text", value)
    return value


def optional_text_at(source: dict[str, JsonValue], key: str, path: str) -> str | None:
    """The text under a key; None if it is null or absent. Only the residual distinguishes the two."""
    return None if source.get(key) is None else text_at(source, key, path)


def object_at(source: dict[str, JsonValue], key: str, path: str) -> dict[str, JsonValue]:
    if key not in source:
        raise DecodeError(f"{path}.{key}", "missing")
    return as_object(source[key], f"{path}.{key}")


def nameless(path: str) -> DecodeError:
    """The error for a call without a name. The rules refuse it at every level. Only lenient reading can store its
    message, because it keeps the call in the residual.
    """
    return DecodeError(path, "empty: a call needs a name. rules='lenient' keeps the call in its message's residual")


def as_object(value: JsonValue, path: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise wrong(path, "an object", value)
    return value
