"""The answers that have not ended, for whoever looks after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import and_, select

from chatledger.answers.pause import waiting_calls_of
from chatledger.answers.stored import clock
from chatledger.models import Page, Run
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.lists.bounded import fetch_rows
from chatledger.storage.lists.cursors import page_size, read_cursor, to_page
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.owned import of_thread, owned
from chatledger.storage.rows.runs import RUN_COLUMNS, to_run
from chatledger.storage.schema.tables import run_leases, runs, threads, workers

LiveState = Literal["working", "paused", "left"]
"""A process works on it; it waits for decisions; or no process has it, since none took it up yet or one died."""


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """An answer that has not ended. `waiting` are the calls for which it is paused: the reason of each, by its id."""

    run: Run
    user_id: str | None
    attempt: int
    state: LiveState
    waiting: Mapping[str, str | None]


async def list_live(scope: Scope, thread_id: str | None, limit: int, cursor: str | None) -> Page[LiveAnswer]:
    """A page of the open answers of a thread, or of all, in the order of their runs' ids. Raises InvalidCursor and
    LimitExceeded.
    """
    size = page_size(limit)
    return await scope.read(lambda sql: _list(sql, scope.tenant, thread_id, size, cursor), snapshot=True)


def _list(sql: ReadSql, tenant: Tenant, thread_id: str | None, limit: int, cursor: str | None) -> Page[LiveAnswer]:
    of_run = and_(*(runs.c[name] == run_leases.c[name] for name in ("tenant_id", "thread_id", "run_id")))
    above = and_(*(threads.c[name] == run_leases.c[name] for name in ("tenant_id", "thread_id")))
    lives = and_(workers.c.worker_id == run_leases.c.worker_id, workers.c.lease_until > clock(sql))
    wanted = [owned(run_leases, tenant) if thread_id is None else of_thread(run_leases, tenant, thread_id)]
    if cursor is not None:
        wanted.append(run_leases.c.run_id > read_cursor(cursor, str)[0])
    lease = (run_leases.c.attempt, run_leases.c.paused_at, workers.c.worker_id.label("worker"))
    statement = (
        select(*RUN_COLUMNS, threads.c.user_id, *lease)
        .select_from(run_leases.join(runs, of_run).join(threads, above).outerjoin(workers, lives))
        .where(*wanted)
    )
    rows = fetch_rows(sql, statement, limit, "run_id")
    paused = [(row["thread_id"], row["run_id"]) for row in rows.rows if row["paused_at"] is not None]
    waiting = waiting_calls_of(sql, tenant, paused) if paused else {}
    return to_page(rows, lambda row: _to_live(tenant, row, waiting), "run_id")


def _to_live(tenant: Tenant, row: Any, waiting: Mapping[str, Mapping[str, str | None]]) -> LiveAnswer:
    run = to_run(tenant, {column.name: row[column.name] for column in RUN_COLUMNS})
    state: LiveState = "paused" if row["paused_at"] is not None else "left" if row["worker"] is None else "working"
    return LiveAnswer(run, row["user_id"], row["attempt"], state, waiting.get(run.run_id, {}))
