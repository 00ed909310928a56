"""Outputs and agents of a thread, for applications that keep message files.

An output is added to a message after its commit; the message's row never changes. An agent may answer in the thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, delete, func, insert, select

from chatledger.models.base import refuse_own_fields, refusing
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.repositories.threads import require_thread
from chatledger.storage.rows.encryption import Tenant, encrypt_values
from chatledger.storage.rows.outputs import to_agent, to_output
from chatledger.storage.schema.tables import agents, outputs
from chatledger.storage.schema.text import encode_key


async def add_outputs(scope: Scope, thread_id: str, added: Sequence[Output]) -> None:
    """Add outputs to messages, behind those that the messages have, in this order. Hold the branch with
    `branches.advance` in the same transaction, so that no other writer adds at the same place.

    Raises ThreadNotFound, and StorageError for a message that does not exist.
    """
    encode_key(thread_id, "thread_id")
    for output in added:
        refuse_own_fields(output, Output, "added", "the body of the output")
    with refusing("added"):
        added = [Output.model_validate(dict(output)) for output in added]
    await scope.write(lambda sql: _add(sql, scope.tenant, thread_id, added))


async def list_outputs(scope: Scope, thread_id: str) -> Sequence[Output]:
    """All outputs of a thread on all branches, by message and then in the order in which they were added. Raises
    ThreadNotFound.
    """
    return await scope.read(lambda sql: _list_outputs(sql, scope.tenant, thread_id), snapshot=True)


def _outputs_of(tenant: Tenant, thread_id: str) -> Any:
    return and_(outputs.c.tenant_id == tenant.name, outputs.c.thread_id == thread_id)


def _add(sql: WriteSql, tenant: Tenant, thread_id: str, added: Sequence[Output]) -> None:
    require_thread(sql, tenant, thread_id)
    now = datetime.now(UTC)
    following: dict[tuple[int, int], int] = {}
    rows = []
    for output in added:
        place = (output.branch, output.seq)
        idx = following[place] if place in following else _count(sql, tenant, thread_id, *place)
        following[place] = idx + 1
        row = {"tenant_id": tenant.name, "thread_id": thread_id, "idx": idx, "created_at": now, **dict(output)}
        rows.append(encrypt_values(tenant, outputs, row))
    if rows:
        sql.execute(insert(outputs), rows)


def _count(sql: WriteSql, tenant: Tenant, thread_id: str, branch: int, seq: int) -> int:
    of_message = and_(_outputs_of(tenant, thread_id), outputs.c.branch == branch, outputs.c.seq == seq)
    counted: int = sql.execute(select(func.count()).select_from(outputs).where(of_message)).scalar_one()
    return counted


def _list_outputs(sql: ReadSql, tenant: Tenant, thread_id: str) -> list[Output]:
    require_thread(sql, tenant, thread_id)
    columns = [*(outputs.c[name] for name in Output.model_fields), outputs.c.idx, outputs.c.thread_id]
    in_order = outputs.c.branch, outputs.c.seq, outputs.c.idx
    rows = sql.execute(select(*columns).where(_outputs_of(tenant, thread_id)).order_by(*in_order)).mappings()
    return [to_output(tenant, row) for row in rows]


# --- Agents -----------------------------------------------------------------------------------------------------------


async def replace_agents(
    scope: Scope, thread_id: str, listed: Sequence[ThreadAgent], *, stored: Sequence[ThreadAgent]
) -> bool:
    """Replace the agents of the thread, which the caller read as `stored`, by `listed`, in this order. They are a short
    list, which is read and replaced as a whole. Returns False, and changes nothing, if the thread has other agents now.

    Agents belong to the thread and not to a branch, so holding a branch does not lock them. Raises ThreadNotFound.
    """
    encode_key(thread_id, "thread_id")
    for agent in listed:
        refuse_own_fields(agent, ThreadAgent, "listed", "the settings of the agent")
    with refusing("listed"):
        listed = [ThreadAgent.model_validate(dict(agent)) for agent in listed]
    for agent in listed:
        encode_key(agent.name, "agent name")
    return await scope.write(lambda sql: _replace_agents(sql, scope.tenant, thread_id, listed, stored))


async def list_agents(scope: Scope, thread_id: str) -> Sequence[ThreadAgent]:
    """The agents of a thread, in the order of the last `replace_agents`. Raises ThreadNotFound."""
    return await scope.read(lambda sql: _list_agents(sql, scope.tenant, thread_id), snapshot=True)


def _agents_of(tenant: Tenant, thread_id: str) -> Any:
    return and_(agents.c.tenant_id == tenant.name, agents.c.thread_id == thread_id)


def _replace_agents(
    sql: WriteSql, tenant: Tenant, thread_id: str, listed: Sequence[ThreadAgent], stored: Sequence[ThreadAgent]
) -> bool:
    require_thread(sql, tenant, thread_id, lock=True)
    if _list_agents(sql, tenant, thread_id) != list(stored):
        return False
    if list(listed) == list(stored):
        return True
    sql.execute(delete(agents).where(_agents_of(tenant, thread_id)))
    key = {"tenant_id": tenant.name, "thread_id": thread_id}
    agent_rows = [{**key, "idx": idx, **dict(agent)} for idx, agent in enumerate(listed)]
    rows = [encrypt_values(tenant, agents, row) for row in agent_rows]
    if rows:
        sql.execute(insert(agents), rows)
    return True


def _list_agents(sql: ReadSql, tenant: Tenant, thread_id: str) -> list[ThreadAgent]:
    require_thread(sql, tenant, thread_id)
    rows = sql.execute(select(agents).where(_agents_of(tenant, thread_id)).order_by(agents.c.idx)).mappings()
    return [to_agent(tenant, row) for row in rows]
