"""The rows that a call may touch: those of its tenant and, on a user's ledger, only those of the user's own threads.

Statements on threads, and on what belongs to threads, take their condition from here. So a call of a user's ledger
finds nothing of other users, as if it did not exist.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Table, and_, select

from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.tables import feedback, runs, threads


def owned(table: Table, tenant: Tenant) -> ColumnElement[bool]:
    """The condition for the rows of the table. A score belongs to the thread of its run."""
    of_tenant = table.c.tenant_id == tenant.name
    if tenant.user_id is None:
        return of_tenant
    if table is threads:
        return and_(of_tenant, threads.c.user_id == tenant.user_id)
    above, key = (runs, "run_id") if table is feedback else (threads, "thread_id")
    return and_(of_tenant, table.c[key].in_(select(above.c[key]).where(owned(above, tenant))))


def own_thread(tenant: Tenant, thread_id: str) -> ColumnElement[bool]:
    """The condition for the row of one thread."""
    return and_(owned(threads, tenant), threads.c.thread_id == thread_id)
