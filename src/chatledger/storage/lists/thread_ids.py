"""The ids of threads, for commands: all of them, and those that begin with what a person typed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from sqlalchemy import and_, func, select

from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.owned import owned
from chatledger.storage.schema.tables import threads

_THREADS = 500


async def iterate_ids(scope: Scope) -> AsyncIterator[str]:
    """Yield the ids of all threads in their order. Reads only the ids, 500 with one statement."""
    last = ""
    while page := await scope.read(lambda sql, after=last: threads_after(sql, scope.tenant, after)):  # type: ignore[misc]
        for thread_id in page:
            yield thread_id
        last = page[-1]


def threads_after(sql: WriteSql, tenant: Tenant, after: str) -> Sequence[str]:
    own = and_(owned(threads, tenant), threads.c.thread_id > after)
    in_order = select(threads.c.thread_id).where(own).order_by(threads.c.thread_id).limit(_THREADS)
    # A SQLite file may hold bytes for an id, which no call can name. They come after all texts.
    return [id_ for id_ in sql.execute(in_order).scalars().all() if isinstance(id_, str)]


async def ids_with_prefix(scope: Scope, prefix: str, limit: int) -> Sequence[str]:
    """Up to `limit` ids that begin with `prefix`, in the order of their bytes."""
    return await scope.read(lambda sql: _complete(sql, scope.tenant, prefix, limit))


def _complete(sql: ReadSql, tenant: Tenant, prefix: str, limit: int) -> Sequence[str]:
    last = prefix + "\U0010ffff"  # a range of the primary key; LIKE would read every id of the tenant
    own = (owned(threads, tenant), threads.c.thread_id >= prefix, threads.c.thread_id < last)
    return (
        sql.execute(select(threads.c.thread_id).where(*own).order_by(threads.c.thread_id).limit(limit)).scalars().all()
    )


def thread_count(sql: ReadSql, tenant: Tenant) -> int:
    counted: int = sql.execute(select(func.count()).where(owned(threads, tenant))).scalar_one()
    return counted
