"""Agents: who may answer in a thread. A short list that is read and replaced as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, delete, insert, select

from chatledger.models.outputs import ThreadAgent
from chatledger.storage.arguments import checked
from chatledger.storage.databases.database import Scope
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.repositories.threads import require_thread
from chatledger.storage.rows.sealed_values import opened_values, sealed_values
from chatledger.storage.schema.tables import agents
from chatledger.storage.schema.text import encode_key


@checked
class AgentRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def replace(self, thread_id: str, listed: Sequence[ThreadAgent], *, stored: Sequence[ThreadAgent]) -> bool:
        """Make these the agents of the thread, in this order; False, and nothing done, if `stored` are not those now.

        An agent is of the thread and not of a branch, so holding a branch does not keep others from its agents.
        """
        encode_key(thread_id, "thread_id")
        for agent in listed:
            encode_key(agent.name, "agent name")
        return await self._scope.write(lambda sql: _replace(sql, self._scope.tenant, thread_id, listed, stored))

    async def list(self, thread_id: str) -> Sequence[ThreadAgent]:
        """The agents of a thread, in the order in which they were added."""
        return await self._scope.read(lambda sql: _list(sql, self._scope.tenant, thread_id), snapshot=True)


def _own(tenant: str, thread_id: str) -> Any:
    return and_(agents.c.tenant_id == tenant, agents.c.thread_id == thread_id)


def _replace(
    sql: Sql, tenant: str, thread_id: str, listed: Sequence[ThreadAgent], stored: Sequence[ThreadAgent]
) -> bool:
    require_thread(sql, tenant, thread_id, lock=True)
    if _list(sql, tenant, thread_id) != list(stored):
        return False
    if list(listed) == list(stored):
        return True
    sql.execute(delete(agents).where(_own(tenant, thread_id)))
    key = {"tenant_id": tenant, "thread_id": thread_id}
    said = [{**key, "idx": idx, **dict(agent)} for idx, agent in enumerate(listed)]
    rows = [sealed_values(sql.seal, agents, row) for row in said]
    if rows:
        sql.execute(insert(agents), rows)
    return True


def _list(sql: Sql, tenant: str, thread_id: str) -> list[ThreadAgent]:
    require_thread(sql, tenant, thread_id)
    columns = [agents.c[name] for name in ThreadAgent.model_fields]
    rows = sql.execute(select(*columns).where(_own(tenant, thread_id)).order_by(agents.c.idx)).mappings()
    opened = (opened_values(sql.seal, agents, dict(row), thread_id=thread_id) for row in rows)
    return [ThreadAgent.model_validate(row) for row in opened]
