"""Items as messages of the ledger.

message          a user's message
function call    an assistant's message with one tool call, whose id is the name of the call
outputs          one message after their item, with a part for each: the assistant's, or the result of the call
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.message_file.models import (
    ITEM_TYPES,
    CallItem,
    CodeOutput,
    Item,
    PlainOutput,
    TextItem,
    item_from_dict,
)
from chatledger.formats.message_file.protocols import MessageItem
from chatledger.formats.message_file.write import CALL, NAME, OBJECT, OUTPUTS, to_part, write_item, write_output
from chatledger.formats.wire.fields import step_of
from chatledger.formats.wire.residual import keep
from chatledger.models import BACK, ChatMessage, Part, TextPart, ToolCall
from chatledger.models.json import JsonObject

_TAGS = frozenset({*ITEM_TYPES, "plain", "code"})
"""Steps that Pydantic adds to a path for the kinds of a union. They are no keys of the payload."""


def item_of(value: object, path: str) -> TextItem | CallItem:
    """Our own item of a dict or of an object of any class. Raises DecodeError with the path of the first bad value."""
    fields = value if isinstance(value, dict) else _dict_of(value, path)
    if not isinstance(fields, dict):
        raise DecodeError(path, f"expected an item or its dict, not {type(value).__name__}")
    kind = fields.get("type")
    if not isinstance(kind, str) or kind not in ITEM_TYPES:  # Pydantic would quote the value, which may fail
        raise DecodeError(path, "the type must be 'message' or 'function_call'")
    try:
        return item_from_dict(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        steps = [step for step in first["loc"] if step not in _TAGS]
        raise DecodeError(path + "".join(map(step_of, steps)), first["msg"]) from error
    except (ValueError, RecursionError) as error:  # Pydantic cannot quote the value that it refuses
        raise DecodeError(path, "contains a value that is not JSON") from error


def _dict_of(value: object, path: str) -> object:
    """The dict of an object. Raises DecodeError for anything that an application's class raises."""
    try:
        return value.to_dict() if isinstance(value, MessageItem) else None
    except Exception as error:
        raise DecodeError(path, f"{type(value).__name__} raised {type(error).__name__}") from error


def read_group(item: TextItem | CallItem, *, was_object: bool = False) -> list[ChatMessage]:
    """An item with its calls and their results, then the item's own outputs."""
    messages = [read_item(item, was_object=was_object)]
    for call in item.function_calls if isinstance(item, TextItem) else ():
        messages.append(read_item(call, back=len(messages)))
        messages += _outputs_behind(call, 1)
    return messages + _outputs_behind(item, len(messages))


def _outputs_behind(item: TextItem | CallItem, back: int) -> list[ChatMessage]:
    call_id = call_id_of(item) if isinstance(item, CallItem) else None
    return [read_outputs(item, item.outputs, back=back, call_id=call_id)] if item.outputs else []


def read_item(item: Item, *, back: int | None = None, was_object: bool = False) -> ChatMessage:
    """The message of an item without its outputs and calls. A call of a message keeps the distance to that message."""
    message = _read_call(item) if isinstance(item, CallItem) else _read_text(item)
    notes = {**({BACK: back} if back is not None else {}), **({OBJECT: True} if was_object else {})}
    residual = {**notes, **(keep(_bare(item), write_item(message)) or {})}
    return message.model_copy(update={"residual": residual or None})


def _read_text(item: Item) -> ChatMessage:
    assert isinstance(item, TextItem)
    part = to_part(item.content, item.mime_type)
    content: str | list[Part] = part.text if isinstance(part, TextPart) else [part]
    return ChatMessage(role="user", name=item.name, content=content, format=NAME)


def _read_call(item: CallItem) -> ChatMessage:
    call = ToolCall(id=call_id_of(item), name=item.function_name, arguments=item.to_dict()["args"])
    return ChatMessage(role="assistant", tool_calls=[call], format=NAME)


def call_id_of(item: CallItem) -> str | None:
    """The id by which results name a call: its name, or else the nonce of its first output."""
    return item.name or next((output.nonce for output in item.outputs), None)


def _bare(item: Item) -> JsonObject:
    empty = {"outputs": (), "function_calls": ()} if isinstance(item, TextItem) else {"outputs": ()}
    return item.model_copy(update=empty).to_dict()


def read_outputs(
    item: Item,
    outputs: Sequence[PlainOutput | CodeOutput],
    *,
    back: int,
    call: int | None = None,
    call_id: str | None = None,
) -> ChatMessage:
    """The message of an item's outputs: the result of a call, or the answer of a message's agent."""
    parts = [to_part(output.content, output.mime_type) for output in outputs]
    lone = parts[0] if len(parts) == 1 else None
    content: str | list[Part] = lone.text if isinstance(lone, TextPart) else parts
    of_outputs = [keep(output.to_dict(), write_output(part)) for output, part in zip(outputs, parts, strict=True)]
    residual: JsonObject = {BACK: back, OUTPUTS: of_outputs}
    if isinstance(item, CallItem):
        residual = {**residual, CALL: call or 0}
        fields: JsonObject = {"role": "tool", "name": item.function_name, "tool_call_id": call_id}
    else:
        fields = {"role": "assistant", "name": getattr(item, "agent_name", None)}
    return ChatMessage.model_validate({**fields, "content": content, "format": NAME, "residual": residual})
