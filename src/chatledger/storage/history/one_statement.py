"""Reads a small window of a branch in one statement: the branch row, its messages, their parts and calls.

Only PostgreSQL uses it, because a round trip there costs more than the wide rows of a UNION. Beyond a thousand messages
three range scans are as fast. On SQLite, which has no round trip, they always are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from chatledger.storage.drivers.sql import Row
from chatledger.storage.history.union_rows import (
    CALL,
    CALL_OF,
    HEADER,
    MESSAGE,
    MESSAGE_OF,
    PART,
    PART_OF,
    PLACES,
    TEXT_PLACES,
    row,
    row_of,
)
from chatledger.storage.history.window_request import SMALL
from chatledger.storage.rows.messages import CALL_COLUMNS, MESSAGE_COLUMNS, PART_COLUMNS


@dataclass(frozen=True, slots=True)
class PageRows:
    """The rows of the statement: the branch row as `read_path` expects it, the others as `decode_messages` does."""

    header: Row
    last: int
    messages: list[Row]
    parts: list[Row]
    calls: list[Row]


def page_parameters(*, low: int, high: int, size: int | None, backward: bool, drafts: bool) -> dict[str, Any]:
    """The parameters of PAGE and NEWEST, without those that name the branch: `size` messages of the path within
    low … high, from the beginning or, with `backward`, from the end. Without `drafts` the path ends before the message
    that is being written, and that message comes as well if the window reaches the end.

    With `size` None the statement returns all of them, or no message if there are more than SMALL.
    """
    size, whole = (SMALL, True) if size is None else (size, False)
    return {"low": low, "high": high, "size": size, "whole": whole, "backward": backward, "drafts": drafts}


def read_rows(rows: Sequence[Row]) -> PageRows | None:
    """The rows of PAGE or NEWEST by table; None if the thread does not exist."""
    if not rows:
        return None
    arms: list[list[Row]] = [[], [], [], []]
    for of_arm in rows:
        arm = of_arm[0]
        arms[arm].append(_CUT[arm](of_arm))
    arms[MESSAGE].sort(key=_SEQ)  # a bitmap scan returns rows in the order of the heap
    arms[PART].sort(key=_SEQ_IDX)
    arms[CALL].sort(key=_SEQ_IDX)
    header = arms[HEADER][0]
    return PageRows(header[:-1], header[-1], *arms[MESSAGE:])


def _select(arm: int, alias: str, table: str, columns: Sequence[str]) -> str:
    """One arm of the union."""
    return (
        f"SELECT {row_of(arm, alias, columns)} FROM s CROSS JOIN LATERAL ("
        f"SELECT * FROM {{schema}}{table} r WHERE r.tenant_id = :tenant AND r.thread_id = :thread"
        f" AND r.branch = s.branch AND r.seq BETWEEN s.low AND s.high OFFSET 0) {alias}"
    )


_END = """least(:high::bigint,
    CASE WHEN NOT :drafts::boolean AND b.partial_seq = b.last_seq THEN b.last_seq - 1 ELSE b.last_seq END)"""
_REACHES_DRAFT = """NOT :drafts::boolean AND b.partial_seq = b.last_seq AND :high::bigint >= b.last_seq
    AND (:backward::boolean OR :low::bigint + :size::bigint >= b.last_seq)"""
_BRANCH = f"""
SELECT t.user_id, t.active_branch, b.branch, b.last_seq, b.lineage, b.stamp, b.absent, b.partial_seq,
  CASE WHEN :backward::boolean THEN greatest(:low::bigint, {_END} - :size::bigint + 1)
    ELSE :low::bigint END AS first,
  CASE WHEN {_REACHES_DRAFT} THEN b.last_seq WHEN :backward::boolean THEN {_END}
    WHEN :whole::boolean AND {_END} - coalesce(b.absent, 0) >= :low::bigint + :size::bigint
      THEN :low::bigint - 1
    ELSE least({_END}, :low::bigint + :size::bigint - 1) END AS last
FROM {{schema}}threads t
LEFT JOIN {{schema}}branches b
  ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = coalesce(:branch::int, t.active_branch)
WHERE t.tenant_id = :tenant AND t.thread_id = :thread AND (:user::text IS NULL OR t.user_id = :user::text)
LIMIT 1
"""


def _segments(window: str, *, source: str = "") -> str:
    """The segments of the window that the columns `lineage`, `first` and `last` of a relation describe."""
    return f"""
SELECT (e.value->>0)::int AS branch, greatest((e.value->>1)::bigint, {window}.first) AS low,
  least(coalesce((e.value->>2)::bigint, {window}.last), {window}.last) AS high
