"""Append: the order of judgement (design section 6), one attempt at a time.

An attempt looks, judges on what it just saw, and writes under the guard of the stamp. What an attempt raises is final,
because it was judged on a fresh tip after the ids were looked for; None says that the branch moved meanwhile, and the
caller tries again under the lock.

An attempt may begin with a remembered look instead of a fresh one. Memory can only let an append through: whatever it
would refuse is looked at first, and the stamp keeps a write that was judged on a stale memory from happening.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from chatledger.errors import ChatLedgerError, IdConflict, RuleViolation, RunConflict, StorageError
from chatledger.ids import new_stamp
from chatledger.models import Appended, ChatMessage
from chatledger.models.trusted import copy_with
from chatledger.rules import (
    Judged,
    Judgement,
    Lease,
    Tip,
    close_gaps,
    close_interrupted,
    closing_results,
    interrupted,
    judge,
)
from chatledger.storage.append.partial import complete_in_place, completes_partial
from chatledger.storage.append.preflight import Look, find_replay, look, require_branch
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.write import ACTIVITY_GRAIN, Plan, Written, plan_rows, write
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.path import load_range
from chatledger.storage.rows.messages import EncodedMessage, encode_message
from chatledger.storage.schema.text import decode_text


@dataclass(frozen=True, slots=True)
class Attempted:
    """The outcome, and what a look would see now; None where nothing was written."""

    appended: Appended
    now: Look | None = None


def attempt(sql: Sql, request: AppendRequest, *, lock: bool = False) -> Attempted | None:
    """One look, one judgement, one guarded write."""
    sql, request = _agreed(sql, request)
    seen = look(sql, request, lock=lock)
    if completes_partial(request, seen):
        completed = complete_in_place(sql, request, seen)
        return None if completed is None else Attempted(completed)
    replay = find_replay(request, seen)
    if replay is not None:
        return _replayed(sql, request, *replay)
    plan = plan_append(request, seen)
    if plan is None:
        return Attempted(_appended([], seen.tip.last_seq if seen.tip else 0))
    written = write(sql, plan)
    return None if written is None else Attempted(appended(plan), seen_after(plan, seen, written))


def _agreed(sql: Sql, request: AppendRequest) -> tuple[Sql, AppendRequest]:
    """Both with the seal that one of them has: the request where an append was called, the Sql where a command is."""
    if request.seal is not None:
        return sql.sealed_by(request.seal), request
    return sql, request if sql.seal is None else replace(request, seal=sql.seal)


def attempt_on_memory(sql: Sql, request: AppendRequest, remembered: Look) -> Attempted | None:
    """No look, and None for whatever has to be looked at first. Nothing is raised that memory alone would say."""
    plan = plan_on_memory(request, remembered)
    if plan is None:
        return None
    with suppress(RunConflict):
        written = write(sql, plan)
        return None if written is None else Attempted(appended(plan), seen_after(plan, remembered, written))
    return None


def plan_on_memory(request: AppendRequest, remembered: Look) -> Plan | None:
    """None for what is refused: the ids have not been looked for, and the tip may have moved."""
    try:
        return plan_append(request, remembered) if request.messages else None  # nothing is nothing a stamp could guard
    except ChatLedgerError:
        return None


def plan_on_each_other(requests: Sequence[AppendRequest], remembered: Look) -> list[Plan]:
    """A plan for each of the requests to one branch, judged on what those before it leave; up to the first that is
    refused, or that leaves a message unfinished.
    """
    plans: list[Plan] = []
    seen = remembered
    for request in requests:
        plan = plan_on_memory(request, seen)
        if plan is None or plan.judgement.tip.partial_seq is not None:
            break
        plans.append(plan)
        seen = seen_after(plan, seen, Written(plan.touches))
    return plans


def attempt_locked(sql: Sql, request: AppendRequest) -> Appended:
    """An attempt inside a transaction that nobody else can write in between."""
    outcome = attempt(sql, request, lock=True)
    if outcome is None:
        raise StorageError("the branch moved although it was locked: was it written by other means?", retryable=True)
    return outcome.appended


def plan_append(request: AppendRequest, seen: Look) -> Plan | None:
    """What to write, judged on what was seen; None where there is nothing to write. Pure: the database is not asked."""
    branch, tip = require_branch(request, seen)
    interrupts = _cuts_short(request, tip)
    if not request.messages and not interrupts:
        return None
    given = request
    if interrupts:
        request = request.insert(*close_interrupted(tip, request.messages))
    request = _with_closing_results(request, interrupted(tip) if interrupts else tip, branch)
    level = request.rules or seen.rules or request.default_rules
    try:
        judgement = judge(tip, request.messages, branch=branch, level=level, interrupt=interrupts)
    except RuleViolation as error:  # the caller does not know of the results that were put in between
        index = given.message_ids.index(request.message_ids[error.index])
        raise RuleViolation(error.rule, index, error.message) from None
    judgement = _with_lease(request, judgement)
    return Plan(
        request=request,
        own=given.rows,
        branch=branch,
        stamp=seen.stamp,
        new_stamp=new_stamp(),
        touches=seen.touched is None or request.now - seen.touched >= ACTIVITY_GRAIN,
        judgement=judgement,
        rows=plan_rows(request, judgement, branch),
    )


def appended(plan: Plan) -> Appended:
    """The caller's own messages as they will be stored. It needs no answer of the database, only that it agrees."""
    stands: Iterable[tuple[Judged, EncodedMessage]] = zip(plan.judgement.messages, plan.request.rows, strict=True)
    if plan.request.rows is not plan.own:
        ids = {row.message_id for row in plan.own}
        stands = [one for one in stands if one[1].message_id in ids]
    stored = [_stored(plan.request, plan.branch, judged, row) for judged, row in stands]
    return _appended(stored, plan.judgement.tip.last_seq)


