"""Where a message stands, for calls that take a message."""

from __future__ import annotations

from chatledger import ChatMessage


def at(seq: int, branch: int = 0) -> ChatMessage:
    """A message that says only where it stands: its id would be another way to say it."""
    return ChatMessage(role="user", content="", branch=branch, seq=seq)
