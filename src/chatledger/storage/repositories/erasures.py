"""Erasing: deleting a thread for good, with a tombstone that refuses its id for ever.

A tombstone holds no word of the erased thread, not even its id: a digest finds it for a caller that knows the id. So a
late import or retry cannot bring an erased thread back, and tombstones tell nobody who was here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, insert, literal, select, tuple_

from chatledger.arguments import BOOL, INT, STR, STR_OR_NONE, require
from chatledger.errors import Erased, ThreadNotFound
from chatledger.ids import erasure_digest, new_id
from chatledger.models import Deleted, Erasure, ErasureKind, Page
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.repositories.cursors import page_size, read_cursor, to_page
from chatledger.storage.repositories.deletion import count_threads, delete_thread, hold_thread, together
from chatledger.storage.rows.encryption import Tenant, decrypt_values, to_model
from chatledger.storage.schema.columns import Key, Moment
from chatledger.storage.schema.tables import erasures, feedback, kept_scores, runs, threads

_BATCH = 100
"""Threads of a user or a tenant that are listed at a time. Each is erased in a transaction of its own."""


class ErasureRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def erase_thread(self, thread_id: str, *, keep_scores: bool = False, dry_run: bool = False) -> Erasure:
        """Delete a thread with everything that belongs to it, for good. `keep_scores` keeps the numbers of its feedback
        for `feedback.summary`: key, score, agent, model and time, but no words and no ids.

        Creating a thread of that id raises `Erased` from then on. Erasing it again returns the first tombstone; on a
        user's ledger it raises ThreadNotFound, because a tombstone does not say whose thread it was. Raises
        ThreadNotFound.

        With `dry_run`, nothing is written: the result is the tombstone that there would be, with the rows to go.
        """
        require(STR, thread_id=thread_id)
        require(BOOL, keep_scores=keep_scores, dry_run=dry_run)
        if dry_run:
            own = threads.c.thread_id == thread_id
            tombstone = await self._foresee("thread", thread_id, own, keep_scores=keep_scores)
            if tombstone.rows["threads"]:
                return tombstone
            earlier = await self._find("thread", thread_id)
            if earlier is None:
                raise ThreadNotFound(thread_id)
            return earlier
        return await self._scope.write(lambda sql: _erase_thread(sql, self._scope.tenant, thread_id, keep_scores))

    async def erase_user(self, user_id: str, *, keep_scores: bool = False, dry_run: bool = False) -> Erasure:
        """Erase every thread of a user, each in a transaction of its own. After an interruption, call it again to
        finish. New threads of the user are not refused. `dry_run` as in `erase_thread`.
        """
        require(STR, user_id=user_id)
        require(BOOL, keep_scores=keep_scores, dry_run=dry_run)
        self._scope.tenant.seen_by(user_id)  # refuses another user than that of the ledger
        if dry_run:
            return await self._foresee("user", user_id, threads.c.user_id == user_id, keep_scores=keep_scores)
        return await self._erase_all("user", user_id, keep_scores)

    async def erase_tenant(self, *, keep_scores: bool = False, dry_run: bool = False) -> Erasure:
        """Erase every thread of this ledger's tenant, as `erase_user` does."""
        require(BOOL, keep_scores=keep_scores, dry_run=dry_run)
        self._scope.refuse_view("erasures.erase_tenant")
        if dry_run:
            return await self._foresee("tenant", self._scope.tenant.name, keep_scores=keep_scores)
        return await self._erase_all("tenant", None, keep_scores)

    async def find_thread(self, thread_id: str) -> Erasure | None:
        """The tombstone of a thread, if it was erased."""
        require(STR, thread_id=thread_id)
        self._scope.refuse_view("erasures.find_thread")
        return await self._find("thread", thread_id)

    async def find_user(self, user_id: str) -> Erasure | None:
        """The newest tombstone of a user, if the user was erased."""
        require(STR, user_id=user_id)
        self._scope.tenant.seen_by(user_id)  # as in erase_user
        return await self._find("user", user_id)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[Erasure]:
        """All tombstones, newest first. The page's `damaged` tells of those that cannot be read."""
        require(INT, limit=limit)
        require(STR_OR_NONE, cursor=cursor)
        self._scope.refuse_view("erasures.list")
        size = page_size(limit)
        return await self._scope.read(lambda sql: _list(sql, self._scope.tenant, size, cursor))

    async def _find(self, kind: ErasureKind, id_: str) -> Erasure | None:
        subject = erasure_digest(kind, id_)
        return await self._scope.read(lambda sql: _find(sql, self._scope.tenant, kind, subject))

    async def _foresee(self, kind: ErasureKind, id_: str, *which: ColumnElement[bool], keep_scores: bool) -> Erasure:
        """The tombstone of erasing these threads, which is not stored."""
        tenant = self._scope.tenant
        rows = await self._scope.read(lambda sql: count_threads(sql, tenant, *which), snapshot=True)
        scores = rows.rows[feedback.name] if keep_scores else 0
        return _tombstone(kind, erasure_digest(kind, id_), rows, scores)

    async def _erase_all(self, kind: ErasureKind, user_id: str | None, keep_scores: bool) -> Erasure:
        tenant = self._scope.tenant
        gone: list[Erasure] = []
        while ids := await self._scope.read(lambda sql: _threads_of(sql, tenant, user_id)):
            for id_ in ids:
                try:
                    gone.append(await self.erase_thread(id_, keep_scores=keep_scores))
                except ThreadNotFound:  # somebody else was faster
                    continue
        rows = together(Deleted(rows=one.rows) for one in gone)
        subject = erasure_digest(kind, tenant.name if user_id is None else user_id)
        scores = sum(one.scores for one in gone)
        return await self._scope.write(lambda sql: _bury(sql, tenant, kind, subject, rows, scores))


