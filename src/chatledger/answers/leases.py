"""Workers: the processes that run agents. Each has one row, whose lease all its answers share.

A beat renews that row, and one look finds the answers that a worker still has, and those that nobody works on. A worker
that found an abandoned answer takes it up under the answer's own tenant.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, exists, func, literal, select, union_all, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import Interval

from chatledger.answers.stop import end_at_once
from chatledger.answers.stored import (
    NOBODY,
    StoredAnswer,
    clock,
    database_id,
    find_answer,
    hold_branch,
    hold_lease,
    lease_of,
    run_of,
    serve,
)
from chatledger.errors import RunLost
from chatledger.storage.append.request import Terms
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.columns import Moment
from chatledger.storage.schema.tables import run_leases, runs, workers

MOST_ENDED = 100
"""The most answers that one look ends for one reason."""
MOVED = "moved"
KEPT = timedelta(days=1)
"""How long the row of a dead worker stays that no answer names."""


class Found(NamedTuple):
    """What a look reads of an open answer."""

    tenant: str
    run_id: str
    attempt: int
    worker_id: str


def beat(sql: WriteSql, worker_id: str, lease: float) -> None:
    """Renew the worker's lease, alone in its transaction: no other may delay it."""
    until = _after(sql, lease)
    make = postgresql.insert(workers) if sql.dialect == "postgresql" else sqlite.insert(workers)
    row = make.values(worker_id=worker_id, lease_until=until)
    sql.execute(row.on_conflict_do_update(index_elements=["worker_id"], set_={"lease_until": row.excluded.lease_until}))


def expire(sql: WriteSql, worker_id: str) -> None:
    """Give all answers of the worker back at once: their attempts have left them."""
    sql.execute(update(workers).where(workers.c.worker_id == worker_id).values(lease_until=clock(sql)))


def _after(sql: ReadSql, seconds: float) -> ColumnElement[datetime]:
    if sql.dialect == "postgresql":
        return clock(sql) + literal(timedelta(seconds=seconds), Interval())
    return literal(datetime.now(UTC) + timedelta(seconds=seconds), Moment())


def look(
    sql: ReadSql,
    worker_id: str,
    agents: Collection[str],
    *,
    tenant: str | None,
    most: int,
    left_out: Collection[str] = (),
) -> tuple[list[Found], list[Found]]:
    """The answers that the worker has, and up to `most` that nobody works on, of the tenant or, with None, of all.

    It takes the first open answer of each user, then the second of each, and so on, so that nobody waits behind all of
    another user's. It writes nothing. `left_out` are tenants whose answers this process cannot read.
    """
    if tenant is None:
        serve(sql)
    of_tenant = [] if tenant is None else [run_leases.c.tenant_id == tenant]
    columns = (run_leases.c.tenant_id, run_leases.c.run_id, run_leases.c.attempt, run_leases.c.worker_id)
    open_ones = select(*columns).where(run_leases.c.paused_at.is_(None), *of_tenant)
    own = [_found(row) for row in sql.execute(open_ones.where(run_leases.c.worker_id == worker_id))]
    if most <= 0 or not agents:
        return own, []
    over = select(workers.c.worker_id).where(workers.c.lease_until <= clock(sql), workers.c.worker_id != worker_id)
    wanted = open_ones.add_columns(func.coalesce(run_leases.c.place, 0).label("place"))
    wanted = wanted.where(run_leases.c.agent.in_(list(agents)), func.coalesce(_is_moved(sql), False).is_(False))
    if left_out:
        wanted = wanted.where(run_leases.c.tenant_id.not_in(list(left_out)))
    # Apart, since no index has the order of several workers: any number may wait for nobody, but a dead worker has left
    # no more than it took.
    left = run_leases.c.worker_id.in_(list(sql.execute(over).scalars()))
    first = [
        wanted.where(own).order_by(run_leases.c.place).limit(most) for own in (left, run_leases.c.worker_id == NOBODY)
    ]
    both = union_all(*(select(part.subquery()) for part in first)).subquery()
    return own, [_found(row) for row in sql.execute(select(both).order_by(both.c.place).limit(most))]


