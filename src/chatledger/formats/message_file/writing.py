"""Items as messages of the ledger, and those messages as items again.

    Message         a user's message
    FunctionCall    an assistant's message with one tool call, whose id is the item's name
    outputs         one message behind their item, a part for each: the assistant's, or the result of the call

A message that belongs to another one says how many messages back that is stored; so a call or an output may be added
to an item that was committed before. What no typed field says is in the residual, as `wire.residual` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatledger.formats.message_file.items import CallItem, Item, TextItem
from chatledger.formats.message_file.media import from_part, to_part
from chatledger.formats.message_file.outputs import CodeOutput, PlainOutput
from chatledger.formats.wire.residual import keep, restore
from chatledger.models import ChatMessage, Part, TextPart, ToolCall
from chatledger.models.json import JsonValue

NAME = "message-file"
Row = dict[str, JsonValue]

BACK = "back"
"""How many messages before this one the item stands that it belongs to."""
CALL = "call"
"""Which call of that message, where it is one call of several that another format put into one message."""
OUTPUTS = "outputs"
OBJECT = "object"
"""That the item came in as an object."""


def write_item(item: Item, *, back: int | None = None, was_object: bool = False) -> ChatMessage:
    """The message that an item is, without its outputs and calls. A call of a message says where that stands."""
    message = _write_call(item) if isinstance(item, CallItem) else _write_text(item)
    notes = {**({BACK: back} if back is not None else {}), **({OBJECT: True} if was_object else {})}
    residual = {**notes, **(keep(_bare(item), read_item(message)) or {})}
    return message.model_copy(update={"residual": residual or None})


def _write_text(item: Item) -> ChatMessage:
    assert isinstance(item, TextItem)
    part = to_part(item.content, item.mime_type)
    content: str | list[Part] = part.text if isinstance(part, TextPart) else [part]
    return ChatMessage(role="user", name=item.name, content=content, format=NAME)


def _write_call(item: CallItem) -> ChatMessage:
    call = ToolCall(id=call_id_of(item), name=item.function_name, arguments=item.to_dict()["args"])
    return ChatMessage(role="assistant", tool_calls=[call], format=NAME)


def call_id_of(item: CallItem) -> str | None:
    """What results name a call by: its name, else the nonce of its first output."""
    return item.name or next((output.nonce for output in item.outputs), None)


def _bare(item: Item) -> Row:
    empty = {"outputs": (), "function_calls": ()} if isinstance(item, TextItem) else {"outputs": ()}
    return item.model_copy(update=empty).to_dict()


def read_item(message: ChatMessage) -> Row:
    """The dict of an item, still without outputs and calls, from the message that `write_item` made."""
    row = _read_call(message) if message.role == "assistant" else _read_text(message)
    return restore(row, message.residual)


def _read_text(message: ChatMessage) -> Row:
    parts = _parts(message)
    content, mime_type = (from_part(parts[0]) if parts else None) or ("", "text/plain")
    own: Row = {"content": content, "mime_type": mime_type, "agent_name": None, "function_calls": []}
    return {**_common(message.name, "message"), **own}


def _read_call(message: ChatMessage) -> Row:
    call = (message.tool_calls or [ToolCall(name="")])[0]
    return {**_common(call.id, "function_call"), "function_name": call.name, "args": call.arguments}


def _common(name: str | None, kind: str) -> Row:
    return {"name": name, "timeout": None, "outputs": [], "type": kind, "history": [], "heading_level": None}


def write_outputs(
    item: Item,
    outputs: Sequence[PlainOutput | CodeOutput],
    *,
    back: int,
    call: int | None = None,
    call_id: str | None = None,
) -> ChatMessage:
    """The message that outputs of an item are: a result with the id of its call, or what the item's agent said."""
    rows = [output.to_dict() for output in outputs]
    parts = [to_part(output.content, output.mime_type) for output in outputs]
    lone = parts[0] if len(parts) == 1 else None
    content: str | list[Part] = lone.text if isinstance(lone, TextPart) else parts
    kept = [keep(row, _read_output(part)) for row, part in zip(rows, parts, strict=True)]
    residual: Row = {BACK: back, OUTPUTS: kept}
    if isinstance(item, CallItem):
        residual = {**residual, CALL: call or 0}
        fields: Row = {"role": "tool", "name": item.function_name, "tool_call_id": call_id}
    else:
        fields = {"role": "assistant", "name": getattr(item, "agent_name", None)}
    return ChatMessage.model_validate({**fields, "content": content, "format": NAME, "residual": residual})


def read_outputs(message: ChatMessage) -> list[Row] | None:
    """The outputs of a message that `write_outputs` made; None for any other."""
    residual = message.residual if isinstance(message.residual, dict) else {}
    kept, parts = residual.get(OUTPUTS), _parts(message)
    if message.format != NAME or not isinstance(kept, list) or len(kept) != len(parts):
        return None
    return [restore(_read_output(part), known) for part, known in zip(parts, kept, strict=True)]


def _read_output(part: Part) -> Row:
    content, mime_type = from_part(part) or ("", "text/plain")
    return {"content": content, "mime_type": mime_type, "nonce": ""}


def _parts(message: ChatMessage) -> list[Part]:
    if isinstance(message.content, str):
        return [TextPart(text=message.content)]
    return message.content or []


def whole_group(item: TextItem | CallItem, *, was_object: bool = False) -> list[ChatMessage]:
    """An item with all that belongs to it: the calls with their results, then what its agent said of it."""
    messages = [write_item(item, was_object=was_object)]
    for call in item.function_calls if isinstance(item, TextItem) else ():
        messages.append(write_item(call, back=len(messages)))
        messages += _outputs_behind(call, 1)
    return messages + _outputs_behind(item, len(messages))


def _outputs_behind(item: TextItem | CallItem, back: int) -> list[ChatMessage]:
    call_id = call_id_of(item) if isinstance(item, CallItem) else None
    return [write_outputs(item, item.outputs, back=back, call_id=call_id)] if item.outputs else []


def note(message: ChatMessage, key: str) -> Any:
    """What the residual of a message of this format says under a key."""
    return message.residual.get(key) if message.format == NAME and isinstance(message.residual, dict) else None
