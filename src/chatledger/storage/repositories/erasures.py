"""Deleting threads: one by one, those idle for long (retention), and with a tombstone that refuses the id (erasure).

A tombstone holds no word of the erased thread, not even its id: a digest finds it for a caller that knows the id. So a
late import or retry cannot bring an erased thread back, and tombstones tell nobody who was here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Select, and_, delete, insert, literal, select, tuple_

from chatledger.arguments import BOOL, INT, STR, STR_OR_NONE, require
from chatledger.errors import Erased, InvalidArgument, ThreadNotFound
from chatledger.ids import derived_id, new_id
from chatledger.models import Deleted, Erasure, ErasureKind, Page
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.repositories.cursors import page_size, read_cursor, write_cursor
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.columns import Key, Moment
from chatledger.storage.schema.tables import INSERTION_ORDER, branches, erasures, feedback, kept_scores, runs, threads

_BATCH = 100
"""Threads of a user or a tenant that are looked up at a time; each goes in a transaction of its own."""


class ErasureRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def erase_thread(self, thread_id: str, *, keep_scores: bool = False) -> Erasure:
        """Remove a thread with all that hangs on it, for good. `keep_scores` keeps the numbers of its feedback for
        `feedback.summary`: key, score, agent, model and time, no words and no ids.

        A thread of that id is never made again: `Erased` is raised. Erasing twice gives the first tombstone. Raises
        ThreadNotFound.
        """
        require(STR, thread_id=thread_id)
        require(BOOL, keep_scores=keep_scores)
        return await self._scope.write(lambda sql: _erase_thread(sql, self._scope.tenant, thread_id, keep_scores))

    async def erase_user(self, user_id: str, *, keep_scores: bool = False) -> Erasure:
        """Erase every thread of a user, each in a transaction of its own: what is interrupted is finished by calling it
        again. The user may come back: new threads of theirs are not refused.
        """
        require(STR, user_id=user_id)
        require(BOOL, keep_scores=keep_scores)
        return await self._erase_all("user", user_id, keep_scores)

    async def erase_tenant(self, *, keep_scores: bool = False) -> Erasure:
        """Erase every thread of this ledger's tenant, as `erase_user` does."""
        require(BOOL, keep_scores=keep_scores)
        return await self._erase_all("tenant", None, keep_scores)

    async def find_thread(self, thread_id: str) -> Erasure | None:
        """The tombstone of a thread, if it was erased."""
        require(STR, thread_id=thread_id)
        return await self._find("thread", thread_id)

    async def find_user(self, user_id: str) -> Erasure | None:
        """The tombstone of the last time that a user was erased."""
        require(STR, user_id=user_id)
        return await self._find("user", user_id)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[Erasure]:
        """Newest first."""
        require(INT, limit=limit)
        require(STR_OR_NONE, cursor=cursor)
        size = page_size(limit)
        return await self._scope.read(lambda sql: _list(sql, self._scope.tenant, size, cursor))

    async def _find(self, kind: ErasureKind, id_: str) -> Erasure | None:
        subject = digest(kind, id_)
        return await self._scope.read(lambda sql: _find(sql, self._scope.tenant, kind, subject))

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
        subject = digest(kind, tenant.name if user_id is None else user_id)
        scores = sum(one.scores for one in gone)
        return await self._scope.write(lambda sql: _bury(sql, tenant, kind, subject, rows, scores))


def digest(kind: ErasureKind, id_: str) -> str:
    return derived_id("erased", kind, id_)


def refuse_erased(sql: Sql, tenant: Tenant, thread_ids: Sequence[str]) -> None:
    """Raises Erased if one of them was."""
    subjects = {digest("thread", id_): id_ for id_ in thread_ids}
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
    subject = digest("thread", thread_id)
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
    erasure = Erasure(
        erasure_id=new_id(),
        kind=kind,
        subject=subject,
        rows=deleted.rows,
        scores=scores,
        created_at=datetime.now(UTC),
    )
    sql.execute(insert(erasures).values(tenant_id=tenant.name, **erasure.model_dump()))
    return erasure


def _select() -> Select[Any]:
    return select(*(erasures.c[name] for name in Erasure.model_fields))


def _find(sql: Sql, tenant: Tenant, kind: ErasureKind, subject: str) -> Erasure | None:
    own = _select().where(_of(tenant, kind), erasures.c.subject == subject)
    row = sql.execute(own.order_by(erasures.c.created_at.desc()).limit(1)).mappings().one_or_none()
    return None if row is None else Erasure.model_validate(dict(row))


def _list(sql: Sql, tenant: Tenant, limit: int, cursor: str | None) -> Page[Erasure]:
    statement = _select().where(erasures.c.tenant_id == tenant.name)
    if cursor is not None:
        created_at, erasure_id = read_cursor(cursor, datetime, str)
        place = tuple_(erasures.c.created_at, erasures.c.erasure_id)
        statement = statement.where(place < tuple_(literal(created_at, Moment), literal(erasure_id, Key)))
    newest_first = statement.order_by(erasures.c.created_at.desc(), erasures.c.erasure_id.desc())
    found = [Erasure.model_validate(dict(row)) for row in sql.execute(newest_first.limit(limit + 1)).mappings()]
    page = found[:limit]
    following = write_cursor(page[-1].created_at, page[-1].erasure_id) if len(found) > limit else None
    return Page(page, following)


