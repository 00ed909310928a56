"""Counts the rows of threads, table by table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlalchemy import ColumnElement, Table, and_, func, select

from chatledger.errors import ThreadNotFound
from chatledger.models import Deleted
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.owned import own_thread, owned
from chatledger.storage.schema.tables import INSERTION_ORDER, feedback, kv, runs, threads


def count_thread(sql: ReadSql, tenant: Tenant, thread_id: str) -> Deleted:
    """The rows that `delete_thread` would delete. Raises ThreadNotFound."""
    own = select(threads.c.thread_id).where(own_thread(tenant, thread_id))
    if sql.execute(own).one_or_none() is None:  # asked first, or rows would be read of a thread that is not the user's
        raise ThreadNotFound(thread_id)
    return _count(sql, tenant, lambda column: column == thread_id)


def count_threads(sql: ReadSql, tenant: Tenant, *which: ColumnElement[bool]) -> Deleted:
    """The rows that deleting these threads would delete, by table. `which` are conditions on `threads`."""
    ids = select(threads.c.thread_id).where(owned(threads, tenant), *which)
    return _count(sql, tenant, lambda column: column.in_(ids))


def _count(sql: ReadSql, tenant: Tenant, of_threads: Callable[[ColumnElement[str]], ColumnElement[bool]]) -> Deleted:
    counts = {
        table.name: select(func.count()).select_from(table).where(rows) for table, rows in rows_of(tenant, of_threads)
    }
    return Deleted(rows={name: sql.execute(count).scalar_one() for name, count in counts.items()})


def count_rows(sql: WriteSql, tenant: Tenant, thread_ids: Sequence[str], tables: Iterable[Table]) -> dict[str, int]:
    """The rows of these threads in some of the tables, by table."""
    own = dict(rows_of(tenant, lambda column: column.in_(thread_ids)))
    counts = {table.name: select(func.count()).select_from(table).where(own[table]) for table in tables}
    return {name: sql.execute(count).scalar_one() for name, count in counts.items()}


def rows_of(
    tenant: Tenant, of_threads: Callable[[ColumnElement[str]], ColumnElement[bool]]
) -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """The tables in the order of deletion, each with the condition for the rows of these threads."""
    for table in reversed(INSERTION_ORDER):
        if table is feedback:
            of_runs = select(runs.c.run_id).where(runs.c.tenant_id == tenant.name, of_threads(runs.c.thread_id))
            yield table, and_(feedback.c.tenant_id == tenant.name, feedback.c.run_id.in_(of_runs))
        elif table is kv:
            yield table, and_(kv.c.tenant_id == tenant.name, kv.c.kind == "thread", of_threads(kv.c.scope_id))
        elif "thread_id" in table.c:
            yield table, and_(table.c.tenant_id == tenant.name, of_threads(table.c.thread_id))
