"""A message that is still being written, or that whoever wrote it left behind."""

from __future__ import annotations

from chatledger.models.base import Model, UtcDatetime


class PartialMessage(Model):
    """Where a partial message stands, and when it was last written: `since` is when nothing came any more."""

    thread_id: str
    branch: int
    seq: int
    message_id: str | None
    run_id: str | None
    created_at: UtcDatetime
    since: UtcDatetime
