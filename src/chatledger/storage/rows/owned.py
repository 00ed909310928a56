"""The rows that a call may touch: those of its tenant and, on a user's ledger, only those of the user's own threads.

Statements on threads, and on what belongs to threads, take their condition from here. So a call of a user's ledger
finds nothing of other users, as if it did not exist. It takes no longer for what another user has either, or the time
would tell: a statement asks for the owner before it reads what belongs to one thread, one run or one score.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Table, and_, select

from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.tables import feedback, runs, threads


def owned(table: Table, tenant: Tenant) -> ColumnElement[bool]:
    """The condition for the rows of the table, in statements that read many. A score belongs to the thread of its run.

    It reads the user's threads.
    """
    of_tenant = table.c.tenant_id == tenant.name
    if tenant.user_id is None:
        return of_tenant
    if table is threads:
        return and_(of_tenant, threads.c.user_id == tenant.user_id)
    above, key = (runs, "run_id") if table is feedback else (threads, "thread_id")
    return and_(of_tenant, table.c[key].in_(select(above.c[key]).where(owned(above, tenant))))


def owned_each(table: Table, tenant: Tenant) -> ColumnElement[bool]:
    """The same condition for runs or scores that the statement finds by their ids: it asks for the owner of each."""
    of_tenant = table.c.tenant_id == tenant.name
    if tenant.user_id is None:
        return of_tenant
    source: FromClause = threads
    of_row = [threads.c.tenant_id == tenant.name]
    if table is feedback:
        source = threads.join(runs, and_(runs.c.tenant_id == tenant.name, runs.c.thread_id == threads.c.thread_id))
        of_row.append(runs.c.run_id == feedback.c.run_id)
    else:
        of_row.append(threads.c.thread_id == table.c.thread_id)
    owner = select(threads.c.user_id).select_from(source).where(*of_row).correlate(table).scalar_subquery()
    return and_(of_tenant, owner == tenant.user_id)


def own_thread(tenant: Tenant, thread_id: str) -> ColumnElement[bool]:
    """The condition for the row of one thread."""
    return and_(owned(threads, tenant), threads.c.thread_id == thread_id)


def of_thread(table: Table, tenant: Tenant, thread_id: str) -> ColumnElement[bool]:
    """The condition for the rows of one thread. For another user's thread it compares with NULL, which reads no row."""
    visible: Any = thread_id
    if tenant.user_id is not None:
        visible = select(threads.c.thread_id).where(own_thread(tenant, thread_id)).scalar_subquery()
    return and_(table.c.tenant_id == tenant.name, table.c.thread_id == visible)
