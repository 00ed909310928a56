"""A kosong message, as a dict of its fields, becomes a ChatMessage.

Strict refuses what upstream's classes refuse, naming the path, but for two things: a part of unknown type is kept
whole, and a call may lack `arguments`, since upstream's own exclude_none dump leaves the key out for None. Lenient also
takes what no typed field can hold: the codec finds it in the difference between the source and the fields.
"""

from __future__ import annotations

from collections.abc import Mapping

from chatledger.errors import DecodeError
from chatledger.formats.kosong.fields import Source, as_object, optional, required
from chatledger.formats.kosong.reading_parts import read_part
from chatledger.formats.kosong.revision import ROLES, Revision
from chatledger.models import LENIENT, ChatMessage, Part, ToolCall
from chatledger.models.json import JsonValue


def read_message(
    source: Source, path: str, revision: Revision, *, lenient: bool = False, classes: Mapping[int, str] | None = None
) -> ChatMessage:
    """The message without its residual. `classes` names the type of parts that do not say it themselves."""
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
    raise DecodeError(f"{path}.role", f"unknown role {role[:80]!r}; known are {', '.join(sorted(ROLES))}")


def _content(
    source: Source, path: str, revision: Revision, lenient: bool, classes: Mapping[int, str]
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
    # A call without a name could not be run, and the rules let none in: an import leaves it to the residual.
    named = [(index, call) for index, call in enumerate(calls) if not lenient or _has_name(call)]
    return [_call(as_object(call, place := f"{path}.tool_calls[{index}]"), place, lenient) for index, call in named]


def _has_name(call: JsonValue) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str) and function["name"] != ""


def _call(call: dict[str, JsonValue], path: str, lenient: bool) -> ToolCall:
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


def _check_call(call: dict[str, JsonValue], function: dict[str, JsonValue], path: str) -> None:
    required(call, "id", str, path)
    optional(function, "arguments", str, f"{path}.function")
    if call.get("type", "function") != "function":
        raise DecodeError(f"{path}.type", f"'function' is expected, not {str(call['type'])[:80]!r}")
