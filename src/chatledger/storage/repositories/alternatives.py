"""The alternatives of a message: the messages in its place on the branches that part from its path there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import and_, select

from chatledger.errors import MessageNotFound
from chatledger.models import Alternative, ChatMessage
from chatledger.models.json import dumps
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.path import Segment, cut, read_lineage, scans, stands_on
from chatledger.storage.history.window import Window
from chatledger.storage.repositories.cursors import part_of
from chatledger.storage.repositories.places import At, seek
from chatledger.storage.rows.encryption import damaged_cell
from chatledger.storage.rows.messages import decode_messages
from chatledger.storage.schema.tables import branches

_Place = tuple[int, int]
"""The branch that stores a message, and its seq."""


class Way(NamedTuple):
    """A branch that shows an alternative, and whether it is the requested one."""

    branch: int
    current: bool


async def find_ways(scope: Scope, thread_id: str, branch: int, seq: int) -> list[Way]:
    """The alternatives without their messages. Raises as `alternatives_of`."""
    window = Window.of(scope.tenant, thread_id, branch)
    return [way for _, way in await scope.read(lambda sql: _find(sql, window, seq), snapshot=True)]


async def alternatives_of(
    scope: Scope, thread_id: str, at: At, *, branch: int | None = None, skip: int = 0, limit: int | None = None
) -> list[Alternative]:
    """`limit` of the alternatives (None: all), after the first `skip`. Raises ThreadNotFound, BranchNotFound and
    MessageNotFound.
    """
    part = part_of(skip, limit)
    window = Window.of(scope.tenant, thread_id, branch)
    return await scope.read(lambda sql: _find_alternatives(sql, window, at, part), snapshot=True)


def _find_alternatives(sql: Sql, window: Window, at: At, part: slice) -> list[Alternative]:
    found = _find(sql, window, at)[part]
    messages = _load(sql, window, [place for place, _ in found]) if found else {}
    return [Alternative(message=messages[place], **way._asdict()) for place, way in found]


def _find(sql: Sql, window: Window, at: At) -> list[tuple[_Place, Way]]:
    path, seq = seek(sql, window, at)
    current = next((segment.branch for segment in cut(path.segments, seq, min(seq, path.last_seq))), None)
    if current is None:
        raise MessageNotFound(window.thread_id, seq=seq)
    before = _last_before(sql, window, path.segments, seq)
    parting = {
        branch: cut(segments, (before[1] if before else 0) + 1, last_seq)
        for branch, last_seq, segments in _paths(sql, window)
        if before is None or stands_on(segments, *before)
    }
    first = _firsts(sql, window, {segment for segments in parting.values() for segment in segments})
    showing: dict[_Place, list[int]] = {}
    for branch, segments in sorted(parting.items()):
        place = next((first[segment] for segment in segments if segment in first), None)
        if place is not None:
            showing.setdefault(place, []).append(branch)
    if (current, seq) not in showing:
        raise MessageNotFound(window.thread_id, seq=seq)
    return [
        (place, Way(path.branch if path.branch in on else on[-1], place == (current, seq)))
        for place, on in sorted(showing.items())
    ]


def _paths(sql: Sql, window: Window) -> list[tuple[int, int, list[Segment]]]:
    """Each branch of the thread, its last seq and its path. Raises DamagedCell."""
    own = and_(branches.c.tenant_id == window.tenant.name, branches.c.thread_id == window.thread_id)
    rows = sql.execute(select(branches.c.branch, branches.c.last_seq, branches.c.lineage).where(own)).all()
    for row in rows:
        if type(row.last_seq) is not int:
            raise damaged_cell(branches, "last_seq", {"thread_id": window.thread_id, "branch": row.branch})
    return [(row.branch, row.last_seq, read_lineage(row.lineage, window.thread_id, row.branch)) for row in rows]


_LAST_BEFORE = """
SELECT max(seq) FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
"""


def _last_before(sql: Sql, window: Window, segments: Sequence[Segment], seq: int) -> _Place | None:
    """The message before `seq` on the path. Nearly always it is the position before, so one look-up finds it."""
    for branch, first, last in reversed(cut(segments, 1, seq - 1)):
        place = {"tenant": window.tenant.key, "thread": window.thread, "branch": branch}
        found = sql.fetch(_LAST_BEFORE, {**place, "first": first, "last": last})[0][0]
        if found is not None:
            return branch, found
    return None


_FIRST = """
SELECT g.branch, g.low, g.high, (
  SELECT min(m.seq) FROM {schema}messages m
  WHERE m.tenant_id = :tenant AND m.thread_id = :thread AND m.branch = g.branch AND m.seq BETWEEN g.low AND g.high)
FROM """
_GIVEN = {
    "postgresql": "unnest(:branches::int[], :lows::bigint[], :highs::bigint[]) AS g (branch, low, high)",
    "sqlite": (
        "(SELECT json_extract(value, '$[0]') AS branch, json_extract(value, '$[1]') AS low,"
        " json_extract(value, '$[2]') AS high FROM json_each(:segments)) AS g"
    ),
}


def _firsts(sql: Sql, window: Window, segments: Collection[Segment]) -> dict[Segment, _Place]:
    """The first message in each of the segments that has one."""
    given: dict[str, Any] = {"tenant": window.tenant.key, "thread": window.thread}
    if sql.dialect == "postgresql":
        names = {"branches": "branch", "lows": "first", "highs": "last"}
        given |= {name: [getattr(one, field) for one in segments] for name, field in names.items()}
    else:
        given["segments"] = dumps([list(one) for one in segments])
    rows = sql.fetch(_FIRST + _GIVEN[sql.dialect], given)
    return {Segment(*segment): (segment[0], seq) for *segment, seq in rows if seq is not None}


# Both columns follow in the primary key, so each pair is looked up by itself. The messages of one place nearly always
# have the same seq: then the statement reads the wanted rows and no others.
_SCANS = {
    dialect: scans("branch", f"thread_id = :thread AND branch {branch} AND seq {seq}", "branch, ")
    for dialect, branch, seq in (
        ("postgresql", "= ANY(:branches::int[])", "= ANY(:seqs::bigint[])"),
        ("sqlite", "IN (SELECT value FROM json_each(:branches))", "IN (SELECT value FROM json_each(:seqs))"),
    )
}


_PAIR = ("branches", "seqs")


def _load(sql: Sql, window: Window, places: Iterable[_Place]) -> dict[_Place, ChatMessage]:
    columns = {name: [*dict.fromkeys(column)] for name, column in zip(_PAIR, zip(*places, strict=True), strict=True)}
    given: dict[str, Any] = {"tenant": window.tenant.key, "thread": window.thread}
    given |= columns if sql.dialect == "postgresql" else {name: dumps(column) for name, column in columns.items()}
    messages, parts, calls = (sql.fetch(scan, given) for scan in _SCANS[sql.dialect])
    decoded = decode_messages(window.tenant, window.thread_id, messages, parts, calls)
    return {(message.branch or 0, message.seq or 0): message for message in decoded}
