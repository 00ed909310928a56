"""Sources to messages, one for one; messages that another format carries through this one come back whole.

Strict accepts what Qwen-Agent's constructors accept. Lenient keeps an unknown role as its text, a malformed item as an
opaque part and all other invalid values in the residual. It rejects only a message without a role or with JSON that is
nested too deep.

    extra["chatledger"] = {"rows": number of messages, "fields": …}

is in the first of the messages that a carried message became. Joining these gives a message; `fields` holds the fields
of the original that differ from the joined message. Messages that no longer form a carried message are read as plain
messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.codec import Decoded
from chatledger.formats.qwen_agent.models import (
    CALL_FIELDS,
    CONTENT_TYPES,
    FUNCTION,
    FUNCTION_ID,
    MESSAGE_FIELDS,
    ROLES,
)
from chatledger.formats.qwen_agent.parts import Found, item_problems, part_of, type_problems
from chatledger.formats.qwen_agent.write import NAME, OBJECT, keep_difference, write_fields
from chatledger.formats.wire.call_pairs import Pairing
from chatledger.formats.wire.fields import nameless
from chatledger.formats.wire.plain import as_json
from chatledger.models import LENIENT, ChatMessage, Loss, Part, ToolCall
from chatledger.models.json import JsonValue

# --- Sources ----------------------------------------------------------------------------------------------------------
# The source form of a message: the original dict, or the dict that an object's own dump would return.
#
# Objects are identified by their fields, so the real package's classes and ours are treated alike, and neither is
# imported. They are read field by field and not dumped: a dump would convert live objects in `extra`.


def source_of(message: Any) -> dict[Any, JsonValue] | None:
    """The message as a dict in the order of its fields, without None values; None for anything but a message."""
    if isinstance(message, dict):
        return message
    if not is_message_object(message):
        return None
    source = _given(message)
    return {key: _field_source(key, value) for key, value in source.items()}


def is_message_object(value: object) -> bool:
    return _has_fields(value, MESSAGE_FIELDS)


def _field_source(key: str, value: Any) -> JsonValue:
    if key in ("content", "reasoning_content") and isinstance(value, list):
        return [_given(item) if _has_fields(item, CONTENT_TYPES) else item for item in value]
    if key == "function_call" and _has_fields(value, CALL_FIELDS):
        return _given(value)
    return value


def _has_fields(value: object, fields: Sequence[str]) -> bool:
    return set(fields) <= getattr(type(value), "model_fields", {}).keys()


def _given(value: Any) -> dict[str, Any]:
    """The fields of an object that are not None, including those of a subclass."""
    held = {field: getattr(value, field) for field in type(value).model_fields}
    return {field: content for field, content in {**held, **(value.model_extra or {})}.items() if content is not None}


def problems(source: Mapping[str, Any]) -> Found:
    """(path in the message, problem) for every value that Qwen-Agent's constructors would reject, in field order.

    An unknown key of a message is allowed: Qwen-Agent drops it, and the residual keeps it. An unknown key of an item or
    a call is not allowed: no class could load it again.
    """
    if source.get("role") not in ROLES:
        yield "role", f"unknown role {source.get('role')!r}; known roles: {', '.join(ROLES)}"
    if "content" not in source:
        yield "content", "missing; give a text, a list of items or None"
    for field in ("content", "reasoning_content"):
        yield from _text_or_items(field, source.get(field))
    yield from type_problems("name", source.get("name"), str)
    yield from _call_problems(source.get("function_call"))
    yield from type_problems("extra", source.get("extra"), dict)


def _text_or_items(field: str, value: Any) -> Found:
    yield from type_problems(field, value, str, list)
    for index, item in enumerate(value if isinstance(value, list) else ()):
        yield from ((f"{field}[{index}]{path}", detail) for path, detail in item_problems(item))


def _call_problems(call: Any) -> Found:
    yield from type_problems("function_call", call, dict)
    if isinstance(call, dict):
        for key in call:
            if key not in CALL_FIELDS:
                yield f"function_call.{key}", "unknown key"
        for field in CALL_FIELDS:
            if not isinstance(call.get(field), str):
                yield f"function_call.{field}", "missing or not text"


DEFAULT_ID = "1"
_NAMES = re.compile(r"\.(role|name)|\.function_call\.name|\.extra\.function_id")
"""The paths of ids and names in a message."""
KEY = "chatledger"
"""The key of `extra` with the fields of a carried message that its encoded messages do not have."""

# Every field of the source, without the fields that the ledger adds.
_FIELDS = (
    "role",
    "content",
    "reasoning",
    "name",
    "tool_calls",
    "tool_call_id",
    "is_error",
    "run_id",
    "state",
    "response_metadata",
    "custom_data",
    "format",
    "residual",
)


@dataclass(frozen=True, slots=True)
class QwenSource:
    """A message that came in, as a dict, and whether it was an object."""

    fields: dict[str, Any]
    was_object: bool


def read_payload(payload: object, *, lenient: bool) -> Decoded:
    if not isinstance(payload, (list, tuple)):
        raise DecodeError("", f"expected a list of messages, not {type(payload).__name__}")
    losses: list[Loss] = []
    sources = [_checked(message, f"[{index}]", lenient, losses) for index, message in enumerate(payload)]
    return Decoded(_read_messages(sources, lenient), losses)


def _checked(message: object, path: str, lenient: bool, losses: list[Loss]) -> QwenSource:
    fields = source_of(message)
    if fields is None:
        raise DecodeError(path, f"expected a message or its dict, not {type(message).__name__}")
    fields = as_json(fields, path, _NAMES, losses, lenient=lenient)
    if not isinstance(fields.get("role"), str):
        raise DecodeError(f"{path}.role", "missing or not text")
    problem = None if lenient else next(problems(fields), None)
    if problem is not None:
        raise DecodeError(f"{path}.{problem[0]}", problem[1])
    if not lenient and fields.get("function_call") and not fields["function_call"]["name"]:
        raise nameless(f"{path}.function_call.name")
    return QwenSource(fields, not isinstance(message, dict))


def _read_messages(sources: list[QwenSource], lenient: bool) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    pairing = Pairing()
    index = 0
    while index < len(sources):
        group = [source.fields for source in sources[index : index + max(1, carried_count(sources[index].fields))]]
        message = _carried(group)
        index += len(group) if message else 1
        messages.append(message or _read_own(sources[index - 1], pairing, lenient))
        if messages[-1].role == "tool":
            pairing.answer(messages[-1])
        pairing.ask(messages[-1], len(messages))
    return messages


def _carried(group: list[dict[str, Any]]) -> ChatMessage | None:
    """The message that the group carries; None if it carries none, or if the end of the group is missing."""
    return read_carried(group) if carried_count(group[0]) == len(group) else None


def _read_own(source: QwenSource, pairing: Pairing, lenient: bool) -> ChatMessage:
    message = read_message(source.fields, lenient=lenient, was_object=source.was_object)
    if _has_default_id(message, pairing):
        return read_message(source.fields, lenient=lenient, was_object=source.was_object, with_id=False)
    return message


def _has_default_id(result: ChatMessage, pairing: Pairing) -> bool:
    """Whether the result has the id that Qwen-Agent writes if the call has none, and no open call has that id.

    Such an id is not read. The result then answers the first open call of its name, like every result without an id.
    """
    if result.role != "tool" or result.tool_call_id != DEFAULT_ID:
        return False
    return pairing.open_calls.has(None) and not pairing.open_calls.has(DEFAULT_ID)


def read_message(
    source: Mapping[str, Any], *, lenient: bool = False, was_object: bool = False, with_id: bool = True
) -> ChatMessage:
    """The message of a source whose role is a text. The residual keeps the values that no typed field can hold.

    `with_id=False` keeps the function_id in the residual too.
    """
    call = _call_of(source, lenient)
    id_ = _function_id(source) if with_id else None
    is_result = source["role"] == FUNCTION
    fields = {
        "role": "tool" if is_result else source["role"],
        "content": _content_of(source.get("content")),
        "reasoning": _content_of(source.get("reasoning_content")),
        "name": source["name"] if isinstance(source.get("name"), str) else None,
        "tool_calls": None if call is None else [call.model_copy(update={"id": id_})],
        "tool_call_id": id_ if is_result else None,
        "format": NAME,
    }
    message = ChatMessage.model_validate(fields, context=LENIENT)
    residual = keep_difference(source, write_fields(message)) | ({OBJECT: True} if was_object else {})
    return message.model_copy(update={"residual": residual}) if residual else message


def _content_of(value: Any) -> str | list[Part] | None:
    if isinstance(value, list):
        return [part_of(item) for item in value]
    return value if isinstance(value, str) else None


def _call_of(source: Mapping[str, Any], lenient: bool) -> ToolCall | None:
    """The call of a source.

    Qwen-Agent's parser may emit a call without a name, which the rules refuse at every level. So strict rejects it. An
    import must not fail because of it, so lenient keeps such a call in the residual.
    """
    call = source.get("function_call")
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or (lenient and not call["name"]):
        return None
    arguments = call.get("arguments")
    return ToolCall(name=call["name"], arguments=arguments if isinstance(arguments, (str, dict)) else None)


def _function_id(source: Mapping[str, Any]) -> str | None:
    extra = source.get("extra")
    id_ = extra.get(FUNCTION_ID) if isinstance(extra, dict) else None
    return id_ if isinstance(id_, str) else None


def carried_count(source: Mapping[str, Any]) -> int:
    """The number of encoded messages of the carried message that begins with this one; 0 if none begins here."""
    envelope = _envelope(source)
    count, fields = envelope.get("rows"), envelope.get("fields")
    if type(count) is not int or count < 1 or not isinstance(fields, dict) or not fields.keys() <= set(_FIELDS):
        return 0
    return count


def read_carried(group: Sequence[Mapping[str, Any]]) -> ChatMessage | None:
    """The carried message of its encoded messages; None if a program changed them so that they no longer form one."""
    first, *others = group
    if any(source.get("role") != first.get("role") for source in others):
        return None
    fields = {**fields_of(join([_without_envelope(first), *others])), **_envelope(first)["fields"]}
    try:
        return ChatMessage.model_validate(fields, context=LENIENT)
    except ValidationError:
        return None


def join(sources: Sequence[Mapping[str, Any]]) -> ChatMessage:
    """Joins several sources into one message: each adds its fields."""
    pieces = [read_message(source) for source in sources]
    calls = [call for piece in pieces for call in piece.tool_calls or ()]
    return pieces[0].model_copy(
        update={
            "reasoning": next((piece.reasoning for piece in pieces if piece.reasoning is not None), None),
            "content": next((piece.content for piece in pieces if piece.content), pieces[0].content),
            "tool_calls": calls or None,
        }
    )


def fields_of(message: ChatMessage) -> dict[str, JsonValue]:
    return {field: _plain(getattr(message, field)) for field in _FIELDS}


def _plain(value: Any) -> JsonValue:
    """Parts and calls as dicts. A dump would recurse into free JSON, which may be deeper than Pydantic supports."""
    if isinstance(value, list):
        return [dict(item) if isinstance(item, BaseModel) else item for item in value]
    return value


def _envelope(source: Mapping[str, Any]) -> dict[str, Any]:
    extra = source.get("extra")
    envelope = extra.get(KEY) if isinstance(extra, dict) else None
    return envelope if isinstance(envelope, dict) else {}


def _without_envelope(source: Mapping[str, Any]) -> dict[str, Any]:
    extra = {key: value for key, value in source["extra"].items() if key != KEY}
    return {key: value for key, value in {**source, "extra": extra or None}.items() if key != "extra" or extra}
