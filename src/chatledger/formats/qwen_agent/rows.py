"""One ChatMessage as one Qwen-Agent message, called a row here, and back.

    row_of(message_of(source)) == source        # value by value with key order, for any dict whose role is a text

The typed fields give a row in upstream's own form (no None, fields in their order); what of the source it does not say
is in the residual.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chatledger.formats.qwen_agent.constants import FUNCTION, FUNCTION_ID
from chatledger.formats.qwen_agent.differences import keep_row, restore_row
from chatledger.formats.qwen_agent.items import item_of, part_of
from chatledger.models import LENIENT, ChatMessage, Part, ToolCall
from chatledger.models.json import JsonValue

NAME = "qwen-agent"
OBJECT = "object"  # true in the residual of what came in as an object; a dict pays nothing


def message_of(
    source: Mapping[str, Any], *, lenient: bool = False, was_object: bool = False, with_id: bool = True
) -> ChatMessage:
    """The message of a source whose role is a text. What no typed field can take is left to the residual.

    `with_id=False` leaves the function_id to it as well.
    """
    call = _call_of(source, lenient)
    id_ = _function_id(source) if with_id else None
    is_result = source["role"] == FUNCTION
    fields = {
        "role": "tool" if is_result else source["role"],
        "content": _content_of(source.get("content")),
        "reasoning": _content_of(source.get("reasoning_content")),
        "name": source["name"] if isinstance(source.get("name"), str) else None,
        "tool_calls": None if call is None else [call.model_copy(update={"id": id_})],
        "tool_call_id": id_ if is_result else None,
        "format": NAME,
    }
    message = ChatMessage.model_validate(fields, context=LENIENT)
    residual = keep_row(source, plain_row(message)) | ({OBJECT: True} if was_object else {})
    return message.model_copy(update={"residual": residual}) if residual else message


def row_of(message: ChatMessage) -> dict[str, JsonValue]:
    """The source of a message of this format."""
    return restore_row(plain_row(message), message.residual)


def plain_row(message: ChatMessage) -> dict[str, JsonValue]:
    """What the typed fields say, in the order of the fields and without None; of several calls the first."""
    call = message.tool_calls[0] if message.tool_calls else None
    id_ = message.tool_call_id if call is None else call.id
    row = {
        "role": FUNCTION if message.role == "tool" else message.role,
        "content": "" if message.content is None else _content_row(message.content),
        "reasoning_content": None if message.reasoning is None else _content_row(message.reasoning),
        "name": message.name,
        "function_call": None if call is None else {"name": call.name, "arguments": arguments_text(call)},
        "extra": None if id_ is None else {FUNCTION_ID: id_},
    }
    return {key: value for key, value in row.items() if value is not None}


def arguments_text(call: ToolCall) -> str:
    """The arguments as Qwen-Agent writes them: JSON text with everything beyond ASCII as it is."""
    if call.arguments is None or isinstance(call.arguments, str):
        return call.arguments or ""
    return json.dumps(call.arguments, ensure_ascii=False)


def _content_row(content: str | list[Part]) -> str | list[JsonValue]:
    if isinstance(content, str):
        return content
    return [item for item in map(item_of, content) if item is not None]


def _content_of(value: Any) -> str | list[Part] | None:
    if isinstance(value, list):
        return [part_of(item) for item in value]
    return value if isinstance(value, str) else None


def _call_of(source: Mapping[str, Any], lenient: bool) -> ToolCall | None:
    """The call. Upstream's parser may emit one without a name, which the rules refuse at every level: an import, which
    must not fail for it, leaves it to the residual."""
    call = source.get("function_call")
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or (lenient and not call["name"]):
        return None
    arguments = call.get("arguments")
    return ToolCall(name=call["name"], arguments=arguments if isinstance(arguments, (str, dict)) else None)


def _function_id(source: Mapping[str, Any]) -> str | None:
    extra = source.get("extra")
    id_ = extra.get(FUNCTION_ID) if isinstance(extra, dict) else None
    return id_ if isinstance(id_, str) else None
