"""The codec of a message file: a list of items, as objects of any class that has the interface, or as their dicts.

Items are written as dicts, equal to the dicts of `to_dict`. An item is read and written with its outputs and calls. A
dict without fields that have a default comes back with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError, EncodeError
from chatledger.formats.codec import Decoded, Kind, Written
from chatledger.formats.message_file.foreign import assemble
from chatledger.formats.message_file.models import ITEM_TYPES, CallItem, TextItem, item_from_dict
from chatledger.formats.message_file.protocols import MessageItem
from chatledger.formats.message_file.read import item_of, read_group
from chatledger.formats.message_file.write import NAME, OBJECT, note
from chatledger.models import ChatMessage, RulesLevel


class MessageFileCodec:
    name = NAME

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """Objects if any of the items came in as an object."""
        return "models" if any(note(message, OBJECT) is True for message in messages) else "dicts"

    def recognises(self, payload: object) -> bool:
        return is_message_file(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        if not isinstance(payload, (list, tuple)):
            raise DecodeError("$", f"expected a list of items, not {type(payload).__name__}")
        items = [item_of(value, f"$[{index}]") for index, value in enumerate(payload)]
        items_and_values = zip(items, payload, strict=True)
        groups = (read_group(item, was_object=not isinstance(value, dict)) for item, value in items_and_values)
        return Decoded([message for group in groups for message in group])

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """The items, with calls inside their messages. `carry` has no effect: items have no free field."""
        return _write(messages)

    def as_models(self, payload: Sequence[dict[str, Any]]) -> list[TextItem | CallItem]:
        return [_model(fields, f"$[{index}]") for index, fields in enumerate(payload)]


def _write(messages: Sequence[ChatMessage]) -> Written:
    assembled = assemble(messages)
    items = [draft for draft in assembled.drafts if draft.owner is None]
    origins = [sources for draft in items for sources in draft.origins()]
    return Written([draft.to_dict() for draft in items], origins, assembled.own_indexes)


def _model(fields: dict[str, Any], path: str) -> TextItem | CallItem:
    try:
        return item_from_dict(fields)
    except ValidationError as error:
        raise EncodeError(path, f"the item classes reject this message: {error}") from error


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is certainly the items of a message file.

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


CODEC = MessageFileCodec()
