"""Follows a thread: tells each change of its active branch once, in order.

A follower reads what was changed since its position, and then waits until the thread moves. The position is all that it
remembers, and the cursor of a change is the position after it. So another process goes on from there, and whatever was
lost on the way (a connection, a hint, the process) is only late.

With deltas it also tells states that take no position (`reported.py`): an abandoned draft, and the runs of the branch.

Positions of a branch never move and are never used again, so the position on the followed branch says which messages
and which changes were told. Two things change without a position there: a message that is still being written, of which
the follower remembers how much it has told and a checksum of it, and a message that another branch stores. A revision
of that takes a position of the other branch, so the follower remembers how far it has read each branch that its own one
rests on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import Any

from sqlalchemy import and_, select

from chatledger.annexes import load
from chatledger.errors import InvalidCursor, StorageError, ThreadNotFound
from chatledger.models import ChatMessage, ThreadChange, ThreadChangeKind
from chatledger.rules import Lease
from chatledger.storage.append.preflight import read_tip
from chatledger.storage.databases.scope import Scope
from chatledger.storage.databases.states import Followed, State
from chatledger.storage.drivers.sql import Row, WriteSql
from chatledger.storage.follow.follow_cursor import Position, Read, check_of
from chatledger.storage.follow.reported import Reported, look_at_runs
from chatledger.storage.follow.words import Words, pieces_after, without_words, words_of
from chatledger.storage.history.path import Path, cut, load_path, load_range, read_path, stands_on
from chatledger.storage.history.row_sizes import fitting, sizes_between
from chatledger.storage.history.turns import load_history
from chatledger.storage.history.window_request import Window
from chatledger.storage.rows.encryption import damaged_cell
from chatledger.storage.rows.messages import bytes_of, encode_message
from chatledger.storage.schema.tables import branches
from chatledger.storage.schema.text import CLOCK, decode_text, encode_key, to_microseconds

MOST = 100
"""The most messages, and the most changes, that one read returns."""
BYTES = 8 * 1024 * 1024
"""About the bytes of the messages that one read returns, but for one message."""
_FEW = 2
"""Positions that are read without a look at the sizes of their messages."""
_PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Seconds until the next attempt while the database is away."""


async def follow(
    scope: Scope, window: Window, start: Position | Read | None, *, deltas: bool
) -> AsyncGenerator[ThreadChange, None]:
    """Raises ThreadNotFound, also once the thread is gone, BranchNotFound, InvalidCursor, and StorageError for an error
    that will not pass.
    """
    assert scope.guard is not None
    scope.guard.poller()  # before the first read: a hint that comes between that and the first wait counts
    at, reported, failures = start, Reported() if deltas else None, 0
    while True:
        read = partial(_read, scope, window, at, reported)
        try:
            look, since = await scope.guard.poller().reads.read((window.tenant, window.thread, at, reported), read)
            failures = 0
        except StorageError as error:
            if not error.retryable:
                raise
            await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
            failures += 1
            continue
        for change in look.changes:
            yield change
        at, reported = look.at, look.reported
        if not look.more:
            followed = Followed(window.tenant, window.thread, reported.watched if reported else ())
            with suppress(TimeoutError):
                async with asyncio.timeout(look.lease_left):
                    await scope.guard.poller().moved(followed, look.state, since)


async def changes_until_now(
    scope: Scope, window: Window, start: Position | Read | None, reported: Reported | None
) -> AsyncGenerator[ThreadChange, None]:
    """The changes that have happened. Raises as `follow`."""
    at, more = start, True
    while more:
        look, _ = await _read(scope, window, at, reported)
        for change in look.changes:
            yield change
        at, reported, more = look.at, look.reported, look.more


async def _read(
    scope: Scope, window: Window, at: Position | Read | None, reported: Reported | None
) -> tuple[Look, float]:
    """The next changes, and the time before they were read."""
    since = time.monotonic()
    return await scope.read(partial(read_changes, window=window, start=at, reported=reported), snapshot=True), since


