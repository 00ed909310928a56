"""Retention: threads that nobody wrote to for long enough go, a few in each transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from chatledger.errors import InvalidArgument, ThreadNotFound
from chatledger.models import Deleted
from chatledger.storage.databases.database import Scope
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.repositories.deletion import delete_thread, hold_thread, idle_threads, is_idle, together

BATCH = 20
"""Threads in one transaction: other writers of a SQLite file wait for one of these."""


async def retain(
    scope: Scope, older_than: timedelta | datetime, *, on_batch: Callable[[Deleted], None] | None = None
) -> Deleted:
    """Delete every thread of the tenant that was last written to before that time, or that long ago.

    What is interrupted is finished by calling it again. A thread that is written to meanwhile stays. Returns the rows
    that went, by table; `on_batch` gets those of each transaction.
    """
    if not isinstance(older_than, (timedelta, datetime)):
        raise InvalidArgument("older_than", f"must be a timedelta or a datetime, not {type(older_than).__name__}")
    before = datetime.now(UTC) - older_than if isinstance(older_than, timedelta) else older_than
    if before.tzinfo is None:
        raise InvalidArgument("older_than", "needs a zone: datetime(…, tzinfo=UTC)")
    gone: list[Deleted] = []
    while ids := await scope.read(lambda sql: idle_threads(sql, scope.tenant, before, BATCH)):
        batch = await scope.write(lambda sql, ids=ids: _delete_idle(sql, scope.tenant, ids, before))  # type: ignore[misc]
        gone.append(batch)
        if on_batch is not None:
            on_batch(batch)
    return together(gone)


def _delete_idle(sql: Sql, tenant: str, thread_ids: Sequence[str], before: datetime) -> Deleted:
    gone = []
    for thread_id in thread_ids:
        try:
            hold_thread(sql, tenant, thread_id)
        except ThreadNotFound:  # somebody else was faster
            continue
        if is_idle(sql, tenant, thread_id, before):
            gone.append(delete_thread(sql, tenant, thread_id))
    return together(gone)
