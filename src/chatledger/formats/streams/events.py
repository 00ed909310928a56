"""Events as plain dicts, and their fields: of the type that they should have, or DecodeError with the place."""

from __future__ import annotations

from typing import Any, TypeVar

from chatledger.errors import DecodeError

T = TypeVar("T")

Event = dict[str, Any]


def plain_event(value: object) -> Event:
    """A dict, or what an object dumps."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        try:
            value = dump()
        except Exception as error:  # foreign code, so anything
            raise DecodeError("$", f"{type(value).__name__}.model_dump raised {type(error).__name__}") from error
    if not isinstance(value, dict):
        raise DecodeError("$", f"an event is a dict or an object that dumps one, not {type(value).__name__}")
    return value


def field(source: Event, key: str, kind: type[T], path: str) -> T | None:
    """None where it is absent or null."""
    value = source.get(key)
    if value is None:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DecodeError(f"{path}.{key}", f"{kind.__name__} expected, not {type(value).__name__}")
    return value


def some_text(source: Event, key: str, path: str) -> str | None:
    """None for an empty text too: servers send it where they have nothing to add."""
    return field(source, key, str, path) or None


def failed(source: Event, path: str) -> DecodeError:
    """What a provider says of a stream that it gives up, in `error` or in the event itself."""
    said = source.get("error")
    said = said if isinstance(said, dict) else source
    return DecodeError(path, f"the provider gave the stream up: {said.get('message') or said.get('code') or said}")
