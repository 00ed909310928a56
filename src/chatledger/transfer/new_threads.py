"""Gathers records of new threads, to load them in batches.

The load itself finds out whether the threads are new. A look-up of each thread would cost more than the load, and most
imports bring new threads. But if some threads of a batch were stored already, those of the next one probably are too.
Then the next batch is looked up first, and its rows are not made in vain.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from chatledger.errors import Conflict, Erased, IdConflict, LimitExceeded, RuleViolation
from chatledger.ledger import Ledger
from chatledger.models import Limits, Thread
from chatledger.repositories import scope_of
from chatledger.storage.lists.thread_list import find_threads
from chatledger.storage.repositories.bulk import PreparedThread, load_threads, prepare_thread
from chatledger.transfer.plan import PlannedThread
from chatledger.transfer.records import Record

MAX_BYTES = 1024 * 1024
"""Bytes of a file to gather before loading them. A record of this size is stored alone."""


@dataclass(frozen=True, slots=True)
class Gathered:
    record: Record
    planned: PlannedThread
    new: PreparedThread | None
    """None if the thread is probably stored already."""


Loaded: TypeAlias = tuple[list[Gathered], dict[str, Thread] | None]
"""Records, and the stored threads among them by id; None if all of them were new and are loaded."""


class NewThreads:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._gathered: dict[str, Gathered] = {}
        self._bytes = 0
        self._repeats = False  # whether the last batch had a thread that was stored already

    @property
    def full(self) -> bool:
        return self._bytes >= MAX_BYTES

    def add(self, record: Record, planned: PlannedThread) -> bool:
        """Gather a record. Returns False for a record that must be stored alone: a large one, one with several
        branches, the second record of a thread, or one that the rules or limits refuse. A refused record may be stored
        already, and is then no error.
        """
        large = record.end - record.byte >= MAX_BYTES or planned.count > Limits().messages
        if large or len(planned.branches) > 1 or planned.thread_id in self._gathered:
            return False
        new = None
        if not self._repeats:
            try:
                new = prepare_thread(
                    scope_of(self._ledger), _thread(planned), planned.branches[0].messages, rules=planned.rules
                )
                new = replace(new, earlier_id=planned.earlier_id)
            except (RuleViolation, Conflict, LimitExceeded):
                return False
        self._gathered[planned.thread_id] = Gathered(record, planned, new)
        self._bytes += record.end - record.byte
        return True

    def load(self) -> Coroutine[Any, Any, Loaded]:
        """A coroutine that stores the records gathered until now, and returns them.

        If one of their threads exists already or was erased, it stores none of them, and also returns the existing
        threads by id. It stores none either if it only looked them up.
        """
        gathered = list(self._gathered.values())
        self._gathered, self._bytes = {}, 0
        return self._load(gathered)

    async def _load(self, gathered: list[Gathered]) -> Loaded:
        if not gathered:
            return [], None
        new = [record.new for record in gathered if record.new is not None]
        if len(new) == len(gathered):
            try:
                await load_threads(scope_of(self._ledger), new)
            except (IdConflict, Erased):
                pass
            else:
                return gathered, None
        stored = await find_stored(self._ledger, *(record.planned for record in gathered))
        self._repeats = bool(stored)
        return gathered, stored


async def find_stored(ledger: Ledger, *planned: PlannedThread) -> dict[str, Thread]:
    """The stored threads of these records, by the ids under which they are stored."""
    ids = [id_ for record in planned for id_ in (record.thread_id, record.earlier_id) if id_ is not None]
    return await find_threads(scope_of(ledger), ids)


def _thread(planned: PlannedThread) -> Thread:
    now = datetime.now(UTC)
    return Thread(
        thread_id=planned.thread_id,
        user_id=planned.user_id,
        metadata=planned.metadata,
        created_at=planned.created_at or now,
        active_at=now,
    )