def seen_after(plan: Plan, seen: Look, written: Written) -> Look:
    """What a look would see now."""
    touched = plan.request.now if written.touched else seen.touched
    return seen.after(plan.judgement.tip, plan.new_stamp, touched=touched)


def close_open_calls(sql: Sql, request: AppendRequest, reason: str) -> Appended:
    """Append nothing but synthetic results for the calls that are open now, in a transaction."""
    _, tip = require_branch(request, look(sql, request, lock=True))
    return attempt_locked(sql, request.insert(0, closing_results(tip, reason=reason)))


def _cuts_short(request: AppendRequest, tip: Tip) -> bool:
    """Whether the partial message at the end, if there is one, is marked as interrupted to make room for the batch:
    where that was asked for, and where whoever wrote it has let its lease run out.
    """
    if tip.partial_seq is None:
        return False
    if request.close_open_calls or request.interrupt:
        return True
    return bool(request.messages) and (tip.lease is None or not tip.lease.holds(request.now))


def _with_lease(request: AppendRequest, judgement: Judgement) -> Judgement:
    if judgement.tip.partial_seq is None:
        return judgement
    leased = judgement.tip._replace(lease=Lease(request.now, request.lease))
    return judgement._replace(tip=leased)


def _with_closing_results(request: AppendRequest, tip: Tip, branch: int) -> AppendRequest:
    if request.close_open_calls:
        for index, results in reversed(close_gaps(tip, request.messages, branch=branch)):
            request = request.insert(index, results)
    return request


def _appended(messages: list[ChatMessage], version: int, *, replayed: bool = False) -> Appended:
    """The outcome of a call: about the caller's own messages, so that a repeat gives the same."""
    first = version + 1 if not messages else messages[0].seq or 0
    return Appended(first, version, version, messages, replayed)


def _stored(request: AppendRequest, branch: int, judged: Judged, row: EncodedMessage) -> ChatMessage:
    """The message as a history gives it, without reading it back."""
    return copy_with(
        judged.message,
        {
            "message_id": decode_text(row.message_id or ""),
            "thread_id": request.thread_id,
            "branch": branch,
            "seq": judged.seq,
            "created_at": judged.message.created_at or request.now,
            "violations": list(judged.violations),
        },
    )


def _replayed(sql: Sql, request: AppendRequest, branch: int, first: int, last: int) -> Attempted | None:
    """The first result again if the content is the same (row 3), IdConflict otherwise (row 4)."""
    given = {row.message_id: row for row in request.rows}
    stored = []
    for message in load_range(sql, request.tenant, request.thread, branch, first, last):
        encoded = encode_message(message)
        if encoded.message_id in given:
            if encoded != given[encoded.message_id]:
                raise IdConflict(message.message_id or "", message.seq, "is stored already with other content")
            stored.append(message)
        elif message.state != "synthetic":
            raise IdConflict(message.message_id or "", message.seq, "stands between the messages of the batch")
    # Fewer than the look found: the thread was deleted since, so the next attempt judges anew.
    return Attempted(_appended(stored, last, replayed=True)) if len(stored) == len(given) else None
