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
    func,
    insert,
    literal,
    not_,
    select,
    tuple_,
    update,
)

from chatledger.errors import ThreadNotFound
from chatledger.ids import new_id
from chatledger.models import Deleted, Erasure, ErasureKind, Page
from chatledger.storage.append.kv import keep_version
from chatledger.storage.changes.deletion import delete_thread, together
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.lists.bounded import fetch_rows
from chatledger.storage.lists.cursors import page_size, read_cursor, to_page
from chatledger.storage.repositories.counts import count_threads
from chatledger.storage.repositories.feedback import current_scores
from chatledger.storage.repositories.kv import delete_values
from chatledger.storage.repositories.locks import hold_thread
from chatledger.storage.rows.encryption import Tenant, decrypt_values, to_model
from chatledger.storage.rows.secrets import find_secret, make_secret, new_secret, subjects_of
from chatledger.storage.schema.columns import Key, Moment
from chatledger.storage.schema.tables import erasures, feedback, kept_scores, kv, run_decisions, runs, threads

_BATCH = 100
"""Threads of a user or a tenant that are listed at a time. Each is erased in a transaction of its own."""


async def erase_thread(scope: Scope, thread_id: str, *, keep_scores: bool) -> Erasure:
    """Raises ThreadNotFound."""
    return await scope.write(lambda sql: _erase_thread(sql, scope.tenant, thread_id, keep_scores), removes=True)


async def erase_all(scope: Scope, kind: ErasureKind, id_: str, *, keep_scores: bool) -> Erasure:
    """Erase the threads of a user or of the tenant one by one, and then what is beside them."""
    tenant, user_id = scope.tenant, id_ if kind == "user" else None
    gone: list[Erasure] = []
    while ids := await scope.read(lambda sql: _threads_of(sql, tenant, user_id)):
        for thread_id in ids:
            try:
                gone.append(await erase_thread(scope, thread_id, keep_scores=keep_scores))
            except ThreadNotFound:  # somebody else was faster
                continue
    rows = together(Deleted(rows=erasure.rows) for erasure in gone)
    scores = sum(erasure.scores for erasure in gone)

    def finish(sql: WriteSql) -> Erasure:
        values, highest = delete_values(sql, _beside(tenant, kind, id_))
        gone_rows = together([rows, Deleted(rows={kv.name: values})])
        if user_id is None:
            erasure = _bury(sql, tenant, kind, id_, gone_rows, scores)
        else:
            erasure = _erase_feedback(sql, tenant, user_id, gone_rows, scores, keep_scores)
        keep_version(sql, tenant, highest)
        return erasure

    return await scope.write(finish, removes=True)


async def foresee(scope: Scope, kind: ErasureKind, id_: str, *, keep_scores: bool) -> Erasure:
    """The tombstone of an erasure, which is not stored; of an erased thread, the one that is. Raises ThreadNotFound."""
    tenant, user_id = scope.tenant, id_ if kind == "user" else None
    which = {"thread": [threads.c.thread_id == id_], "user": [threads.c.user_id == id_], "tenant": []}[kind]

    def count(sql: ReadSql) -> tuple[Deleted, int, str]:
        rows, scores = _count(sql, tenant, which, user_id)
        beside = select(kv.c.key).where(_beside(tenant, kind, id_)).subquery()
        values = 0 if kind == "thread" else _how_many(sql, beside)
        secret = find_secret(sql, tenant, "tombstone_secret") or new_secret()  # nobody keeps the new one
        gone = together([rows, Deleted(rows={kv.name: values})])
        return gone, scores, subjects_of(secret, kind, id_)[0]

    rows, scores, subject = await scope.read(count, snapshot=True)
    if kind == "thread" and not rows.rows["threads"]:
        earlier = await find_tombstone(scope, kind, id_)
        if earlier is None:
            raise ThreadNotFound(id_)
        return earlier
    return _tombstone(kind, subject, rows, scores if keep_scores else 0)


async def find_tombstone(scope: Scope, kind: ErasureKind, id_: str) -> Erasure | None:
    return await scope.read(lambda sql: _find(sql, scope.tenant, kind, id_))


async def list_tombstones(scope: Scope, limit: int, cursor: str | None) -> Page[Erasure]:
    """Raises InvalidCursor and LimitExceeded."""
    size = page_size(limit)
    return await scope.read(lambda sql: _list(sql, scope.tenant, size, cursor))


def _beside(tenant: Tenant, kind: ErasureKind, id_: str) -> ColumnElement[bool]:
    """The values of `kv` that are of no thread, and go with a user or a tenant."""
    own = and_(kv.c.tenant_id == tenant.name, kv.c.kind.in_(["tenant", "user"] if kind == "tenant" else ["user"]))
    return own if kind == "tenant" else and_(own, kv.c.scope_id == id_)


def _of(tenant: Tenant, kind: ErasureKind) -> Any:
    return and_(erasures.c.tenant_id == tenant.name, erasures.c.kind == kind)


