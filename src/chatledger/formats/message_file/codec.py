"""The codec of a message file: a list of items, as objects of any class that has the interface, or as their dicts.

Written as dicts, value by value what `to_dict` gives. An item is read and written with all that belongs to it; a dict
that leaves out what has a default comes back with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError, EncodeError
from chatledger.formats.codec import Decoded, Encoded, Kind
from chatledger.formats.losses.measure import Written, measured
from chatledger.formats.message_file.drafts import assemble
from chatledger.formats.message_file.items import CallItem, TextItem, item_from_dict
from chatledger.formats.message_file.media import from_part
from chatledger.formats.message_file.protocols import MessageItem
from chatledger.formats.message_file.writing import NAME, OBJECT, note, whole_group
from chatledger.models import ChatMessage, RulesLevel

_TYPES = frozenset({"message", "function_call"})
_TELLING = frozenset({"outputs", "history", "heading_level"})


class MessageFileCodec:
    name = NAME

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """Objects if any of the items came in as one."""
        return "models" if any(note(message, OBJECT) is True for message in messages) else "dicts"

    def recognises(self, payload: object) -> bool:
        return isinstance(payload, list) and bool(payload) and all(map(_is_item, payload))

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        if not isinstance(payload, (list, tuple)):
            raise DecodeError("$", f"a list of items is expected, not {type(payload).__name__}")
        items = [_item(value, f"$[{index}]") for index, value in enumerate(payload)]
        given = zip(items, payload, strict=True)
        groups = (whole_group(item, was_object=not isinstance(value, dict)) for item, value in given)
        return Decoded([message for group in groups for message in group])

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """The items; a call of a message stands in it. `carry` changes nothing: items have no free slot."""
        return measured(self, messages, _write)

    def as_models(self, payload: Sequence[dict[str, Any]]) -> list[TextItem | CallItem]:
        return [_model(row, f"$[{index}]") for index, row in enumerate(payload)]


CODEC = MessageFileCodec()


def _write(messages: Sequence[ChatMessage]) -> Written:
    assembled = assemble(messages)
    items = [draft for draft in assembled.drafts if draft.owner is None]
    origins = [made_of for draft in items for made_of in draft.origins()]
    as_read = len(assembled.kept) == len(messages) and all(map(_is_as_read, messages))
    return Written([draft.to_dict() for draft in items], origins, assembled.kept, as_read)


def _is_as_read(message: ChatMessage) -> bool:
    """Whether nothing is in it that a program put there and that nobody reads back."""
    if message.reasoning is not None or any(call.extras is not None for call in message.tool_calls or ()):
        return False
    parts = message.content if isinstance(message.content, list) else ()
    return all(from_part(part) is not None and getattr(part, "extras", None) is None for part in parts)


def _is_item(value: object) -> bool:
    if isinstance(value, dict):
        kind = value.get("type")
        return isinstance(kind, str) and kind in _TYPES and value.keys() >= _TELLING
    try:
        return isinstance(value, MessageItem) and value.type in _TYPES
    except Exception:  # of an application's class: none that is surely ours
        return False


def _item(value: object, path: str) -> TextItem | CallItem:
    """Our own item, of anyone's. Raises DecodeError at the first thing that is not of the format."""
    row = value if isinstance(value, dict) else _dict_of(value, path)
    if not isinstance(row, dict):
        raise DecodeError(path, f"an item is a dict or an object with the interface, not {type(value).__name__}")
    kind = row.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:  # asked for here: who quotes it may fail to write it
        raise DecodeError(path, "its type is neither message nor function_call")
    try:
        return item_from_dict(row)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        steps = [step for step in first["loc"] if step not in _TAGS]
        raise DecodeError(path + "".join(_step(step) for step in steps), first["msg"]) from error
    except (ValueError, RecursionError) as error:  # of Pydantic, when it cannot quote what it refuses
        raise DecodeError(path, "holds what is not JSON") from error


def _dict_of(value: object, path: str) -> object:
    """Whatever an application's class raises, it is the payload that cannot be read."""
    try:
        return value.to_dict() if isinstance(value, MessageItem) else None
    except Exception as error:
        raise DecodeError(path, f"{type(value).__name__} raised {type(error).__name__}") from error


_TAGS = frozenset({*_TYPES, "plain", "code"})
"""Of unions: they say which of its kinds a value was tried as, and are no step of the path."""


def _step(step: int | str) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def _model(row: dict[str, Any], path: str) -> TextItem | CallItem:
    try:
        return item_from_dict(row)
    except ValidationError as error:
        raise EncodeError(path, f"no item can hold this: {error}") from error
