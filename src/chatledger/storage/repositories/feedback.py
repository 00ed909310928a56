"""Feedback: stores every score, lists the scores, and summarizes those that count.

Only the current score counts: the latest of a target (run, message, call), a key and a user, unless it was retracted.
`current_scores` defines it for the library, and the view `scores` (`storage/schema/views.py`) defines the same in SQL.
The target is the place of the message and not its id, because the place is never used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, func, literal, select, tuple_, update

from chatledger.arguments import BOOL, INT, STR, STR_OR_NONE, require
from chatledger.errors import (
    FeedbackNotFound,
    IdConflict,
    InvalidArgument,
    LimitExceeded,
    MessageNotFound,
    RunNotFound,
    StorageError,
    TenantOnly,
)
from chatledger.ids import derived_id, new_id
from chatledger.models import Feedback, FeedbackComparison, FeedbackSummary, Page
from chatledger.models.base import read_moment, refuse_own_fields, refusing
from chatledger.models.json import same_json
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql, insert_if_absent
from chatledger.storage.repositories.bounded import fetch_rows
from chatledger.storage.repositories.compare import compare_rows, read_scores, require_by
from chatledger.storage.repositories.cursors import page_size, read_cursor, to_page
from chatledger.storage.repositories.many import AT_ONCE, read_ids
from chatledger.storage.repositories.owned import owned
from chatledger.storage.repositories.runs import find_run
from chatledger.storage.rows.encryption import Tenant, decrypt_values, encrypt_values, to_model
from chatledger.storage.schema.columns import Key, Moment
from chatledger.storage.schema.tables import feedback, kept_scores, messages, runs
from chatledger.storage.schema.text import encode_key

COLUMNS = tuple(column.name for column in feedback.c if column.name in {*Feedback.model_fields, "call_idx"})
"""The columns of a Feedback. `to_feedback` reads them."""
_TARGET = ("run_id", "branch", "seq", "call_idx", "key", "user_id")
"""Scores with the same values in these columns are about the same thing: only the latest of them counts."""
_WHAT_WAS_SAID = {*("run_id", "key", "score", "kwargs", "author", "source", "message_id"), "user_id", "call_index"}


class FeedbackRepository:
    """The scores of runs, messages and calls: `ledger.feedback`, and `tx.feedback` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def record(self, feedback: Feedback | Any, *, idempotency_key: str | None = None) -> Feedback:
        """Store the feedback and return it with its id and time.

            score = Feedback(run_id=run.run_id, message_id=answer.message_id, key="thumb", score=1, user_id="ada")
            await ledger.feedback.record(score)

        Each call stores one more score, unless it repeats a `feedback_id`, or an `idempotency_key` of the run. A repeat
        returns the first score, even if that was retracted since, or raises IdConflict if its content differs. A later
        score of the same target, key and user replaces an earlier one in `list` and `summary`.

        Raises RunNotFound, MessageNotFound for a message that the run's thread does not have, and InvalidArgument for a
        `call_index` that the message does not have.

        On a user's ledger the score is that user's: `user_id` is filled in, and another user raises InvalidArgument.

        `feedback` may be any object with the attributes `run_id`, `key` and `score`, such as a service's own feedback.
        """
        require(STR_OR_NONE, idempotency_key=idempotency_key)
        if isinstance(feedback, Feedback):
            refuse_own_fields(feedback, Feedback, "feedback", "its kwargs")
        with refusing("feedback"):
            fields = dict(feedback) if isinstance(feedback, Feedback) else feedback
            given = Feedback.model_validate(fields, from_attributes=True)
        record = given.model_copy(
            update={
                "feedback_id": given.feedback_id or _feedback_id(given.run_id, idempotency_key),
                "created_at": given.created_at or datetime.now(UTC),
                "user_id": self._scope.tenant.seen_by(given.user_id).user_id,
            }
        )
        if record.call_index is not None and record.message_id is None:
            raise InvalidArgument("feedback", "has a call_index and no message_id; name the message that made the call")
        encode_key(record.run_id, "run_id")
        encode_key(record.feedback_id or "", "feedback_id")
        if record.user_id is not None:
            encode_key(record.user_id, "user_id")
        if idempotency_key is not None:
            encode_key(idempotency_key, "idempotency_key")
        return await self._scope.write(lambda sql: _record(sql, self._scope.tenant, record, idempotency_key))

    async def remove(self, feedback_id: str) -> Feedback:
        """Withdraw this score and the earlier scores of its target, key and user, and return it. Each gets a
        `retracted_at`, so that no earlier score counts again. A later score still counts. Removing it again changes
        nothing.

        Raises FeedbackNotFound and, on a user's ledger, TenantOnly for a score that is not the user's.
        """
        require(STR, feedback_id=feedback_id)
        now = datetime.now(UTC)
        return await self._scope.write(lambda sql: _retract(sql, self._scope.tenant, feedback_id, now))

    async def list(
        self,
        *,
        run_id: str | Sequence[str] | None = None,
        thread_id: str | None = None,
        user_id: str | None = None,
        key: str | None = None,
        events: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Feedback]:
        """A page of the scores that count, newest first: the latest score of each target (run, message, call), key and
        user, unless it was removed. All scores without a `user_id` count as one user's. The latest score has the latest
        `created_at` and, among equal ones, the greatest `feedback_id`. With `events=True`, every recorded score,
        replaced and removed ones too.

        `run_id` may be a list of up to 500 runs. Each page of the scores that count reads every score of the chosen
        runs, thread, user and key. `limit` is the maximum number of scores, 50 by default and 1,000 at most. The page's
        `damaged` has the errors of scores that cannot be read. Raises InvalidCursor and LimitExceeded.
        """
        require(STR_OR_NONE, thread_id=thread_id, user_id=user_id, key=key, cursor=cursor)
        require(BOOL, events=events)
        require(INT, limit=limit)
        one = {"run_id": run_id} if isinstance(run_id, str) else {}
        chosen = _chosen(self._scope.tenant, thread_id=thread_id, user_id=user_id, key=key, **one)
        if run_id is not None and not one:
            ids = read_ids("run_id", run_id)
            if len(ids) > AT_ONCE:
                raise LimitExceeded("runs of a page of scores", len(ids), AT_ONCE)
            chosen.append(feedback.c.run_id.in_(ids))
        if events:
            every = select_scores(feedback, self._scope.tenant).where(*chosen)
            return await self._page(every, feedback, page_size(limit), cursor)
        scores = current_scores(*chosen)
        return await self._page(select_scores(scores, self._scope.tenant), scores, page_size(limit), cursor)

    async def _page(self, statement: Select[Any], scores: FromClause, limit: int, cursor: str | None) -> Page[Feedback]:
        place = (scores.c.created_at, scores.c.feedback_id)
        if cursor is not None:
            created_at, feedback_id = read_cursor(cursor, datetime, str)
            statement = statement.where(tuple_(*place) < _place(created_at, feedback_id))
        key = ("created_at", "feedback_id")
        found = await self._scope.read(lambda sql: fetch_rows(sql, statement, limit, *key, newest_first=True))
        return to_page(found, lambda row: to_feedback(self._scope.tenant, row), *key)

    async def summary(
        self,
        *,
        key: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        thread_id: str | None = None,
        run_id: str | None = None,
        user_id: str | None = None,
        events: bool = False,
    ) -> Sequence[FeedbackSummary]:
        """The count, mean, lowest and highest score of each key, in order of key.

            for one in await ledger.feedback.summary(agent="support", since=datetime(2026, 1, 1, tzinfo=UTC)):
                print(one.key, one.count, one.mean)

        It counts the scores that `list` returns: thumb up, down and up again is one. With `events=True` it counts
        every recorded score, replaced and removed ones too.

        `agent` and `model` are those of the run. A score at `since` is included, one at `until` is not; both are
        datetimes with a zone, and are compared with the time of the score that counts. The kept scores of erased
        threads have no thread, run or user, and are left out if you name one, and on a user's ledger. Reads each score
        of the chosen runs, user and key once, in one statement.
        """
        require(STR_OR_NONE, key=key, agent=agent, model=model, thread_id=thread_id, run_id=run_id, user_id=user_id)
        require(BOOL, events=events)
        since = read_moment("since", since)
        until = read_moment("until", until)
        of_run = {"agent": agent, "model": model}
        of_one = {"thread_id": thread_id, "run_id": run_id, "user_id": user_id}
        chosen = _chosen(self._scope.tenant, key=key, **of_run, **of_one)
        columns = ("key", "score", "created_at")
        scores = select(feedback).where(*chosen).subquery() if events else current_scores(*chosen, columns=columns)
        counted = _in_time(scores, since, until)
        if self._scope.user_id is None and not any(value is not None for value in of_one.values()):
            kept = (kept_scores.c.tenant_id == self._scope.tenant.name, *_equal(kept_scores, key=key, **of_run))
            counted = counted.union_all(_in_time(kept_scores, since, until).where(*kept))  # type: ignore[assignment]
        statement = _summary(counted.subquery())
        rows = await self._scope.read(lambda sql: sql.execute(statement).mappings().all())
        return [FeedbackSummary(**row) for row in rows]

    async def compare(
        self,
        key: str,
        by: str = "model",
        *,
        agent: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        user_id: str | None = None,
    ) -> Sequence[FeedbackComparison]:
        """The current scores under a key, compared by "model", "agent" or "metadata.KEY" (a key of the metadata) of
        their runs: count, mean, share, the 95 % interval of the mean, and the mean cost and tokens of the runs. The
        list is in order of the values, and None comes last.

        If each of the scores is 0 or 1, the mean is the share of ones, and the interval is Wilson's; else it is that
        of Student's t. `share` is the share above 0.5, if all scores are from 0 to 1. An interval takes the scores for
        independent of each other: several scores of one run, or of one user, make it narrower than it should be.

        `agent`, `model`, `since`, `until` and `user_id` select as in `summary`. The kept scores of erased threads count
        as they do there, but not by a key of the metadata, which they do not have.

        One statement, which reads each score of the key once. By a key of the metadata, it takes a row for each run
        into memory.
        """
        require(STR, key=key)
        by = require_by(by)
        require(STR_OR_NONE, agent=agent, model=model, user_id=user_id)
        moments = (read_moment("since", since), read_moment("until", until))
        tenant, of_run = self._scope.tenant, {"agent": agent, "model": model}
        chosen = _chosen(tenant, key=key, user_id=user_id, **of_run)
        scores = current_scores(*chosen, columns=("run_id", "score", "created_at"))
        kept = None
        if tenant.user_id is None and user_id is None:
            kept = [kept_scores.c.tenant_id == tenant.name, *_equal(kept_scores, key=key, **of_run)]
        rows = await self._scope.read(lambda sql: read_scores(sql, tenant, scores, key, by, moments, kept))
        return compare_rows(rows, tenant, by)