def _threads_of(sql: ReadSql, tenant: Tenant, user_id: str | None) -> Sequence[str]:
    own = [threads.c.tenant_id == tenant.name]
    if user_id is not None:
        own.append(threads.c.user_id == user_id)
    return sql.execute(select(threads.c.thread_id).where(*own).limit(_BATCH)).scalars().all()


def _erase_thread(sql: WriteSql, tenant: Tenant, thread_id: str, keep_scores: bool) -> Erasure:
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


def _erase_feedback(
    sql: WriteSql, tenant: Tenant, user_id: str, rows: Deleted, scores: int, keep_scores: bool
) -> Erasure:
    """Delete the feedback of a user that is left, on other people's threads, and bury the user. What the user decided
    there about calls stays, without the user and the reason. `rows` and `scores` are those of the user's own threads.
    """
    own = (feedback.c.tenant_id == tenant.name, feedback.c.user_id == user_id)
    scored = select(feedback.c.run_id).where(*own)
    # In the order in which a deletion of threads locks them. Nobody scores these runs before the transaction ends.
    held = select(runs.c.run_id).where(runs.c.tenant_id == tenant.name, runs.c.run_id.in_(scored))
    sql.execute(held.order_by(runs.c.run_id).with_for_update())
    counted = _scores_to_keep(sql, tenant, feedback.c.user_id == user_id) if keep_scores else []
    elsewhere = Deleted(rows={feedback.name: sql.execute(delete(feedback).where(*own)).rowcount})
    decided = (run_decisions.c.tenant_id == tenant.name, run_decisions.c.author == user_id)
    sql.execute(update(run_decisions).where(*decided).values(author=None, reason=None))
    erasure = _bury(sql, tenant, "user", user_id, together([rows, elsewhere]), scores + len(counted))
    _keep(sql, tenant, erasure, counted)
    return erasure


def _count(
    sql: ReadSql, tenant: Tenant, which: Sequence[ColumnElement[bool]], user_id: str | None
) -> tuple[Deleted, int]:
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


def _how_many(sql: ReadSql, rows: FromClause) -> int:
    counted: int = sql.execute(select(func.count()).select_from(rows)).scalar_one()
    return counted


def _on_threads(tenant: Tenant, of_threads: ColumnElement[bool]) -> ColumnElement[bool]:
    """The feedback on these threads. `of_threads` is a condition on `runs`."""
    ids = select(runs.c.run_id).where(runs.c.tenant_id == tenant.name, of_threads)
    return and_(feedback.c.tenant_id == tenant.name, feedback.c.run_id.in_(ids))


def _scores_to_keep(sql: WriteSql, tenant: Tenant, which: ColumnElement[bool]) -> list[dict[str, Any]]:
    """The numbers of the scores that count, in order of time."""
    scores = current_scores(feedback.c.tenant_id == tenant.name, which)
    of_run = and_(runs.c.tenant_id == tenant.name, runs.c.run_id == scores.c.run_id)
    columns = (scores.c.key, scores.c.score, runs.c.agent, runs.c.model, scores.c.created_at)
    in_order = (scores.c.created_at, scores.c.feedback_id)
    statement = select(*columns).select_from(scores.join(runs, of_run)).order_by(*in_order)
    return [dict(row) for row in sql.execute(statement).mappings()]


def _keep(sql: WriteSql, tenant: Tenant, erasure: Erasure, scores: Sequence[dict[str, Any]]) -> None:
    if scores:
        place = {"tenant_id": tenant.name, "erasure_id": erasure.erasure_id}
        sql.execute(insert(kept_scores), [{**place, "idx": idx, **row} for idx, row in enumerate(scores)])


def _bury(sql: WriteSql, tenant: Tenant, kind: ErasureKind, id_: str, deleted: Deleted, scores: int) -> Erasure:
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


def _find(sql: ReadSql, tenant: Tenant, kind: ErasureKind, id_: str) -> Erasure | None:
    """None also for a thread on a user's ledger: a tombstone does not say whose thread it was."""
    if kind == "thread" and tenant.user_id is not None:
        return None
    subjects = subjects_of(find_secret(sql, tenant, "tombstone_secret"), kind, id_)
    own = _select().where(_of(tenant, kind), erasures.c.subject.in_(subjects))
    row = sql.execute(own.order_by(erasures.c.created_at.desc()).limit(1)).mappings().one_or_none()
    return None if row is None else _to_erasure(tenant, row)


def _list(sql: ReadSql, tenant: Tenant, limit: int, cursor: str | None) -> Page[Erasure]:
    statement = _select().where(erasures.c.tenant_id == tenant.name)
    if cursor is not None:
        created_at, erasure_id = read_cursor(cursor, datetime, str)
        place = tuple_(erasures.c.created_at, erasures.c.erasure_id)
        statement = statement.where(place < tuple_(literal(created_at, Moment), literal(erasure_id, Key)))
    rows = fetch_rows(sql, statement, limit, "created_at", "erasure_id", newest_first=True)
    return to_page(rows, lambda row: _to_erasure(tenant, row), "created_at", "erasure_id")


def _to_erasure(tenant: Tenant, row: Any) -> Erasure:
    """Raises DamagedCell."""
    return to_model(Erasure, erasures, row, decrypt_values(tenant, erasures, row))
