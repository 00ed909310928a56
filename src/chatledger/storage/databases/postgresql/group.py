"""Writes a group of appends of one tenant on PostgreSQL, in at most two statements that write.

The first statement is planned on cached tips. If it leaves some appends out, one look finds for all of these what a
preflight would: repeats get their results and refused appends their errors. What is left is planned anew, for the
second statement. An append that neither statement did runs alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from chatledger.errors import RunConflict
from chatledger.storage.append.group_insert import Planned, plan_group, statement_of
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.tip_cache import BranchKey, TipCache
from chatledger.storage.databases.postgresql.append import PostgresqlAppend, Progress
from chatledger.storage.databases.postgresql.append_queue import Shared
from chatledger.storage.databases.postgresql.looks import Looks, looks_statement
from chatledger.storage.databases.postgresql.rejudge import rejudge
from chatledger.storage.databases.retries import note_retry
from chatledger.storage.drivers.asyncpg import AsyncpgConnections
from chatledger.storage.drivers.errors import is_away, is_key, read_failure


class PostgresqlGroups:
    def __init__(self, appends: PostgresqlAppend, connections: AsyncpgConnections, tips: TipCache) -> None:
        self._appends = appends
        self._connections = connections
        self._tips = tips

    @property
    def timeout(self) -> float:
        return self._connections.timeout

    def can_share(self, request: AppendRequest) -> bool:
        """A conflict of values would refuse the whole group, an append without a cached tip needs a preflight, and one
        to a stalled thread waits for its lock. No append shares its statements if the tables are distributed by tenant.
        """
        stalled = self._appends.stalled
        if stalled is not None and stalled.threads and request in stalled:
            return False
        return self._appends.at_once and not (request.kv or request.is_fenced) and request in self._tips

    async def write_group(self, requests: Sequence[AppendRequest]) -> Shared:
        planned = plan_group(requests, self._tips)
        sent = await self._write(planned)
        done = planned.finish(sent.written, self._tips) if sent.answered else {}
        alone = planned.stamps_of(sent.locked) | done if sent.again else range(len(requests))
        return Shared(done, [index for index in range(len(requests)) if index not in alone], sent.unanswered)

    async def rejudge(self, requests: Sequence[AppendRequest]) -> Shared:
        looks = await self._look(requests)
        if looks is None:
            return Shared({})
        rejudged = rejudge(requests, looks)
        sent = await self._write(rejudged.planned)
        return Shared(rejudged.finish(sent.written, self._tips), unanswered=sent.unanswered)

    async def _write(self, planned: Planned) -> _Sent:
        """If the statement fails, nothing of it is known to be done."""
        progress, keys = Progress(), list(planned.plans)
        if not keys:
            return _Sent(answered=True, again=True)
        requests = [plan.request for plans in planned.branches for plan in plans]
        try:
            statement = statement_of(planned.branches)
            rows = await self._appends.run_at_once(requests, statement, list, progress)
        except Exception as error:
            note_retry(self._connections.counters, error)
            refused = isinstance(error, RunConflict) or not (read_failure(error) is None or is_away(error))
            if refused:
                planned.undo(self._tips)
            unanswered = planned.stamps_of(keys) if progress.sent and not refused else {}
            # A key that fired although the statement looked first: somebody else was faster, and a look finds it.
            return _Sent(again=isinstance(error, RunConflict) or is_key(error), unanswered=unanswered)
        written = [keys[number - 1] for number, moved in rows if moved]
        locked = [keys[number - 1] for number, moved in rows if not moved]
        return _Sent(written, locked, answered=True, again=True)

    async def _look(self, requests: Sequence[AppendRequest]) -> Looks | None:
        """None if it failed; each append then looks by itself."""
        looks = partial(Looks, requests)
        try:
            return await self._appends.run_at_once(requests, looks_statement(requests), looks, Progress())
        except Exception as error:
            note_retry(self._connections.counters, error)
            return None


@dataclass(frozen=True, slots=True)
class _Sent:
    """What became of a statement: the branches that it wrote, and those that were locked. `again`: the others may be
    judged anew together. `unanswered` as in `Shared`.
    """

    written: Collection[BranchKey] = ()
    locked: Collection[BranchKey] = ()
    answered: bool = False
    again: bool = False
    unanswered: Mapping[int, int] = field(default_factory=dict)
