"""Whether a message is one that was read, with nothing in it that a program put there and that nobody reads back.

Such messages are written as they came in, so what they lose need not be measured.
"""

from __future__ import annotations

from chatledger.formats.anthropic.media import read_medium, write_medium
from chatledger.formats.anthropic.names import NAME, TOOL_RESULT, is_result
from chatledger.formats.anthropic.splitting import NULL
from chatledger.formats.wire.residual import KEYS, nested
from chatledger.models import ChatMessage, FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart, ToolCall


def is_as_read(message: ChatMessage) -> bool:
    if message.format != NAME or message.reasoning is not None or message.name is not None:
        return False
    answers = is_result(message)
    if answers != (message.tool_call_id is not None) or (message.is_error is not None and not answers):
        return False
    if isinstance(message.content, list) and not all(map(_is_read_part, message.content)):
        return False
    return _has_read_calls(message) and _has_read_metadata(message) and (answers or _says_something(message))


def _says_something(message: ChatMessage) -> bool:
    """None is read of a message without content only, or where there are calls alone."""
    if message.content is not None:
        return message.content != [] or not message.tool_calls
    return bool(message.tool_calls) or nested(message.residual, NULL) in ("null", "absent")


def _is_read_part(part: Part) -> bool:
    if isinstance(part, OpaquePart):
        return isinstance(part.value, dict) and part.type != TOOL_RESULT and part.type == part.value.get("type")
    if isinstance(part, (TextPart, ThinkPart)):
        return part.extras is None
    if not isinstance(part, (ImagePart, FilePart)):
        return False
    block = write_medium(part)
    return block is not None and read_medium(block, "") == part


def _has_read_calls(message: ChatMessage) -> bool:
    if message.tool_calls is None:
        return True
    return message.role == "assistant" and bool(message.tool_calls) and all(map(_is_read_call, message.tool_calls))


def _is_read_call(call: ToolCall) -> bool:
    return call.id is not None and call.arguments is not None and call.extras is None


def _has_read_metadata(message: ChatMessage) -> bool:
    """Of a reply: what it said of itself, and nothing that was added."""
    if message.response_metadata is None:
        return True
    keys = nested(message.residual, KEYS)
    if message.role != "assistant" or not isinstance(keys, list):
        return False
    return set(message.response_metadata) == set(keys) - {"role", "content"}