# --- Deleting a thread ------------------------------------------------------------------------------------------------


def delete_thread(sql: Sql, tenant: Tenant, thread_id: str) -> Deleted:
    """Raises ThreadNotFound."""
    hold_thread(sql, tenant, thread_id)
    rows = {}
    for table in reversed(INSERTION_ORDER):
        if table is feedback:
            of_thread = select(runs.c.run_id).where(runs.c.tenant_id == tenant.name, runs.c.thread_id == thread_id)
            condition = and_(feedback.c.tenant_id == tenant.name, feedback.c.run_id.in_(of_thread))
        elif "thread_id" in table.c:
            condition = and_(table.c.tenant_id == tenant.name, table.c.thread_id == thread_id)
        else:
            continue
        rows[table.name] = sql.execute(delete(table).where(condition)).rowcount
    return Deleted(rows=rows)


def hold_thread(sql: Sql, tenant: Tenant, thread_id: str) -> None:
    """Nothing is added to the thread before the transaction ends: no message, which writes a branch's row first; then
    no branch and no run, which need the thread's; and no score, which needs its run's. Raises ThreadNotFound.
    """
    sql.execute(_lock_branches(tenant, thread_id))
    own = and_(threads.c.tenant_id == tenant.name, threads.c.thread_id == thread_id)
    if sql.execute(select(threads.c.thread_id).where(own).with_for_update()).one_or_none() is None:
        raise ThreadNotFound(thread_id)
    sql.execute(_lock_branches(tenant, thread_id))  # and one that was forked while the thread was waited for
    of_thread = and_(runs.c.tenant_id == tenant.name, runs.c.thread_id == thread_id)
    sql.execute(select(runs.c.run_id).where(of_thread).order_by(runs.c.run_id).with_for_update())


def _lock_branches(tenant: Tenant, thread_id: str) -> Select[Any]:
    own = and_(branches.c.tenant_id == tenant.name, branches.c.thread_id == thread_id)
    return select(branches.c.branch).where(own).order_by(branches.c.branch).with_for_update()


def idle_threads(sql: Sql, tenant: Tenant, before: datetime, limit: int) -> list[str]:
    """The threads that nobody wrote to since `before`, the longest idle first."""
    idle = and_(threads.c.tenant_id == tenant.name, threads.c.active_at < before)
    in_order = (threads.c.active_at, threads.c.thread_id)
    found = sql.execute(select(threads.c.thread_id).where(idle).order_by(*in_order).limit(limit))
    return list(found.scalars())


def is_idle(sql: Sql, tenant: Tenant, thread_id: str, before: datetime) -> bool:
    """Whether it still is, for whoever holds it."""
    own = and_(threads.c.tenant_id == tenant.name, threads.c.thread_id == thread_id)
    active_at = sql.execute(select(threads.c.active_at).where(own)).scalar_one_or_none()
    return active_at is not None and active_at < before


def together(deleted: Iterable[Deleted]) -> Deleted:
    rows: Counter[str] = Counter()
    for one in deleted:
        rows.update(one.rows)
    return Deleted(rows=dict(rows))


# --- Retention --------------------------------------------------------------------------------------------------------

IDLE_BATCH = 20
"""Threads in one transaction: other writers of a SQLite file wait for one of these."""


async def retain(
    scope: Scope, older_than: timedelta | datetime, *, on_batch: Callable[[Deleted], None] | None = None
) -> Deleted:
    """Delete every thread of the tenant that was last written to before that time, or that long ago.

    What is interrupted is finished by calling it again. A thread that is written to meanwhile stays. Returns the rows
    that went, by table; `on_batch` gets those of each transaction.
    """
    if not isinstance(older_than, (timedelta, datetime)):
        raise InvalidArgument("older_than", f"must be a timedelta or a datetime, not {type(older_than).__name__}")
    before = datetime.now(UTC) - older_than if isinstance(older_than, timedelta) else older_than
    if before.tzinfo is None:
        raise InvalidArgument("older_than", "needs a zone: datetime(…, tzinfo=UTC)")
    gone: list[Deleted] = []
    while ids := await scope.read(lambda sql: idle_threads(sql, scope.tenant, before, IDLE_BATCH)):
        batch = await scope.write(lambda sql, ids=ids: _delete_idle(sql, scope.tenant, ids, before))  # type: ignore[misc]
        gone.append(batch)
        if on_batch is not None:
            on_batch(batch)
    return together(gone)


def _delete_idle(sql: Sql, tenant: Tenant, thread_ids: Sequence[str], before: datetime) -> Deleted:
    gone = []
    for thread_id in thread_ids:
        try:
            hold_thread(sql, tenant, thread_id)
        except ThreadNotFound:  # somebody else was faster
            continue
        if is_idle(sql, tenant, thread_id, before):
            gone.append(delete_thread(sql, tenant, thread_id))
    return together(gone)
