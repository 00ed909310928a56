"""Typed values of a source object. A value of another type raises DecodeError with its path."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from chatledger.errors import DecodeError
from chatledger.models import LENIENT, ChatMessage, ToolCall
from chatledger.models.base import blank, revive
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


def wrong(path: str, wanted: str, value: object) -> DecodeError:
    """The error for a value of the wrong type."""
    return DecodeError(path, f"expected {wanted}, not {kind_of(value)}")


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


def role_at(source: dict[str, JsonValue], path: str, roles: Collection[str], *, lenient: bool) -> str:
    """The role of a message. Lenient rules keep an unknown role as its text."""
    role = text_at(source, "role", path)
    if role in roles or lenient:
        return role
    raise unknown_role(role, path, roles)


def unknown_role(role: str, path: str, roles: Collection[str]) -> DecodeError:
    return DecodeError(f"{path}.role", f"unknown role {role[:80]!r}; known roles: {', '.join(sorted(roles))}")


def step_of(step: int | str) -> str:
    """A step of a path, as Pydantic names it in an error."""
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def nameless(path: str) -> DecodeError:
    """The error for a call without a name. The rules refuse it at every level. Only lenient reading can store its
    message, because it keeps the call in the residual.
    """
    return DecodeError(path, "empty: a call needs a name. rules='lenient' keeps the call in its message's residual")


def call_at(
    source: dict[str, JsonValue], path: str, *, id_key: str, name_key: str, arguments_key: str, lenient: bool
) -> ToolCall | None:
    """The call whose id, name and arguments stand under these keys; None for a malformed one if lenient."""
    try:
        arguments = source.get(arguments_key)
        if arguments is not None and not isinstance(arguments, (str, dict)):
            raise wrong(f"{path}.{arguments_key}", "text or an object", arguments)
        id_, name = optional_text_at(source, id_key, path), text_at(source, name_key, path)
        if not name:
            raise nameless(f"{path}.{name_key}")
    except DecodeError:
        if not lenient:
            raise
        return None
    return ToolCall(id=id_, name=name, arguments=arguments)


def as_object(value: JsonValue, path: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise wrong(path, "an object", value)
    return value


_CHECKED_TYPES = frozenset({str, list, dict, bool, type(None)})


def built(fields: Mapping[str, Any], names: set[str]) -> ChatMessage:
    """The message of fields whose types were checked while reading. `names` has theirs, shared by all messages.

    Pydantic validates the message only if a value has a subclass of these types; it turns a subclass of str into a
    plain str.
    """
    if _CHECKED_TYPES.issuperset(map(type, fields.values())):
        values = blank(ChatMessage)
        values.update(fields)
        return revive(ChatMessage, values, names)
    return ChatMessage.model_validate(fields, context=LENIENT)
