"""Tool calls and their results, both ways.

A call is a `tool_use` block of an assistant's message. A result is a `tool_result` block of a user's message; each
becomes a separate stored message.
"""

from __future__ import annotations

from chatledger.errors import DecodeError
from chatledger.formats.anthropic.parts import NAME, PARTS, TOOL_RESULT, TOOL_USE, own_residual, read_parts, write_parts
from chatledger.formats.wire.fields import text_at, wrong
from chatledger.formats.wire.residual import keep, nested, put_back
from chatledger.models import ChatMessage, ToolCall
from chatledger.models.json import JsonValue

BLOCK = "block"
"""Residual of a result: the residual of the block, beside those of its parts."""


def read_call(block: dict[str, JsonValue], path: str) -> tuple[ToolCall, JsonValue]:
    """A call and its residual. Raises DecodeError. The input may be text if the stream was cut off."""
    arguments = block.get("input")
    if not isinstance(arguments, (dict, str)):
        raise wrong(f"{path}.input", "an object", arguments)
    call = ToolCall(id=text_at(block, "id", path), name=text_at(block, "name", path), arguments=arguments)
    return call, keep(block, _call_block(call, ""))


def write_call(call: ToolCall, made_id: str, residual: JsonValue = None) -> dict[str, JsonValue]:
    """The block of a call; `made_id` is used if the call has no id."""
    return put_back(_call_block(call, made_id), residual)


def read_result(block: dict[str, JsonValue], path: str, *, lenient: bool) -> ChatMessage:
    """The message of a block. Raises DecodeError."""
    content, is_error, parts = block.get("content"), block.get("is_error"), None
    if is_error is not None and not isinstance(is_error, bool):
        raise wrong(f"{path}.is_error", "a boolean", is_error)
    if isinstance(content, list):
        content, parts = read_parts(content, f"{path}.content", lenient=lenient)
    elif content is not None and not isinstance(content, str):
        raise wrong(f"{path}.content", "text or a list of blocks", content)
    message = ChatMessage(
        role="tool",
        tool_call_id=text_at(block, "tool_use_id", path),
        content=content,
        is_error=is_error,
        format=NAME,
    )
    of_block = keep(block, _result_block(message, block.get("content"), ""))
    residual = {key: value for key, value in ((BLOCK, of_block), (PARTS, parts)) if value}
    return message.model_copy(update={"residual": residual or None})


def write_result(message: ChatMessage, call_id: str) -> dict[str, JsonValue]:
    """The block of a result; `call_id` is used if the message names no call."""
    residual = own_residual(message)
    content = write_parts(message.content, residual) if isinstance(message.content, list) else message.content
    return put_back(_result_block(message, content, call_id), nested(residual, BLOCK))


def reads_as_result(value: JsonValue) -> bool:
    """Whether a block that is kept as a part here would be read as a tool result."""
    if not isinstance(value, dict) or value.get("type") != TOOL_RESULT:
        return False
    try:
        return read_result(value, "", lenient=True) is not None
    except DecodeError:
        return False


def _call_block(call: ToolCall, made_id: str) -> dict[str, JsonValue]:
    return {
        "type": TOOL_USE,
        "id": made_id if call.id is None else call.id,
        "name": call.name,
        "input": {} if call.arguments is None else call.arguments,
    }


def _result_block(message: ChatMessage, content: JsonValue, call_id: str) -> dict[str, JsonValue]:
    id_ = call_id if message.tool_call_id is None else message.tool_call_id
    optional = {"content": content, "is_error": message.is_error}
    return {
        "type": TOOL_RESULT,
        "tool_use_id": id_,
        **{key: value for key, value in optional.items() if value is not None},
    }
