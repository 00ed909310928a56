"""A payload as messages: its items are read one by one, and then grouped.

Consecutive items of the assistant become one message; every other item is a separate message.

    reasoning, message, function_call, function_call | function_call_output | function_call_output | message

If an assistant message has a text and no call yet, the next reasoning or text begins another message. From the first
call on, everything belongs to the message that waits for the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from chatledger.errors import DecodeError
from chatledger.formats.openai_responses.foreign import fit
from chatledger.formats.openai_responses.items import CALL, INSTRUCTIONS, MESSAGE, ReadItem, Source, read_item
from chatledger.formats.openai_responses.write import INPUT, ITEMS, NAME, PAYLOAD, REQUEST_KEYS
from chatledger.formats.wire.fields import wrong
from chatledger.formats.wire.plain import dump_given, plain_value
from chatledger.models import LENIENT, ChatMessage, Part, TextPart
from chatledger.models.json import MAX_DEPTH, JsonValue, json_problem, same_json

_DEPTH = 7
"""The maximum depth of objects: the items of a request, their parts, the values in annotations."""


class HasRoleAndKind(Protocol):
    """The two attributes of an item that grouping needs."""

    @property
    def role(self) -> str: ...

    @property
    def kind(self) -> str: ...


class RoleAndKind(NamedTuple):
    """The attributes of an item that is only grouped."""

    role: str
    kind: str


T = TypeVar("T", bound=HasRoleAndKind)


def read_payload(payload: object, *, lenient: bool) -> list[ChatMessage]:
    """The messages of a payload. Raises DecodeError for anything else."""
    source = plain_value(payload, INPUT, _DEPTH, dump_given)
    _check_json(source)
    items = _items(source, lenient=lenient)
    messages = [_message(group) for group in grouped(items)]
    shape = _shape(source)
    if shape is not None:
        messages[0] = _with_shape(messages[0], shape)
    return messages


def read_message(items: Sequence[ReadItem]) -> ChatMessage:
    """One message of all the items, which its residual lists."""
    calls = [item.call for item in items if item.call is not None]
    return ChatMessage.model_validate(
        {
            "role": items[0].role,
            "content": _joined([item.content for item in items if item.content is not None]),
            "tool_calls": calls or None,
            "tool_call_id": items[0].call_id,
            "format": NAME,
            "residual": {ITEMS: [item.entry for item in items]},
        },
        context=LENIENT,
    )


def grouped(items: Iterable[T]) -> Iterator[list[T]]:
    """The items of each message, in their order."""
    group: list[T] = []
    spoken = called = False
    for item in items:
        if group and not (_are_both_assistant(group[-1], item) and (called or not spoken or item.kind == CALL)):
            yield group
            group, spoken, called = [], False, False
        group.append(item)
        spoken, called = spoken or item.kind == MESSAGE, called or item.kind == CALL
    if group:
        yield group


def _check_json(source: Any) -> None:
    problem = json_problem(source, max_depth=MAX_DEPTH)
    if problem is not None:
        path, detail = problem
        raise DecodeError(
            path.removeprefix("$.") if isinstance(source, dict) else INPUT + path.removeprefix("$"), detail
        )


def _items(source: Any, *, lenient: bool) -> list[ReadItem]:
    if isinstance(source, dict):
        return _items_of_request(source, lenient=lenient)
    if isinstance(source, str):
        return [read_item({"role": "user", "content": source}, INPUT, lenient=lenient)]
    if not isinstance(source, list):
        raise wrong(INPUT, "a list of items or a text", source)
    return [read_item(value, f"{INPUT}[{idx}]", lenient=lenient) for idx, value in enumerate(source)]


def _items_of_request(source: Source, *, lenient: bool) -> list[ReadItem]:
    if not source.keys() <= set(REQUEST_KEYS):
        raise DecodeError(INPUT, "the object has other keys; give only its 'instructions' and 'input'")
    instructions = source.get(INSTRUCTIONS)
    if instructions is not None and not isinstance(instructions, str):
        raise wrong(INSTRUCTIONS, "text or null", instructions)
    items = _items(source[INPUT], lenient=lenient) if INPUT in source and not isinstance(source[INPUT], dict) else None
    if items is None and INPUT in source:
        raise wrong(INPUT, "a list of items or a text", source[INPUT])
    if instructions is not None:
        first = ReadItem({}, "system", {"kind": INSTRUCTIONS}, content=instructions)
        return [first, *(items or ())]
    if not items:
        raise DecodeError(INPUT, "the payload has neither instructions nor items")
    return items


def _message(group: list[ReadItem]) -> ChatMessage:
    """The message of a group, without a residual if it is written as the same items anyway."""
    message = read_message(group)
    plain = message.model_copy(update={"residual": None})
    return plain if same_json(fit(plain, 0, None), [item.source for item in group]) else message


def _shape(source: Any) -> dict[str, JsonValue] | None:
    if isinstance(source, str):
        return {"text": True}
    if not isinstance(source, dict):
        return None
    return {"keys": list(source), "text": isinstance(source.get(INPUT), str)}


def _with_shape(message: ChatMessage, shape: dict[str, JsonValue]) -> ChatMessage:
    residual = message.residual if isinstance(message.residual, dict) else {}
    return message.model_copy(update={"residual": {**residual, PAYLOAD: shape}})


def _joined(contents: list[str | list[Part]]) -> str | list[Part] | None:
    """The content of a message: the content of its only item, or the parts of all of them."""
    if len(contents) < 2:
        return contents[0] if contents else None
    return [part for content in contents for part in _as_parts(content)]


def _as_parts(content: str | list[Part]) -> list[Part]:
    return [TextPart(text=content)] if isinstance(content, str) else content


def _are_both_assistant(left: HasRoleAndKind, right: HasRoleAndKind) -> bool:
    return left.role == right.role == "assistant"
