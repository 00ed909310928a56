"""The path of a branch in one state of the database, and the messages of any interval of it.

The branch row is read first, in the same snapshot: it tells how far the path reaches. Then plain range scans read the
messages from three tables. Nothing sorts, counts or skips rows, so an interval costs what its own rows cost, wherever
in the thread it lies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from chatledger.errors import BranchNotFound, ChatLedgerError, DamagedCell, LimitExceeded, ThreadNotFound
from chatledger.models import ChatMessage
from chatledger.models.json import dumps
from chatledger.storage.drivers.asyncpg import apart_from_loop
from chatledger.storage.drivers.sql import ReadSql, Row
from chatledger.storage.history.window_request import END, Window
from chatledger.storage.rows.decode_messages import Link, decode_each, decode_messages
from chatledger.storage.rows.encryption import Tenant, damaged_cell
from chatledger.storage.rows.messages import CALL_COLUMNS, MESSAGE_COLUMNS, PART_COLUMNS
from chatledger.storage.schema.tables import branches
from chatledger.storage.schema.text import UNREADABLE, decode_text, encode_text

_MANY = 500
"""So many messages are decoded in a few milliseconds."""
MOST_BRANCHES = 1_000
"""The branches of a thread."""
MOST_SEGMENTS = 100
"""The segments of a path: its row, and the work to read it, grow with each fork along it."""


@dataclass(frozen=True, slots=True)
class Path:
    """One branch in the state of this snapshot: its last seq, the branches that store its messages, and its stamp.
    `absent` is the number of positions without a message, None if the thread never had one; with 0 or None, the
    messages stand at 1, 2, 3 … without gaps.

    `draft` is the seq of the message that is being written, if the window leaves that out; `last_seq` is then the seq
    before it.
    """

    branch: int
    last_seq: int
    segments: list[Segment]
    stamp: int
    absent: int | None = None
    draft: int | None = None

    @property
    def version(self) -> int:
        """The last position of the branch."""
        return self.last_seq if self.draft is None else self.draft


_BRANCH = """
SELECT t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent, b.partial_seq
FROM {schema}threads t
LEFT JOIN {schema}branches b
  ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = coalesce(:branch, t.active_branch)
