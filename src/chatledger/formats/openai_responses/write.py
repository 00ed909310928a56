"""A message as the items that it was read from, and those items as the payload that came in.

The residual of a message lists its items in order (`items`), each with the values that have no typed field. A message
that is written as the same items without a residual has none.

A payload may be a list of items, a plain text, or either with its `instructions`. If it is not a list, the residual of
its first message has its shape (`payload`): its keys in order, and whether the input was a text. Instructions are a
system message before the input.
"""

from __future__ import annotations

from chatledger.formats.openai_responses.items import (
    CALL,
    CUSTOM_CALL,
    INSTRUCTIONS,
    MESSAGE,
    OPAQUE,
    OUTPUT,
    REASONING,
    Held,
    Source,
    write_item,
)
from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage, OpaquePart, Part, TextPart, ThinkPart
from chatledger.models.json import JsonValue

NAME = "openai-responses"
INPUT = "input"
REQUEST_KEYS = (INSTRUCTIONS, INPUT)

ITEMS = "items"
PAYLOAD = "payload"

_KINDS = frozenset({MESSAGE, INSTRUCTIONS, REASONING, CALL, OUTPUT, OPAQUE})


def write_message(message: ChatMessage) -> list[Source] | None:
    """The items that the message was read from; None if the residual does not match the message."""
    entries = nested(message.residual, ITEMS) if message.format == NAME else None
    if not isinstance(entries, list) or not entries or not all(_is_entry(entry) for entry in entries):
        return None
    held = _Contents(message)
    pieces = [held.take(entry) for entry in entries]
    if not held.is_empty or any(piece is None for piece in pieces):
        return None
    return [write_item(piece, entry) for piece, entry in zip(pieces, entries, strict=True) if piece is not None]


def shape_payload(first: ChatMessage, items: list[Source]) -> JsonValue:
    """The items in the shape of payload that the residual of the first message describes."""
    shape = nested(first.residual, PAYLOAD) if first.format == NAME else None
    keys = nested(shape, "keys")
    keys = [key for key in keys if key in REQUEST_KEYS] if isinstance(keys, list) else None
    instructions = _instructions(first, items) if keys is not None and INSTRUCTIONS in keys else None
    rest = items if instructions is None else items[1:]
    input_ = rest[0]["content"] if nested(shape, "text") is True and _are_plain_text(rest) else rest
    if keys is None:
        return input_
    if rest and INPUT not in keys:
        keys.append(INPUT)
    return {key: instructions if key == INSTRUCTIONS else input_ for key in keys}


def as_items(payload: JsonValue) -> list[Source]:
    """The items of a payload of any shape."""
    if isinstance(payload, str):
        return [{"role": "user", "content": payload}]
    if isinstance(payload, list):
        return payload
    instructions = payload.get(INSTRUCTIONS)
    first: list[Source] = [] if instructions is None else [{"role": "system", "content": instructions}]
    return [*first, *as_items(payload.get(INPUT, []))]


class _Contents:
    """Hands the contents of a message to its items, in order."""

    def __init__(self, message: ChatMessage) -> None:
        self._message = message
        self._content = message.content
        self._taken = 0
        self._calls = iter(message.tool_calls or ())
        self._uncalled = len(message.tool_calls or ())

    def take(self, entry: dict[str, JsonValue]) -> Held | None:
        """The content of an item; None if the message has no such content."""
        kind = entry["kind"]
        if kind == CALL:
            return self._take_call()
        if kind in (REASONING, OPAQUE):
            return self._take_part(ThinkPart if kind == REASONING else OpaquePart)
        return self._take_content(entry, self._message.tool_call_id if kind == OUTPUT else None)

    @property
    def is_empty(self) -> bool:
        size = len(self._content) if isinstance(self._content, list) else int(self._content is not None)
        return self._taken == size and self._uncalled == 0

    def _take_call(self) -> Held | None:
        call = next(self._calls, None)
        self._uncalled -= 1
        return None if call is None else Held(self._message.role, call=call)

    def _take_part(self, wanted: type[ThinkPart | OpaquePart]) -> Held | None:
        parts = self._take_parts(1)
        return Held(self._message.role, parts) if parts and isinstance(parts[0], wanted) else None

    def _take_content(self, entry: dict[str, JsonValue], call_id: str | None) -> Held | None:
        size = entry.get("take", "")
        content: str | list[Part] | None = None
        if isinstance(size, int):
            content = self._take_parts(size)
        elif size is not None:
            content = self._take_text()
        if content is None and size is not None:
            return None
        return Held(self._message.role, content, call_id=call_id)

    def _take_parts(self, size: int) -> list[Part] | None:
        if not isinstance(self._content, list) or len(self._content) < self._taken + size:
            return None
        self._taken += size
        return self._content[self._taken - size : self._taken]

    def _take_text(self) -> str | None:
        if isinstance(self._content, str) and self._taken == 0:
            self._taken = 1
            return self._content
        parts = self._take_parts(1)
        return parts[0].text if parts and isinstance(parts[0], TextPart) else None


def _is_entry(entry: JsonValue) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("kind"), str)
        and entry["kind"] in _KINDS
        and entry.get("form") in (None, CUSTOM_CALL)
        and (type(entry.get("take")) in (type(None), int) and (entry.get("take") or 0) >= 0)
    )


def _instructions(first: ChatMessage, items: list[Source]) -> str | None:
    """The text of the first item, if the first message was read only from instructions."""
    entries = nested(first.residual, ITEMS)
    is_one = isinstance(entries, list) and len(entries) == 1 and nested(entries[0], "kind") == INSTRUCTIONS
    text = items[0].get("content") if is_one and items and items[0].get("role") == first.role else None
    return text if isinstance(text, str) else None


def _are_plain_text(items: list[Source]) -> bool:
    return len(items) == 1 and list(items[0]) == ["role", "content"] and _is_user_text(items[0])


def _is_user_text(item: Source) -> bool:
    return item["role"] == "user" and isinstance(item["content"], str)
