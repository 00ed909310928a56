"""Locks of a thread, for the changes that no append may come between."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, and_, select

from chatledger.errors import ThreadNotFound
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.owned import of_thread, own_thread
from chatledger.storage.schema.tables import branches, runs, threads


def hold_thread(sql: WriteSql, tenant: Tenant, thread_id: str) -> None:
    """Lock the thread, so that nobody adds anything to it before the transaction ends. Raises ThreadNotFound.

    It locks the branches first, which every append updates; then the thread, which a new branch or run needs; then the
    runs, which a new score needs.
    """
    hold_branches(sql, tenant, thread_id)
    of_thread = and_(runs.c.tenant_id == tenant.name, runs.c.thread_id == thread_id)
    sql.execute(select(runs.c.run_id).where(of_thread).order_by(runs.c.run_id).with_for_update())


def hold_branches(sql: WriteSql, tenant: Tenant, thread_id: str) -> None:
    """Lock the branches and the thread, so that nobody adds a message or a branch before the transaction ends. Raises
    ThreadNotFound.
    """
    sql.execute(_lock_branches(tenant, thread_id))
    own = own_thread(tenant, thread_id)
    if sql.execute(select(threads.c.thread_id).where(own).with_for_update()).one_or_none() is None:
        raise ThreadNotFound(thread_id)
    sql.execute(_lock_branches(tenant, thread_id))  # again, for a fork that was made while this waited for the thread


def _lock_branches(tenant: Tenant, thread_id: str) -> Select[Any]:
    own = of_thread(branches, tenant, thread_id)
    return select(branches.c.branch).where(own).order_by(branches.c.branch).with_for_update()