@dataclass(slots=True)
class Look:
    """The changes after a position, and the position after them. `state` is that of the thread when it was read;
    `more`: there were more changes by then. `reported` are the states that were told, None without deltas. `lease_left`
    are the seconds until the lease of a draft ends, which moves nothing.
    """

    window: Window
    at: Position
    state: State
    reported: Reported | None
    lease_left: float | None = None
    changes: list[ThreadChange] = field(default_factory=list)
    more: bool = False
    revised: int = 0
    """About the bytes of the revised messages. Each is read by itself."""

    @property
    def full(self) -> bool:
        return self.revised > BYTES

    def tell(self, kind: ThreadChangeKind, at: Position, *, message: ChatMessage | None = None, **fields: Any) -> None:
        self.at = at
        if message is not None:
            fields |= {"seq": message.seq, "message_id": message.message_id, "message": message}
            if fields.get("pieces") is not None:
                fields["message"] = without_words(message) if kind == "completed" else None
            if self.reported is not None and message.run_id is not None:
                self.reported = self.reported.naming(encode_key(message.run_id, "run_id"))
        fields |= {"kind": kind, "cursor": at.write(self.window.thread)}
        fields |= {"thread_id": self.window.thread_id, "branch": at.branch}
        # The message was read from rows, so it is not validated again.
        self.changes.append(ThreadChange.model_construct(**fields))


def read_changes(sql: WriteSql, window: Window, start: Position | Read | None, *, reported: Reported | None) -> Look:
    """The next changes after `start`, in a snapshot. None is the end of the active branch. Raises as `follow`."""
    active = _find_branch(sql, window)
    state: State = (active.path.branch, active.path.last_seq, active.path.stamp, ())
    if start is None:
        look = Look(window, _position_at(sql, window, active), state, reported)
        _tell_states(sql, look, active)
        return look
    followed = active if start.branch == active.path.branch else _find_branch(sql, replace(window, branch=start.branch))
    at = _resume(sql, window, followed, start) if isinstance(start, Read) else start
    if at.created != active.created:  # the thread was deleted, and made again
        raise ThreadNotFound(window.thread_id)
    if at.version > followed.path.last_seq:
        raise InvalidCursor(None, f"the cursor is beyond the end of branch {at.branch}; it is of another database")
    look = Look(window, at, state, reported)
    _tell_partial(sql, look, followed.path)
    _tell_shared(sql, look, followed.path)
    if look.at.version < followed.path.last_seq and not look.full:
        _tell_positions(sql, look, followed.path)
    if followed is not active and not look.more:
        _tell_activated(sql, look, followed.path, active)
    _tell_states(sql, look, active)
    return look


# --- Branches ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Branch:
    """`created`: the checksum of the thread's creation, which tells it from another one with the same id. `lease`: that
    of the message `partial_seq`.
    """

    path: Path
    partial_seq: int | None
    lease: Lease | None
    created: int


_BRANCH = """
SELECT t.created_at, t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent, b.partial_seq,
  CASE WHEN b.partial_seq IS NOT NULL THEN b.open_calls END, {clock}
FROM {schema}threads t
LEFT JOIN {schema}branches b
  ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = coalesce(:branch, t.active_branch)
WHERE t.tenant_id = :tenant AND t.thread_id = :thread
"""
_BRANCHES = {
    "postgresql": _BRANCH.replace(":branch", ":branch::int").replace("{clock}", CLOCK["postgresql"]),
    "sqlite": _BRANCH.replace("{clock}", CLOCK["sqlite"]),
}


def _find_branch(sql: WriteSql, window: Window) -> _Branch:
    """Raises ThreadNotFound (also for another user's thread), BranchNotFound and DamagedCell."""
    rows: Sequence[Row] = sql.fetch(_BRANCHES[sql.dialect], window.place)
    path = read_path(window, rows[0][1:-2] if rows else None)
    created_at, *_, partial_seq, open_calls, clock = rows[0]
    if isinstance(created_at, datetime):
        created_at = to_microseconds(created_at.replace(tzinfo=UTC))
    tip = read_tip(window.thread_id, path.branch, path.last_seq, None, open_calls, partial_seq, clock)
    return _Branch(path, partial_seq, tip.lease, check_of(created_at))


def _position_at(sql: WriteSql, window: Window, branch: _Branch) -> Position:
    """The position of a reader that has the whole branch."""
    path = branch.path
    written: tuple[int, Words | None] | None = None
    if branch.partial_seq is not None:
        written_now = load_path(sql, window, path, branch.partial_seq, branch.partial_seq)
        written = (branch.partial_seq, words_of(written_now[0])) if written_now else None
    ends = _ends_of_shared(sql, window, path)
    return Position(path.branch, path.last_seq, path.last_seq, branch.created, written, tuple(ends.items()))


