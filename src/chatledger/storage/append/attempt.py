"""One attempt of an append: read the branch, judge the batch, write it under the guard of the branch's stamp.

An attempt raises an error only after a fresh preflight, which looks for the ids first. So its errors are final.
`TryAgain` means that another writer was faster; the caller then tries again under a lock. "The order of judgement" in
`docs/contribute/append-and-history.md` is the order of the checks.

An attempt may use a cached tip in place of a preflight. A cached tip can only let an append through. An append that it
would refuse gets a preflight first, and the stamp stops a write that was judged on a stale tip.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

from chatledger.errors import (
    BranchNotFound,
    ChatLedgerError,
    DraftLive,
    LimitExceeded,
    RuleViolation,
    StorageError,
    ThreadNotFound,
    VersionConflict,
)
from chatledger.ids import new_stamp
from chatledger.models import Appended, CallPlace, ChatMessage
from chatledger.models.base import copy_with, revive
from chatledger.rules import (
    Judged,
    Tip,
    close_gaps,
    close_interrupted,
    closing_results,
    interrupted,
    judge,
)
from chatledger.storage.append.create import create_thread
from chatledger.storage.append.new_branch import branch_off, find_cut, find_elsewhere, find_other_branch
from chatledger.storage.append.preflight import Preflight, preflight
from chatledger.storage.append.replay import find_removed, find_replay, load_replay, replay_removed
from chatledger.storage.append.request import AppendRequest, moved_since
from chatledger.storage.append.takeover import (
    draft_live,
    find_run_end,
    is_live,
    overwrite_partial,
    overwrites_partial,
    require_fence,
)
from chatledger.storage.append.write import (
    ACTIVITY_RESOLUTION,
    NewBranch,
    Plan,
    TryAgain,
    Written,
    plan_rows,
    write,
    write_values,
)
from chatledger.storage.drivers.asyncpg import apart_from_loop
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.rows.messages import EncodedMessage
from chatledger.storage.schema.text import decode_text, write_mark

_log = logging.getLogger("chatledger.drafts")


@dataclass(slots=True)
class Attempted:
    """The outcome. `now` is the preflight as it would be after the write; None if the attempt wrote nothing."""

    appended: Appended
    now: Preflight | None = None


def attempt(
    sql: WriteSql, request: AppendRequest, *, lock: bool = False, seen: Preflight | None = None
) -> Attempted | TryAgain:
    """One preflight, one judgement, one guarded write. `seen` is the preflight if it is made already."""
    seen = seen or preflight(sql, request, lock=lock)
    if request.is_fenced:  # after the preflight, which read the stamp
        require_fence(sql, request)
    if request.creation is not None and not seen.thread_exists and not seen.hidden:
        if sql.dialect == "postgresql" and not lock:
            return TryAgain()  # this attempt may be no transaction, which could end with an empty thread
        seen = create_thread(sql, request) or preflight(sql, request, lock=lock)
    other = None if request.after is None else find_other_branch(request, seen)
    if other is not None:
        request = replace(request, branch=other, after=None)
        seen = preflight(sql, request, lock=lock)
        if not seen.found:  # somebody removed it since; another attempt stores the batch where it belongs
            return TryAgain()
    elif (elsewhere := find_elsewhere(request, seen)) is not None:
        request = replace(request, branch=elsewhere)
        seen = preflight(sql, request, lock=lock)
    if overwrites_partial(request, seen):
        if request.kv and not lock and sql.dialect == "postgresql":
            return TryAgain()  # two statements, so they need the transaction of the next attempt
        if request.messages[0].state != "partial":  # otherwise it repeats a draft that already took its place
            _require_branch(request, seen)
        overwritten = overwrite_partial(sql, request, seen)
        if isinstance(overwritten, TryAgain):
            return overwritten
        write_values(sql, request)
        if request.draft is not None:
            _log_takeover(request, seen, "began anew")
        return Attempted(overwritten)
    removed = find_removed(sql, request, seen, again=lock)
    if removed:
        return Attempted(replay_removed(sql, request, seen, removed))
    replay = find_replay(request, seen)
    if replay is not None:
        replayed = load_replay(sql, request, replay)
        return replayed if isinstance(replayed, TryAgain) else Attempted(replayed)
    plan = _planned(request, seen) if request.after is None else _plan_after(sql, request, seen)
    if plan is None and request.messages:
        raise _draft_live(sql, request, seen)
    if plan is None:
        return Attempted(_unchanged(request, seen))
    if (interrupted_seq := plan.judgement.interrupted) is not None:
        plan = replace(plan, run_end=find_run_end(sql, request, plan.branch, interrupted_seq))
    return write_plan(sql, plan, seen, locked=lock)


def write_plan(sql: WriteSql, plan: Plan, seen: Preflight, *, locked: bool = False) -> Attempted | TryAgain:
    written = write(sql, plan, locked=locked)
    if isinstance(written, TryAgain):
        return written
    _log_takeover(plan.request, seen, "interrupted")
    return Attempted(appended(plan), preflight_after(plan, seen, written))


def _log_takeover(request: AppendRequest, seen: Preflight, what: str) -> None:
    """Log that the write takes the partial message at the end from its writer. A draft that ends its own message is not
    logged.
    """
    if seen.tip is None or seen.tip.partial_seq is None:
        return
    lease = seen.tip.lease
    if lease is None or lease.writer is None or lease.writer != request.draft:
        place = (what, seen.tip.partial_seq, seen.branch, ascii(request.thread_id[:80]))
        _log.info("%s the partial message %s of branch %s of thread %s, which its writer abandoned", *place)


def plan_on_cached_tip(request: AppendRequest, cached: Preflight) -> Plan | None:
    """None if the cached tip does not let the append through. That is no reason to refuse the append: no preflight has
    looked for its ids yet, and the tip may have moved.
    """
    if request.after is not None or request.is_fenced:  # the preflight looks up its place, and the lease
        return None
    if cached.absent is not None and request.has_key:  # no index refuses a repeat whose messages were removed
        return None
    try:
        return plan_append(request, cached) if request.messages else None  # an empty batch has no guard
    except ChatLedgerError:
        return None


def attempt_locked(sql: WriteSql, request: AppendRequest, seen: Preflight | None = None) -> Appended:
    """One attempt in a transaction. It locks the branch first, as a preflight made before did: nobody else writes."""
    outcome = attempt(sql, request, lock=True, seen=seen)
    if isinstance(outcome, TryAgain):
        raise StorageError(
            "the branch changed although this transaction holds its lock: another program may write to the tables",
            retryable=True,
        )
    return outcome.appended


def _planned(request: AppendRequest, seen: Preflight) -> Plan | None:
    """The plan; made in a thread where many calls are open, since each result looks through them."""
    many = seen.tip is not None and len(seen.tip.open_calls) > _MANY_CALLS

    def plan() -> Plan | None:
        return plan_append(request, seen)

    return apart_from_loop(plan) if many else plan()


_MANY_CALLS = 100


def plan_append(request: AppendRequest, seen: Preflight) -> Plan | None:
    """Judge the append on the preflight, and plan its write. It does not use the database.

    None if an empty batch finds no partial message to interrupt, or if another batch finds one whose writer holds the
    lease and which the caller does not interrupt.
    """
    branch, tip = _require_branch(request, seen)
    interrupts = tip.partial_seq is not None
    if not request.messages and not (interrupts and request.interrupt):
        return None
    if interrupts and not request.interrupt and is_live(tip):
        return None
    return _plan(request, seen, branch, tip)


def _plan_after(sql: WriteSql, request: AppendRequest, seen: Preflight) -> Plan | None:
    """As `plan_append`, after an earlier message. The plan makes a branch if messages follow that one."""
    _require_branch(request, seen)
    cut = find_cut(sql, request, seen)
    if cut is None:
        return plan_append(request, seen)
    if not request.messages:
        return None
    return _plan(request, seen, *branch_off(sql, request, seen, cut))


def _plan(request: AppendRequest, seen: Preflight, branch: int, tip: Tip, new_branch: NewBranch | None = None) -> Plan:
    given, interrupts = request, tip.partial_seq is not None
    if interrupts:
        request = request.insert(*close_interrupted(tip, request.messages))
    request = _with_closing_results(request, interrupted(tip) if interrupts else tip, branch)
    level = request.rules or seen.rules or request.default_rules
    try:
        judgement = judge(tip, request.messages, branch=branch, level=level)
    except RuleViolation as error:  # the index counts inserted results too, which the caller does not know of
        index = given.message_ids.index(request.message_ids[error.index])
        raise RuleViolation(error.rule, index, error.detail) from None
    _refuse_many_open(tip, judgement.tip)
    if judgement.tip.partial_seq is not None:
        judgement = judgement._replace(tip=judgement.tip._replace(lease=request.lease_from(request.now)))
    return Plan(
        request=request,
        own=given.rows,
        branch=branch,
        stamp=seen.stamp,
        new_stamp=new_stamp(),
        touches=new_branch is None and (seen.touched is None or request.now - seen.touched >= ACTIVITY_RESOLUTION),
        judgement=judgement,
        rows=plan_rows(request, judgement, branch, [run for run in request.runs if run != seen.run]),
        new_branch=new_branch,
    )


MOST_OPEN_CALLS = 10_000
"""Maximum number of calls without a result on a branch. Each append stores them anew, and one call may close all."""


def _refuse_many_open(before: Tip, after: Tip) -> None:
    """Raises LimitExceeded if the batch opens too many calls. It may close some of too many."""
    waiting = len(after.open_calls) + len(after.partial_calls)
    if len(before.open_calls) < waiting > MOST_OPEN_CALLS:
        raise LimitExceeded("open calls of a branch", waiting, MOST_OPEN_CALLS)


def _require_branch(request: AppendRequest, seen: Preflight) -> tuple[int, Tip]:
    """Raises ThreadNotFound, BranchNotFound, InvalidArgument and VersionConflict, in this order."""
    another = request.tenant.user not in (None, seen.user_id)  # a cached tip may be that of another user's thread
    if not seen.thread_exists or another:
        raise ThreadNotFound(request.thread_id)
    if seen.branch is None or seen.tip is None:
        raise BranchNotFound(request.thread_id, seen.active_branch if request.branch is None else request.branch)
    expected, last_seq = request.expected, seen.tip.last_seq
    if expected == 0 and last_seq:
        raise VersionConflict("branch", 0, last_seq, thread_id=request.thread_id, branch=seen.branch)
    if expected and expected != (seen.branch, last_seq, seen.stamp):
        raise moved_since(expected, request.thread_id, seen.branch, last_seq)
    return seen.branch, seen.tip


_MESSAGE_ID = """
SELECT message_id FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq = :seq
"""


def _draft_live(sql: WriteSql, request: AppendRequest, seen: Preflight) -> DraftLive:
    """The error for a draft that `is_live` found. Only a refused append pays for the look-up of its id."""
    assert seen.tip is not None
    assert seen.branch is not None
    seq = seen.tip.last_seq
    place = {"tenant": request.tenant.key, "thread": request.thread, "branch": seen.branch, "seq": seq}
    ids = [decode_text(row[0]) for row in sql.fetch(_MESSAGE_ID, place) if row[0] is not None]
    return draft_live(request.thread_id, seen.branch, seen.tip, ids[0] if ids else None)


def _with_closing_results(request: AppendRequest, tip: Tip, branch: int) -> AppendRequest:
    if request.close_open_calls:
        for index, results in reversed(close_gaps(tip, request.messages, branch=branch)):
            request = request.insert(index, results)
    return request


def close_open_calls(sql: WriteSql, request: AppendRequest, reason: str) -> Appended:
    """Append only synthetic results for the calls that are open now, in a transaction. They interrupt a partial message
    at the end. Raises DraftLive.
    """
    seen = preflight(sql, request, lock=True)
    _, tip = _require_branch(request, seen)
    if is_live(tip):
        raise _draft_live(sql, request, seen)
    closing = apart_from_loop(lambda: request.insert(0, closing_results(tip, reason=reason)))
    return attempt_locked(sql, replace(closing, interrupt=True))


# --- The outcome ------------------------------------------------------------------------------------------------------


def appended(plan: Plan) -> Appended:
    """The caller's own messages as the write stores them. The plan holds all of it, so nothing is read back."""
    stands: Iterable[tuple[Judged, EncodedMessage]] = zip(plan.judgement.messages, plan.request.rows, strict=True)
    if plan.request.rows is not plan.own:
        ids = {row.message_id for row in plan.own}
        stands = [one for one in stands if one[1].message_id in ids]
    stored = [as_stored(plan.request, plan.branch, judged, row) for judged, row in stands]
    version = plan.judgement.tip.last_seq
    partial = bool(stored) and stored[-1].state == "partial"
    mark = write_mark(plan.request.thread, plan.branch, version, plan.new_stamp, partial=partial)
    return Appended(stored, mark, version)


