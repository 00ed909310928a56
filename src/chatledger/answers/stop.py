"""Ends an answer: by its own attempt, or by anybody who stops it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import delete, update

from chatledger.answers.stored import StoredAnswer, find_answer, hold_branch, lease_of, run_of
from chatledger.errors import RunNotFound
from chatledger.models import Run
from chatledger.storage.append.attempt import close_open_calls
from chatledger.storage.append.draft_rows import PartialKey
from chatledger.storage.append.preflight import preflight
from chatledger.storage.append.request import AppendRequest, Terms, make_request
from chatledger.storage.drafts.open_drafts import interrupt_partial
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.rows.encryption import encrypt_values
from chatledger.storage.schema.tables import run_leases, runs

STOPPED = "stopped"
Ending = Literal["completed", "failed", "cancelled"]


def stop_answer(sql: WriteSql, terms: Terms, run_id: str, reason: str = STOPPED) -> Run:
    """End the answer as cancelled, whoever works on it. Nothing of it is written once the transaction is committed. An
    answer that has ended stays as it is. Raises RunNotFound.
    """
    answer = find_answer(sql, terms.tenant, run_id)
    if answer is None:
        raise RunNotFound(run_id)
    if not _may_end(answer):
        return answer.run
    hold_branch(sql, terms.tenant, answer)
    answer = find_answer(sql, terms.tenant, run_id)  # as whoever held the branch left it
    if answer is None:
        raise RunNotFound(run_id)
    return end_at_once(sql, terms, answer, "cancelled", reason) if _may_end(answer) else answer.run


def _may_end(answer: StoredAnswer) -> bool:
    """A copy of a database has open runs without leases, if it was asked to keep them: nobody else can end these."""
    return answer.is_open or answer.run.status == "running"


def end_at_once(sql: WriteSql, terms: Terms, answer: StoredAnswer, status: Ending, error: str) -> Run:
    """End an answer that nobody else takes up meanwhile: interrupt its draft and close its calls. The branch has a new
    stamp.
    """
    request = _nothing(terms, answer)
    tip = preflight(sql, request, lock=True).tip
    sql.execute(delete(run_leases).where(lease_of(terms.tenant, answer)))  # first, or it would fence this off too
    if tip is not None and tip.partial_seq is not None and _is_of(sql, request, answer, tip.partial_seq):
        interrupt_partial(sql, request, PartialKey(terms.tenant, request.thread, answer.branch, tip.partial_seq, None))
    elif tip is not None and tip.open_calls and tip.turn_run == answer.run.run_id:
        close_open_calls(sql, request, error)
    return _end(sql, terms, answer, status, error)


def end_answer(
    sql: WriteSql, terms: Terms, answer: StoredAnswer, status: Ending, error: str | None = None, *, closes: bool = False
) -> bool:
    """End the answer by the attempt that has it; False if it lost the answer. `closes`: it left calls without results,
    which get synthetic ones.
    """
    if closes:
        request = replace(_nothing(terms, answer), fence=answer.fence)
        close_open_calls(sql, request, "the answer ended")
    if not sql.execute(delete(run_leases).where(lease_of(terms.tenant, answer))).rowcount:
        return False
    _end(sql, terms, answer, status, error)
    return True


def _nothing(terms: Terms, answer: StoredAnswer) -> AppendRequest:
    return make_request(terms, answer.run.thread_id, [], branch=answer.branch, on_open_calls="close")


_RUN = """
SELECT run_id FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq = :seq
"""


def _is_of(sql: WriteSql, request: AppendRequest, answer: StoredAnswer, seq: int) -> bool:
    place = {"tenant": request.tenant.key, "thread": request.thread, "branch": answer.branch, "seq": seq}
    return [row[0] for row in sql.fetch(_RUN, place)] == [answer.fence.run]


def _end(sql: WriteSql, terms: Terms, answer: StoredAnswer, status: Ending, error: str | None) -> Run:
    values = {"status": status, "error": error, "ended_at": datetime.now(UTC)}
    encrypted = encrypt_values(terms.tenant, runs, values, run_id=answer.run.run_id)
    sql.execute(update(runs).where(run_of(terms.tenant, answer)).values(**encrypted))
    return answer.run.model_copy(update=values)