def _resume(sql: WriteSql, window: Window, branch: _Branch, read: Read) -> Position:
    """The position of a reader that has the history of a mark. If the branch has changed since, the mark does not say
    how far the reader has the revisions of other branches, so it gets them once more.
    """
    if (read.version, read.stamp) == (branch.path.last_seq, branch.path.stamp):
        return _position_at(sql, window, branch)
    written = (read.version, None) if read.partial else None
    return Position(read.branch, read.version, read.version, branch.created, written, ())


def _ends_of_shared(sql: WriteSql, window: Window, path: Path) -> dict[int, int]:
    """The last position of each other branch that stores messages of the path, in the order of their numbers."""
    numbers = sorted({segment.branch for segment in cut(path.segments, 1, path.last_seq)} - {path.branch})
    if not numbers:
        return {}
    own = and_(branches.c.tenant_id == window.tenant.name, branches.c.thread_id == window.thread_id)
    ends = select(branches.c.branch, branches.c.last_seq).where(own, branches.c.branch.in_(numbers))
    last_seq_of: dict[int, int] = {}
    for row in sql.execute(ends.order_by(branches.c.branch)):
        if type(row.last_seq) is not int:
            raise damaged_cell(branches, "last_seq", {"thread_id": window.thread_id, "branch": row.branch})
        last_seq_of[row.branch] = row.last_seq
    return last_seq_of


# --- The changes ------------------------------------------------------------------------------------------------------


def _tell_partial(sql: WriteSql, look: Look, path: Path) -> None:
    """Tell of the message that was being written. Its row changes without a new position."""
    if look.at.partial is None:
        return
    seq, known = look.at.partial
    messages = load_path(sql, look.window, path, seq, seq)
    look.at = replace(look.at, partial=None)
    if not messages:  # it was removed, which a later position says
        return
    (message,) = messages
    pieces = pieces_after(message, known) if look.reported is not None and known else None
    if message.state != "partial":
        look.tell("completed", look.at, message=message, pieces=pieces)
        return
    now = words_of(message)
    look.at = replace(look.at, partial=(seq, now))
    if now != known:
        look.tell("grown", look.at, message=message, pieces=pieces)


_CHANGES = """
SELECT seq, kind, count(*), min(target_branch), min(target_seq), min(message_id) FROM {schema}revisions
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq > :after AND seq <= :last{of_kind}
GROUP BY seq, kind ORDER BY seq LIMIT :most
"""
_REVISIONS = _CHANGES.replace("{of_kind}", " AND kind = 'revised'")
_CHANGES = _CHANGES.replace("{of_kind}", "")


def _load_changes(sql: WriteSql, look: Look, statement: str, branch: int, after: int, last: int) -> Sequence[Row]:
    place = {"tenant": look.window.tenant.key, "thread": look.window.thread, "branch": branch}
    return sql.fetch(statement, {**place, "after": after, "last": last, "most": MOST})


def _tell_shared(sql: WriteSql, look: Look, path: Path) -> None:
    """Report the revised messages that other branches store. Messages that the reader does not have yet follow with
    their new words.
    """
    known = dict(look.at.shared)
    for branch, end in _ends_of_shared(sql, look.window, path).items():
        rows: Sequence[Row] = ()
        if end > known.get(branch, 0):
            rows = _load_changes(sql, look, _REVISIONS, branch, known.get(branch, 0), end)
        for seq, _, _, target_branch, target_seq, _ in rows:
            known[branch] = seq
            if target_seq <= look.at.version:
                look.at = replace(look.at, shared=tuple(sorted(known.items())))
                _tell_revised(sql, look, path, target_branch, target_seq)
                if look.full:
                    look.more = True
                    return
        look.more = look.more or len(rows) == MOST
        known[branch] = rows[-1][0] if len(rows) == MOST else end
    look.at = replace(look.at, shared=tuple(sorted(known.items())))


