"""Leases of partial messages that run out without a wait."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, update

from chatledger import Ledger
from chatledger.storage.schema.tables import branches


async def pass_time(ledger: Ledger, seconds: float) -> None:
    """As if the partial messages had been written so much earlier."""
    own = ledger._scope.tenant.name
    for partial in await ledger.drafts.list():
        await ledger._scope.write(lambda sql, found=partial: _move_lease(sql, own, found, seconds))  # type: ignore[misc]


def _move_lease(sql: Any, tenant: str, partial: Any, seconds: float) -> None:
    of_thread = branches.c.tenant_id == tenant, branches.c.thread_id == partial.thread_id
    own = *of_thread, branches.c.branch == partial.branch
    (stored,) = sql.execute(select(branches.c.open_calls).where(*own)).one()
    lease = stored["partial"]["lease"]
    for place in (0, 4) if any(lease[4:]) else (0,):  # the last write, and when the draft last grew
        lease[place] -= int(seconds * 1_000_000)
    sql.execute(update(branches).where(*own).values(open_calls=stored))
