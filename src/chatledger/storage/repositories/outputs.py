"""Outputs: what is added to messages that were committed before. A row stands behind the others of its message, and
never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, func, insert, select

from chatledger.models.outputs import Output
from chatledger.storage.arguments import checked
from chatledger.storage.databases.database import Scope
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.repositories.threads import require_thread
from chatledger.storage.rows.sealed_values import opened_values, sealed_values
from chatledger.storage.schema.tables import outputs
from chatledger.storage.schema.text import encode_key


@checked
class OutputRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def add(self, thread_id: str, added: Sequence[Output]) -> None:
        """Add outputs behind those that their messages have, in this order. The caller holds the branch."""
        encode_key(thread_id, "thread_id")
        await self._scope.write(lambda sql: _add(sql, self._scope.tenant, thread_id, added))

    async def list(self, thread_id: str) -> Sequence[Output]:
        """The outputs of a thread on all branches, message by message, in the order in which they were added."""
        return await self._scope.read(lambda sql: _list(sql, self._scope.tenant, thread_id), snapshot=True)


def _own(tenant: str, thread_id: str) -> Any:
    return and_(outputs.c.tenant_id == tenant, outputs.c.thread_id == thread_id)


def _add(sql: Sql, tenant: str, thread_id: str, added: Sequence[Output]) -> None:
    require_thread(sql, tenant, thread_id)
    now = datetime.now(UTC)
    following: dict[tuple[int, int], int] = {}
    rows = []
    for output in added:
        place = (output.branch, output.seq)
        idx = following[place] if place in following else _count(sql, tenant, thread_id, *place)
        following[place] = idx + 1
        said = {"tenant_id": tenant, "thread_id": thread_id, "idx": idx, "created_at": now, **dict(output)}
        rows.append(sealed_values(sql.seal, outputs, said))
    if rows:
        sql.execute(insert(outputs), rows)


def _count(sql: Sql, tenant: str, thread_id: str, branch: int, seq: int) -> int:
    of_message = and_(_own(tenant, thread_id), outputs.c.branch == branch, outputs.c.seq == seq)
    counted: int = sql.execute(select(func.count()).select_from(outputs).where(of_message)).scalar_one()
    return counted


def _list(sql: Sql, tenant: str, thread_id: str) -> list[Output]:
    require_thread(sql, tenant, thread_id)
    columns = [*(outputs.c[name] for name in Output.model_fields), outputs.c.idx, outputs.c.thread_id]
    in_order = outputs.c.branch, outputs.c.seq, outputs.c.idx
    rows = sql.execute(select(*columns).where(_own(tenant, thread_id)).order_by(*in_order)).mappings()
    opened = (opened_values(sql.seal, outputs, dict(row)) for row in rows)
    return [Output.model_validate({name: row[name] for name in Output.model_fields}) for row in opened]