def _feedback_id(run_id: str, idempotency_key: str | None) -> str:
    return new_id() if idempotency_key is None else derived_id("feedback", run_id, idempotency_key)


def _record(sql: Sql, tenant: Tenant, record: Feedback, idempotency_key: str | None) -> Feedback:
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


def _find(sql: Sql, tenant: Tenant, record: Feedback, idempotency_key: str | None) -> Feedback | None:
    if idempotency_key is not None:
        same = and_(feedback.c.run_id == record.run_id, feedback.c.idempotency_key == idempotency_key)
        if (found := _find_one(sql, tenant, same)) is not None:
            return found
    return _find_one(sql, tenant, feedback.c.feedback_id == record.feedback_id)


def _find_one(sql: Sql, tenant: Tenant, which: ColumnElement[bool]) -> Feedback | None:
    own = select_scores(feedback, tenant).where(feedback.c.tenant_id == tenant.name, which)
    row = sql.execute(own).mappings().one_or_none()
    return None if row is None else to_feedback(tenant, row)


def _require_same(earlier: Feedback, record: Feedback) -> None:
    said = (one.model_dump(include=_WHAT_WAS_SAID) for one in (earlier, record))
    if not same_json(*said):
        taken = earlier.feedback_id or ""
        raise IdConflict("feedback", taken, f"id {taken!r}: is feedback already, with another content")


