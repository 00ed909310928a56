"""Changes of stored messages: each takes the next position of its branch and leaves a record in `revisions`.

A caller locks the branches of the thread first (`hold_changeable`). The position of the change holds no message. The
positions of the messages that it removes stay empty. So positions never move and are never used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, and_, insert, or_, select, update

from chatledger.errors import BranchNotFound
from chatledger.ids import new_stamp
from chatledger.models import ChangeKind, ChatMessage, RulesLevel, is_redacted
from chatledger.rules import Tip
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.preflight import read_tip
from chatledger.storage.append.request import Terms, make_request
from chatledger.storage.append.takeover import draft_live, is_live
from chatledger.storage.append.write import ACTIVITY_RESOLUTION, tip_columns
from chatledger.storage.drivers.asyncpg import apart_from_loop
from chatledger.storage.drivers.sql import ReadSql, Row, WriteSql
from chatledger.storage.history.lineages import NEXT, apart_if_many, has_place, read_branches
from chatledger.storage.history.path import (
    Path,
    Segment,
    cut,
    damaged_active_branch,
    load_range,
    read_path,
    without,
    write_lineage,
)
from chatledger.storage.history.window_request import Window
from chatledger.storage.repositories.locks import hold_branches
from chatledger.storage.rows.changes import Change, change_values, to_change
from chatledger.storage.rows.encryption import decrypt_values
from chatledger.storage.rows.messages import is_long_batch
from chatledger.storage.schema.tables import branches, messages, revisions, threads
from chatledger.storage.schema.text import CLOCK, decode_json

# --- The branches of a thread, locked ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldBranch:
    path: Path
    tip: Tip
    stores: list[Segment]
    """The segments of the path, up to its end."""


@dataclass(frozen=True, slots=True)
class HeldThread:
    """The branches of a thread by number, and its active branch and rules, until the transaction ends."""

    active: int
    rules: RulesLevel | None
    branches: dict[int, HeldBranch]

    def choose(self, window: Window) -> HeldBranch:
        """The branch that the window names. Raises BranchNotFound."""
        number = self.active if window.branch is None else window.branch
        if number in self.branches:
            return self.branches[number]
        if window.branch is None:
            raise damaged_active_branch(window.thread_id)
        raise BranchNotFound(window.thread_id, number)

    def with_row(self, branch: int, seq: int) -> list[HeldBranch]:
        """The branches that have the row at (branch, seq) on their path."""
        return [held for held in self.branches.values() if has_place(held.stores, branch, seq)]

    def not_shared(self, segments: list[Segment], held: HeldBranch) -> list[Segment]:
        """The parts of these segments of the branch that no other branch has."""
        others = [other for other in self.branches.values() if other is not held]
        own = {segment.branch for segment in segments}

        def find() -> list[Segment]:  # branches that were forked one after the other have the same segments
            return without(segments, {segment for other in others for segment in other.stores if segment.branch in own})

        return apart_if_many(find, [other.path for other in others])


_HELD = f"""
SELECT t.rules, t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent,
  b.partial_seq, b.last_role, b.open_calls, {{clock}}
