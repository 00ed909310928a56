"""Items of a conversation as messages, and messages as items.

A message holds the item as it came. Its id, its status and the form that the API gives it are put on when it is read,
so a format of the ledger writes what the client sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats import get_codec
from chatledger.formats.openai_responses import CODEC, as_items
from chatledger.ids import derived_id, new_ids
from chatledger.models import ChatMessage
from chatledger.models.json import text_bytes
from chatledger.models.limits import MAX_KEY_BYTES
from chatledger.models.weight import apart
from chatledger.server.answers.sizes import require_small
from chatledger.server.callers.access import Caller
from chatledger.server.callers.ask_scope import refuse_all_but_questions, refuse_beyond_ask
from chatledger.server.conversations.item_types import ITEM_TYPES, MESSAGE, NO_ITEMS, UNKNOWN

_CODEC = get_codec("openai-responses")
_NEEDED = {
    MESSAGE: ("content",),
    "function_call": ("call_id", "arguments"),
    "function_call_output": ("output",),
    "custom_tool_call": ("call_id", "input"),
    "custom_tool_call_output": ("call_id", "output"),
}
"""Fields without which an item that the ledger itself understands says nothing. The codec requires the others."""
_STATUSES = {"partial": "in_progress", "interrupted": "incomplete"}
_BETWEEN = "."


# --- From items to messages -------------------------------------------------------------------------------------------


def to_messages(items: Sequence[Any], *request: str) -> list[ChatMessage]:
    """One message for each item. An item without an id gets a new one; in a request that has a name, one that a repeat
    of the request gets too.

    Raises DecodeError with the place of an item that cannot be stored, and LimitExceeded for one that is too large.
    """
    require_small(items)
    count = len(items)
    new = [derived_id("item", *request, str(idx)) for idx in range(count)] if request else new_ids(count)
    return [_to_message(item, f"items[{idx}]", id_) for idx, (item, id_) in enumerate(zip(items, new, strict=True))]


def refuse_all_but_user_items(caller: Caller, items: Sequence[Any], messages: Sequence[ChatMessage]) -> None:
    """Raises OutOfScope for an item that is no message of role user, unless the caller may write."""
    for index, item in enumerate(items):
        refuse_beyond_ask(caller, **{f"items[{index}] of type {_type_of(item)}": _type_of(item) != MESSAGE})
    refuse_all_but_questions(caller, messages, of="items", besides=frozenset({"format", "residual"}))


def _to_message(item: Any, path: str, new: str) -> ChatMessage:
    if not isinstance(item, dict):
        raise DecodeError(path, "must be an object")
    kind = _type_of(item)
    if isinstance(kind, str) and kind in NO_ITEMS:
        raise DecodeError(f"{path}.type", f"{kind!r} is no item of a conversation: {NO_ITEMS[kind]}")
    try:
        [message] = _CODEC.decode([item]).messages
    except DecodeError as error:
        raise DecodeError(path + error.path.removeprefix("input[0]"), error.detail) from None
    for name in _NEEDED.get(str(kind), ()):
        if item.get(name) is None:
            raise DecodeError(f"{path}.{name}", "missing")
    return message.model_copy(update={"message_id": _id_of(item, path) or new_item_id(kind, new)})


def _type_of(item: dict[str, Any]) -> Any:
    """The type of an item. A message may leave it out, and so may a reference."""
    return item.get("type") or (MESSAGE if "role" in item else "item_reference" if "id" in item else None)


def _id_of(item: dict[str, Any], path: str) -> str | None:
    id_ = item.get("id")
    if id_ is not None and not isinstance(id_, str):
        raise DecodeError(f"{path}.id", "must be a text or null")
    if id_ is not None and not 1 <= text_bytes(id_) <= MAX_KEY_BYTES:
        raise DecodeError(f"{path}.id", f"must have 1 to {MAX_KEY_BYTES} bytes, and has {text_bytes(id_):,}")
    return id_


def new_item_id(kind: Any, new: str) -> str:
    return f"{ITEM_TYPES.get(kind, UNKNOWN).prefix}_{new.replace('-', '')}"


# --- From messages to items -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConversationItem:
    """An item, and where it stands: a message that another program wrote may hold several."""

    message: ChatMessage
    index: int
    source: dict[str, Any]

    @property
    def place(self) -> tuple[int, int]:
        return self.message.seq or 0, self.index

    @property
    def id(self) -> str:
        first = str(self.message.message_id)
        return first if self.index == 0 else f"{first}{_BETWEEN}{self.index}"

    def to_json(self) -> dict[str, Any]:
        """The item as OpenAI returns it."""
        kind = _type_of(self.source)
        shown = {"id": self.id, "type": kind} | self.source | {"id": self.id}
        if ITEM_TYPES.get(kind, UNKNOWN).has_status and shown.get("status") is None:
            shown["status"] = _STATUSES.get(self.message.state, "completed")
        if kind == MESSAGE:
            shown["content"] = _to_parts(shown.get("content"), shown["role"])
        return shown


def items_of(message: ChatMessage) -> list[ConversationItem]:
    """The items of a message: one for a message of this API. A custom message, which no model gets, has none."""
    return [
        ConversationItem(message, index, source)
        for index, source in enumerate(as_items(CODEC.encode([message]).payload))
    ]


async def items_of_all(messages: Sequence[ChatMessage]) -> list[ConversationItem]:
    return await apart(lambda: [item for message in messages for item in items_of(message)], messages)


def places_of(item_id: str) -> list[tuple[str, int]]:
    """Where an item with that id may be: a message, and the index in it."""
    places = [(item_id, 0)]
    message_id, _, index = item_id.rpartition(_BETWEEN)
    if message_id and index.isascii() and index.isdecimal() and len(index) < 6:
        places.append((message_id, int(index)))
    return places


def _to_parts(content: Any, role: str) -> Any:
    """A text as the list with one part that the API makes of it."""
    if content is None:
        return []
    if not isinstance(content, str):
        return content
    if role == "assistant":
        return [{"type": "output_text", "text": content, "annotations": [], "logprobs": []}]
    return [{"type": "input_text", "text": content}]
