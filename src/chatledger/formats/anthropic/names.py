"""Names that several modules of the format share: of keys, of blocks, of residual sections."""

from __future__ import annotations

from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage
from chatledger.models.json import JsonValue

NAME = "anthropic"
ROLES = frozenset({"user", "assistant", "system"})

MESSAGES = "messages"
SYSTEM = "system"
TOOL_USE = "tool_use"
TOOL_RESULT = "tool_result"

PAYLOAD = "payload"
"""Residual of the first message: `keys` and `extra` of the request around the messages."""
LISTED = "listed"
"""Residual: the message was in `messages` with this role, unlike most system prompts and tool results."""


def own_residual(message: ChatMessage) -> JsonValue:
    """The residual of a message that came in this format; None for any other message."""
    return message.residual if message.format == NAME else None


def is_listed(message: ChatMessage) -> bool:
    return nested(own_residual(message), LISTED) is True


def is_result(message: ChatMessage) -> bool:
    """Whether the message is written as a tool_result block of a user message."""
    return message.role == "tool" and not is_listed(message)