def to_end(sql: ReadSql, tenant: str | None, longest_pause: timedelta | None) -> list[tuple[str, str, str]]:
    """The tenant, the run and the reason of some answers that nobody goes on with, of one tenant or, with None, of all:
    they began in another database, of which this one is a restored copy, or are paused for too long.
    """
    if tenant is None:
        serve(sql)
    over = {MOVED: _is_moved(sql)}
    if longest_pause is not None:
        before = _after(sql, -longest_pause.total_seconds())
        over[f"paused for longer than {longest_pause}"] = run_leases.c.paused_at < before
    own = select(run_leases.c.tenant_id, run_leases.c.run_id).limit(MOST_ENDED)
    if tenant is not None:
        own = own.where(run_leases.c.tenant_id == tenant)
    answers = [(sql.execute(own.where(wanted)), reason) for reason, wanted in over.items()]
    return [(row.tenant_id, row.run_id, reason) for rows, reason in answers for row in rows]


def _is_moved(sql: ReadSql) -> ColumnElement[bool]:
    """NULL if it is unknown, as of an answer that an older version began."""
    return run_leases.c.database_id != database_id(sql)


def _found(row: Any) -> Found:
    return Found(row.tenant_id, row.run_id, row.attempt, row.worker_id)


def claim(sql: WriteSql, terms: Terms, abandoned: Found, worker_id: str, attempts: int) -> StoredAnswer | None:
    """Take up an answer that nobody works on, as its next attempt. None if somebody was faster, or if the answer was
    given up: as many attempts in a row as `attempts` stored nothing.
    """
    tenant = terms.tenant
    answer = find_answer(sql, tenant, abandoned.run_id)
    if answer is None or not answer.is_open:
        return None
    hold_branch(sql, tenant, answer)
    seen = replace(answer, attempt=abandoned.attempt, worker_id=abandoned.worker_id, paused_at=None)
    taken = answer.taken_by(worker_id, abandoned.attempt + 1)
    moved = update(run_leases).where(lease_of(tenant, seen)).values(attempt=taken.attempt, worker_id=worker_id)
    if not sql.execute(moved).rowcount or (abandoned.worker_id != worker_id and _lives(sql, abandoned.worker_id)):
        raise RunLost(abandoned.run_id)  # which undoes the new stamp
    if answer.attempts >= attempts:
        end_at_once(sql, terms, taken, "failed", f"gave up after {attempts} attempts that stored nothing")
        return None
    counted = update(runs).where(run_of(tenant, answer)).values(attempts=runs.c.attempts + 1)
    # The row as it is now: an attempt before may have begun its tools while this one waited for the lock.
    row = sql.execute(counted.returning(runs.c.attempts, runs.c.tools_of)).one()
    return replace(taken, attempts=row.attempts, tools_of=row.tools_of)


def begin_tools(sql: WriteSql, tenant: Tenant, answer: StoredAnswer, message_id: str) -> None:
    """Note that the tools of the message begin now. Raises RunLost, and none is run then."""
    hold_lease(sql, tenant, answer)
    sql.execute(update(runs).where(run_of(tenant, answer)).values(tools_of=message_id))


def note_progress(sql: WriteSql, tenant: Tenant, answer: StoredAnswer) -> None:
    """The attempt stored something. Raises RunLost."""
    hold_lease(sql, tenant, answer)
    sql.execute(update(runs).where(run_of(tenant, answer)).values(attempts=0))


def _lives(sql: ReadSql, worker_id: str) -> bool:
    """Whether the worker renewed its lease since the look."""
    own = workers.c.worker_id == worker_id
    return sql.execute(select(workers.c.worker_id).where(own, workers.c.lease_until > clock(sql))).first() is not None


def forget_dead(sql: WriteSql) -> None:
    """Delete the rows of workers that are dead for a day and that no answer names, in a session that sees the leases of
    all tenants.
    """
    serve(sql)
    before = _after(sql, -KEPT.total_seconds())
    named = exists().where(run_leases.c.worker_id == workers.c.worker_id)
    sql.execute(delete(workers).where(and_(workers.c.lease_until < before, ~named)))
