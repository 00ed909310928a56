"""Begins an answer: its question, its run and its lease, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, ScalarSelect, and_, func, insert, literal, select

from chatledger.answers.stop import stop_answer
from chatledger.answers.stored import NOBODY, StoredAnswer, clock, database_id, find_answer, open_answers
from chatledger.errors import IdConflict, LimitExceeded, RunConflict, RunLive
from chatledger.models import ChatMessage, Limits, Run
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.preflight import Preflight, preflight
from chatledger.storage.append.request import AppendRequest, Terms
from chatledger.storage.drivers.sql import ReadSql, WriteSql, insert_if_absent
from chatledger.storage.history.path import find_path, load_range, stands_on
from chatledger.storage.history.places import At, Place, find_place
from chatledger.storage.history.window_request import Window
from chatledger.storage.repositories.branches import make_fork
from chatledger.storage.rows.encryption import Tenant, encrypt_values
from chatledger.storage.schema.tables import run_leases, runs, workers
from chatledger.storage.schema.text import decode_text


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a caller begins. `question` appends the question, or nothing if the caller asks for another answer to the
    message `reply_to`. `worker_id` names the worker that begins at once, if this process serves the agent.
    """

    run: Run
    secret: str
    question: AppendRequest
    reply_to: At = None
    worker_id: str = NOBODY
    stops: bool = False
    """Whether the open answers of the thread end for this one."""
    key: str | None = None
    """The key that the caller chose."""


class StartedAnswer(NamedTuple):
    """`mark` is that of the branch, if the answer is new and this wrote to the branch."""

    answer: StoredAnswer
    question: ChatMessage
    mark: str | None
    replayed: bool


def start_answer(sql: WriteSql, terms: Terms, begun: Beginning) -> StartedAnswer:
    """Store the question, the run and its lease, or find them.

    Raises RunLive, IdConflict for a key that has another question, RunConflict, LimitExceeded for an answer too many,
    and what an append raises.
    """
    tenant, run, place = terms.tenant, begun.run, _LeasePlace(0, None)
    seen: Preflight | None = None
    stored, owner = find_answer(sql, tenant, run.run_id), tenant.user_id
    if stored is None:
        seen = preflight(sql, begun.question, lock=True)  # of two starts, the second waits here
        stored = find_answer(sql, tenant, run.run_id) if seen.thread_exists else None
        if stored is None and not seen.hidden:
            if seen.thread_exists:
                owner = None if seen.user_id is None else decode_text(seen.user_id)
            others = _others(sql, terms, begun) if seen.thread_exists else []
            place = _find_place(sql, terms, run.thread_id, owner)
            for other in others:
                stop_answer(sql, terms, other.run.run_id)
            if others:
                seen = None  # they changed the branch
    if stored is not None:
        return StartedAnswer(stored, _require_same(sql, stored, begun), None, True)
    mark: str | None = None
    if begun.question.messages:
        appended = attempt_locked(sql, begun.question, seen)
        (question,), mark = appended.messages, appended.mark
        branch = question.branch or 0
    else:
        question, branch = _place(sql, terms, begun)
    stored = StoredAnswer(run, question.message_id or "", branch, begun.secret, user_id=owner)
    _insert(sql, tenant, stored)
    stored = stored.taken_by(begun.worker_id, 1 if begun.worker_id else 0)
    lease = {"agent": run.agent, "attempt": stored.attempt, "worker_id": stored.worker_id}
    lease |= {"user_id": owner, **place._asdict()}
    key = {"tenant_id": tenant.name, "thread_id": run.thread_id, "run_id": run.run_id}
    sql.execute(insert(run_leases).values(**key, **lease))
    return StartedAnswer(stored, question, mark, False)


def _others(sql: WriteSql, terms: Terms, begun: Beginning) -> Sequence[StoredAnswer]:
    """The open answers of the thread, which end for this one. Raises RunLive if they do not."""
    others = open_answers(sql, terms.tenant, begun.run.thread_id)
    for other in others[: not begun.stops]:
        raise RunLive(other.run.run_id, None if other.paused_at else _until(sql, other))
    return others


class _LeasePlace(NamedTuple):
    """`place` is the number of answers that the owner has open on other threads."""

    place: int
    database_id: str | None


