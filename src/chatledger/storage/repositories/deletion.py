"""Deleting a thread for good: children first, table by table.

Cascades would depend on the order in which constraints were made, and the numbers of rows are wanted anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, delete, select

from chatledger.errors import ThreadNotFound
from chatledger.models import Deleted
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.schema.tables import INSERTION_ORDER, branches, feedback, runs, threads


def delete_thread(sql: Sql, tenant: str, thread_id: str) -> Deleted:
    """Raises ThreadNotFound."""
    hold_thread(sql, tenant, thread_id)
    rows = {}
    for table in reversed(INSERTION_ORDER):
        if table is feedback:
            of_thread = select(runs.c.run_id).where(runs.c.tenant_id == tenant, runs.c.thread_id == thread_id)
            condition = and_(feedback.c.tenant_id == tenant, feedback.c.run_id.in_(of_thread))
        elif "thread_id" in table.c:
            condition = and_(table.c.tenant_id == tenant, table.c.thread_id == thread_id)
        else:
            continue
        rows[table.name] = sql.execute(delete(table).where(condition)).rowcount
    return Deleted(rows=rows)


def hold_thread(sql: Sql, tenant: str, thread_id: str) -> None:
    """Nothing is added to the thread before the transaction ends: no message, which writes a branch's row first; then
    no branch and no run, which need the thread's; and no score, which needs its run's. Raises ThreadNotFound.
    """
    sql.execute(_lock_branches(tenant, thread_id))
    own = and_(threads.c.tenant_id == tenant, threads.c.thread_id == thread_id)
    if sql.execute(select(threads.c.thread_id).where(own).with_for_update()).one_or_none() is None:
        raise ThreadNotFound(thread_id)
    sql.execute(_lock_branches(tenant, thread_id))  # and one that was forked while the thread was waited for
    of_thread = and_(runs.c.tenant_id == tenant, runs.c.thread_id == thread_id)
    sql.execute(select(runs.c.run_id).where(of_thread).order_by(runs.c.run_id).with_for_update())


def _lock_branches(tenant: str, thread_id: str) -> Select[Any]:
    own = and_(branches.c.tenant_id == tenant, branches.c.thread_id == thread_id)
    return select(branches.c.branch).where(own).order_by(branches.c.branch).with_for_update()


def idle_threads(sql: Sql, tenant: str, before: datetime, limit: int) -> list[str]:
    """The threads that nobody wrote to since `before`, the longest idle first."""
    idle = and_(threads.c.tenant_id == tenant, threads.c.active_at < before)
    in_order = (threads.c.active_at, threads.c.thread_id)
    found = sql.execute(select(threads.c.thread_id).where(idle).order_by(*in_order).limit(limit))
    return list(found.scalars())


def is_idle(sql: Sql, tenant: str, thread_id: str, before: datetime) -> bool:
    """Whether it still is, for whoever holds it."""
    own = and_(threads.c.tenant_id == tenant, threads.c.thread_id == thread_id)
    active_at = sql.execute(select(threads.c.active_at).where(own)).scalar_one_or_none()
    return active_at is not None and active_at < before


def together(deleted: Iterable[Deleted]) -> Deleted:
    rows: Counter[str] = Counter()
    for one in deleted:
        rows.update(one.rows)
    return Deleted(rows=dict(rows))
