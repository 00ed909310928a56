"""Whether a payload is certainly the items of a message file."""

from __future__ import annotations

from chatledger.formats.message_file.models import ITEM_TYPES
from chatledger.formats.message_file.protocols import MessageItem

_TELLING = frozenset({"outputs", "history", "heading_level"})


def is_message_file(payload: object) -> bool:
    return isinstance(payload, list) and bool(payload) and all(map(_is_item, payload))


def _is_item(value: object) -> bool:
    if isinstance(value, dict):
        kind = value.get("type")
        return isinstance(kind, str) and kind in ITEM_TYPES and value.keys() >= _TELLING
    try:
        return isinstance(value, MessageItem) and value.type in ITEM_TYPES
    except Exception:  # raised by an application's class, which then is not certainly an item
        return False