FROM {{schema}}threads t
JOIN {{schema}}branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id
WHERE t.tenant_id = :tenant AND t.thread_id = :thread AND {NEXT}
"""


def hold_changeable(sql: WriteSql, window: Window) -> HeldThread:
    """Lock the branches of the thread and read them. Raises ThreadNotFound and DamagedCell."""
    hold_branches(sql, window.tenant, window.thread_id)
    place = {"tenant": window.tenant.key, "thread": window.thread}
    statement = _HELD.replace("{clock}", CLOCK[sql.dialect])
    rows = read_branches(sql, statement, place, partial(_read_held, window), branch=3, lineage=5)
    if not rows:
        raise damaged_active_branch(window.thread_id)
    active, rules, _ = rows[0]
    return HeldThread(active, rules, {held.path.branch: held for _, _, held in rows})


def _read_held(window: Window, row: Row) -> tuple[int, RulesLevel | None, HeldBranch]:
    """The active branch of the thread, its rules, and one of its branches."""
    rules, *place, last_role, open_calls, clock = row
    path = read_path(window, place)
    tip = read_tip(window.thread_id, path.branch, path.last_seq, last_role, open_calls, place[-1], clock)
    return place[1], rules, HeldBranch(path, tip, cut(path.segments, 1, path.last_seq))


def refuse_live(sql: WriteSql, window: Window, held: HeldBranch) -> None:
    """Raises DraftLive if the message at the end of the branch is being written."""
    if not is_live(held.tip):
        return
    seq = held.tip.partial_seq or 0
    partial = load_range(sql, window.tenant, window.thread, held.path.branch, seq, seq)
    raise draft_live(window.thread_id, held.path.branch, held.tip, partial[0].message_id if partial else None)


def settle(sql: WriteSql, window: Window, affected: Sequence[HeldBranch], seq: int) -> bool:
    """Before a change of the message `seq` of these branches: interrupt an abandoned partial message at the end of one,
    as an append would, because the change takes the position behind it. Returns whether it interrupted another message
    than the one to change; then the caller reads the branches again. Raises DraftLive, with nothing written.
    """
    for held in affected:
        refuse_live(sql, window, held)
    abandoned = [held for held in affected if held.tip.partial_seq not in (None, seq)]
    for held in abandoned:
        request = make_request(Terms(window.tenant), window.thread_id, [], branch=held.path.branch)
        attempt_locked(sql, replace(request, interrupt=True))
    return bool(abandoned)


# --- A change ---------------------------------------------------------------------------------------------------------


def take_position(
    sql: WriteSql,
    window: Window,
    held: HeldBranch,
    tip: Tip,
    *,
    removed: int = 0,
    segments: list[Segment] | None = None,
) -> None:
    """Move the branch to its next position, which is that of the change. `tip` is the tip of its messages after the
    change, `removed` the number of messages that left. The lineage becomes `segments` if they are given.
    """
    path = held.path
    tip = tip._replace(last_seq=path.last_seq + 1)
    values: dict[str, Any] = {**tip_columns(tip), "stamp": new_stamp(), "absent": (path.absent or 0) + 1 + removed}
    values |= {"last_role": tip.last_role, "open_calls": decode_json(values["open_calls"])}
    if segments is not None:
        values["lineage"] = write_lineage(segments)
    own = and_(_of_thread(branches, window), branches.c.branch == path.branch)
    sql.execute(update(branches).where(own).values(**values))


def note_changed(sql: WriteSql, window: Window, now: datetime) -> None:
    """Note on the branches of the thread that one of its messages was changed or removed: from then on, an append with
    a key looks for removed messages too. Only the first change of a thread writes to other branches than its own. Also
    move the thread's `active_at`.
    """
    unaware = and_(_of_thread(branches, window), branches.c.absent.is_(None))
    sql.execute(update(branches).where(unaware).values(absent=0, stamp=new_stamp()))
    note_active(sql, window, now)


def note_active(sql: WriteSql, window: Window, now: datetime) -> None:
    """Move the thread's `active_at`."""
    stale = and_(_of_thread(threads, window), threads.c.active_at < now - ACTIVITY_RESOLUTION)
    sql.execute(update(threads).where(stale).values(active_at=now))


def record_change(
    sql: WriteSql,
    window: Window,
    kind: ChangeKind,
    place: tuple[int, int],
    changed: Sequence[ChatMessage],
    now: datetime,
    *,
    with_bodies: bool = True,
    first: int = 0,
) -> None:
    """Record that the change at `place`, its branch and the position that it took, changed these stored messages. Their
    rows are still unchanged. Without `with_bodies`, another row of `revisions` already holds the messages. `first` is
    the number of messages of the change that are recorded already.
    """
    branch, seq = place
    changes = [
        Change(
            branch=branch,
            seq=seq,
            idx=idx,
            kind=kind,
            target_branch=message.branch or 0,
            target_seq=message.seq or 0,
            message_id=message.message_id,
            message=message if with_bodies else None,
            created_at=now,
            digest=_digest_of(sql, window, message) if with_bodies else None,
        )
        for idx, message in enumerate(changed, first)
    ]
    if changes:
        sql.execute(insert(revisions), _rows_of(window, changes))


