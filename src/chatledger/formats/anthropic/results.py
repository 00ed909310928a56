"""Tool results, both ways: the `tool_result` blocks of a user message, each a stored message of its own."""

from __future__ import annotations

from chatledger.errors import DecodeError
from chatledger.formats.anthropic.contents import PARTS, read_parts, write_parts
from chatledger.formats.anthropic.names import NAME, TOOL_RESULT, own_residual
from chatledger.formats.wire.fields import text_at, wrong
from chatledger.formats.wire.residual import keep, nested, put_back
from chatledger.models import ChatMessage
from chatledger.models.json import JsonValue

BLOCK = "block"
"""Residual: that of the block, beside those of the parts in it."""


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
    of_block = keep(block, _encoded(message, block.get("content"), ""))
    residual = {key: value for key, value in ((BLOCK, of_block), (PARTS, parts)) if value}
    return message.model_copy(update={"residual": residual or None})


def write_result(message: ChatMessage, call_id: str) -> dict[str, JsonValue]:
    """The block; `call_id` is used where the message names no call."""
    residual = own_residual(message)
    content = write_parts(message.content, residual) if isinstance(message.content, list) else message.content
    return put_back(_encoded(message, content, call_id), nested(residual, BLOCK))


def reads_as_result(value: JsonValue) -> bool:
    """Whether reading would take a block for a tool result, though it is kept as a part here."""
    if not isinstance(value, dict) or value.get("type") != TOOL_RESULT:
        return False
    try:
        return read_result(value, "", lenient=True) is not None
    except DecodeError:
        return False


def _encoded(message: ChatMessage, content: JsonValue, call_id: str) -> dict[str, JsonValue]:
    id_ = call_id if message.tool_call_id is None else message.tool_call_id
    said = {"content": content, "is_error": message.is_error}
    return {
        "type": TOOL_RESULT,
        "tool_use_id": id_,
        **{key: value for key, value in said.items() if value is not None},
    }
