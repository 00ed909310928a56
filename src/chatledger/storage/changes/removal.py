"""Removes stored messages: the last one of a branch (pop), all after a position (rewind), or any one (retract).

The rows of a removed message are deleted, so a read need not leave anything out. A row that another branch shares stays
where it is, and the branch that drops it gets a gap in its lineage. Each change keeps the removed messages in
`revisions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, select, update

from chatledger.errors import InvalidCursor, MessageNotFound, RuleViolation
from chatledger.models import ChatMessage, RulesLevel, Violation
from chatledger.storage.append.request import moved_since, read_expected
from chatledger.storage.changes.record import (
    HeldBranch,
    HeldThread,
    hold_changeable,
    note_changed,
    record_change,
    refuse_live,
    settle,
    take_position,
)
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.answer_links import BEGIN_TURNS
from chatledger.storage.history.fold import fold_tip
from chatledger.storage.history.path import (
    Segment,
    cut,
    find_message,
    load_range,
    nearest,
    require_short,
    without,
)
from chatledger.storage.history.places import At, find_place, seq_on
from chatledger.storage.history.portions import Allowance, portions
from chatledger.storage.history.window_request import END, Window
from chatledger.storage.schema.tables import messages
from chatledger.storage.schema.text import Mark

MOST_REMOVED, MOST_REMOVED_MIB = 10_000, 64
"""The messages that one rewind removes, and their size."""

# --- From the end -----------------------------------------------------------------------------------------------------


def pop(sql: WriteSql, window: Window, expected: Mark | None) -> ChatMessage | None:
    """Remove the last message of the branch, in a transaction, and return it; None without one. Raises ThreadNotFound,
    BranchNotFound, VersionConflict and DraftLive.
    """
    thread, held = _hold(sql, window, expected)
    last = nearest(sql, window, held.path, 1, held.path.last_seq, 1, backward=True)
    if last is None:
        return None
    (removed,) = _remove_after(sql, window, thread, held, last[0] - 1)
    return removed


async def rewind_to(
    scope: Scope, thread_id: str, to: At, *, branch: int | None = None, expected: str | None = None
) -> list[ChatMessage]:
    """Raises as `messages.rewind`, and InvalidCursor for a seq beyond the end."""
    window = Window.of(scope.tenant, thread_id, branch)
    mark = None if expected is None else read_expected(expected, window.thread, branch)
    return await scope.write(lambda sql: rewind(sql, window, to, mark), moves=window.thread)


def rewind(sql: WriteSql, window: Window, at: At, expected: Mark | None) -> list[ChatMessage]:
    """Remove all messages after the place, in a transaction, and return them in order. Raises as `pop`, and
    InvalidCursor and MessageNotFound.
    """
    thread, held = _hold(sql, window, expected)
    to = seq_on(window, held.path, find_place(sql, window, at))
    end = held.path.last_seq
    if not 0 <= to <= end:
        raise InvalidCursor(to, f"branch {held.path.branch} ends at seq {end}; rewind it to 0 to {end}")
    return _remove_after(sql, window, thread, held, to)


def _hold(sql: WriteSql, window: Window, expected: Mark | None) -> tuple[HeldThread, HeldBranch]:
    thread = hold_changeable(sql, window)
    held = thread.choose(window)
    if expected is not None and expected != (held.path.branch, held.path.last_seq, held.path.stamp):
        raise moved_since(expected, window.thread_id, held.path.branch, held.path.last_seq)
    refuse_live(sql, window, held)
    return thread, held


def _remove_after(sql: WriteSql, window: Window, thread: HeldThread, held: HeldBranch, to: int) -> list[ChatMessage]:
    path, now = held.path, datetime.now(UTC)
    at, tail = path.last_seq + 1, cut(path.segments, to + 1, path.last_seq)
    removed = _record_all(sql, window, (path.branch, at), tail, now)
    if not removed:
        return []
    unshared = thread.not_shared(tail, held)
    for segment in unshared:
        _delete_rows(sql, window, segment)
    shares = unshared != tail
    segments = [*cut(path.segments, 1, to), Segment(path.branch, at + 1, END)] if shares else None
    if segments is not None and len(segments) > len(path.segments):  # the rest of an older, longer lineage may go
        require_short(segments)
    tip = fold_tip(sql, replace(window, branch=path.branch), path, to)
    take_position(sql, window, held, tip, removed=len(removed), segments=segments)
    note_changed(sql, window, now)
    return removed


def _record_all(
    sql: WriteSql, window: Window, place: tuple[int, int], tail: Sequence[Segment], now: datetime
) -> list[ChatMessage]:
    """Record the messages of the tail as removed, a portion at a time, and return them. Raises LimitExceeded, before it
    reads any.
    """
    last_kept = tail[0].first - 1 if tail else place[1]
    way_out = f"rewind in steps, the first to a later seq, or fork the branch at seq {last_kept}, which removes nothing"
    allowance = Allowance("a rewind", MOST_REMOVED, MOST_REMOVED_MIB, way_out)
    removed: list[ChatMessage] = []
    for part in list(portions(sql, window.tenant, window.thread, tail, allowance)):
        sql.go_on()
        messages = load_range(sql, window.tenant, window.thread, *part)
        record_change(sql, window, "popped", place, messages, now, first=len(removed))
        removed += messages
    return removed


# --- From the middle --------------------------------------------------------------------------------------------------


def retract(sql: WriteSql, window: Window, message_id: str, default_rules: RulesLevel) -> ChatMessage:
    """Remove the message from every branch that has it, in a transaction, and return it. Raises ThreadNotFound,
    MessageNotFound, DraftLive, and RuleViolation for half of a call and its result unless the thread is lenient.
    """
    thread = hold_changeable(sql, window)
    stored = find_message(sql, window, message_id)
    if stored is None:
        raise MessageNotFound(window.thread_id, message_id)
    branch, seq = stored.branch or 0, stored.seq or 0
    if settle(sql, window, thread.with_row(branch, seq), seq):
        thread = hold_changeable(sql, window)
    (message,) = load_range(sql, window.tenant, window.thread, branch, seq, seq)  # as it is now
    waits_again = _part_from_pairs(sql, window, message, thread.rules or default_rules)
    now, affected = datetime.now(UTC), thread.with_row(branch, seq)
    for number, held in enumerate(affected):
        sql.go_on()
        place = (held.path.branch, held.path.last_seq + 1)
        record_change(sql, window, "retracted", place, [message], now, with_bodies=number == 0)
    _delete_rows(sql, window, Segment(branch, seq, seq))
    if waits_again:
        _record_waiting(sql, window, affected, seq)
    for held in affected:
        sql.go_on()
        own = replace(window, branch=held.path.branch)
        path = replace(held.path, absent=(held.path.absent or 0) + 1)
        take_position(sql, window, held, fold_tip(sql, own, path, path.last_seq), removed=1)
    note_changed(sql, window, now)
    return message


_OF_RESULT = """
SELECT call_branch, call_seq FROM {schema}tool_results
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq = :seq
"""
_OF_CALLS = """
SELECT branch, seq FROM {schema}tool_results
WHERE tenant_id = :tenant AND thread_id = :thread AND call_branch = :branch AND call_seq = :seq
"""


def _part_from_pairs(sql: WriteSql, window: Window, message: ChatMessage, level: RulesLevel) -> bool:
    """Record R6 on the calls and results that stay without the message. Returns whether a call waits again because the
    message was its result. Raises RuleViolation unless the level is lenient.
    """
    place = _place(window) | {"branch": message.branch, "seq": message.seq}
    answered = sql.fetch(_OF_RESULT, place)
    halves = [(half, "the result of a call was retracted") for half in answered]
    halves += [(half, "the call that it answered was retracted") for half in sql.fetch(_OF_CALLS, place)]
    if halves and level != "lenient":
        (_, seq), _ = halves[0]
        detail = f"a call and its result stay together, and the other half is seq {seq}; erase it, or rewind the branch"
        raise RuleViolation("R6", message.seq or 0, detail, where=f"seq {message.seq}")
    for (branch, seq), detail in halves:
        _add_violation(sql, window, branch, seq, Violation(rule="R6", detail=detail))
    return bool(answered)


_WAITS = Violation(rule="R8", detail="a call before it waits again, because its result was retracted")


def _record_waiting(sql: WriteSql, window: Window, affected: Sequence[HeldBranch], seq: int) -> None:
    """Record R8 on the messages that begin a turn after the result at `seq`, which was retracted: its call waits again.
    A turn whose first message says so is never read without the turns before it.
    """
    known: list[Segment] = []
    for held in affected:
        later = without(cut(held.path.segments, seq + 1, held.path.last_seq), known)
        known += later
        for segment in later:
            between = messages.c.seq.between(segment.first, segment.last)
            begin = and_(_of_branch(window, segment.branch), between, messages.c.role.in_(BEGIN_TURNS))
            others = select(messages.c.seq).where(begin, messages.c.violations.is_not(None))
            for (other,) in sql.execute(others).all():
                _add_violation(sql, window, segment.branch, other, _WAITS)
            without_any = update(messages).where(begin, messages.c.violations.is_(None))
            sql.execute(without_any.values(violations=[_WAITS.model_dump()]))


def _add_violation(sql: WriteSql, window: Window, branch: int, seq: int, violation: Violation) -> None:
    (stored,) = load_range(sql, window.tenant, window.thread, branch, seq, seq)
    if violation not in stored.violations:
        violations = [recorded.model_dump() for recorded in (*stored.violations, violation)]
        own = and_(_of_branch(window, branch), messages.c.seq == seq)
        sql.execute(update(messages).where(own).values(violations=violations))


def _of_branch(window: Window, branch: int) -> Any:
    place = {"tenant_id": window.tenant.name, "thread_id": window.thread_id, "branch": branch}
    return and_(*(messages.c[name] == value for name, value in place.items()))


# --- Rows -------------------------------------------------------------------------------------------------------------

_ROWS = "tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last"
# A score keeps its place, which is never used again, and gets the id of the message that stood there.
_NAME_IN_FEEDBACK = f"""
UPDATE {{schema}}feedback SET message_id = (
  SELECT m.message_id FROM {{schema}}messages m
  WHERE m.tenant_id = :tenant AND m.thread_id = :thread AND m.branch = :branch AND m.seq = feedback.seq)
WHERE {_ROWS} AND message_id IS NULL
"""
_UNLINK = """
DELETE FROM {schema}tool_results WHERE tenant_id = :tenant AND thread_id = :thread
  AND call_branch = :branch AND call_seq BETWEEN :first AND :last
"""
_CHILDREN_FIRST = ("outputs", "tool_results", "tool_calls", "message_parts", "messages")
_DELETE = (_NAME_IN_FEEDBACK, _UNLINK, *(f"DELETE FROM {{schema}}{table} WHERE {_ROWS}" for table in _CHILDREN_FIRST))


def _delete_rows(sql: WriteSql, window: Window, segment: Segment) -> None:
    place = _place(window) | {"branch": segment.branch, "first": segment.first, "last": segment.last}
    for statement in _DELETE:
        sql.fetch(statement, place)


def _place(window: Window) -> dict[str, Any]:
    return {"tenant": window.tenant.key, "thread": window.thread}
