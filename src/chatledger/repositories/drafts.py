"""Lists and interrupts messages that are still being written, or were abandoned."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import NoneType

from chatledger.arguments import Kind, require, require_between
from chatledger.models import OpenDraft
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drafts.open_drafts import find_open, interrupt_draft

_AGE = Kind("a timedelta, a number or None", timedelta, int, float, NoneType)
_LONGEST_AGE = 10_000 * 366 * 86_400
"""Seconds of more years than the calendar has."""
_DRAFT = Kind("an OpenDraft", OpenDraft)


class DraftRepository:
    """The messages that are still being written, or were abandoned: `ledger.drafts`, `tx.drafts` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(self, *, abandoned_for: timedelta | float | None = None) -> Sequence[OpenDraft]:
        """All open drafts of the tenant, or of the user, those with the oldest last write first. With `abandoned_for`
        (a timedelta, or seconds), only those whose writer let its lease end, and last wrote at least that long ago: 0
        is for all that are abandoned. One statement. Its cost grows only with their number, because an index contains
        only them.
        """
        require(_AGE, abandoned_for=abandoned_for)
        if isinstance(abandoned_for, (int, float)):
            require_between(0, _LONGEST_AGE, abandoned_for=abandoned_for)
            abandoned_for = timedelta(seconds=abandoned_for)
        return await find_open(self._scope, abandoned_for)

    async def interrupt(self, draft: OpenDraft) -> bool:
        """Mark the message as interrupted, and answer its calls with synthetic results, even while its writer holds the
        lease. Returns False, and writes nothing, if the message was written, completed or interrupted after it was
        listed, or if its thread was deleted.
        """
        require(_DRAFT, draft=draft)
        return await interrupt_draft(self._scope, draft)