def _message_place(sql: Sql, tenant: Tenant, thread_id: str, message_id: str, call_index: int | None) -> dict[str, Any]:
    own = (messages.c.tenant_id == tenant.name, messages.c.thread_id == thread_id, messages.c.message_id == message_id)
    place = select(messages.c.thread_id, messages.c.branch, messages.c.seq, messages.c.call_count).where(*own)
    row = sql.execute(place).mappings().one_or_none()
    if row is None:
        raise MessageNotFound(thread_id, message_id)
    calls = row["call_count"] or 0
    if call_index is not None and call_index >= calls:
        raise InvalidArgument("feedback", f"is about call {call_index}, and message {message_id!r} has {calls} calls")
    return {name: row[name] for name in ("thread_id", "branch", "seq")}


def _retract(sql: Sql, tenant: Tenant, feedback_id: str, now: datetime) -> Feedback:
    this = feedback.c.feedback_id == feedback_id
    columns = [feedback.c[name] for name in (*_TARGET, "created_at")]
    said = sql.execute(select(*columns).where(owned(feedback, tenant), this)).mappings().one_or_none()
    if said is None:
        raise FeedbackNotFound(feedback_id)
    if tenant.user_id not in (None, said["user_id"]):
        raise TenantOnly("feedback.remove of another's score")
    # Calls that retract scores of a run take turns, and nobody can delete the run meanwhile. A record does not wait.
    own_run = (runs.c.tenant_id == tenant.name, runs.c.run_id == said["run_id"])
    sql.execute(select(runs.c.run_id).where(*own_run).with_for_update(key_share=True))
    same = [feedback.c[name] == said[name] for name in _TARGET]
    up_to_it = tuple_(feedback.c.created_at, feedback.c.feedback_id) <= _place(said["created_at"], feedback_id)
    open_ = (feedback.c.tenant_id == tenant.name, *same, up_to_it, feedback.c.retracted_at.is_(None))
    sql.execute(update(feedback).where(*open_).values(retracted_at=now))
    retracted = _find_one(sql, tenant, this)
    if retracted is None:
        raise FeedbackNotFound(feedback_id)
    return retracted


