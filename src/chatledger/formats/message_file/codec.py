"""The codec of a message file: a list of items, as objects of any class that has the interface, or as their dicts.

Items are written as dicts, equal to the dicts of `to_dict`. An item is read and written with its outputs and calls. A
dict without fields that have a default comes back with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError, EncodeError
from chatledger.formats.codec import Decoded, Encoded, Kind
from chatledger.formats.losses.measure import Written, measured
from chatledger.formats.message_file.detect import is_message_file
from chatledger.formats.message_file.foreign import Draft, assemble
from chatledger.formats.message_file.models import CallItem, TextItem, item_from_dict
from chatledger.formats.message_file.read import item_of, read_group
from chatledger.formats.message_file.write import NAME, OBJECT, OUTPUTS, from_part, note
from chatledger.models import ChatMessage, Part, RulesLevel


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
        given = zip(items, payload, strict=True)
        groups = (read_group(item, was_object=not isinstance(value, dict)) for item, value in given)
        return Decoded([message for group in groups for message in group])

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """The items, with calls inside their messages. `carry` has no effect: items have no free field."""
        return measured(self, messages, _write)

    def as_models(self, payload: Sequence[dict[str, Any]]) -> list[TextItem | CallItem]:
        return [_model(fields, f"$[{index}]") for index, fields in enumerate(payload)]


def _write(messages: Sequence[ChatMessage]) -> Written:
    assembled = assemble(messages)
    items = [draft for draft in assembled.drafts if draft.owner is None]
    origins = [sources for draft in items for sources in draft.origins()]
    as_read = len(assembled.kept) == len(messages) and all(map(_is_as_read, messages))
    as_read = as_read and all(_say_their_names(draft, messages) for draft in assembled.drafts)
    return Written([draft.to_dict() for draft in items], origins, assembled.kept, as_read)


def _is_as_read(message: ChatMessage) -> bool:
    """Whether the message has no value of a program that reading would not return."""
    if message.reasoning is not None or any(call.extras is not None for call in message.tool_calls or ()):
        return False
    if note(message, OUTPUTS) is None:
        return _is_item_as_read(message)
    parts = message.content if isinstance(message.content, list) else ()
    return message.content is not None and all(map(_is_part_as_read, parts))


def _is_item_as_read(message: ChatMessage) -> bool:
    if message.role == "assistant":
        return message.content is None and message.name is None and len(message.tool_calls or ()) == 1
    if message.role != "user" or message.tool_calls is not None:
        return False
    if isinstance(message.content, list):
        return len(message.content) == 1 and _is_part_as_read(message.content[0])
    return message.content is not None


def _is_part_as_read(part: Part) -> bool:
    return from_part(part) is not None and getattr(part, "extras", None) is None


def _say_their_names(draft: Draft, messages: Sequence[ChatMessage]) -> bool:
    """Whether the outputs of the item name its function or agent, as reading does."""
    name = draft.fields.get("function_name", draft.fields.get("agent_name"))
    return all(messages[source].name == name for source in draft.answering)


def _model(fields: dict[str, Any], path: str) -> TextItem | CallItem:
    try:
        return item_from_dict(fields)
    except ValidationError as error:
        raise EncodeError(path, f"the item classes reject this message: {error}") from error


CODEC = MessageFileCodec()
