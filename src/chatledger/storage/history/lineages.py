"""Reads the branches of a thread in pieces, and looks up positions in their lineages: these may be long and many."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from chatledger.storage.drivers.asyncpg import apart_from_loop
from chatledger.storage.drivers.sql import ReadSql, Row
from chatledger.storage.history.path import Path, Segment, cut, read_lineage
from chatledger.storage.history.window_request import Window
from chatledger.storage.rows.encryption import damaged_cell
from chatledger.storage.schema.tables import branches

T = TypeVar("T")

AT_ONCE = 100
"""The branches of one piece."""
_FEW = 8 * 1024
"""The characters of lineages that the event loop reads itself, in less than a millisecond."""
NEXT = "b.branch > :beyond ORDER BY b.branch LIMIT :most"
"""The end of a statement that reads a piece."""


def read_branches(
    sql: ReadSql, template: str, parameters: Mapping[str, Any], read: Callable[[Row], T], *, branch: int, lineage: int
) -> list[T]:
    """What `read` makes of each branch, in order. The statement ends with NEXT. `branch` and `lineage` are the places
    of these columns in its rows.
    """
    branches: list[T] = []
    for rows in _pieces(sql, template, parameters, branch):
        branches += apart_if_long(partial(_each, read, rows), [row[lineage] for row in rows])
    return branches


def _each(read: Callable[[Row], T], rows: Sequence[Row]) -> list[T]:
    return [read(row) for row in rows]


def _pieces(sql: ReadSql, template: str, parameters: Mapping[str, Any], branch: int) -> Iterator[list[Row]]:
    beyond = -1
    while rows := sql.fetch(template, {**parameters, "beyond": beyond, "most": AT_ONCE}):
        yield list(rows)
        if len(rows) < AT_ONCE:
            break
        beyond = rows[-1][branch]


def apart_if_long(work: Callable[[], T], lineages: Sequence[Any]) -> T:
    """The result of work on these lineages, in a thread if they are long. A damaged one may be no text."""
    size = sum(len(lineage) for lineage in lineages if isinstance(lineage, str))
    return apart_from_loop(work) if size > _FEW else work()


_PATHS = f"""
SELECT b.branch, b.last_seq, b.lineage, b.stamp FROM {{schema}}branches b
WHERE b.tenant_id = :tenant AND b.thread_id = :thread AND {NEXT}
"""


def read_paths(sql: ReadSql, window: Window) -> list[Path]:
    """Each branch of the thread, in order. Raises DamagedCell."""
    place = {"tenant": window.tenant.key, "thread": window.thread}
    return read_branches(sql, _PATHS, place, partial(_read_path, window.thread_id), branch=0, lineage=2)


def _read_path(thread_id: str, row: Row) -> Path:
    branch, last_seq, lineage, stamp = row
    if type(last_seq) is not int:
        raise damaged_cell(branches, "last_seq", {"thread_id": thread_id, "branch": branch})
    return Path(branch, last_seq, read_lineage(lineage, thread_id, branch), stamp)


def ended(path: Path) -> Path:
    """The path with its segments up to its end."""
    return replace(path, segments=cut(path.segments, 1, path.last_seq))


def apart_if_many(work: Callable[[], T], paths: Sequence[Path]) -> T:
    """The result of work on the segments of these paths, in a thread if they are many."""
    return apart_from_loop(work) if sum(len(path.segments) for path in paths) > _FEW // 16 else work()


# --- Look-ups that do not read the whole lineage ----------------------------------------------------------------------


def has_place(segments: Sequence[Segment], branch: int, seq: int) -> bool:
    """Whether the row at (branch, seq) is on the path."""
    at = _last_from(segments, seq)
    return at >= 0 and segments[at].branch == branch and seq <= segments[at].last


def tail(segments: Sequence[Segment], first: int) -> list[Segment]:
    """The parts of the path from position `first` on."""
    at = max(_last_from(segments, first), 0)
    rest = [segment for segment in segments[at : at + 1] if segment.last >= first]
    return [*(segment._replace(first=max(segment.first, first)) for segment in rest), *segments[at + 1 :]]


def _last_from(segments: Sequence[Segment], seq: int) -> int:
    """The index of the last segment that begins at `seq` or before; -1 for none."""
    return bisect_right(segments, seq, key=attrgetter("first")) - 1
