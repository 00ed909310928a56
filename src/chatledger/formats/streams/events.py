"""Events as plain dicts, and their fields: a value of the right type, or DecodeError with the path."""

from __future__ import annotations

from typing import Any, TypeVar

from chatledger.errors import DecodeError
from chatledger.formats.wire.plain import dumped

T = TypeVar("T")

Event = dict[str, Any]


def plain_event(value: object) -> Event:
    """A dict, or the dict that an object dumps."""
    event = dumped(value, "$", lambda model_dump: model_dump())
    if not isinstance(event, dict):
        raise DecodeError("$", f"an event is a dict or an object that dumps one, not {type(event).__name__}")
    return event


def field(source: Event, key: str, kind: type[T], path: str) -> T | None:
    """The value under a key; None if it is absent or null."""
    value = source.get(key)
    if value is None:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DecodeError(f"{path}.{key}", f"{kind.__name__} expected, not {type(value).__name__}")
    return value


def some_text(source: Event, key: str, path: str) -> str | None:
    """The text under a key; None for an empty text too, which servers send when they have nothing to add."""
    return field(source, key, str, path) or None


def failed(source: Event, path: str) -> DecodeError:
    """The error for a stream that the provider gives up; its message is in `error` or in the event itself."""
    error = source.get("error")
    error = error if isinstance(error, dict) else source
    return DecodeError(path, f"the provider gave the stream up: {error.get('message') or error.get('code') or error}")
