"""An append on PostgreSQL until its outcome is known: rows 2 and 7 to 12 of the order of judgement.

The first attempt trusts memory and takes no lock. Every later one looks first, under the lock of the branch, so what it
raises is judged on what is stored, and an attempt whose acknowledgement was lost is found by its ids.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.util import greenlet_spawn

from chatledger.errors import ChatLedgerError, OutcomeUnknown, RunConflict, StorageError
from chatledger.models import Appended
from chatledger.storage.append.attempt import (
    Attempted,
    appended,
    attempt,
    plan_on_each_other,
    plan_on_memory,
    seen_after,
)
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.tip_cache import TipMemory
from chatledger.storage.append.write import Plan, Written, joined, one_statement, raise_run_conflict, read_written
from chatledger.storage.drivers.asyncpg import AsyncpgConnections, Lent, is_spoilt
from chatledger.storage.drivers.errors import Failure, Kind, read_failure, translate
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.overlap import overlapping
from chatledger.storage.schema.row_security import begin_as

T = TypeVar("T")

DEADLINE = 10.0
"""Seconds in which an append finds out its outcome: however long the database is away, or silent."""
_AT_LEAST = 0.1
"""Seconds in which an append that has waited longer than that for its turn tries again."""
PATIENCE = 5.0
"""Seconds of silence, once an attempt has its connection, after which that counts as lost: time for two in all."""
_CHARACTERS_A_SECOND = 1_000_000
"""What a slow line may take besides for a large batch."""
ATTEMPTS = 8
"""Attempts while the database answers. From the second on the branch is locked: a third means that it was switched."""
_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4)


@dataclass(slots=True)
class _Progress:
    sent: bool = False
    """Whether an attempt had a connection, so that something of it may have reached the database."""


class PostgresqlAppend:
    def __init__(self, connections: AsyncpgConnections, tips: TipMemory) -> None:
        self._connections = connections
        self._tips = tips

    async def alone(self, request: AppendRequest, sent: bool, since: float) -> Appended:
        """`sent`: something of it may have reached the database. `since`: when it began to wait, for its turn as well:
        those in line behind one that found the database away would otherwise wait as long as it did, one by one.
        Raises what the judgement refuses, StorageError, and OutcomeUnknown past the deadline.
        """
        deadline = max(since + DEADLINE, time.monotonic() + _AT_LEAST)
        progress = _Progress(sent)
        number, cause = 0, None
        while True:
            try:
                done = await self._attempt(request, progress, first=number == 0)
            except Exception as error:
                failure = _repeatable(error)
                if failure is None:
                    raise
                lost, cause = failure.kind in (Kind.LOST, Kind.POOL), error
            else:
                if done is not None:
                    self._tips.remember(request, done.now)
                    return done.appended
                lost = False
            number += 1
            if lost:
                if time.monotonic() > deadline:
                    raise _given_up(request, progress, cause) from cause
                await asyncio.sleep(_PAUSES[min(number, len(_PAUSES)) - 1])
            elif number >= ATTEMPTS:
                raise StorageError(f"the branch moved under each of {ATTEMPTS} attempts", retryable=True) from cause

    async def together(self, requests: Sequence[AppendRequest]) -> tuple[list[Appended], int]:
        """As many of these appends to one branch as memory lets through, in one statement: what came of them, and how
        many may have been sent. None is done if that statement fails: each will find out by itself, and be told alone.
        """
        remembered = self._tips.recall(requests[0])
        plans = [] if remembered is None else plan_on_each_other(requests, remembered)
        if remembered is None or not plans:
            return [], 0
        plan, progress = joined(plans), _Progress()
        with suppress(Exception):
            made = partial(_each_appended, plans)
            answer = await self._write_at_once(plan, progress, _patience(plan.request), made)
            if answer is not None:
                self._tips.remember(requests[0], seen_after(plan, remembered, answer[0]))
                return answer[1], len(plans)
        return [], len(plans) if progress.sent else 0

    async def _attempt(self, request: AppendRequest, progress: _Progress, *, first: bool) -> Attempted | None:
        patience = _patience(request)
        if first and (remembered := self._tips.recall(request)) is not None:
            plan = plan_on_memory(request, remembered)
            if plan is not None:
                with suppress(RunConflict):  # as all that is found out on memory: looked at before it is raised
                    answer = await self._write_at_once(plan, progress, patience, partial(appended, plan))
                    return None if answer is None else Attempted(answer[1], seen_after(plan, remembered, answer[0]))
        return await greenlet_spawn(self._look_and_write, request, progress, patience, first)

    async def _write_at_once(
        self, plan: Plan, progress: _Progress, patience: float, meanwhile: Callable[[], T]
    ) -> tuple[Written, T] | None:
        """The one statement of nearly every append, awaited on asyncpg itself: a greenlet costs as much as judging."""
        template, parameters = one_statement(plan)
        async with await self._connections.lend() as connection:
            progress.sent = True
            fetching = connection.fetch(template, parameters, patience)
            if self._connections.secured:
                fetching = _as_tenant(plan.request.tenant, connection, fetching, patience)
            try:
                rows, made = await overlapping(fetching, meanwhile)
            except Exception as error:
                raise_run_conflict(plan, error)
                raise
        written = read_written(rows)
        return None if written is None else (written, made)

    def _look_and_write(
        self, request: AppendRequest, progress: _Progress, patience: float, first: bool
    ) -> Attempted | None:
        """Inside a greenlet. The first attempt takes no lock."""
        with self._lend(request, patience, first) as sql:
            progress.sent = True
            return attempt(sql, request, lock=not first)

    def _lend(self, request: AppendRequest, patience: float, first: bool) -> AbstractContextManager[Sql]:
        if self._connections.secured:
            return self._connections.transaction(begin_as("BEGIN", request.tenant), patience=patience)
        if first:
            return self._connections.autocommit(patience)
        return self._connections.transaction(patience=patience)


def _each_appended(plans: Sequence[Plan]) -> list[Appended]:
    return [appended(plan) for plan in plans]


def _patience(request: AppendRequest) -> float:
    return PATIENCE + request.characters / _CHARACTERS_A_SECOND


async def _as_tenant(tenant: str, connection: Lent, work: Coroutine[Any, Any, T], patience: float) -> T:
    """The work in a transaction that row-level security knows the tenant of: two round trips more."""
    try:
        await connection.run(begin_as("BEGIN", tenant), patience)
        result = await work
    except BaseException as error:
        work.close()  # it may not have begun
        if not is_spoilt(error):
            await connection.run("ROLLBACK", patience)
        raise
    await connection.run("COMMIT", patience)
    return result


def _repeatable(error: Exception) -> Failure | None:
    """Rows 8, 9 and 12: another writer, an id that is stored already, a connection gone or not to be had."""
    failure = read_failure(error)
    if failure is None or failure.kind not in (Kind.UNIQUE, Kind.AGAIN, Kind.LOST, Kind.POOL):
        return None
    another_key = failure.kind is Kind.UNIQUE and failure.columns[-1:] != ("message_id",)
    return None if another_key else failure


def _given_up(request: AppendRequest, progress: _Progress, cause: Exception | None) -> ChatLedgerError:
    """Only what was sent can have an outcome that is not known."""
    ours = None if progress.sent or cause is None else translate(cause)
    return ours or OutcomeUnknown(request.ids)