FROM {source} json_array_elements({window}.lineage::json) AS e (value)
WHERE (e.value->>1)::bigint <= {window}.last AND coalesce((e.value->>2)::bigint, {window}.last) >= {window}.first
"""


# The window begins at the earliest call that has a result in it, over and over, because the messages that this adds may
# hold results of earlier calls. Nearly always the first step finds no earlier call, or the second one does not.
_WHOLE_GROUPS = f"""
w AS ({_BRANCH}), g AS (
SELECT * FROM w
UNION ALL
SELECT g.user_id, g.active_branch, g.branch, g.last_seq, g.lineage, g.stamp, g.absent, g.partial_seq, c.first, g.last
FROM g CROSS JOIN LATERAL (
  SELECT min(r.call_seq) AS first FROM ({_segments("g")}) s CROSS JOIN LATERAL (
    SELECT * FROM {{schema}}tool_results r WHERE r.tenant_id = :tenant AND r.thread_id = :thread
    AND r.branch = s.branch AND r.seq BETWEEN s.low AND s.high OFFSET 0) r
) c WHERE c.first < g.first
), b AS (SELECT * FROM g ORDER BY first LIMIT 1)
"""
# The window begins at the last message of a user that continues no group, and so with a turn. Such a message may have a
# residual of another kind, which a statement cannot read if it is encrypted; then the window begins a turn earlier.
_WHOLE_TURN = f"""
w AS ({_BRANCH}), b AS (
SELECT w.user_id, w.active_branch, w.branch, w.last_seq, w.lineage, w.stamp, w.absent, w.partial_seq, coalesce((
  SELECT max(u.seq) FROM ({_segments("w")}) s CROSS JOIN LATERAL (
    SELECT r.seq FROM {{schema}}messages r WHERE r.tenant_id = :tenant AND r.thread_id = :thread
    AND r.branch = s.branch AND r.seq BETWEEN s.low AND s.high AND r.role = 'user' AND r.residual IS NULL
    ORDER BY r.seq DESC LIMIT 1) u
), w.first) AS first, w.last FROM w)
"""
# Each arm makes one range scan for each segment of the path; nearly always there is one segment. OFFSET 0 keeps the
# planner from turning the scans into joins: if it expected short threads, it would read the whole thread for them.
# The LIMIT in _BRANCH repeats what the key guarantees. The planner multiplies the frequencies of the key's columns.
# With one thread id in many tenants it would expect hundreds of branches, and read the whole thread to join them.
_HEADER_NUMBERS = {"branch": "b.branch", "seq": "b.last_seq", "call_count": "b.active_branch"}
_HEADER_TEXTS = ("b.user_id", "b.lineage", "b.stamp::text", "b.absent::text", "b.partial_seq::text", "b.last::text")
_HEADER_VALUES = {PLACES[name]: value for name, value in _HEADER_NUMBERS.items()}
_HEADER_VALUES |= dict(zip(TEXT_PLACES, _HEADER_TEXTS, strict=False))
_HEADER_SELECT = f"SELECT {row(HEADER, _HEADER_VALUES)} FROM b"
_ARMS = (
    f"s AS ({_segments('b', source='b CROSS JOIN LATERAL')}) {_HEADER_SELECT}",
    _select(MESSAGE, "m", "messages", MESSAGE_COLUMNS),
    _select(PART, "p", "message_parts", PART_COLUMNS),
    _select(CALL, "c", "tool_calls", CALL_COLUMNS),
)
PAGE = f"WITH b AS ({_BRANCH}), " + " UNION ALL ".join(_ARMS)
NEWEST = f"WITH RECURSIVE {_WHOLE_GROUPS}, " + " UNION ALL ".join(_ARMS)
"""PAGE for a window that begins no later than the calls whose results it holds."""
TURN = f"WITH {_WHOLE_TURN}, " + " UNION ALL ".join(_ARMS)
"""PAGE for the last turn of a window."""


def _header(row: Row) -> Row:
    """(user_id, active_branch, branch, last_seq, lineage, stamp, absent, partial_seq, last)"""
    user_id, lineage, stamp, *others, last = _TEXTS_OF_HEADER(row)
    branch, last_seq, active_branch = _NUMBERS_OF_HEADER(row)
    absent, partial_seq = (None if other is None else int(other) for other in others)
    numbers = (0 if stamp is None else int(stamp), absent, partial_seq, int(last))
    return user_id, active_branch, branch, last_seq, lineage, *numbers


_NUMBERS_OF_HEADER = itemgetter(*(PLACES[name] for name in _HEADER_NUMBERS))
_TEXTS_OF_HEADER = itemgetter(*TEXT_PLACES[: len(_HEADER_TEXTS)])
_CUT: tuple[Callable[[Row], Row], ...] = (_header, MESSAGE_OF, PART_OF, CALL_OF)
_SEQ: itemgetter[Any] = itemgetter(1 + MESSAGE_COLUMNS.index("seq"))
_SEQ_IDX: itemgetter[Any] = itemgetter(1, 2)