def preflight_after(plan: Plan, seen: Preflight, written: Written) -> Preflight:
    """The preflight as it would be after the write."""
    touched = plan.request.now if written.touched else seen.touched
    tip, stamp, forked = plan.judgement.tip, plan.new_stamp, seen.forked or plan.new_branch is not None
    active, absent = seen.active_branch, seen.absent
    if plan.new_branch is not None:
        active, absent = plan.branch, plan.new_branch.absent
    return Preflight(
        True,
        seen.rules,
        active,
        plan.branch,
        tip,
        stamp,
        forked=forked,
        touched=touched,
        absent=absent,
        user_id=seen.user_id,
        run=plan.request.runs[-1] if plan.request.runs else seen.run,
    )


def _unchanged(request: AppendRequest, seen: Preflight) -> Appended:
    """The outcome of an append of nothing: the end of the branch, with the mark that a history has there."""
    version, partial = (0, False) if seen.tip is None else (seen.tip.last_seq, seen.tip.partial_seq is not None)
    mark = write_mark(request.thread, seen.branch or 0, version, seen.stamp, partial=partial)
    return Appended([], mark, version)


_PLACED = {"seq", "index"}


def as_stored(request: AppendRequest, branch: int, judged: Judged, row: EncodedMessage) -> ChatMessage:
    """The message as a history returns it."""
    message, seq, violations, call = judged
    place = {
        "message_id": decode_text(row.message_id or ""),
        "thread_id": request.thread_id,
        "branch": branch,
        "seq": seq,
        "created_at": message.__dict__["created_at"] or request.now,
        "violations": list(violations),
        "answers": None if call is None else revive(CallPlace, {"seq": call.seq, "index": call.idx}, _PLACED),
    }
    return copy_with(message, place)
