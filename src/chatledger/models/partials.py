"""Partial messages: still being written, or abandoned by their writer."""

from __future__ import annotations

from chatledger.models.base import Model, UtcDatetime


class PartialMessage(Model):
    """The position of a partial message, and in `since` the time of its last write."""

    thread_id: str
    branch: int
    seq: int
    message_id: str | None
    run_id: str | None
    created_at: UtcDatetime
    since: UtcDatetime
