"""The words of the format that several of its modules need."""

from __future__ import annotations

from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage
from chatledger.models.json import JsonValue

NAME = "anthropic"
ROLES = frozenset({"user", "assistant", "system"})

TOOL_USE = "tool_use"
TOOL_RESULT = "tool_result"

LISTED = "listed"
"""Residual: the message stood in `messages` with this role, though a system prompt or a tool result need not."""


def own_residual(message: ChatMessage) -> JsonValue:
    """The residual of a message that came in this format: that of any other says nothing here."""
    return message.residual if message.format == NAME else None


def is_listed(message: ChatMessage) -> bool:
    return nested(own_residual(message), LISTED) is True


def is_result(message: ChatMessage) -> bool:
    """Whether it is written as a tool_result block of a user message."""
    return message.role == "tool" and not is_listed(message)
