"""A record of a changed message, with the message as it was before the change."""

from __future__ import annotations

from typing import Literal, TypeAlias

from chatledger.models.base import Model, UtcDatetime
from chatledger.models.messages import ChatMessage

ChangeKind: TypeAlias = Literal["revised", "retracted", "popped"]


class Revision(Model):
    """One change of a stored message. `message` is the message as it was before the change. After a redaction it is
    None, or the redacted message if the change removed the message. The change took the position `seq` of `branch`,
    which no message has.
    """

    kind: ChangeKind
    message: ChatMessage | None
    branch: int
    seq: int
    created_at: UtcDatetime
