"""The answers that have not ended, for whoever looks after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Select, Table, and_, literal, select, tuple_

from chatledger.answers.pause import read_decisions, waiting_of
from chatledger.answers.stored import clock
from chatledger.models import Page, Run
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.lists.bounded import fetch_rows
from chatledger.storage.lists.cursors import page_size, read_cursor, to_page
from chatledger.storage.rows.encryption import Tenant, damaged_cell, decrypt_values
from chatledger.storage.rows.owned import of_thread, owned
from chatledger.storage.rows.runs import RUN_COLUMNS, to_run
from chatledger.storage.schema.columns import Key, Moment, Undecoded
from chatledger.storage.schema.tables import run_leases, runs, threads, workers

LiveState = Literal["working", "paused", "left"]
"""A process works on it; it waits for decisions; or no process has it, since none took it up yet or one died."""


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """An answer that has not ended. `waiting` are the calls for which it is paused: the reason of each, by its id."""

    run: Run
    user_id: str | None
    attempt: int
    """The attempts that began; 0 if no process took it up yet."""
    state: LiveState
    paused_at: datetime | None
    """Since when it is paused."""
    until: datetime | None
    """When the lease of its process ends or, if it is left, ended; None if no process has it."""
    waiting: Mapping[str, str | None]


async def list_live(scope: Scope, thread_id: str | None, limit: int, cursor: str | None) -> Page[LiveAnswer]:
    """A page of the open answers of a thread, or of all, those that began first before the others. Raises InvalidCursor
    and LimitExceeded.

    No index has this order, so each page reads when all of them began: `Limits.tenant_answers` bounds how many.
    """
    size = page_size(limit)
    return await scope.read(lambda sql: _list(sql, scope.tenant, thread_id, size, cursor), snapshot=True)


_ORDER = ("started_at", "run_id")


def _list(sql: ReadSql, tenant: Tenant, thread_id: str | None, limit: int, cursor: str | None) -> Page[LiveAnswer]:
    rows = fetch_rows(sql, _statement(sql, tenant, thread_id, limit, cursor), limit, *_ORDER)
    names = [(row["thread_id"], row["run_id"]) for row in rows.rows if row["paused_at"] is not None]
    readable = [pair for pair in names if not any(isinstance(name, Undecoded) for name in pair)]
    decisions = read_decisions(sql, tenant, readable) if readable else {}
    return to_page(rows, lambda row: _to_live(tenant, row, decisions), *_ORDER)


def _statement(sql: ReadSql, tenant: Tenant, thread_id: str | None, limit: int, cursor: str | None) -> Select[Any]:
    """It sorts ids and times alone, and reads the rest of those on the page."""
    # No join, for which a database may read all runs of the tenant.
    of_run = (runs.c.tenant_id == tenant.name, runs.c.run_id == run_leases.c.run_id)
    started_at = select(runs.c.started_at).where(*of_run).correlate(run_leases).scalar_subquery()
    lease = [run_leases.c[name] for name in ("run_id", "attempt", "paused_at", "worker_id")]
    own = owned(run_leases, tenant) if thread_id is None else of_thread(run_leases, tenant, thread_id)
    open_ones = select(*lease, started_at.label("started_at")).where(own).subquery("open_ones")
    place = tuple_(*(open_ones.c[name] for name in _ORDER))
    in_order = select(open_ones).order_by(*place).limit(limit + 1)
    if cursor is not None:
        moment, run_id = read_cursor(cursor, datetime, str)
        in_order = in_order.where(place > tuple_(literal(moment, Moment()), literal(run_id, Key())))
    first = in_order.subquery("first")
    of_thread_ = and_(threads.c.tenant_id == runs.c.tenant_id, threads.c.thread_id == runs.c.thread_id)
    lives = (workers.c.lease_until > clock(sql)).label("lives")
    return (
        select(*RUN_COLUMNS, first.c.attempt, first.c.paused_at, threads.c.user_id)
        .add_columns(workers.c.worker_id, workers.c.lease_until, lives)
        .select_from(first.join(runs, runs.c.run_id == first.c.run_id).join(threads, of_thread_))
        .outerjoin(workers, workers.c.worker_id == first.c.worker_id)
        .where(runs.c.tenant_id == tenant.name)
    )


def _to_live(tenant: Tenant, row: Mapping[str, Any], decisions: Mapping[str, Sequence[Any]]) -> LiveAnswer:
    """Raises DamagedCell and EncryptionError."""

    def cells(table: Table, *names: str) -> dict[str, Any]:
        return decrypt_values(tenant, table, {name: row[name] for name in names})

    run = to_run(tenant, {column.name: row[column.name] for column in RUN_COLUMNS})
    lease = cells(run_leases, "thread_id", "run_id", "attempt", "paused_at")
    if type(lease["attempt"]) is not int:
        raise damaged_cell(run_leases, "attempt", row)
    state: LiveState = "paused" if lease["paused_at"] is not None else "working" if row["lives"] else "left"
    return LiveAnswer(
        run=run,
        user_id=cells(threads, "thread_id", "user_id")["user_id"],
        attempt=lease["attempt"],
        state=state,
        paused_at=lease["paused_at"],
        until=cells(workers, "worker_id", "lease_until")["lease_until"],
        waiting=waiting_of(tenant, decisions.get(run.run_id, ())) if state == "paused" else {},
    )
