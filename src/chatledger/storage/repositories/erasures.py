"""Erasing: deletes a thread for good, and leaves a tombstone that refuses its id for ever.

A tombstone contains nothing of the erased thread, not even its id: a caller that knows the id finds it by a digest,
which a random secret of the tenant keys. So a late import or retry cannot bring an erased thread back, and the same id
has another tombstone in each tenant. Whoever reads the whole database has the secret, and can still guess ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    and_,
    delete,
    false,
    func,
    insert,
    literal,
    not_,
    select,
    tuple_,
)

from chatledger.arguments import BOOL, INT, STR, STR_OR_NONE, require
from chatledger.errors import Erased, ThreadNotFound
from chatledger.ids import new_id
from chatledger.models import Deleted, Erasure, ErasureKind, Page
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.repositories.bounded import fetch_rows
from chatledger.storage.repositories.cursors import page_size, read_cursor, to_page
from chatledger.storage.repositories.deletion import count_threads, delete_thread, hold_thread, together
from chatledger.storage.repositories.feedback import current_scores
from chatledger.storage.rows.encryption import Tenant, decrypt_values, to_model
from chatledger.storage.rows.secrets import find_erased, find_secret, make_secret, new_secret, subjects_of
from chatledger.storage.schema.columns import Key, Moment
from chatledger.storage.schema.tables import erasures, feedback, kept_scores, kv, runs, threads

_BATCH = 100
"""Threads of a user or a tenant that are listed at a time. Each is erased in a transaction of its own."""


class ErasureRepository:
    """Erases threads, users and tenants for good: `ledger.erasures`, and `tx.erasures` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def erase_thread(self, thread_id: str, *, keep_scores: bool = False, dry_run: bool = False) -> Erasure:
        """Delete a thread with everything that belongs to it, for good, and return the tombstone. `keep_scores=True`
        keeps the numbers of its current feedback for `feedback.summary`: key, score, agent, model and time, but no
        content and no ids.

        From then on, creating a thread of that id raises Erased. Erasing it again returns the first tombstone; on a
        user's ledger it raises ThreadNotFound, because a tombstone does not contain the owner of the thread.

        One transaction deletes all rows, so its cost grows with the thread. With `dry_run=True`, nothing is written,
        and the returned tombstone has the numbers of rows that would be erased. Raises ThreadNotFound.
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
        return await self._scope.write(
            lambda sql: _erase_thread(sql, self._scope.tenant, thread_id, keep_scores), removes=True
        )

    async def erase_user(self, user_id: str, *, keep_scores: bool = False, dry_run: bool = False) -> Erasure:
        """Erase every thread of a user, each in a transaction of its own. A last transaction erases the user's feedback
        on other threads (`Feedback.user_id`) and the user's values of `kv`, and stores the tombstone, which is
        returned. After an interruption, call it again to finish. New threads and new feedback of the user are not
        refused. `keep_scores` and `dry_run` are those of `erase_thread`.
        """
        require(STR, user_id=user_id)
        require(BOOL, keep_scores=keep_scores, dry_run=dry_run)
        self._scope.tenant.seen_by(user_id)  # refuses another user than that of the ledger
        if dry_run:
            own = threads.c.user_id == user_id
            return await self._foresee("user", user_id, own, keep_scores=keep_scores, user_id=user_id)
        return await self._erase_all("user", user_id, keep_scores)

    async def erase_tenant(self, *, keep_scores: bool = False, dry_run: bool = False) -> Erasure:
        """Erase every thread and all values of this ledger's tenant, as `erase_user` does. Raises TenantOnly on a
        user's ledger.
        """
        require(BOOL, keep_scores=keep_scores, dry_run=dry_run)
        self._scope.refuse_view("erasures.erase_tenant")
        if dry_run:
            return await self._foresee("tenant", self._scope.tenant.name, keep_scores=keep_scores)
        return await self._erase_all("tenant", None, keep_scores)

    async def find_thread(self, thread_id: str) -> Erasure | None:
        """The tombstone of a thread; None if it was not erased. Raises TenantOnly on a user's ledger."""
        require(STR, thread_id=thread_id)
        self._scope.refuse_view("erasures.find_thread")
        return await self._find("thread", thread_id)

    async def find_user(self, user_id: str) -> Erasure | None:
        """The newest tombstone of a user; None if the user was not erased."""
        require(STR, user_id=user_id)
        self._scope.tenant.seen_by(user_id)  # as in erase_user
        return await self._find("user", user_id)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[Erasure]:
        """A page of all tombstones, newest first. `limit` is their maximum number, 50 by default and 1,000 at most. The
        page's `damaged` has the errors of tombstones that cannot be read. Raises InvalidCursor, LimitExceeded, and
        TenantOnly on a user's ledger.
        """
        require(INT, limit=limit)
        require(STR_OR_NONE, cursor=cursor)
        self._scope.refuse_view("erasures.list")
        size = page_size(limit)
        return await self._scope.read(lambda sql: _list(sql, self._scope.tenant, size, cursor))

    async def _find(self, kind: ErasureKind, id_: str) -> Erasure | None:
        return await self._scope.read(lambda sql: _find(sql, self._scope.tenant, kind, id_))

    async def _foresee(
        self,
        kind: ErasureKind,
        id_: str,
        *which: ColumnElement[bool],
        keep_scores: bool,
        user_id: str | None = None,
    ) -> Erasure:
        """The tombstone of erasing these threads and the user's feedback elsewhere, which is not stored."""
        tenant = self._scope.tenant

        def count(sql: Sql) -> tuple[Deleted, int, str]:
            rows, scores = _count(sql, tenant, which, user_id)
            values = select(kv.c.key).where(_beside(tenant, kind, id_)).subquery()
            secret = find_secret(sql, tenant, "tombstone_secret") or new_secret()  # nobody keeps the new one
            gone = together([rows, Deleted(rows={kv.name: _how_many(sql, values)})])
            return gone, scores, subjects_of(secret, kind, id_)[0]

        rows, scores, subject = await self._scope.read(count, snapshot=True)
        return _tombstone(kind, subject, rows, scores if keep_scores else 0)

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
        id_ = tenant.name if user_id is None else user_id
        scores = sum(one.scores for one in gone)

        def finish(sql: Sql) -> Erasure:
            values = Deleted(rows={kv.name: sql.execute(delete(kv).where(_beside(tenant, kind, id_))).rowcount})
            gone_rows = together([rows, values])
            if user_id is None:
                return _bury(sql, tenant, kind, id_, gone_rows, scores)
            return _erase_feedback(sql, tenant, user_id, gone_rows, scores, keep_scores)

        return await self._scope.write(finish, removes=True)


