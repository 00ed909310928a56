"""Records that seem to be new, gathered to be stored many at a time.

Whether they are new shows when they are loaded: looking for each before would cost more than all of it, and an import
mostly brings new threads.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from chatledger.errors import AlreadyExists, Conflict, LimitExceeded, RuleViolation
from chatledger.ledger import Ledger
from chatledger.models import Limits, Thread
from chatledger.storage.repositories.bulk import NewThread
from chatledger.transfer.plan import PlannedThread
from chatledger.transfer.records import Record

MAX_BYTES = 1024 * 1024
"""How much of a file is held until it is stored. A record of this size is stored alone."""


@dataclass(frozen=True, slots=True)
class Gathered:
    record: Record
    planned: PlannedThread
    new: NewThread


Loaded: TypeAlias = tuple[list[Gathered], dict[str, Thread] | None]


class NewThreads:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._gathered: dict[str, Gathered] = {}
        self._bytes = 0

    @property
    def full(self) -> bool:
        return self._bytes >= MAX_BYTES

    def add(self, record: Record, planned: PlannedThread) -> bool:
        """False for a record that must be stored alone: a large one, one with branches, the second of a thread, one
        that is refused (it may be stored already, and then nothing is wrong).
        """
        large = record.end - record.byte >= MAX_BYTES or planned.count > Limits().messages
        if large or len(planned.branches) > 1 or planned.thread_id in self._gathered:
            return False
        try:
            new = self._ledger.threads.prepare(_thread(planned), planned.branches[0].messages, rules=planned.rules)
        except (RuleViolation, Conflict, LimitExceeded):
            return False
        self._gathered[planned.thread_id] = Gathered(record, planned, new)
        self._bytes += record.end - record.byte
        return True

    def load(self) -> Coroutine[Any, Any, Loaded]:
        """To be awaited: what was gathered until now. It is stored, unless there is a dict beside it: the threads that
        were there already by their ids, found in one query; then none of it is.
        """
        gathered = list(self._gathered.values())
        self._gathered, self._bytes = {}, 0
        return self._load(gathered)

    async def _load(self, gathered: list[Gathered]) -> Loaded:
        if not gathered:
            return [], None
        try:
            await self._ledger.threads.load([one.new for one in gathered])
        except AlreadyExists:
            return gathered, await self._ledger.threads.find_many([one.planned.thread_id for one in gathered])
        return gathered, None


def _thread(planned: PlannedThread) -> Thread:
    now = datetime.now(UTC)
    return Thread(
        thread_id=planned.thread_id,
        user_id=planned.user_id,
        metadata=planned.metadata,
        created_at=planned.created_at or now,
        active_at=now,
    )
