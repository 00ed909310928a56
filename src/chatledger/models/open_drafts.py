"""Open drafts: messages that are still being written, or were abandoned by their writer."""

from __future__ import annotations

from chatledger.models.base import Model, UtcDatetime


class OpenDraft(Model):
    """The place of a message that is still being written, or was abandoned by its writer."""

    thread_id: str
    """The thread of the message."""
    branch: int
    """The branch that the message ends."""
    seq: int
    """The position of the message."""
    message_id: str | None
    """The id of the message."""
    run_id: str | None
    """The run of the message, if it has one."""
    created_at: UtcDatetime
    """The time of the message in UTC."""
    since: UtcDatetime
    """The time of the last write of the message, in UTC."""