def _beside(tenant: Tenant, kind: ErasureKind, id_: str) -> ColumnElement[bool]:
    """The values of `kv` that are of no thread, and go with a user or a tenant."""
    own = and_(kv.c.tenant_id == tenant.name, kv.c.kind.in_(["tenant", "user"] if kind == "tenant" else [kind]))
    return and_(own, kv.c.scope_id == id_) if kind == "user" else own if kind == "tenant" else false()


def refuse_erased(sql: Sql, tenant: Tenant, thread_ids: Sequence[str]) -> None:
    """Raises Erased if one of the threads was erased."""
    erased = find_erased(sql, tenant, thread_ids)
    if erased is not None:
        raise Erased(erased)


def _of(tenant: Tenant, kind: ErasureKind) -> Any:
    return and_(erasures.c.tenant_id == tenant.name, erasures.c.kind == kind)


def _threads_of(sql: Sql, tenant: Tenant, user_id: str | None) -> Sequence[str]:
    own = [threads.c.tenant_id == tenant.name]
    if user_id is not None:
        own.append(threads.c.user_id == user_id)
    return sql.execute(select(threads.c.thread_id).where(*own).limit(_BATCH)).scalars().all()


def _erase_thread(sql: Sql, tenant: Tenant, thread_id: str, keep_scores: bool) -> Erasure:
    make_secret(sql, tenant, "tombstone_secret")  # before the thread is locked, as every write locks the tenant first
    try:
        hold_thread(sql, tenant, thread_id)
    except ThreadNotFound:
        earlier = _find(sql, tenant, "thread", thread_id)
        if earlier is None:
            raise
        return earlier
    of_thread = _on_threads(tenant, runs.c.thread_id == thread_id)
    scores = _scores_to_keep(sql, tenant, of_thread) if keep_scores else []
    erasure = _bury(sql, tenant, "thread", thread_id, delete_thread(sql, tenant, thread_id), len(scores))
    _keep(sql, tenant, erasure, scores)
    return erasure


def _erase_feedback(sql: Sql, tenant: Tenant, user_id: str, rows: Deleted, scores: int, keep_scores: bool) -> Erasure:
    """Delete the feedback of a user that is left, on other people's threads, and bury the user. `rows` and `scores` are
    those of the user's own threads.
    """
    own = (feedback.c.tenant_id == tenant.name, feedback.c.user_id == user_id)
    scored = select(feedback.c.run_id).where(*own)
    # In the order in which a deletion of threads locks them. Nobody scores these runs before the transaction ends.
    held = select(runs.c.run_id).where(runs.c.tenant_id == tenant.name, runs.c.run_id.in_(scored))
    sql.execute(held.order_by(runs.c.run_id).with_for_update())
    kept = _scores_to_keep(sql, tenant, feedback.c.user_id == user_id) if keep_scores else []
    elsewhere = Deleted(rows={feedback.name: sql.execute(delete(feedback).where(*own)).rowcount})
    erasure = _bury(sql, tenant, "user", user_id, together([rows, elsewhere]), scores + len(kept))
    _keep(sql, tenant, erasure, kept)
    return erasure


