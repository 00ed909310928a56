"""The message of some items, and the items of a message that was read.

The residual of a message names its items in their order (`items`), each with what of it has no typed home. A message
that is written to the same items anyway has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.openai_responses.items import (
    CALL,
    CUSTOM_CALL,
    INSTRUCTIONS,
    MESSAGE,
    OPAQUE,
    OUTPUT,
    REASONING,
    Held,
    Item,
    Source,
    write_item,
)
from chatledger.formats.wire.residual import nested
from chatledger.models import LENIENT, ChatMessage, OpaquePart, Part, TextPart, ThinkPart
from chatledger.models.json import JsonValue

NAME = "openai-responses"
ITEMS = "items"


def read_message(items: Sequence[Item]) -> ChatMessage:
    """One message of all the items. Its residual names them all."""
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


def write_message(message: ChatMessage) -> list[Source] | None:
    """The items that the message was read from; None if it was not, or holds other things than its residual names."""
    entries = nested(message.residual, ITEMS) if message.format == NAME else None
    if not isinstance(entries, list) or not entries or not all(_is_entry(entry) for entry in entries):
        return None
    held = _Contents(message)
    pieces = [held.take(entry) for entry in entries]
    if not held.is_empty or any(piece is None for piece in pieces):
        return None
    return [write_item(piece, entry) for piece, entry in zip(pieces, entries, strict=True) if piece is not None]


def _joined(contents: list[str | list[Part]]) -> str | list[Part] | None:
    """The content of a message: that of its only item as it is, or the parts of all."""
    if len(contents) < 2:
        return contents[0] if contents else None
    return [part for content in contents for part in _as_parts(content)]


def _as_parts(content: str | list[Part]) -> list[Part]:
    return [TextPart(text=content)] if isinstance(content, str) else content


class _Contents:
    """Gives each item what the message holds of it, in order."""

    def __init__(self, message: ChatMessage) -> None:
        self._message = message
        self._content = message.content
        self._place = 0
        self._calls = iter(message.tool_calls or ())
        self._uncalled = len(message.tool_calls or ())

    def take(self, entry: dict[str, JsonValue]) -> Held | None:
        """What the item holds; None if the message does not hold such a thing."""
        kind = entry["kind"]
        if kind == CALL:
            return self._take_call()
        if kind in (REASONING, OPAQUE):
            return self._take_part(ThinkPart if kind == REASONING else OpaquePart)
        return self._take_content(entry, self._message.tool_call_id if kind == OUTPUT else None)

    @property
    def is_empty(self) -> bool:
        size = len(self._content) if isinstance(self._content, list) else int(self._content is not None)
        return self._place == size and self._uncalled == 0

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
        if not isinstance(self._content, list) or len(self._content) < self._place + size:
            return None
        self._place += size
        return self._content[self._place - size : self._place]

    def _take_text(self) -> str | None:
        if isinstance(self._content, str) and self._place == 0:
            self._place = 1
            return self._content
        parts = self._take_parts(1)
        return parts[0].text if parts and isinstance(parts[0], TextPart) else None


_KINDS = frozenset({MESSAGE, INSTRUCTIONS, REASONING, CALL, OUTPUT, OPAQUE})


def _is_entry(entry: JsonValue) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("kind"), str)
        and entry["kind"] in _KINDS
        and entry.get("form") in (None, CUSTOM_CALL)
        and (type(entry.get("take")) in (type(None), int) and (entry.get("take") or 0) >= 0)
    )
