"""A durable run as rows: who works on it, and the calls for which it waits or waited."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import insert, select, update

from chatledger.repositories import Repositories, scope_of
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.rows.encryption import decrypt_values, encrypt_values
from chatledger.storage.schema.tables import run_decisions, run_leases, runs

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CALL_SECRET = "5ecre7"
DECISIONS = (None, "approved", "refused", "result")


async def make_durable(
    repositories: Repositories,
    thread_id: str,
    run_id: str,
    say: Callable[[str], str] = str,
    *,
    seq: int = 1,
    author: str = "ada",
) -> None:
    """Make a stored run a durable one, which is paused: with a lease, and a row for each decision about the calls of
    the message `seq` of branch 0, the first of which waits.
    """
    tenant = scope_of(repositories).tenant

    def store(sql: WriteSql) -> None:
        own = (runs.c.tenant_id == tenant.name, runs.c.run_id == run_id)
        durable = {"question_id": "q", "branch": 0, "tools_of": "m", "call_secret": CALL_SECRET, "attempts": 2}
        sql.execute(update(runs).where(*own).values(**durable))
        key = {"tenant_id": tenant.name, "thread_id": thread_id, "run_id": run_id}
        lease = {"agent": "guide", "attempt": 3, "worker_id": "", "paused_at": NOW}
        sql.execute(insert(run_leases).values(**key, **lease))
        for idx, decision in enumerate(DECISIONS):
            waiting = {"branch": 0, "seq": seq, "idx": idx, "revision": 1, "pending_reason": say("pending")}
            cells: dict[str, Any] = waiting
            if decision is not None:
                cells |= {"decision": decision, "reason": say("because"), "author": author, "decided_at": NOW}
            if decision == "approved":
                cells["begun_at"] = NOW
            values = encrypt_values(tenant, run_decisions, cells, thread_id=thread_id, run_id=run_id)
            sql.execute(insert(run_decisions).values(**key, **values))

    await scope_of(repositories).write(store)


async def read_decisions(repositories: Repositories) -> list[dict[str, Any]]:
    tenant = scope_of(repositories).tenant
    columns = [column for column in run_decisions.c if column.name != "tenant_id"]
    own = select(*columns).where(run_decisions.c.tenant_id == tenant.name).order_by(*run_decisions.primary_key)

    def read(sql: ReadSql) -> list[dict[str, Any]]:
        rows = sql.execute(own).mappings().all()
        return [decrypt_values(tenant, run_decisions, dict(row)) for row in rows]

    return await scope_of(repositories).read(read)
