"""Attempts an append on PostgreSQL until its outcome is known.

The first attempt trusts the tip cache and takes no lock. Every later attempt begins with a preflight under the lock of
the branch. So it judges on what is stored, and finds an attempt whose acknowledgement was lost by its ids.

If the tables are distributed by tenant, each attempt is a transaction whose statements write one table each. It commits
on the one server that has the tenant's rows. Every attempt with a preflight then takes the lock.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.util import greenlet_spawn

from chatledger.errors import ChatLedgerError, OutcomeUnknown, RunConflict, StorageError, VersionConflict
from chatledger.models import Appended
from chatledger.models.weight import in_thread
from chatledger.storage.append.attempt import (
    Attempted,
    appended,
    attempt,
    plan_on_cached_tip,
    preflight_after,
)
from chatledger.storage.append.create import creating_statement, new_thread, read_created
from chatledger.storage.append.preflight import Preflight, preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.tip_cache import TipCache
from chatledger.storage.append.write import (
    Plan,
    TryAgain,
    Written,
    one_statement,
    read_written,
    write,
)
from chatledger.storage.databases.postgresql.stalled import NoTurn, Stalled
from chatledger.storage.databases.postgresql.unanswered import ANYTHING, NO_THREAD, Unanswered, guard_of
from chatledger.storage.databases.retries import Retries, note_retry
from chatledger.storage.drivers.asyncpg import LONG, AsyncpgConnections, Checkout, is_spoilt
from chatledger.storage.drivers.errors import (
    BRANCHES_KEY,
    Failure,
    Kind,
    NoPlace,
    is_away,
    is_locked,
    raise_run_conflict,
    read_failure,
    translate,
)
from chatledger.storage.drivers.sql import Row, WriteSql
from chatledger.storage.schema.row_security import begin_as

T = TypeVar("T")

_AT_LEAST = 0.1
"""Seconds in which an append still tries after it waited for its turn nearly until its time limit."""
_BYTES_A_SECOND = 1_000_000
"""The speed of the slowest connection that a large batch must get through. A connection may be silent longer for such a
batch.
"""
ATTEMPTS = 8
"""Maximum number of attempts while the database answers. From the second on the branch is locked, so a third is needed
only if another branch became the active one.
"""


@dataclass(slots=True)
class Progress:
    """What one attempt has done so far. `sent`: a statement that writes may have reached the database, and `guard`
    says when it writes. `until`: the time, by `time.monotonic`, at which the append's limit ends. `seen`: the preflight
    that was made under the lock.
    """

    sent: bool = False
    guard: int = ANYTHING
    until: float = math.inf
    seen: Preflight | None = None


class PostgresqlAppend:
    def __init__(self, connections: AsyncpgConnections, tips: TipCache) -> None:
        self._connections = connections
        self._tips = tips
        self.at_once = not connections.distributed
        """Whether an append is one statement."""
        turns = connections.patient_places
        self.stalled: Stalled | None = None if turns is None else Stalled(turns)

    async def until_known(self, request: AppendRequest, *, unanswered: Unanswered | None, since: float) -> Appended:
        """Try until the outcome is known. Raises the errors of the judgement, StorageError, and OutcomeUnknown past the
        time limit, or in place of a refusal while an earlier attempt may still be stored.

        `unanswered`: the statements of the append that were sent before. The first attempt then looks for it under the
        lock. `since` is the time at which the append began to wait for its turn, and the limit counts from there.
        """
        retries: Retries | None = None
        number, cause, first = 0, None, unanswered is None
        timeout = self._connections.timeout
        until = max(since + timeout, time.monotonic() + _AT_LEAST)
        while True:
            failed, progress = None, Progress(until=until)
            try:
                attempt = self._attempt(request, progress, first=number == 0 and first)
                if self.stalled is not None and self.stalled.threads:
                    attempt = self.stalled.in_turn(request, attempt, self._patient(until))
                done = await attempt
            except Exception as error:
                if self.stalled is not None and is_locked(error):  # the attempt was undone
                    self.stalled.note(request)
                    number, retries = max(number, 1), retries or Retries(timeout, since=since)
                    if time.monotonic() > self._patient(until) or not await retries.next():
                        raise await _locked_out(request, unanswered, timeout, until) from error
                    note_retry(self._connections.counters, error)
                    continue
                if isinstance(error, NoTurn):
                    raise await _locked_out(request, unanswered, timeout, until) from cause
                if isinstance(error, NoPlace):  # it has waited for as long as it may
                    raise _given_up(request, unanswered, error) from error
                if _repeatable(error) is None:
                    if unanswered is not None and unanswered.may_write(request, progress.seen):
                        raise OutcomeUnknown(request.ids, _MAY_RUN) from error
                    raise
                lost, cause, failed = is_away(error), error, error
                if lost and progress.sent:
                    unanswered = unanswered or Unanswered()
                    unanswered.add(progress.guard)
            else:
                if isinstance(done, Attempted):
                    self._tips.remember(request, done.now)
                    return done.appended
                lost = False
            number += 1
            if lost:
                retries = retries or Retries(timeout, since=since, least=_AT_LEAST)
                if self._connections.closed or not await retries.next(unused=self._connections.unused):
                    raise _given_up(request, unanswered, cause) from cause
            elif number >= ATTEMPTS:
                if unanswered is not None and unanswered.may_write(request, progress.seen):
                    raise OutcomeUnknown(request.ids, _MAY_RUN) from cause
                raise StorageError(
                    f"other writers changed the branch during each of {ATTEMPTS} attempts; try again", retryable=True
                ) from cause
            note_retry(self._connections.counters, failed)

    def _patient(self, until: float) -> float:
        """The time until which an attempt may wait for a lock anew: later, no answer would come in time."""
        return until - 2 * self._connections.lock_wait

    async def _attempt(self, request: AppendRequest, progress: Progress, *, first: bool) -> Attempted | TryAgain:
        if request.kv and any(write.expected == 0 for write in request.kv):
            first = False  # a new value takes a transaction
        cached = self._tips.take(request) if first else None
        if cached is not None:
            plan = await _apart(request, plan_on_cached_tip, request, cached)
            if plan is not None:
                progress.guard = plan.stamp
                with suppress(RunConflict, VersionConflict):  # an attempt with a preflight raises it if it is real
                    written = await self._write_plan(plan, progress)
                    if isinstance(written, TryAgain):
                        return written
                    return Attempted(appended(plan), preflight_after(plan, cached, written))
        seen = None
        if first and cached is None and request.creation is not None and self.at_once and not request.kv:
            created = await self._create(request, progress)
            if isinstance(created, (Attempted, TryAgain)):
                return created
            seen = created
        lock = not first or not self.at_once
        return await greenlet_spawn(self._preflight_and_write, request, progress, lock, seen)

    async def _create(self, request: AppendRequest, progress: Progress) -> Attempted | TryAgain | Preflight | None:
        """Create the thread with the messages, or read what a preflight would read; TryAgain if neither is possible.
        None if the batch cannot begin a thread.
        """
        seen = new_thread(request)
        plan = await _apart(request, plan_on_cached_tip, request, seen)
        if plan is None:
            return None
        progress.guard = NO_THREAD
        statement = await _apart(request, creating_statement, plan)
        try:
            created = await self.run_at_once([request], statement, partial(read_created, request), progress)
        except RunConflict:  # perhaps of a thread that exists by now
            return TryAgain()
        return (
            Attempted(appended(plan), preflight_after(plan, seen, created)) if isinstance(created, Written) else created
        )

    def _write_plan(self, plan: Plan, progress: Progress) -> Coroutine[Any, Any, Written | TryAgain]:
        """It returns the coroutine of either write, since each coroutine on the way would cost time."""
        if not self.at_once:
            return greenlet_spawn(self._write_by_table, plan, progress)
        if plan.request.kv:
            return self._write_values(plan, progress)
        return self.run_at_once([plan.request], one_statement(plan), read_written, progress)

    async def _write_values(self, plan: Plan, progress: Progress) -> Written | TryAgain:
        """With the values of kv, which the statement encrypts."""
        statement = await _apart(plan.request, one_statement, plan)
        return await self.run_at_once([plan.request], statement, read_written, progress)

    def _write_by_table(self, plan: Plan, progress: Progress) -> Written | TryAgain:
        """The write in a transaction of its own, inside a greenlet."""
        with self._begin(plan.request, progress, transaction=True) as sql:
            progress.sent = True
            return write(sql, plan)

    async def run_at_once(
        self,
        requests: Sequence[AppendRequest],
        statement: tuple[str, dict[str, Any]],
        read: Callable[[Sequence[Row]], T],
        progress: Progress,
    ) -> T:
        """Nearly every append is this one statement, awaited on asyncpg itself: a greenlet costs as much as judging."""
        template, parameters = statement
        timeout = self._timeout(requests, progress)
        async with await self._connections.checkout() as connection:
            progress.sent = True
            fetching = connection.fetch(template, parameters, timeout)
            if self._connections.secured:
                fetching = _as_tenant(requests[0].tenant.key, connection, fetching, timeout)
            try:
                rows = await fetching
            except Exception as error:
                raise_run_conflict(error, [run for request in requests for run in request.runs])
                raise
        return read(rows)

    def _preflight_and_write(
        self, request: AppendRequest, progress: Progress, lock: bool, seen: Preflight | None = None
    ) -> Attempted | TryAgain:
        """One attempt with a preflight, inside a greenlet. With `lock`, in a transaction that locks the branch."""
        progress.sent = False
        with self._begin(request, progress, transaction=lock) as sql:
            seen = seen or preflight(sql, request, lock=lock)
            progress.seen = seen if lock else None
            progress.sent, progress.guard = True, guard_of(request, seen)
            return attempt(sql, request, lock=lock, seen=seen)

    def _begin(
        self, request: AppendRequest, progress: Progress, *, transaction: bool
    ) -> AbstractContextManager[WriteSql]:
        timeout = self._timeout([request], progress)
        if self._connections.secured:
            return self._connections.transaction(begin_as("BEGIN", request.tenant.key), timeout=timeout)
        if transaction:
            return self._connections.transaction(timeout=timeout)
        return self._connections.autocommit(timeout)

    def _timeout(self, requests: Sequence[AppendRequest], progress: Progress) -> float:
        """The seconds without an answer after which the connection counts as lost. No append waits longer than its own
        limit.
        """
        response_timeout = (
            self._connections.response_timeout + sum([request.bytes for request in requests]) / _BYTES_A_SECOND
        )
        return min(response_timeout, max(progress.until - time.monotonic(), _AT_LEAST))


async def _apart(request: AppendRequest, work: Callable[..., T], *given: Any) -> T:
    """The result of the work, which is done in a thread if it encrypts many words."""
    is_long = request.tenant.encryption is not None and request.bytes >= LONG
    return await in_thread(lambda: work(*given)) if is_long else work(*given)


async def _as_tenant(tenant: str, connection: Checkout, work: Coroutine[Any, Any, T], timeout: float) -> T:
    """The work in a transaction that sets the tenant for row-level security: two more round trips."""
    try:
        await connection.run(begin_as("BEGIN", tenant), timeout)
        result = await work
    except BaseException as error:
        work.close()  # it may not have begun
        if not is_spoilt(error):
            await connection.run("ROLLBACK", timeout)
        raise
    await connection.run("COMMIT", timeout)
    return result


def _repeatable(error: Exception) -> Failure | None:
    """The failure, if the append should be tried again after it: another writer was faster, an id is stored already,
    another writer made the branch with that number, or the connection was lost or none was available.
    """
    failure = read_failure(error)
    if failure is None or failure.kind not in (Kind.UNIQUE, Kind.AGAIN, Kind.LOST, Kind.POOL):
        return None
    known_key = "message_id" in failure.columns or failure.columns == BRANCHES_KEY
    return None if failure.kind is Kind.UNIQUE and not known_key else failure


async def _locked_out(
    request: AppendRequest, unanswered: Unanswered | None, seconds: float, until: float
) -> ChatLedgerError:
    """The error of an append that found its thread locked until its time limit. It comes no earlier, so that the
    appends behind it, which have nothing better to do, do not try in turn.
    """
    await asyncio.sleep(max(0, until - time.monotonic()))
    what = f"another transaction held a lock until the time limit of {seconds:g} s"
    if unanswered is not None:
        return OutcomeUnknown(request.ids, f"no answer came, and then {what}")
    return StorageError(f"the append is not stored: {what}, on the thread's branch or a table", retryable=True)


_MAY_RUN = "no answer came, so it may still be stored, although another attempt was refused"


def _given_up(request: AppendRequest, unanswered: Unanswered | None, cause: Exception | None) -> ChatLedgerError:
    """The error of an append past its time limit. If nothing was sent that writes, its outcome is not unknown."""
    ours = None if unanswered or cause is None else translate(cause)
    return ours or OutcomeUnknown(request.ids)
