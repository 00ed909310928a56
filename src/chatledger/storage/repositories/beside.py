"""What threads have beside the messages of their active branches: other branches, runs, scores and values.

Nothing is decoded, so a damaged or encrypted cell is counted as any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from sqlalchemy import func, select

from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.lists.many import chunks
from chatledger.storage.repositories.counts import count_rows
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.tables import branches, feedback, kv, runs, threads


async def count_beside(scope: Scope, thread_ids: Sequence[str]) -> Counter[str]:
    """The number of each, by name. Five statements for up to 500 threads. A thread that is gone counts nothing."""
    counts: Counter[str] = Counter()
    for some in chunks(thread_ids):
        counts.update(await scope.read(partial(_count, tenant=scope.tenant, thread_ids=some), snapshot=True))
    return counts


async def count_shared_values(scope: Scope) -> int:
    """The number of values of the tenant and of its users."""
    shared = select(func.count()).where(kv.c.tenant_id == scope.tenant.name, kv.c.kind != "thread")
    return await scope.read(lambda sql: int(sql.execute(shared).scalar_one()))


def _count(sql: WriteSql, *, tenant: Tenant, thread_ids: Sequence[str]) -> dict[str, int]:
    rows = count_rows(sql, tenant, thread_ids, (threads, branches, runs, feedback, kv))
    return {
        "branches": rows["branches"] - rows["threads"],
        "runs": rows["runs"],
        "scores": rows["feedback"],
        "values": rows["kv"],
    }
