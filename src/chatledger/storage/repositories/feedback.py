"""Feedback: stores every score, lists them, and summarizes them by key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Select, and_, func, literal, select, tuple_

from chatledger.arguments import INT, STR_OR_NONE, require
from chatledger.errors import IdConflict, MessageNotFound, RunNotFound, StorageError
from chatledger.ids import derived_id, new_id
from chatledger.models import Feedback, FeedbackSummary, Page
from chatledger.models.base import UtcDatetime, refuse_own_fields, refusing
from chatledger.models.json import same_json
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql, insert_if_absent
from chatledger.storage.repositories.cursors import page_size, read_cursor, to_page
from chatledger.storage.repositories.owned import owned
from chatledger.storage.repositories.runs import find_run
from chatledger.storage.rows.encryption import Tenant, decrypt_values, encrypt_values, to_model
from chatledger.storage.schema.columns import Key, Moment
from chatledger.storage.schema.tables import feedback, kept_scores, messages, runs
from chatledger.storage.schema.text import encode_key

_WHAT_WAS_SAID = {"run_id", "key", "score", "kwargs", "author", "source", "message_id"}
_MOMENT: TypeAdapter[datetime | None] = TypeAdapter(UtcDatetime | None)


class FeedbackRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def record(self, feedback: Feedback | Any, *, idempotency_key: str | None = None) -> Feedback:
        """Store the feedback and return it with its id and time. Each call stores one more score, unless it repeats an
        `idempotency_key` of the run or a `feedback_id`. A repeat returns the first score, or raises IdConflict if it
        has another content. Raises RunNotFound, and MessageNotFound for a message that the run's thread does not have.

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
            }
        )
        encode_key(record.run_id, "run_id")
        encode_key(record.feedback_id or "", "feedback_id")
        if idempotency_key is not None:
            encode_key(idempotency_key, "idempotency_key")
        return await self._scope.write(lambda sql: _record(sql, self._scope.tenant, record, idempotency_key))

    async def list(
        self,
        *,
        run_id: str | None = None,
        thread_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Feedback]:
        """Feedback of a run, of a thread, or of all, newest first. The page's `damaged` tells of those that cannot
        be read.
        """
        require(STR_OR_NONE, run_id=run_id, thread_id=thread_id, cursor=cursor)
        require(INT, limit=limit)
        return await self._scope.read(
            lambda sql: _list(sql, self._scope.tenant, run_id, thread_id, page_size(limit), cursor)
        )

    async def summary(
        self,
        *,
        key: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Sequence[FeedbackSummary]:
        """Count, mean, lowest and highest score of each key, in order of key.

        `agent` and `model` select by those of the run. A score at `since` is included, one at `until` is not. Reads
        each matching score once.
        """
        require(STR_OR_NONE, key=key, agent=agent, model=model)
        with refusing("since"):
            since = _MOMENT.validate_python(since)
        with refusing("until"):
            until = _MOMENT.validate_python(until)
        statement = _summary(self._scope.tenant, key, agent, model, since, until)
        rows = await self._scope.read(lambda sql: sql.execute(statement).mappings().all())
        return [FeedbackSummary(**row) for row in rows]


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
    values = record.model_dump(exclude={"message_id"}) | {"idempotency_key": idempotency_key}
    if record.message_id is not None:
        values |= _message_place(sql, tenant, run.thread_id, record.message_id)
    encrypted = encrypt_values(tenant, feedback, values)
    if sql.execute(insert_if_absent(sql, feedback).values(tenant_id=tenant.name, **encrypted)).rowcount:
        return record
    earlier = _find(sql, tenant, record, idempotency_key)  # another call stored the same score at the same time
    if earlier is None:
        raise StorageError("the feedback was stored by somebody else and is gone again", retryable=True)
    _require_same(earlier, record)
    return earlier


def _find(sql: Sql, tenant: Tenant, record: Feedback, idempotency_key: str | None) -> Feedback | None:
    same = feedback.c.feedback_id == record.feedback_id
    if idempotency_key is not None:
        repeated = and_(feedback.c.run_id == record.run_id, feedback.c.idempotency_key == idempotency_key)
        row = sql.execute(_select().where(feedback.c.tenant_id == tenant.name, repeated)).mappings().one_or_none()
        if row is not None:
            return to_feedback(tenant, row)
    row = sql.execute(_select().where(feedback.c.tenant_id == tenant.name, same)).mappings().one_or_none()
    return None if row is None else to_feedback(tenant, row)


def _require_same(earlier: Feedback, record: Feedback) -> None:
    said = (one.model_dump(include=_WHAT_WAS_SAID) for one in (earlier, record))
    if not same_json(*said):
        raise IdConflict(earlier.feedback_id or "", None, "is feedback already, with another content")


def _message_place(sql: Sql, tenant: Tenant, thread_id: str, message_id: str) -> dict[str, Any]:
    own = (messages.c.tenant_id == tenant.name, messages.c.thread_id == thread_id, messages.c.message_id == message_id)
    place = select(messages.c.thread_id, messages.c.branch, messages.c.seq).where(*own)
    row = sql.execute(place).mappings().one_or_none()
    if row is None:
        raise MessageNotFound(thread_id, message_id)
    return dict(row)


def _select() -> Select[Any]:
    target = and_(*(feedback.c[name] == messages.c[name] for name in ("tenant_id", "thread_id", "branch", "seq")))
    columns = [feedback.c[name] for name in Feedback.model_fields if name != "message_id"]
    return select(*columns, messages.c.message_id).select_from(feedback.outerjoin(messages, target))


def to_feedback(tenant: Tenant, row: Any) -> Feedback:
    """Raises DamagedCell and EncryptionError."""
    return to_model(Feedback, feedback, row, decrypt_values(tenant, feedback, row))


def _list(
    sql: Sql, tenant: Tenant, run_id: str | None, thread_id: str | None, limit: int, cursor: str | None
) -> Page[Feedback]:
    statement = _select().where(owned(feedback, tenant))
    if run_id is not None:
        statement = statement.where(feedback.c.run_id == run_id)
    if thread_id is not None:
        of_thread = select(runs.c.run_id).where(runs.c.tenant_id == tenant.name, runs.c.thread_id == thread_id)
        statement = statement.where(feedback.c.run_id.in_(of_thread))
    if cursor is not None:
        created_at, feedback_id = read_cursor(cursor, datetime, str)
        place = tuple_(feedback.c.created_at, feedback.c.feedback_id)
        statement = statement.where(place < tuple_(literal(created_at, Moment), literal(feedback_id, Key)))
    newest_first = statement.order_by(feedback.c.created_at.desc(), feedback.c.feedback_id.desc())
    rows = sql.execute(newest_first.limit(limit + 1)).mappings().all()
    return to_page(rows, limit, lambda row: to_feedback(tenant, row), "created_at", "feedback_id")


def _summary(
    tenant: Tenant,
    key: str | None,
    agent: str | None,
    model: str | None,
    since: datetime | None,
    until: datetime | None,
) -> Select[Any]:
    """Over the stored scores and the kept scores of erased threads. Nobody knows any more whose threads those were, so
    a user's ledger does not count them.
    """
    stored = _scores(feedback.c, tenant, key, since, until).where(owned(feedback, tenant))
    if agent is not None or model is not None:
        of_run = and_(runs.c.tenant_id == feedback.c.tenant_id, runs.c.run_id == feedback.c.run_id)
        stored = stored.select_from(feedback.join(runs, of_run)).where(*_of_whom(runs.c, agent, model))
    kept = _scores(kept_scores.c, tenant, key, since, until).where(*_of_whom(kept_scores.c, agent, model))
    scores = (stored.union_all(kept) if tenant.user_id is None else stored).subquery()
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


def _scores(
    columns: Any, tenant: Tenant, key: str | None, since: datetime | None, until: datetime | None
) -> Select[Any]:
    wanted = [columns.tenant_id == tenant.name]
    if key is not None:
        wanted.append(columns.key == key)
    if since is not None:
        wanted.append(columns.created_at >= since)
    if until is not None:
        wanted.append(columns.created_at < until)
    return select(columns.key, columns.score).where(*wanted)


def _of_whom(columns: Any, agent: str | None, model: str | None) -> list[Any]:
    equal = ((columns.agent, agent), (columns.model, model))
    return [column == value for column, value in equal if value is not None]
