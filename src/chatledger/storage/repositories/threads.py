"""Threads: creates, finds, lists and deletes conversations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, select, update

from chatledger.errors import ThreadNotFound, VersionConflict
from chatledger.ids import new_stamp
from chatledger.models import RulesLevel, Thread
from chatledger.models.base import refusing
from chatledger.storage.check.branch import Stamps, judge_level, require_level
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.lists.thread_list import (
    find_thread,
)
from chatledger.storage.repositories.locks import hold_thread
from chatledger.storage.rows.encryption import Tenant, encrypt_values
from chatledger.storage.rows.owned import own_thread
from chatledger.storage.schema.tables import branches, threads
from chatledger.storage.schema.text import encode_key


def check_keys(thread: Thread) -> None:
    encode_key(thread.thread_id, "thread_id")
    if thread.user_id is not None:
        encode_key(thread.user_id, "user_id")
    if thread.kind is not None:
        encode_key(thread.kind, "kind")


def require_thread(sql: ReadSql, tenant: Tenant, thread_id: str, *, lock: bool = False) -> None:
    """Raises ThreadNotFound. With `lock`, no other transaction can lock the thread until this one ends."""
    statement = select(threads.c.thread_id).where(own_thread(tenant, thread_id))
    if sql.execute(statement.with_for_update() if lock else statement).one_or_none() is None:
        raise ThreadNotFound(thread_id)


@dataclass(frozen=True, slots=True)
class ThreadValues:
    """What an update gives. `archived` None leaves the thread where it is."""

    values: dict[str, Any]
    archived: bool | None
    merge: bool
    expected: int | None
    judged: Stamps | None = None
    """The stamps of the branches of which a read found that they keep the given rules."""


def judge_rules(sql: ReadSql, tenant: Tenant, thread_id: str, level: RulesLevel | None) -> Stamps | None:
    """Judges the thread before the write that changes its rules, so that no writer waits. None if there is nothing to
    judge. Raises RuleViolation and LimitExceeded.
    """
    thread = find_thread(sql, tenant, thread_id)
    if thread is None or thread.rules == level or level not in ("strict", "ordered"):
        return None
    return judge_level(sql, tenant, thread_id, level)


def update_thread(sql: WriteSql, tenant: Tenant, thread_id: str, change: ThreadValues) -> Thread:
    if "rules" in change.values:
        hold_thread(sql, tenant, thread_id)  # with its branches, so that no message comes while they are checked
    else:
        _lock_row(sql, tenant, thread_id)
    if change.archived is not None:  # a conflict undoes it
        _archive(sql, tenant, thread_id, archived=change.archived)
    thread = find_thread(sql, tenant, thread_id)
    if thread is None:
        raise ThreadNotFound(thread_id)
    if change.expected is not None and change.expected != thread.version:
        raise VersionConflict("thread", change.expected, thread.version, thread_id=thread_id)
    return _set_values(sql, tenant, thread, change) if change.values else thread


def _set_values(sql: WriteSql, tenant: Tenant, thread: Thread, change: ThreadValues) -> Thread:
    values, version = dict(change.values), thread.version + 1
    if change.merge:
        values["metadata"] = {**(thread.metadata or {}), **values["metadata"]}
    with refusing():
        changed = Thread.model_validate(thread.model_dump() | values | {"version": version})
    values["revision"] = version  # the column keeps its name
    if changed.rules in ("strict", "ordered") and changed.rules != thread.rules:
        require_level(sql, tenant, thread.thread_id, changed.rules, change.judged)
    if "rules" in values:  # the tip caches of other processes hold the earlier rules
        own = and_(branches.c.tenant_id == tenant.name, branches.c.thread_id == thread.thread_id)
        sql.execute(update(branches).where(own).values(stamp=new_stamp()))
    encrypted = encrypt_values(tenant, threads, values, thread_id=thread.thread_id)
    sql.execute(update(threads).where(own_thread(tenant, thread.thread_id)).values(**encrypted))
    return changed


def _lock_row(sql: WriteSql, tenant: Tenant, thread_id: str) -> None:
    """Other updates of the thread wait until the transaction ends. Appends, new runs and forks do not."""
    sql.execute(select(threads.c.thread_id).where(own_thread(tenant, thread_id)).with_for_update(key_share=True))


def _archive(sql: WriteSql, tenant: Tenant, thread_id: str, *, archived: bool) -> None:
    column = threads.c.archived_at
    moves = column.is_(None) if archived else column.is_not(None)  # else the first time stays
    moment = datetime.now(UTC) if archived else None
    sql.execute(update(threads).where(own_thread(tenant, thread_id), moves).values(archived_at=moment))
