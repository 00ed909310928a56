"""Feedback: stores every score, and lists the scores.

Only the current score counts: the latest of a target (run, message, call), a key and a user, unless it was retracted.
`current_scores` defines it for the library, and the view `scores` (`storage/schema/views.py`) defines the same in SQL.
The target is the place of the message and not its id, because the place is never used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, func, literal, select, tuple_, update

from chatledger.errors import (
    FeedbackNotFound,
    IdConflict,
    InvalidArgument,
    MessageNotFound,
    RunNotFound,
    StorageError,
    TenantOnly,
)
from chatledger.models import Feedback, Page
from chatledger.models.json import same_json
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql, insert_if_absent
from chatledger.storage.lists.bounded import fetch_rows
from chatledger.storage.lists.cursors import read_cursor, to_page
from chatledger.storage.repositories.runs import find_run
from chatledger.storage.rows.encryption import Tenant, encrypt_values
from chatledger.storage.rows.feedback import FEEDBACK_COLUMNS, to_feedback
from chatledger.storage.rows.owned import of_thread, owned, owned_each
from chatledger.storage.schema.columns import Key, Moment
from chatledger.storage.schema.tables import feedback, kept_scores, messages, runs

_TARGET = ("run_id", "branch", "seq", "call_idx", "key", "user_id")
"""Scores with the same values in these columns are about the same thing: only the latest of them counts."""
_CONTENT = {*("run_id", "key", "score", "kwargs", "author", "source", "message_id"), "user_id", "call_index"}


def record_score(sql: WriteSql, tenant: Tenant, record: Feedback, idempotency_key: str | None) -> Feedback:
    run = find_run(sql, tenant, record.run_id, hold=True)
    if run is None:
        raise RunNotFound(record.run_id)
    earlier = _find(sql, tenant, record, idempotency_key)
    if earlier is not None:
        _require_same(earlier, record)
        return earlier
    values = record.model_dump(exclude={"call_index"})
    values |= {"call_idx": record.call_index, "idempotency_key": idempotency_key}
    if record.message_id is not None:
        values |= _message_place(sql, tenant, run.thread_id, record.message_id, record.call_index)
    encrypted = encrypt_values(tenant, feedback, values)
    if sql.execute(insert_if_absent(sql, feedback).values(tenant_id=tenant.name, **encrypted)).rowcount:
        return record
    earlier = _find(sql, tenant, record, idempotency_key)  # another call stored the same score at the same time
    if earlier is None:
        raise StorageError("another call stored the same feedback, and it was deleted meanwhile", retryable=True)
    _require_same(earlier, record)
    return earlier


def _find(sql: WriteSql, tenant: Tenant, record: Feedback, idempotency_key: str | None) -> Feedback | None:
    if idempotency_key is not None:
        same = and_(feedback.c.run_id == record.run_id, feedback.c.idempotency_key == idempotency_key)
        if (earlier := _find_one(sql, tenant, same)) is not None:
            return earlier
    return _find_one(sql, tenant, feedback.c.feedback_id == record.feedback_id)


def _find_one(sql: WriteSql, tenant: Tenant, which: ColumnElement[bool]) -> Feedback | None:
    own = select_scores(feedback, tenant).where(feedback.c.tenant_id == tenant.name, which)
    row = sql.execute(own).mappings().one_or_none()
    return None if row is None else to_feedback(tenant, row)


def _require_same(earlier: Feedback, record: Feedback) -> None:
    contents = (score.model_dump(include=_CONTENT) for score in (earlier, record))
    if not same_json(*contents):
        taken = earlier.feedback_id or ""
        raise IdConflict("feedback", taken, f"id {taken!r}: is feedback already, with another content")


def _message_place(
    sql: WriteSql, tenant: Tenant, thread_id: str, message_id: str, call_index: int | None
) -> dict[str, Any]:
    own = (messages.c.tenant_id == tenant.name, messages.c.thread_id == thread_id, messages.c.message_id == message_id)
    place = select(messages.c.thread_id, messages.c.branch, messages.c.seq, messages.c.call_count).where(*own)
    row = sql.execute(place).mappings().one_or_none()
    if row is None:
        raise MessageNotFound(thread_id, message_id)
    calls = row["call_count"] or 0
    if call_index is not None and call_index >= calls:
        raise InvalidArgument("feedback", f"is about call {call_index}, and message {message_id!r} has {calls} calls")
    return {name: row[name] for name in ("thread_id", "branch", "seq")}


def retract(sql: WriteSql, tenant: Tenant, feedback_id: str, now: datetime) -> Feedback:
    this = feedback.c.feedback_id == feedback_id
    columns = [feedback.c[name] for name in (*_TARGET, "created_at")]
    row = sql.execute(select(*columns).where(owned_each(feedback, tenant), this)).mappings().one_or_none()
    if row is None:
        raise FeedbackNotFound(feedback_id)
    if tenant.user_id not in (None, row["user_id"]):
        raise TenantOnly("feedback.remove of another's score")
    # Calls that retract scores of a run take turns, and nobody can delete the run meanwhile. A record does not wait.
    own_run = (runs.c.tenant_id == tenant.name, runs.c.run_id == row["run_id"])
    sql.execute(select(runs.c.run_id).where(*own_run).with_for_update(key_share=True))
    same = [feedback.c[name] == row[name] for name in _TARGET]
    up_to_it = tuple_(feedback.c.created_at, feedback.c.feedback_id) <= _place(row["created_at"], feedback_id)
    open_ = (feedback.c.tenant_id == tenant.name, *same, up_to_it, feedback.c.retracted_at.is_(None))
    sql.execute(update(feedback).where(*open_).values(retracted_at=now))
    retracted = _find_one(sql, tenant, this)
    if retracted is None:
        raise FeedbackNotFound(feedback_id)
    return retracted


# --- The scores that count --------------------------------------------------------------------------------------------


def current_scores(*which: ColumnElement[bool], columns: Sequence[str] = tuple(feedback.c.keys())) -> FromClause:
    """The scores that count, among those that `which` chooses, with these columns: SQLite sorts them all. Conditions on
    `feedback` must choose all scores of a target, key and user, or none of them.
    """
    latest_first = (feedback.c.created_at.desc(), feedback.c.feedback_id.desc())
    recency = func.row_number().over(partition_by=[feedback.c[name] for name in _TARGET], order_by=latest_first)
    taken = [feedback.c[name] for name in columns]
    ranked = (
        select(*taken, feedback.c.retracted_at.label("retracted"), recency.label("recency")).where(*which).subquery()
    )
    return (
        select(*(ranked.c[name] for name in columns))
        .where(ranked.c.recency == 1, ranked.c.retracted.is_(None))
        .subquery()
    )


@dataclass(frozen=True, slots=True)
class ScoreFilter:
    """The scores that a call chooses. None means all."""

    key: str | None = None
    agent: str | None = None
    model: str | None = None
    thread_id: str | None = None
    run_ids: Sequence[str] | None = None
    user_id: str | None = None

    def of(self, tenant: Tenant) -> list[ColumnElement[bool]]:
        """The conditions on `feedback`."""
        chosen = [feedback.c.tenant_id == tenant.name, *_equal(feedback, key=self.key, user_id=self.user_id)]
        of_run = [*self._of_owner(tenant), *_equal(runs, agent=self.agent, model=self.model)]
        if self.run_ids is not None and not of_run:
            chosen.append(feedback.c.run_id.in_(self.run_ids))
        elif self.run_ids is not None:  # the runs come first, or scores would be read of a run that is not the user's
            of_run.append(runs.c.run_id.in_(self.run_ids))
        if of_run:
            ids = select(runs.c.run_id).where(runs.c.tenant_id == tenant.name, *of_run)
            single = self.run_ids is not None and len(self.run_ids) == 1  # PostgreSQL 18 would read the scores first
            chosen.append(feedback.c.run_id == ids.scalar_subquery() if single else feedback.c.run_id.in_(ids))
        return chosen

    def _of_owner(self, tenant: Tenant) -> list[ColumnElement[bool]]:
        """The conditions on `runs` that say whose they are."""
        if self.thread_id is not None:
            return [of_thread(runs, tenant, self.thread_id)]
        if tenant.user_id is None:
            return []
        return [owned(runs, tenant) if self.run_ids is None else owned_each(runs, tenant)]

    def of_kept(self, tenant: Tenant) -> list[ColumnElement[bool]] | None:
        """The conditions on `kept_scores`, which have no thread, run or user; None if none of them can fit."""
        of_one = (tenant.user_id, self.thread_id, self.run_ids, self.user_id)
        if any(value is not None for value in of_one):
            return None
        of_run = _equal(kept_scores, key=self.key, agent=self.agent, model=self.model)
        return [kept_scores.c.tenant_id == tenant.name, *of_run]


def _equal(table: FromClause, **equal: str | None) -> list[ColumnElement[bool]]:
    return [table.c[name] == value for name, value in equal.items() if value is not None]


def select_scores(scores: FromClause, tenant: Tenant) -> Select[Any]:
    """A score from before the column `message_id` takes it from the message in its place."""
    place = (scores.c[name] == messages.c[name] for name in ("thread_id", "branch", "seq"))
    target = and_(messages.c.tenant_id == tenant.name, *place)
    columns = [scores.c[name] for name in FEEDBACK_COLUMNS if name != "message_id"]
    message_id = func.coalesce(scores.c.message_id, messages.c.message_id).label("message_id")
    return select(*columns, message_id).select_from(scores.outerjoin(messages, target))


def _place(created_at: datetime, feedback_id: str) -> ColumnElement[Any]:
    return tuple_(literal(created_at, Moment), literal(feedback_id, Key))


async def list_scores(
    scope: Scope, which: ScoreFilter, *, events: bool, limit: int, cursor: str | None
) -> Page[Feedback]:
    """Raises InvalidCursor."""
    chosen = which.of(scope.tenant)
    scores: FromClause = feedback if events else current_scores(*chosen)
    statement = select_scores(scores, scope.tenant)
    if events:
        statement = statement.where(*chosen)
    if cursor is not None:
        place = tuple_(scores.c.created_at, scores.c.feedback_id)
        statement = statement.where(place < _place(*read_cursor(cursor, datetime, str)))
    key = ("created_at", "feedback_id")

    def read(sql: ReadSql) -> Page[Feedback]:
        rows = fetch_rows(sql, statement, limit, *key, newest_first=True)
        return to_page(rows, lambda row: to_feedback(scope.tenant, row), *key)

    return await scope.read(read)
