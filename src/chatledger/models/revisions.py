"""A record of a changed message, with the message as it was before the change."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model, UtcDatetime
from chatledger.models.messages import ChatMessage

ChangeKind: TypeAlias = Literal["revised", "retracted", "popped"]
"""How a stored message changed: it was revised, removed by a retraction, or removed by a pop or a rewind."""


class Revision(Model):
    """One change of a stored message. Each change takes a position of its branch, which no message has."""

    kind: ChangeKind
    """How the message changed."""
    message: ChatMessage | None
    """The message as it was before the change. After a redaction it is None, or the redacted message if the change
    removed the message.
    """
    branch: int
    """The branch on which the change took a position."""
    seq: int
    """The position that the change took."""
    created_at: UtcDatetime
    """The time of the change in UTC."""