WHERE t.tenant_id = :tenant AND t.thread_id = :thread
"""


def find_path(sql: ReadSql, window: Window) -> Path:
    """Raises ThreadNotFound (also for another user's thread) and BranchNotFound."""
    template = _BRANCH.replace(":branch", ":branch::int") if sql.dialect == "postgresql" else _BRANCH
    rows = sql.fetch(template, window.place)
    return read_path(window, rows[0] if rows else None)


def read_path(window: Window, row: Row | None) -> Path:
    """The path of a row (user_id, active_branch, branch, last_seq, lineage, stamp, absent, partial_seq). Raises as
    `find_path`, and DamagedCell.
    """
    if row is None or window.tenant.user not in (None, row[0]):
        raise ThreadNotFound(window.thread_id)
    _, _, branch, last_seq, lineage, stamp, absent, partial_seq = row
    if branch is None:
        if window.branch is None:
            raise damaged_active_branch(window.thread_id)
        raise BranchNotFound(window.thread_id, window.branch)
    for name, number in (("last_seq", last_seq), ("stamp", stamp), ("absent", absent or 0)):
        if type(number) is not int:
            raise damaged_cell(branches, name, {"thread_id": window.thread_id, "branch": branch})
    path = Path(branch, last_seq, read_lineage(lineage, window.thread_id, branch), stamp, absent)
    leaves_draft_out = not window.drafts and partial_seq == last_seq
    return replace(path, last_seq=last_seq - 1, draft=last_seq) if leaves_draft_out else path


def load_path(
    sql: ReadSql, window: Window, path: Path, first: int, last: int, link: Link | None = None
) -> list[ChatMessage]:
    """The messages first … last of the path. `link` gets each of them, in order, as soon as it is decoded."""
    messages: list[ChatMessage] = []
    for segment in cut(path.segments, first, min(last, path.last_seq)):
        messages += load_range(sql, window.tenant, window.thread, *segment, link)
    return messages


def load_range(
    sql: ReadSql, tenant: Tenant, thread: str, branch: int, first: int, last: int, link: Link | None = None
) -> list[ChatMessage]:
    """The messages first … last that one branch stores, by one range scan of each table."""
    rows = _scan_range(sql, tenant, thread, branch, first, last)

    def decode() -> list[ChatMessage]:
        return decode_messages(tenant, decode_text(thread), *rows, link)

    return apart_from_loop(decode) if len(rows[0]) > _MANY else decode()


_FIND = """
SELECT branch, seq FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND message_id = :message_id
"""


def find_message(sql: ReadSql, window: Window, message_id: str) -> ChatMessage | None:
    """The message with that id, on any branch of the thread."""
    place = {"tenant": window.tenant.key, "thread": window.thread, "message_id": encode_text(message_id)}
    rows = sql.fetch(_FIND, place)
    if not rows:
        return None
    branch, seq = rows[0]
    return load_range(sql, window.tenant, window.thread, branch, seq, seq)[0]


def load_each(
    sql: ReadSql, tenant: Tenant, thread: str, segment: Segment
) -> list[tuple[int, int, ChatMessage | ChatLedgerError]]:
    """The messages of a segment with branch and seq, and an error in the place of each that cannot be read."""
    return decode_each(tenant, decode_text(thread), *_scan_range(sql, tenant, thread, *segment))


def _scan_range(
    sql: ReadSql, tenant: Tenant, thread: str, branch: int, first: int, last: int
) -> tuple[Sequence[Row], Sequence[Row], Sequence[Row]]:
    place = {"tenant": tenant.key, "thread": thread, "branch": branch, "first": first, "last": last}
    messages, parts, calls = (sql.fetch(scan, place) for scan in _SCANS)
    return messages, parts, calls


def scans(place: str, where: str, order: str = "") -> tuple[str, ...]:
    """The statements that read messages, their parts and their calls. Each row begins with the columns `place`."""
    return tuple(
        f"SELECT {place}, {', '.join(columns)} FROM {{schema}}{table}"
        f" WHERE tenant_id = :tenant AND {where} ORDER BY {order}{own_order}"
        for table, columns, own_order in (
            ("messages", MESSAGE_COLUMNS, "seq"),
            ("message_parts", PART_COLUMNS, "seq, idx"),
            ("tool_calls", CALL_COLUMNS, "seq, idx"),
        )
    )


_SCANS = scans("branch", "thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last")


# --- Lineage ----------------------------------------------------------------------------------------------------------


class Segment(NamedTuple):
    """`branch` stores the messages `first` to `last` of the path."""

    branch: int
    first: int
    last: int


def read_lineage(stored: str, thread_id: str, branch: int) -> list[Segment]:
    """Read the column `lineage`: [[branch, first, last or null], …] from the first message to the open end. Raises
    DamagedCell.
    """
    with suppress(*UNREADABLE):
        segments = [Segment(number, low, END if high is None else high) for number, low, high in json.loads(stored)]
        if segments and all(type(number) is int for segment in segments for number in segment):
            return segments
    raise damaged_lineage(thread_id, branch)


def damaged_lineage(thread_id: str, branch: int | None) -> DamagedCell:
    """`branch` is None if only the database knows which branch is active."""
    place = {"thread_id": thread_id} if branch is None else {"thread_id": thread_id, "branch": branch}
    return DamagedCell("branches", "lineage", place, "a JSON list of [branch, first seq, last seq or null]")


def damaged_active_branch(thread_id: str) -> DamagedCell:
    return DamagedCell("threads", "active_branch", {"thread_id": thread_id}, "the number of a branch of the thread")


def write_lineage(segments: list[Segment]) -> str:
    return dumps([[branch, first, None if last == END else last] for branch, first, last in segments])


def cut(segments: Sequence[Segment], first: int, last: int) -> list[Segment]:
    """The parts of the path that lie within first … last, in order."""
    inside = (Segment(branch, max(first, low), min(last, high)) for branch, low, high in segments)
    return [segment for segment in inside if segment.first <= segment.last]


def stands_on(segments: Sequence[Segment], branch: int, seq: int) -> bool:
    return any(segment.branch == branch and segment.first <= seq <= segment.last for segment in segments)


def without(segments: Sequence[Segment], others: Iterable[Segment]) -> list[Segment]:
    """The parts of the segments that lie in none of the others."""
    left = list(segments)
    for other in others:
        left = [part for segment in left for part in _outside(segment, other)]
    return left


def _outside(segment: Segment, other: Segment) -> list[Segment]:
    if segment.branch != other.branch or other.first > segment.last or other.last < segment.first:
        return [segment]
    before = Segment(segment.branch, segment.first, other.first - 1)
    after = Segment(segment.branch, other.last + 1, segment.last)
    return [part for part in (before, after) if part.first <= part.last]


_NEAREST = {
    order: "SELECT min(x.seq), max(x.seq), count(*) FROM (SELECT seq FROM {schema}messages"
    " WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last"
    f" ORDER BY seq {order} LIMIT :count) AS x"
    for order in ("ASC", "DESC")
}


def nearest(
    sql: ReadSql, window: Window, path: Path, first: int, last: int, count: int, *, backward: bool
) -> tuple[int, int] | None:
    """The seqs of the first and the last of up to `count` messages of the path within first … last, from the beginning
    or, with `backward`, from the end. None if there is no message. A path without empty positions needs no such query.
    """
    ends: list[int] = []
    segments = cut(path.segments, first, min(last, path.last_seq))
    statement = _NEAREST["DESC" if backward else "ASC"]
    for branch, low, high in reversed(segments) if backward else segments:
        place = {"tenant": window.tenant.key, "thread": window.thread, "branch": branch}
        start, end, rows = sql.fetch(statement, {**place, "first": low, "last": high, "count": count})[0]
        if rows:
            ends += (start, end)
        count -= rows
        if count <= 0:
            break
    return (min(ends), max(ends)) if ends else None


def forked(segments: list[Segment], branch: int, at: int) -> list[Segment]:
    """The lineage of a new branch that shares the path up to and including `at`. Raises LimitExceeded for a branch too
    many, and for a path with too many forks.
    """
    if branch >= MOST_BRANCHES:
        detail = f"the thread has {branch:,} branches, and cannot have more; {_COPY}"
        raise LimitExceeded("branches of a thread", branch + 1, MOST_BRANCHES, detail=detail)
    lineage = [*cut(segments, 1, at), Segment(branch, at + 1, END)]
    require_short(lineage)
    return lineage


def require_short(lineage: Sequence[Segment]) -> None:
    """Raises LimitExceeded for a lineage of too many segments."""
    if len(lineage) > MOST_SEGMENTS:
        detail = f"the path up to seq {lineage[-1].first - 1} has too many forks, one after the other; {_COPY}"
        raise LimitExceeded("forks along a path", len(lineage) - 1, MOST_SEGMENTS - 1, detail=detail)


_COPY = "copy the path to a thread of its own (threads.copy), which has one branch, and go on there"