def _count(sql: Sql, tenant: Tenant, which: Sequence[ColumnElement[bool]], user_id: str | None) -> tuple[Deleted, int]:
    """The rows that go with these threads and the user, by table, and how many of the scores count."""
    ids = select(threads.c.thread_id).where(threads.c.tenant_id == tenant.name, *which)
    on_threads = _on_threads(tenant, runs.c.thread_id.in_(ids))
    deleted, scores = count_threads(sql, tenant, *which), _how_many(sql, current_scores(on_threads))
    if user_id is not None:
        elsewhere = and_(feedback.c.tenant_id == tenant.name, feedback.c.user_id == user_id, not_(on_threads))
        more = _how_many(sql, select(feedback.c.feedback_id).where(elsewhere).subquery())
        deleted = together([deleted, Deleted(rows={feedback.name: more})])
        scores += _how_many(sql, current_scores(elsewhere))
    return deleted, scores


def _how_many(sql: Sql, rows: FromClause) -> int:
    counted: int = sql.execute(select(func.count()).select_from(rows)).scalar_one()
    return counted


def _on_threads(tenant: Tenant, of_threads: ColumnElement[bool]) -> ColumnElement[bool]:
    """The feedback on these threads. `of_threads` is a condition on `runs`."""
    ids = select(runs.c.run_id).where(runs.c.tenant_id == tenant.name, of_threads)
    return and_(feedback.c.tenant_id == tenant.name, feedback.c.run_id.in_(ids))


def _scores_to_keep(sql: Sql, tenant: Tenant, which: ColumnElement[bool]) -> list[dict[str, Any]]:
    """The numbers of the scores that count, in order of time."""
    scores = current_scores(feedback.c.tenant_id == tenant.name, which)
    of_run = and_(runs.c.tenant_id == tenant.name, runs.c.run_id == scores.c.run_id)
    columns = (scores.c.key, scores.c.score, runs.c.agent, runs.c.model, scores.c.created_at)
    in_order = (scores.c.created_at, scores.c.feedback_id)
    found = select(*columns).select_from(scores.join(runs, of_run)).order_by(*in_order)
    return [dict(row) for row in sql.execute(found).mappings()]


def _keep(sql: Sql, tenant: Tenant, erasure: Erasure, scores: Sequence[dict[str, Any]]) -> None:
    if scores:
        place = {"tenant_id": tenant.name, "erasure_id": erasure.erasure_id}
        sql.execute(insert(kept_scores), [{**place, "idx": idx, **row} for idx, row in enumerate(scores)])


def _bury(sql: Sql, tenant: Tenant, kind: ErasureKind, id_: str, deleted: Deleted, scores: int) -> Erasure:
    subject = subjects_of(make_secret(sql, tenant, "tombstone_secret"), kind, id_)[0]
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


def _find(sql: Sql, tenant: Tenant, kind: ErasureKind, id_: str) -> Erasure | None:
    """None also for a thread on a user's ledger: a tombstone does not say whose thread it was."""
    if kind == "thread" and tenant.user_id is not None:
        return None
    subjects = subjects_of(find_secret(sql, tenant, "tombstone_secret"), kind, id_)
    own = _select().where(_of(tenant, kind), erasures.c.subject.in_(subjects))
    row = sql.execute(own.order_by(erasures.c.created_at.desc()).limit(1)).mappings().one_or_none()
    return None if row is None else _to_erasure(tenant, row)


def _list(sql: Sql, tenant: Tenant, limit: int, cursor: str | None) -> Page[Erasure]:
    statement = _select().where(erasures.c.tenant_id == tenant.name)
    if cursor is not None:
        created_at, erasure_id = read_cursor(cursor, datetime, str)
        place = tuple_(erasures.c.created_at, erasures.c.erasure_id)
        statement = statement.where(place < tuple_(literal(created_at, Moment), literal(erasure_id, Key)))
    found = fetch_rows(sql, statement, limit, "created_at", "erasure_id", newest_first=True)
    return to_page(found, lambda row: _to_erasure(tenant, row), "created_at", "erasure_id")


def _to_erasure(tenant: Tenant, row: Any) -> Erasure:
    """Raises DamagedCell."""
    return to_model(Erasure, erasures, row, decrypt_values(tenant, erasures, row))