def _find_place(sql: ReadSql, terms: Terms, thread_id: str, owner: str | None) -> _LeasePlace:
    """The place of one more answer of the owner of the thread, or of nobody without one. It reads no more rows than the
    limits allow. Raises LimitExceeded.
    """
    limits = terms.limits or Limits()
    of_tenant = and_(run_leases.c.tenant_id == terms.tenant.name, run_leases.c.thread_id != thread_id)
    of_owner = run_leases.c.user_id.is_(None) if owner is None else run_leases.c.user_id == owner
    bounds = {
        "user_answers": (and_(of_tenant, of_owner), limits.tenant_answers if owner is None else limits.user_answers),
        "tenant_answers": (of_tenant, limits.tenant_answers),
    }
    counts = [_counted(*bound).label(name) for name, bound in bounds.items()]
    row = sql.execute(select(*counts, database_id(sql).label("database_id"))).one()
    for name, (_, most) in bounds.items():
        if getattr(row, name) >= most:
            raise _too_many("tenant_answers" if owner is None else name, most)
    return _LeasePlace(row.user_answers, row.database_id)


def _counted(own: ColumnElement[bool], most: int) -> ScalarSelect[int]:
    some = select(literal(1)).where(own).limit(most).subquery()
    return select(func.count()).select_from(some).scalar_subquery()


def _too_many(name: str, most: int) -> LimitExceeded:
    whose = name.partition("_")[0]
    detail = (
        f"open answers of the {whose}: {most:,} have not ended, and no more may begin (Limits.{name}); wait until one "
        "ends, stop one with answers.stop, or decide with answers.resume what a paused one waits for"
    )
    return LimitExceeded(f"open answers of the {whose}", most + 1, most, detail=detail)


def _until(sql: ReadSql, answer: StoredAnswer) -> datetime:
    """When the lease of the worker ends; now, if nobody has taken the answer up."""
    of_worker = select(workers.c.lease_until).where(workers.c.worker_id == answer.worker_id)
    until: datetime | None = sql.execute(of_worker).scalar_one_or_none()
    return sql.execute(select(clock(sql))).scalar_one() if until is None else until


def _require_same(sql: WriteSql, stored: StoredAnswer, begun: Beginning) -> ChatMessage:
    """The question, if it is the one that was asked with the key. Raises IdConflict."""
    request = begun.question
    if request.messages and decode_text(request.message_ids[0]) == stored.question_id:
        try:
            (question,) = attempt_locked(sql, replace(request, creation=None)).messages  # a repeat: it is compared
        except IdConflict:
            raise _another(stored, begun, "question") from None
    else:
        window = Window.of(request.tenant, request.thread_id)
        place = find_place(sql, window, begun.reply_to or stored.question_id)
        question = _load(sql, window, place)
        if request.messages or question.message_id != stored.question_id:
            raise _another(stored, begun, "question")
    if begun.run.agent != stored.run.agent:
        raise _another(stored, begun, "agent")
    return question


def _another(stored: StoredAnswer, begun: Beginning, what: str) -> IdConflict:
    detail = f"idempotency_key {begun.key!r}: was used with another {what}; use another key for a new request"
    return IdConflict("idempotency_key", stored.run.run_id, detail, idempotency_key=begun.key)


def _place(sql: WriteSql, terms: Terms, begun: Beginning) -> tuple[ChatMessage, int]:
    """The stored question, and the branch for another answer to it: a new one, unless nothing follows the question."""
    window = Window.of(terms.tenant, begun.run.thread_id)
    path = find_path(sql, window)
    place = find_place(sql, window, begun.reply_to)
    assert isinstance(place, Place)
    question = _load(sql, window, place)
    if place.seq == path.last_seq and stands_on(path.segments, *place):
        return question, path.branch
    return question, make_fork(sql, window, place, True, None, terms.rules).branch


def _load(sql: ReadSql, window: Window, place: Place | int) -> ChatMessage:
    assert isinstance(place, Place)
    (message,) = load_range(sql, window.tenant, window.thread, place.branch, place.seq, place.seq)
    return message


def _insert(sql: WriteSql, tenant: Tenant, answer: StoredAnswer) -> None:
    own = {"question_id": answer.question_id, "branch": answer.branch, "call_secret": answer.secret, "attempts": 0}
    values = encrypt_values(tenant, runs, answer.run.model_dump(exclude={"usage"}))
    if not sql.execute(insert_if_absent(sql, runs).values(tenant_id=tenant.name, **values, **own)).rowcount:
        raise RunConflict(answer.run.run_id, "exists already, and answers no question")
