"""Finds the agent of a thread: its kind names it, or else its newest run does. The default agent has the threads that
name none, and answers the requests that name none.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, FromClause, and_, func, or_, select

from chatledger.errors import NotFound
from chatledger.formats.agent_service import ServiceMetadata
from chatledger.ledger import Ledger
from chatledger.models import Thread
from chatledger.repositories import scope_of
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.lists.thread_list import find_threads
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.owned import own_thread, owned
from chatledger.storage.schema.tables import runs, threads

_THREADS = 2_000
"""How many of the newest threads a list looks at, since no index has the agent."""
_RUNS = 1_000
"""How many runs of a thread are compared, those with the last ids. An id of the ledger begins with its time."""


class AgentNotFound(NotFound):
    """The service has no agent of that key."""

    agent: str
    """The key that was asked for."""

    def __init__(self, agent: str, service: ServiceMetadata) -> None:
        keys = [known.key for known in service.agents]
        super().__init__(f"there is no agent {agent!r}, only {' and '.join(map(repr, keys))}")
        self.agent = agent


def require_agent(service: ServiceMetadata, agent: str) -> None:
    """Raises AgentNotFound."""
    if agent not in {known.key for known in service.agents}:
        raise AgentNotFound(agent, service)


async def is_of_agent(ledger: Ledger, service: ServiceMetadata, thread_id: str, agent: str) -> bool:
    """Whether the thread is there and the agent's."""
    scope = scope_of(ledger)
    own = and_(own_thread(scope.tenant, thread_id), _names(threads, scope.tenant, service, agent))
    statement = select(threads.c.thread_id).where(own)
    return await scope.read(lambda sql: sql.execute(statement).first()) is not None


async def threads_of(ledger: Ledger, service: ServiceMetadata, agent: str, limit: int) -> list[Thread]:
    """The agent's threads among the newest ones that are not archived, most recently active first."""
    scope = scope_of(ledger)
    ids = await scope.read(lambda sql: _ids_of(sql, scope.tenant, service, agent, limit))
    by_id = await find_threads(scope, ids)
    return [by_id[id_] for id_ in ids if id_ in by_id]


def _ids_of(sql: ReadSql, tenant: Tenant, service: ServiceMetadata, agent: str, limit: int) -> Sequence[str]:
    newest_first = (threads.c.active_at.desc(), threads.c.thread_id.desc())
    columns = (threads.c.thread_id, threads.c.kind, threads.c.active_at)
    shown = and_(owned(threads, tenant), threads.c.archived_at.is_(None))
    near = select(*columns).where(shown).order_by(*newest_first).limit(_THREADS).subquery("near")
    of_agent = select(near.c.thread_id).where(_names(near, tenant, service, agent))
    in_order = of_agent.order_by(near.c.active_at.desc(), near.c.thread_id.desc()).limit(limit)
    return [id_ for id_ in sql.execute(in_order).scalars().all() if isinstance(id_, str)]


def _names(thread: FromClause, tenant: Tenant, service: ServiceMetadata, agent: str) -> ColumnElement[bool]:
    """The condition that the thread names the agent."""
    columns = (runs.c.agent, runs.c.started_at, runs.c.run_id)
    own = and_(runs.c.tenant_id == tenant.name, runs.c.thread_id == thread.c.thread_id)
    last = select(*columns).where(own).order_by(runs.c.run_id.desc()).limit(_RUNS).correlate(thread).subquery("last")
    newest = select(last.c.agent).order_by(last.c.started_at.desc(), last.c.run_id.desc()).limit(1)
    by_run = func.coalesce(newest.correlate(thread).scalar_subquery(), service.default_agent)
    return or_(thread.c.kind == agent, and_(thread.c.kind.is_(None), by_run == agent))
