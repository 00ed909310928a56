"""History: a page is an interval of the path, read by plain ranges over three tables, in one state of the database.

The branch row comes first and in the same snapshot: it says how far the path reaches. Nothing here sorts, counts or
skips rows; a page costs what its own rows cost, wherever in the thread it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import BranchNotFound, ThreadNotFound
from chatledger.models import ChatMessage, History
from chatledger.storage.lineage import Segment, cut, read_lineage
from chatledger.storage.rows import CALL_COLUMNS, MESSAGE_COLUMNS, PART_COLUMNS, decode_messages
from chatledger.storage.sql import Row, Sql
from chatledger.storage.text import decode_text, encode_text, from_microseconds

_BRANCH = """
SELECT t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage
FROM {schema}threads t
LEFT JOIN {schema}branches b
  ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = coalesce(:branch, t.active_branch)
WHERE t.tenant_id = :tenant AND t.thread_id = :thread
"""


@dataclass(frozen=True, slots=True)
class Path:
    """One branch in the state of this snapshot: how far it reaches, and where its messages rest."""

    branch: int
    last_seq: int
    segments: list[Segment]


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """`tenant` and `thread` as stored. Windows: at most one of `limit` (with before or after), `last`, `last_turns`."""

    tenant: str
    thread: str
    thread_id: str
    branch: int | None = None
    limit: int | None = None
    before: int | None = None
    after: int | None = None
    last: int | None = None
    last_turns: int | None = None
    run_id: str | None = None
    user_id: str | None = None


def load_history(sql: Sql, request: HistoryRequest) -> History:
    path = find_path(sql, request)
    low, high = (1, path.last_seq) if request.run_id is None else _run_interval(sql, request, path)
    if request.last_turns is None:
        first, last = _interval(request, low, high)
    else:
        first, last = max(low, _last_turns(sql, request, path)), high
    messages = load_path(sql, request, path, first, last)
    if request.last is not None:
        messages = _from_turn_start(sql, request, path, messages)
    if request.run_id is not None:
        messages = [message for message in messages if message.run_id == request.run_id]
    cursor = _next_cursor(request, first, last, low, high)
    return History(request.thread_id, path.branch, messages, path.last_seq, cursor)


def find_path(sql: Sql, request: HistoryRequest) -> Path:
    """Raises ThreadNotFound (also for another user's thread) and BranchNotFound."""
    template = _BRANCH.replace(":branch", ":branch::int") if sql.dialect == "postgresql" else _BRANCH
    rows = sql.fetch(template, {"tenant": request.tenant, "thread": request.thread, "branch": request.branch})
    if not rows or (request.user_id is not None and rows[0][0] != encode_text(request.user_id)):
        raise ThreadNotFound(request.thread_id)
    _, active, branch, last_seq, lineage = rows[0]
    if branch is None:
        raise BranchNotFound(request.thread_id, active if request.branch is None else request.branch)
    return Path(branch, last_seq, read_lineage(lineage))


def load_path(sql: Sql, request: HistoryRequest, path: Path, first: int, last: int) -> list[ChatMessage]:
    """The messages first … last of the path."""
    messages: list[ChatMessage] = []
    for segment in cut(path.segments, first, min(last, path.last_seq)):
        messages += load_range(sql, request.tenant, request.thread, *segment)
    return messages


def load_range(sql: Sql, tenant: str, thread: str, branch: int, first: int, last: int) -> list[ChatMessage]:
    """The messages first … last that rest on one branch, by one range scan a table."""
    place = {"tenant": tenant, "thread": thread, "branch": branch, "first": first, "last": last}
    rows = [sql.fetch(scan, place) for scan in _SCANS]
    messages = rows[0] if sql.dialect == "postgresql" else _with_times(rows[0])
    return decode_messages(decode_text(thread), messages, rows[1], rows[2])


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


def _with_times(rows: Sequence[Row]) -> list[list[Any]]:
    """created_at is the last column, on SQLite in microseconds."""
    return [[*row[:-1], from_microseconds(row[-1])] for row in rows]


# --- Windows ----------------------------------------------------------------------------------------------------------


def _interval(request: HistoryRequest, low: int, high: int) -> tuple[int, int]:
    """The window within low … high."""
    first = max(low, (request.after or 0) + 1)
    last = high if request.before is None else min(request.before - 1, high)
    size = request.last if request.last is not None else request.limit
    if size is None:
        return first, last
    if request.last is not None or request.before is not None:  # backward: what is next to the end or the cursor
        return max(first, last - size + 1), last
    return first, min(last, first + size - 1)


def _next_cursor(request: HistoryRequest, first: int, last: int, low: int, high: int) -> int | None:
    if request.limit is None or first > last:
        return None
    if request.before is not None:
        return first if first > max(low, (request.after or 0) + 1) else None
    return last if last < high else None


def _from_turn_start(sql: Sql, request: HistoryRequest, path: Path, messages: list[ChatMessage]) -> list[ChatMessage]:
    """`last` messages, but from the first turn that is whole: a call is never split from its results. If not even the
    last turn fits, it is given whole.
    """
    if not messages or messages[0].seq == 1:
        return messages
    for index, message in enumerate(messages):
        if starts_turn(message):
            return messages[index:]
    first = turn_start(sql, request, path, (messages[0].seq or 1) - 1)
    return load_path(sql, request, path, first, messages[-1].seq or path.last_seq)


def turn_start(sql: Sql, request: HistoryRequest, path: Path, seq: int) -> int:
    """Where the turn that `seq` is in begins: at the last user message up to there, or at the first message."""
    starts = _turn_starts(sql, request, path, 1, seq)
    return starts[0] if starts else 1


def _last_turns(sql: Sql, request: HistoryRequest, path: Path) -> int:
    """The seq at which the last `last_turns` turns begin; 1 if there are not as many."""
    starts = _turn_starts(sql, request, path, request.last_turns or 0, path.last_seq)
    if request.last_turns == 0:
        return path.last_seq + 1
    return starts[-1] if len(starts) == request.last_turns else 1


_TURN_STARTS = """
SELECT seq FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
  AND role = 'user'
ORDER BY seq DESC LIMIT :count
"""


def _turn_starts(sql: Sql, request: HistoryRequest, path: Path, count: int, last: int) -> list[int]:
    """The seqs of the last `count` user messages up to `last`, latest first. Reads back no further than they stand."""
    starts: list[int] = []
    for branch, low, high in reversed(cut(path.segments, 1, last)):
        missing = count - len(starts)
        if missing <= 0:
            break
        place = {"tenant": request.tenant, "thread": request.thread, "branch": branch}
        rows = sql.fetch(_TURN_STARTS, {**place, "first": low, "last": high, "count": missing})
        starts += [row[0] for row in rows]
    return starts


def starts_turn(message: ChatMessage) -> bool:
    return message.role == "user"


_RUN_INTERVAL = """
SELECT min(seq), max(seq) FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND run_id = :run
"""


def _run_interval(sql: Sql, request: HistoryRequest, path: Path) -> tuple[int, int]:
    place = {"tenant": request.tenant, "thread": request.thread, "run": encode_text(request.run_id or "")}
    low, high = sql.fetch(_RUN_INTERVAL, place)[0]
    return (low, min(high, path.last_seq)) if low is not None else (path.last_seq + 1, path.last_seq)
