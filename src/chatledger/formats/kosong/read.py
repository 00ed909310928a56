"""A kosong message, a dict or an object, as a ChatMessage whose residual holds all that its fields do not say.

Strict refuses what upstream's classes refuse, naming the path, with two exceptions: it keeps a part of unknown type,
and a call may lack `arguments`, since upstream's own exclude_none dump leaves that key out for None. Lenient also takes
values that no typed field can hold; the residual keeps the difference between the source and the fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.kosong.models import (
    classes_of,
    dump_object,
    is_object,
    is_plain_text,
    keep_given,
    object_fields,
)
from chatledger.formats.kosong.parts import (
    AS_DICT,
    CLASSES,
    DUMP,
    FIELDS,
    GIVEN,
    PARTIAL,
    ROLES,
    SHORT,
    KosongRevision,
    Source,
    as_object,
    optional,
    read_part,
    required,
)
from chatledger.formats.kosong.write import dump, shortened, write_fields
from chatledger.formats.wire.fields import nameless, unknown_role
from chatledger.formats.wire.plain import as_json
from chatledger.formats.wire.residual import keep_deep
from chatledger.models import LENIENT, ChatMessage, Loss, Part, ToolCall
from chatledger.models.json import JsonObject, JsonValue

_NAMES = re.compile(r"\.(role|name|tool_call_id)|\.tool_calls\[\d+\]\.(id|function\.name)")
"""The paths of ids and names in a message."""


def read_message(
    message: object, path: str, revision: KosongRevision, losses: list[Loss], *, lenient: bool
) -> ChatMessage:
    if isinstance(message, dict):
        return _read_dict(message, path, revision, losses, lenient=lenient)
    if is_object(message):
        return _read_object(message, path, revision, losses, lenient=lenient)
    raise DecodeError(path, f"expected a dict or a message object, not {type(message).__name__}")


def _read_dict(source: Any, path: str, revision: KosongRevision, losses: list[Loss], *, lenient: bool) -> ChatMessage:
    """A message from a dict. Writing it gives that dict again, with its key order and its unknown keys."""
    source = as_json(source, path, _NAMES, losses, lenient=lenient)
    message = _read_fields(source, path, revision, lenient=lenient)
    message = message.model_copy(update={"residual": _partial_flag(source)})
    full = write_fields(message, revision)
    is_short = len(source) < len(full)
    difference = keep_deep(source, shortened(full) if is_short else full)
    residual = {AS_DICT: True, **({SHORT: True} if is_short else {}), **({FIELDS: difference} if difference else {})}
    return message.model_copy(update={"residual": {**residual, **(message.residual or {})}})


def _read_object(source: Any, path: str, revision: KosongRevision, losses: list[Loss], *, lenient: bool) -> ChatMessage:
    """A message from an object. Writing it gives an equal object with equal dumps."""
    fields = as_json(object_fields(source, path), path, _NAMES, losses, lenient=lenient)
    own_dump = as_json(dump_object(source, path), path, _NAMES, [], lenient=lenient)
    classes = classes_of(source)
    if is_text := not revision.null_is_empty and is_plain_text(source):
        fields["content"] = fields["content"][0]["text"]
    message = _read_fields(fields, path, revision, lenient=lenient, classes=classes)
    message = message.model_copy(update={"residual": _partial_flag(fields)})
    written = dump(fields, revision)
    residual = {
        FIELDS: keep_deep(fields, write_fields(message, revision)),
        DUMP: keep_deep(own_dump, written),
        CLASSES: {str(index): name for index, name in classes.items()} or None,
        GIVEN: keep_given(source, is_text=is_text or isinstance(fields["content"], str)),
        **(message.residual or {}),
    }
    return message.model_copy(update={"residual": {k: v for k, v in residual.items() if v is not None} or None})


def _partial_flag(source: JsonObject) -> dict[str, bool] | None:
    partial = source.get("partial")
    return {PARTIAL: partial} if isinstance(partial, bool) else None


def _read_fields(
    source: Source,
    path: str,
    revision: KosongRevision,
    *,
    lenient: bool = False,
    classes: Mapping[int, str] | None = None,
) -> ChatMessage:
    """The message without its residual. `classes` names the type of the parts that state another type, by index."""
    optional(source, "partial", bool, path, lenient=lenient)
    fields = {
        "role": _role(source, path, lenient),
        "name": optional(source, "name", str, path, lenient=lenient),
        "content": _content(source, path, revision, lenient, classes or {}),
        "tool_calls": _calls(source, path, lenient),
        "tool_call_id": optional(source, "tool_call_id", str, path, lenient=lenient),
        "format": revision.name,
    }
    return ChatMessage.model_validate(fields, context=LENIENT)


def _role(source: Source, path: str, lenient: bool) -> str:
    role: str = required(source, "role", str, path)
    if role in ROLES or lenient:
        return role
    raise unknown_role(role, path, ROLES)


def _content(
    source: Source, path: str, revision: KosongRevision, lenient: bool, classes: Mapping[int, str]
) -> str | list[Part] | None:
    if "content" not in source and not lenient:
        raise DecodeError(f"{path}.content", "missing")
    content = source.get("content")
    if not isinstance(content, list):
        text: str | None = optional(source, "content", str, path, lenient=lenient)
        return text
    return [
        read_part(part, f"{path}.content[{index}]", revision, lenient=lenient, part_type=classes.get(index))
        for index, part in enumerate(content)
    ]


def _calls(source: Source, path: str, lenient: bool) -> list[ToolCall] | None:
    calls = optional(source, "tool_calls", list, path, lenient=lenient)
    if calls is None:
        return None
    # The rules refuse a call without a name, and so does strict. Lenient leaves it to the residual.
    named = [(index, call) for index, call in enumerate(calls) if not lenient or _has_name(call)]
    return [_call(call, f"{path}.tool_calls[{index}]", lenient) for index, call in named]


def _has_name(call: JsonValue) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str) and function["name"] != ""


def _call(value: JsonValue, path: str, lenient: bool) -> ToolCall:
    call = as_object(value, path)
    function = required(call, "function", dict, path)
    if not lenient:
        _check_call(call, function, path)
    arguments = function.get("arguments")
    return ToolCall(
        id=optional(call, "id", str, path, lenient=lenient),
        name=required(function, "name", str, f"{path}.function"),
        arguments=arguments if isinstance(arguments, (str, dict)) else None,
        extras=optional(call, "extras", dict, path, lenient=lenient),
    )


def _check_call(call: JsonObject, function: JsonObject, path: str) -> None:
    required(call, "id", str, path)
    if not required(function, "name", str, f"{path}.function"):
        raise nameless(f"{path}.function.name")
    optional(function, "arguments", str, f"{path}.function")
    if call.get("type", "function") != "function":
        raise DecodeError(f"{path}.type", f"expected 'function', not {str(call['type'])[:80]!r}")
