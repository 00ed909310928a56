"""The path of a branch in one state of the database, and the messages of any interval of it.

The branch row is read first, in the same snapshot: it tells how far the path reaches. Then plain range scans read the
messages from three tables. Nothing sorts, counts or skips rows, so an interval costs what its own rows cost, wherever
in the thread it lies.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chatledger.errors import BranchNotFound, ThreadNotFound
from chatledger.models import ChatMessage
from chatledger.models.json import dumps
from chatledger.storage.drivers.sql import Row, Sql
from chatledger.storage.history.window import END, Window
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.messages import CALL_COLUMNS, MESSAGE_COLUMNS, PART_COLUMNS, decode_messages
from chatledger.storage.schema.text import decode_text, encode_text


@dataclass(frozen=True, slots=True)
class Path:
    """One branch in the state of this snapshot: its last seq, the branches that store its messages, and its stamp."""

    branch: int
    last_seq: int
    segments: list[Segment]
    stamp: int


_BRANCH = """
SELECT t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp
FROM {schema}threads t
LEFT JOIN {schema}branches b
  ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = coalesce(:branch, t.active_branch)
WHERE t.tenant_id = :tenant AND t.thread_id = :thread
"""


def find_path(sql: Sql, window: Window) -> Path:
    """Raises ThreadNotFound (also for another user's thread) and BranchNotFound."""
    template = _BRANCH.replace(":branch", ":branch::int") if sql.dialect == "postgresql" else _BRANCH
    rows = sql.fetch(template, window.place)
    return read_path(window, rows[0] if rows else None)


def read_path(window: Window, row: Row | None) -> Path:
    """The path of a row (user_id, active_branch, branch, last_seq, lineage, stamp). Raises as `find_path`."""
    if row is None or (window.user_id is not None and row[0] != encode_text(window.user_id)):
        raise ThreadNotFound(window.thread_id)
    _, active, branch, last_seq, lineage, stamp = row
    if branch is None:
        raise BranchNotFound(window.thread_id, active if window.branch is None else window.branch)
    return Path(branch, last_seq, read_lineage(lineage), stamp)


def load_path(sql: Sql, window: Window, path: Path, first: int, last: int) -> list[ChatMessage]:
    """The messages first … last of the path."""
    messages: list[ChatMessage] = []
    for segment in cut(path.segments, first, min(last, path.last_seq)):
        messages += load_range(sql, window.tenant, window.thread, *segment)
    return messages


def load_range(sql: Sql, tenant: Tenant, thread: str, branch: int, first: int, last: int) -> list[ChatMessage]:
    """The messages first … last that one branch stores, by one range scan of each table."""
    place = {"tenant": tenant.key, "thread": thread, "branch": branch, "first": first, "last": last}
    messages, parts, calls = [sql.fetch(scan, place) for scan in _SCANS]
    return decode_messages(tenant, decode_text(thread), messages, parts, calls)


def _scan(table: str, columns: Sequence[str], order: str) -> str:
    return (
        f"SELECT branch, {', '.join(columns)} FROM {{schema}}{table}"
        " WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last"
        f" ORDER BY {order}"
    )


_SCANS = (
    _scan("messages", MESSAGE_COLUMNS, "seq"),
    _scan("message_parts", PART_COLUMNS, "seq, idx"),
    _scan("tool_calls", CALL_COLUMNS, "seq, idx"),
)


# --- Lineage ----------------------------------------------------------------------------------------------------------


class Segment(NamedTuple):
    """`branch` stores the messages `first` to `last` of the path."""

    branch: int
    first: int
    last: int


def read_lineage(stored: str) -> list[Segment]:
    """Read the column `lineage`: [[branch, first, last or null], …] from the first message to the open end."""
    return [Segment(branch, first, END if last is None else last) for branch, first, last in json.loads(stored)]


def write_lineage(segments: list[Segment]) -> str:
    return dumps([[branch, first, None if last == END else last] for branch, first, last in segments])


def cut(segments: Sequence[Segment], first: int, last: int) -> list[Segment]:
    """The parts of the path that lie within first … last, in order."""
    inside = (Segment(branch, max(first, low), min(last, high)) for branch, low, high in segments)
    return [segment for segment in inside if segment.first <= segment.last]


def forked(segments: list[Segment], branch: int, at: int) -> list[Segment]:
    """The lineage of a new branch that shares the path up to and including `at`."""
    return [*cut(segments, 1, at), Segment(branch, at + 1, END)]
