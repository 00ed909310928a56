"""Copies of a message with something changed, and with nothing kept that the change makes untrue."""

from __future__ import annotations

from typing import Any

from chatledger.models import ChatMessage
from chatledger.models.trusted import copy_with


def rewritten(message: ChatMessage, **fields: Any) -> ChatMessage:
    """The message with another shape. Its residual told of the old one; whose it is stays, and so do signatures."""
    return copy_with(message, {**fields, "residual": None})


def renamed(message: ChatMessage, **fields: Any) -> ChatMessage:
    """The message with other texts in fields that it had: what its residual says of the rest still holds."""
    return copy_with(message, fields)
