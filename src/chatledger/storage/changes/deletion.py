"""Deletes threads: one by one, and all threads without a write for a long time (retention). Deletes runs.

Children are deleted first, table by table. Cascades would depend on the order in which constraints were made, and the
callers want the numbers of rows anyway. Two tables have a cascade all the same, for the release that lacks them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import and_, delete, exists, select, update

from chatledger.arguments import FUNCTION_OR_NONE, require
from chatledger.errors import InvalidArgument, RunConflict, RunNotFound, ThreadNotFound
from chatledger.ids import new_stamp
from chatledger.models import Deleted
from chatledger.storage.append.kv import keep_version
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.repositories.counts import count_threads, rows_of
from chatledger.storage.repositories.kv import delete_values
from chatledger.storage.repositories.locks import hold_thread
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.owned import owned_each
from chatledger.storage.schema.tables import (
    branches,
    feedback,
    kv,
    messages,
    run_decisions,
    run_leases,
    runs,
    threads,
    tool_calls,
    tool_results,
)


def delete_thread(sql: WriteSql, tenant: Tenant, thread_id: str) -> Deleted:
    """Raises ThreadNotFound."""
    hold_thread(sql, tenant, thread_id)
    return _delete_held(sql, tenant, [thread_id])


def _delete_held(sql: WriteSql, tenant: Tenant, thread_ids: Sequence[str]) -> Deleted:
    """Delete threads that the transaction holds."""
    gone: Counter[str] = Counter()
    highest = max([_delete_rows(sql, tenant, thread_id, gone) for thread_id in thread_ids], default=0)
    keep_version(sql, tenant, highest)
    return Deleted(rows=dict(gone))


def _delete_rows(sql: WriteSql, tenant: Tenant, thread_id: str, gone: Counter[str]) -> int:
    """Count the rows into `gone`, and return the highest version of the values."""
    highest = 0
    for table, rows in rows_of(tenant, lambda column: column == thread_id):
        if table is kv:
            count, highest = delete_values(sql, rows)
        else:
            count = sql.execute(delete(table).where(rows)).rowcount
        gone[table.name] += count
    return highest


def delete_run(sql: WriteSql, tenant: Tenant, run_id: str) -> Deleted:
    """Raises RunNotFound, and RunConflict while a message of the run is being written or a call of it is open: its
    result would bring the run back.
    """
    own = and_(owned_each(runs, tenant), runs.c.run_id == run_id)
    thread_id = sql.execute(select(runs.c.thread_id).where(own)).scalar_one_or_none()
    if thread_id is None:
        raise RunNotFound(run_id)
    hold_thread(sql, tenant, thread_id)
    of_run = and_(messages.c.tenant_id == tenant.name, messages.c.thread_id == thread_id, messages.c.run_id == run_id)
    of_thread = and_(branches.c.tenant_id == tenant.name, branches.c.thread_id == thread_id)
    ends = and_(branches.c.branch == messages.c.branch, branches.c.partial_seq == messages.c.seq)
    if sql.execute(select(messages.c.seq).where(of_run, of_thread, ends).limit(1)).first() is not None:
        raise RunConflict(run_id, "has a message that is still being written; end or interrupt it first")
    ids = {"tenant_id": tenant.name, "thread_id": thread_id}
    of_message = [tool_calls.c[name] == messages.c[name] for name in ("branch", "seq")]
    answers = [tool_results.c[f"call_{name}"] == tool_calls.c[name] for name in ("branch", "seq", "idx")]
    answered = exists().where(*answers).where(*(tool_results.c[name] == id_ for name, id_ in ids.items()))
    waits = select(tool_calls.c.idx).where(of_run, *of_message, ~answered).filter_by(**ids).limit(1)
    if sql.execute(waits).first() is not None:
        raise RunConflict(run_id, "has an open call; append its result or close it first")
    if sql.execute(update(messages).where(of_run).values(run_id=None)).rowcount:
        sql.execute(update(branches).where(of_thread).values(stamp=new_stamp()))  # so nobody writes on an earlier read
    scores = sql.execute(delete(feedback).where(feedback.c.tenant_id == tenant.name, feedback.c.run_id == run_id))
    rows = {"feedback": scores.rowcount}
    for table in (run_decisions, run_leases):
        rows[table.name] = sql.execute(delete(table).filter_by(**ids, run_id=run_id)).rowcount
    if not sql.execute(delete(runs).where(own)).rowcount:  # another call was faster
        raise RunNotFound(run_id)
    return Deleted(rows={**rows, "runs": 1})


def idle_threads(sql: ReadSql, tenant: Tenant, before: datetime, limit: int) -> list[str]:
    """The threads without a write since `before`, the longest idle first."""
    idle = and_(threads.c.tenant_id == tenant.name, threads.c.active_at < before)
    in_order = (threads.c.active_at, threads.c.thread_id)
    idle_rows = sql.execute(select(threads.c.thread_id).where(idle).order_by(*in_order).limit(limit))
    return list(idle_rows.scalars())


def is_idle(sql: WriteSql, tenant: Tenant, thread_id: str, before: datetime) -> bool:
    """Whether the thread still is idle. The caller holds it."""
    own = and_(threads.c.tenant_id == tenant.name, threads.c.thread_id == thread_id)
    active_at = sql.execute(select(threads.c.active_at).where(own)).scalar_one_or_none()
    return active_at is not None and active_at < before


def together(deleted: Iterable[Deleted]) -> Deleted:
    rows: Counter[str] = Counter()
    for deletion in deleted:
        rows.update(deletion.rows)
    return Deleted(rows=dict(rows))


# --- Retention --------------------------------------------------------------------------------------------------------

IDLE_BATCH = 20
"""Threads in one transaction. Other writers of a SQLite file wait for each such transaction."""


async def retain(
    scope: Scope,
    older_than: timedelta | datetime,
    *,
    dry_run: bool = False,
    on_batch: Callable[[Deleted], None] | None = None,
) -> Deleted:
    """Delete every thread of the tenant without a write since a time, or for that long.

    After an interruption, call it again to finish. A thread that gets a write meanwhile stays. Returns the deleted rows
    by table; `on_batch` receives those of each transaction. With `dry_run`, counts the rows, deletes nothing and
    does not call `on_batch`.
    """
    require(FUNCTION_OR_NONE, on_batch=on_batch)
    if not isinstance(older_than, (timedelta, datetime)):
        raise InvalidArgument("older_than", f"must be a timedelta or a datetime, not {type(older_than).__name__}")
    before = _moment(older_than)
    if dry_run:
        idle = threads.c.active_at < before
        return await scope.read(lambda sql: count_threads(sql, scope.tenant, idle), snapshot=True)
    gone: list[Deleted] = []
    while ids := await scope.read(lambda sql: idle_threads(sql, scope.tenant, before, IDLE_BATCH)):
        delete_them = partial(_delete_idle, tenant=scope.tenant, thread_ids=ids, before=before)
        batch = await scope.write(delete_them, removes=True)
        gone.append(batch)
        if on_batch is not None:
            on_batch(batch)
    return together(gone)


def _moment(older_than: timedelta | datetime) -> datetime:
    """The time after which a write keeps its thread. Raises InvalidArgument."""
    if isinstance(older_than, timedelta) and older_than < timedelta():
        raise InvalidArgument("older_than", "must not be below zero: that would be every thread")
    if isinstance(older_than, datetime) and older_than.tzinfo is None:
        raise InvalidArgument("older_than", "needs a zone: datetime(…, tzinfo=UTC)")
    try:
        return datetime.now(UTC) - older_than if isinstance(older_than, timedelta) else older_than.astimezone(UTC)
    except OverflowError:
        raise InvalidArgument("older_than", "reaches beyond the years 1 to 9999") from None


def _delete_idle(sql: WriteSql, tenant: Tenant, thread_ids: Sequence[str], before: datetime) -> Deleted:
    idle = []
    for thread_id in thread_ids:
        try:
            hold_thread(sql, tenant, thread_id)
        except ThreadNotFound:  # somebody else was faster
            continue
        if is_idle(sql, tenant, thread_id, before):
            idle.append(thread_id)
    return _delete_held(sql, tenant, idle)