def _tell_positions(sql: WriteSql, look: Look, path: Path) -> None:
    """Tell what stands on the next positions of the branch."""
    at, last = look.at, path.last_seq
    most = _count_fitting(sql, look.window, path, at.version)
    window = replace(look.window, branch=path.branch, after=at.version, limit=most)
    messages = load_history(sql, window).messages
    if len(messages) == most:
        last = messages[-1].seq or 0
    after = max(at.version, at.settled)
    rows = _load_changes(sql, look, _CHANGES, path.branch, after, last) if path.absent and after < last else ()
    if len(rows) == MOST:
        last = rows[-1][0]
    changes: list[tuple[int, ChatMessage | Row]] = [(message.seq or 0, message) for message in messages]
    changes += [(row[0], row) for row in rows]
    for seq, change in sorted(changes, key=itemgetter(0)):
        if seq > last:
            break
        look.at = replace(look.at, version=seq)
        if isinstance(change, ChatMessage):
            _tell_appended(look, change)
        else:
            _tell_change(sql, look, path, change)
        if look.full:
            last = seq
            break
    look.at = replace(look.at, version=last)
    look.more = look.more or last < path.last_seq


def _count_fitting(sql: WriteSql, window: Window, path: Path, after: int) -> int:
    """The number of the next messages that are read at once."""
    if path.last_seq - after <= _FEW:
        return MOST
    last = min(after + MOST, path.last_seq)
    sizes = sizes_between(sql, window, path, after + 1, last)
    end = fitting(sizes.items(), BYTES)
    if end is None and last == path.last_seq:
        return MOST
    return max(1, sum(seq <= (end or last) for seq in sizes))


def _tell_appended(look: Look, message: ChatMessage) -> None:
    written = (message.seq or 0, words_of(message)) if message.state == "partial" else None
    look.tell("appended", replace(look.at, partial=written), message=message)


def _tell_change(sql: WriteSql, look: Look, path: Path, row: Row) -> None:
    _, kind, count, branch, seq, message_id = row
    if kind == "revised":
        _tell_revised(sql, look, path, branch, seq)
    elif count == 1:
        message_id = None if message_id is None else decode_text(message_id)
        look.tell("retracted", look.at, seq=seq, message_id=message_id)
    else:
        look.tell("rewound", look.at, seq=seq)


def _tell_revised(sql: WriteSql, look: Look, path: Path, branch: int, seq: int) -> None:
    """Tell the message as it is now, unless it left the path: then a later position says so."""
    if stands_on(path.segments, branch, seq):
        for message in load_range(sql, look.window.tenant, look.window.thread, branch, seq, seq):
            look.tell("revised", look.at, message=message)
            look.revised += bytes_of([encode_message(message)])


def _tell_activated(sql: WriteSql, look: Look, path: Path, active: _Branch) -> None:
    """Go on with the branch that is active now, after the last position that it shares with this one."""
    shared = _shared_up_to(path, active.path)
    ends = _ends_of_shared(sql, look.window, active.path)
    at = Position(active.path.branch, shared, active.path.last_seq, active.created, None, tuple(ends.items()))
    look.tell("activated", at, seq=shared)
    look.more = shared < active.path.last_seq


# --- The states -------------------------------------------------------------------------------------------------------


def _tell_states(sql: WriteSql, look: Look, active: _Branch) -> None:
    """Tell the states that are others than those that were told, once all changes are told."""
    if look.reported is None or look.more:
        return
    seq, before = active.partial_seq, look.reported
    reported = before.leaving(seq, active.lease)
    if reported.abandoned not in (None, before.abandoned) and seq is not None:
        for message in load_path(sql, look.window, active.path, seq, seq):
            look.tell("abandoned", look.at, seq=seq, message_id=message.message_id)
    elif seq is not None and active.lease is not None and reported.abandoned is None:
        look.lease_left = active.lease.left.total_seconds()
    look.reported, runs = look_at_runs(sql, look.window, active.path, reported)
    for run, status in runs:
        run_id, waiting = decode_text(run), None
        if status == "paused":
            waiting_calls = load("chatledger.answers.pause:waiting_calls", "a paused run")
            waiting = waiting_calls(sql, look.window.tenant, look.window.thread_id, run_id)
        look.tell("run", look.at, seq=look.at.version, run_id=run_id, status=status, waiting=waiting)
    look.state = (*look.state[:3], look.reported.statuses)


def _shared_up_to(path: Path, other: Path) -> int:
    """The last position up to which the rows of both paths are the same."""
    end = min(path.last_seq, other.last_seq)
    shorter, longer = sorted((cut(either.segments, 1, end) for either in (path, other)), key=len)
    for first, second in zip(shorter, longer, strict=False):
        if (first.branch, first.first) != (second.branch, second.first):
            return min(first.first, second.first) - 1
        if first.last != second.last:
            return min(first.last, second.last)
    return longer[len(shorter)].first - 1 if len(longer) > len(shorter) else end
