"""Marks: a state of a branch that a reader remembers, so that what follows from it is written only onto that state.

The stamp of a branch is new in every write of its row. Whoever writes beside the messages, such as outputs or agents,
advances the mark first: the row is then theirs until the transaction ends, and everybody else's mark is of the past.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, select, update

from chatledger.errors import BranchNotFound, ThreadNotFound, VersionConflict
from chatledger.ids import new_stamp
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.schema.tables import branches, threads


@dataclass(frozen=True, slots=True)
class Mark:
    branch: int
    version: int
    stamp: int


def read_mark(sql: Sql, tenant: str, thread_id: str, branch: int | None) -> Mark:
    """The mark of a branch as it is now (None: of the active one)."""
    own = and_(threads.c.tenant_id == tenant, threads.c.thread_id == thread_id)
    active = sql.execute(select(threads.c.active_branch).where(own)).scalar_one_or_none()
    if active is None:
        raise ThreadNotFound(thread_id)
    number = active if branch is None else branch
    columns = select(branches.c.last_seq, branches.c.stamp)
    row = sql.execute(columns.where(_key(tenant, thread_id, number))).one_or_none()
    if row is None:
        raise BranchNotFound(thread_id, number)
    return Mark(number, row.last_seq, row.stamp)


def advance_mark(sql: Sql, tenant: str, thread_id: str, mark: Mark) -> Mark:
    """A new mark in the place of this one. Raises VersionConflict if anyone has written since."""
    stamp = new_stamp()
    own = and_(_key(tenant, thread_id, mark.branch), branches.c.stamp == mark.stamp)
    if sql.execute(update(branches).where(own).values(stamp=stamp)).rowcount:
        return Mark(mark.branch, mark.version, stamp)
    found = read_mark(sql, tenant, thread_id, mark.branch)
    detail = "what stands beside its messages was written since" if found.version == mark.version else ""
    raise VersionConflict(thread_id, mark.branch, mark.version, found.version, detail)


def _key(tenant: str, thread_id: str, branch: int) -> Any:
    return and_(branches.c.tenant_id == tenant, branches.c.thread_id == thread_id, branches.c.branch == branch)