def refuse_erased(sql: Sql, tenant: Tenant, thread_ids: Sequence[str]) -> None:
    """Raises Erased if one of the threads was erased."""
    subjects = {erasure_digest("thread", id_): id_ for id_ in thread_ids}
    found = select(erasures.c.subject).where(_of(tenant, "thread"), erasures.c.subject.in_(list(subjects)))
    subject = sql.execute(found.limit(1)).scalar()
    if subject is not None:
        raise Erased(subjects[subject])


def _of(tenant: Tenant, kind: ErasureKind) -> Any:
    return and_(erasures.c.tenant_id == tenant.name, erasures.c.kind == kind)


def _threads_of(sql: Sql, tenant: Tenant, user_id: str | None) -> Sequence[str]:
    own = [threads.c.tenant_id == tenant.name]
    if user_id is not None:
        own.append(threads.c.user_id == user_id)
    return sql.execute(select(threads.c.thread_id).where(*own).limit(_BATCH)).scalars().all()


def _erase_thread(sql: Sql, tenant: Tenant, thread_id: str, keep_scores: bool) -> Erasure:
    subject = erasure_digest("thread", thread_id)
    try:
        hold_thread(sql, tenant, thread_id)
    except ThreadNotFound:
        earlier = _find(sql, tenant, "thread", subject)
        if earlier is None:
            raise
        return earlier
    scores = _scores_of(sql, tenant, thread_id) if keep_scores else []
    erasure = _bury(sql, tenant, "thread", subject, delete_thread(sql, tenant, thread_id), len(scores))
    if scores:
        place = {"tenant_id": tenant.name, "erasure_id": erasure.erasure_id}
        sql.execute(insert(kept_scores), [{**place, "idx": idx, **row} for idx, row in enumerate(scores)])
    return erasure


def _scores_of(sql: Sql, tenant: Tenant, thread_id: str) -> list[dict[str, Any]]:
    of_run = and_(runs.c.tenant_id == feedback.c.tenant_id, runs.c.run_id == feedback.c.run_id)
    columns = (feedback.c.key, feedback.c.score, runs.c.agent, runs.c.model, feedback.c.created_at)
    of_thread = (runs.c.tenant_id == tenant.name, runs.c.thread_id == thread_id)
    in_order = (feedback.c.created_at, feedback.c.feedback_id)
    found = select(*columns).select_from(feedback.join(runs, of_run)).where(*of_thread).order_by(*in_order)
    return [dict(row) for row in sql.execute(found).mappings()]


def _bury(sql: Sql, tenant: Tenant, kind: ErasureKind, subject: str, deleted: Deleted, scores: int) -> Erasure:
    erasure = _tombstone(kind, subject, deleted, scores)
    sql.execute(insert(erasures).values(tenant_id=tenant.name, **erasure.model_dump()))
    return erasure


def _tombstone(kind: ErasureKind, subject: str, deleted: Deleted, scores: int) -> Erasure:
    return Erasure(
        erasure_id=new_id(),
        kind=kind,
        subject=subject,
        rows=deleted.rows,
        scores=scores,
        created_at=datetime.now(UTC),
    )


def _select() -> Select[Any]:
    return select(*(erasures.c[name] for name in Erasure.model_fields))


def _find(sql: Sql, tenant: Tenant, kind: ErasureKind, subject: str) -> Erasure | None:
    """None also for a thread on a user's ledger: a tombstone does not say whose thread it was."""
    if kind == "thread" and tenant.user_id is not None:
        return None
    own = _select().where(_of(tenant, kind), erasures.c.subject == subject)
    row = sql.execute(own.order_by(erasures.c.created_at.desc()).limit(1)).mappings().one_or_none()
    return None if row is None else _to_erasure(tenant, row)


def _list(sql: Sql, tenant: Tenant, limit: int, cursor: str | None) -> Page[Erasure]:
    statement = _select().where(erasures.c.tenant_id == tenant.name)
    if cursor is not None:
        created_at, erasure_id = read_cursor(cursor, datetime, str)
        place = tuple_(erasures.c.created_at, erasures.c.erasure_id)
        statement = statement.where(place < tuple_(literal(created_at, Moment), literal(erasure_id, Key)))
    newest_first = statement.order_by(erasures.c.created_at.desc(), erasures.c.erasure_id.desc())
    rows = sql.execute(newest_first.limit(limit + 1)).mappings().all()
    return to_page(rows, limit, lambda row: _to_erasure(tenant, row), "created_at", "erasure_id")


def _to_erasure(tenant: Tenant, row: Any) -> Erasure:
    """Raises DamagedCell."""
    return to_model(Erasure, erasures, row, decrypt_values(tenant, erasures, row))
