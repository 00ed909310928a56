"""The shapes of a payload: a list of items, a plain text, or either with its `instructions`.

The first message of a payload that is not a list keeps in its residual how it looked (`payload`): the keys in their
order, and whether the input was a text. Instructions are a system message before the input.
"""

from __future__ import annotations

from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.openai_responses.fit import fit
from chatledger.formats.openai_responses.grouping import grouped
from chatledger.formats.openai_responses.items import INSTRUCTIONS, Item, Source, read_item
from chatledger.formats.openai_responses.message import ITEMS, NAME, read_message
from chatledger.formats.wire.fields import wrong
from chatledger.formats.wire.plain import dump_given, plain_value
from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage
from chatledger.models.json import MAX_DEPTH, JsonValue, json_problem, same_json

INPUT = "input"
PAYLOAD = "payload"
_KEYS = (INSTRUCTIONS, INPUT)
_DEPTH = 7
"""How far down objects may stand: the items of a request, their parts, what annotations hold."""


def read_payload(payload: object, *, lenient: bool) -> list[ChatMessage]:
    """The messages of a payload. Raises DecodeError, whatever is given."""
    source = plain_value(payload, INPUT, _DEPTH, dump_given)
    _check_json(source)
    items = _items(source, lenient=lenient)
    messages = [_read(group) for group in grouped(items)]
    shape = _shape(source)
    if shape is not None:
        messages[0] = _with_shape(messages[0], shape)
    return messages


def shaped(first: ChatMessage, items: list[Source]) -> JsonValue:
    """The payload of some items, as the first message says that it looked."""
    shape = nested(first.residual, PAYLOAD) if first.format == NAME else None
    keys = nested(shape, "keys")
    keys = [key for key in keys if key in _KEYS] if isinstance(keys, list) else None
    instructions = _instructions(first, items) if keys is not None and INSTRUCTIONS in keys else None
    rest = items if instructions is None else items[1:]
    said = rest[0]["content"] if nested(shape, "text") is True and _are_a_text(rest) else rest
    if keys is None:
        return said
    if rest and INPUT not in keys:
        keys.append(INPUT)
    return {key: instructions if key == INSTRUCTIONS else said for key in keys}


def _items(source: Any, *, lenient: bool) -> list[Item]:
    if isinstance(source, dict):
        return _items_of_request(source, lenient=lenient)
    if isinstance(source, str):
        return [read_item({"role": "user", "content": source}, INPUT, lenient=lenient)]
    if not isinstance(source, list):
        raise wrong(INPUT, "a list of items or a text", source)
    return [read_item(value, f"{INPUT}[{idx}]", lenient=lenient) for idx, value in enumerate(source)]


def _items_of_request(source: Source, *, lenient: bool) -> list[Item]:
    if not source.keys() <= set(_KEYS):
        raise DecodeError(INPUT, "an object of other keys was given; the payload is its 'instructions' and its 'input'")
    instructions = source.get(INSTRUCTIONS)
    if instructions is not None and not isinstance(instructions, str):
        raise wrong(INSTRUCTIONS, "text or null", instructions)
    items = _items(source[INPUT], lenient=lenient) if INPUT in source and not isinstance(source[INPUT], dict) else None
    if items is None and INPUT in source:
        raise wrong(INPUT, "a list of items or a text", source[INPUT])
    if instructions is not None:
        said = Item({}, "system", {"kind": INSTRUCTIONS}, content=instructions)
        return [said, *(items or ())]
    if not items:
        raise DecodeError(INPUT, "there are neither instructions nor items")
    return items


def _read(group: list[Item]) -> ChatMessage:
    """The message of a group; without a residual where it is written to the same items anyway."""
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


def _instructions(first: ChatMessage, items: list[Source]) -> str | None:
    """The text of the first message's only item, if that is what it says."""
    entries = nested(first.residual, ITEMS)
    is_one = isinstance(entries, list) and len(entries) == 1 and nested(entries[0], "kind") == INSTRUCTIONS
    said = items[0].get("content") if is_one and items and items[0].get("role") == first.role else None
    return said if isinstance(said, str) else None


def _are_a_text(items: list[Source]) -> bool:
    return len(items) == 1 and list(items[0]) == ["role", "content"] and _is_said_by_user(items[0])


def _is_said_by_user(item: Source) -> bool:
    return item["role"] == "user" and isinstance(item["content"], str)


def _check_json(source: Any) -> None:
    problem = json_problem(source, max_depth=MAX_DEPTH)
    if problem is not None:
        path, detail = problem
        raise DecodeError(
            path.removeprefix("$.") if isinstance(source, dict) else INPUT + path.removeprefix("$"), detail
        )