def _rows_of(window: Window, changes: Sequence[Change]) -> list[dict[str, Any]]:
    """The rows of changes. The event loop writes that of one message that is not long, and no more."""

    def write() -> list[dict[str, Any]]:
        return [change_values(window.tenant, window.thread_id, change) for change in changes]

    is_short = len(changes) == 1 and not is_long_batch([changes[0].message])
    return write() if is_short else apart_from_loop(write)


def _of_thread(table: Any, window: Window) -> Any:
    return and_(table.c.tenant_id == window.tenant.name, table.c.thread_id == window.thread_id)


def _digest_of(sql: WriteSql, window: Window, message: ChatMessage) -> str | None:
    """The digest of the words that a redaction removed from a message."""
    if not is_redacted(message):
        return None
    place = {"thread_id": window.thread_id, "branch": message.branch, "seq": message.seq}
    own = and_(_of_thread(messages, window), messages.c.branch == message.branch, messages.c.seq == message.seq)
    row = sql.execute(select(messages.c.digest).where(own)).mappings().one()
    digest: str | None = decrypt_values(window.tenant, messages, dict(row), **place)["digest"]
    return digest


# --- The records ------------------------------------------------------------------------------------------------------


_ALL = slice(0, None)


def load_changes(sql: ReadSql, window: Window, message_id: str) -> list[Change]:
    """The changes of the messages that have, or had, this id, in the order of their times. Raises DamagedCell and
    EncryptionError.
    """
    return _load(sql, window, revisions.c.message_id == message_id)


def load_revisions(sql: ReadSql, window: Window, message_id: str, part: slice) -> list[Change]:
    """A part of `load_changes`, without the rows that say only that the same change took a position of one more
    branch.
    """
    has_content = or_(revisions.c.body.is_not(None), revisions.c.digest.is_not(None))
    return _load(sql, window, and_(revisions.c.message_id == message_id, has_content), part)


def has_changed(sql: ReadSql, window: Window, message_id: str) -> bool:
    """Whether there is a record of a message with this id."""
    statement = select(revisions.c.seq).where(_of_thread(revisions, window), revisions.c.message_id == message_id)
    return sql.execute(statement.limit(1)).first() is not None


def load_bodies(sql: ReadSql, window: Window, branch: int, seq: int) -> list[Change]:
    """The changes of the message whose rows stood, or stand, at this place; only those that hold the earlier message.
    Raises as `load_changes`.
    """
    of_message = and_(revisions.c.target_branch == branch, revisions.c.target_seq == seq)
    return _load(sql, window, and_(of_message, revisions.c.body.is_not(None)))


def find_given_up(sql: ReadSql, window: Window, branch: int, seq: int) -> list[int]:
    """The branch that stores, or stored, the message that left this branch at `seq`; empty if none did. The lineage
    no longer names a message that left this branch while another branch shared it.
    """
    left = and_(revisions.c.branch == branch, revisions.c.target_seq == seq, revisions.c.kind != "revised")
    statement = select(revisions.c.target_branch).where(_of_thread(revisions, window), left)
    return list(sql.execute(statement).scalars())


def _load(sql: ReadSql, window: Window, own: ColumnElement[bool], part: slice = _ALL) -> list[Change]:
    in_order = (revisions.c.created_at, revisions.c.branch, revisions.c.seq, revisions.c.idx)
    statement = select(revisions).where(_of_thread(revisions, window), own).order_by(*in_order)
    if part.stop is not None:
        statement = statement.limit(part.stop - part.start)
    rows = sql.execute(statement.offset(part.start) if part.start else statement).mappings()
    return [to_change(window.tenant, dict(row)) for row in rows]


def replace_body(sql: WriteSql, window: Window, change: Change) -> None:
    """Store the body and the digest of a stored change anew."""
    values = change_values(window.tenant, window.thread_id, change)
    own = and_(*(column == values.pop(column.name) for column in revisions.primary_key))
    sql.execute(update(revisions).where(own).values(body=values["body"], digest=values["digest"]))