def to_feedback(tenant: Tenant, row: Any) -> Feedback:
    """Raises DamagedCell and EncryptionError."""
    decrypted = decrypt_values(tenant, feedback, {name: row[name] for name in COLUMNS})
    call_index = decrypted.pop("call_idx")
    return to_model(Feedback, feedback, row, {**decrypted, "call_index": call_index}, {"call_index": "call_idx"})


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


def _chosen(
    tenant: Tenant,
    *,
    thread_id: str | None = None,
    agent: str | None = None,
    model: str | None = None,
    **equal: str | None,
) -> list[ColumnElement[bool]]:
    of_run = _equal(runs, thread_id=thread_id, agent=agent, model=model)
    chosen = [owned(feedback, tenant), *_equal(feedback, **equal)]
    if of_run:
        ids = select(runs.c.run_id).where(runs.c.tenant_id == tenant.name, *of_run)
        chosen.append(feedback.c.run_id.in_(ids))
    return chosen


def _equal(table: FromClause, **equal: str | None) -> list[ColumnElement[bool]]:
    return [table.c[name] == value for name, value in equal.items() if value is not None]


def select_scores(scores: FromClause, tenant: Tenant) -> Select[Any]:
    """A score from before the column `message_id` takes it from the message in its place."""
    place = (scores.c[name] == messages.c[name] for name in ("thread_id", "branch", "seq"))
    target = and_(messages.c.tenant_id == tenant.name, *place)
    columns = [scores.c[name] for name in COLUMNS if name != "message_id"]
    message_id = func.coalesce(scores.c.message_id, messages.c.message_id).label("message_id")
    return select(*columns, message_id).select_from(scores.outerjoin(messages, target))


def _place(created_at: datetime, feedback_id: str) -> ColumnElement[Any]:
    return tuple_(literal(created_at, Moment), literal(feedback_id, Key))


def _in_time(scores: FromClause, since: datetime | None, until: datetime | None) -> Select[Any]:
    bounds = []
    if since is not None:
        bounds.append(scores.c.created_at >= since)
    if until is not None:
        bounds.append(scores.c.created_at < until)
    return select(scores.c.key, scores.c.score).where(*bounds)


def _summary(scores: FromClause) -> Select[Any]:
    return (
        select(
            scores.c.key,
            func.count().label("count"),
            func.avg(scores.c.score).label("mean"),
            func.min(scores.c.score).label("min"),
            func.max(scores.c.score).label("max"),
        )
        .group_by(scores.c.key)
        .order_by(scores.c.key)
    )
