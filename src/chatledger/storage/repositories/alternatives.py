"""The alternatives of a message: the messages in its place on the branches that part from its path there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from chatledger.errors import MessageNotFound
from chatledger.models import Alternative, ChatMessage
from chatledger.models.json import dumps
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.history.lineages import apart_if_many, ended, has_place, read_paths, tail
from chatledger.storage.history.path import Path, Segment, cut, find_path, scans
from chatledger.storage.history.places import At, seek
from chatledger.storage.history.window_request import Window
from chatledger.storage.lists.cursors import part_of
from chatledger.storage.rows.decode_messages import decode_messages

_Place = tuple[int, int]
"""The branch that stores a message, and its seq."""


class Way(NamedTuple):
    """A branch that shows an alternative, and whether it is the requested one."""

    branch: int
    current: bool


async def find_ways(scope: Scope, thread_id: str, branch: int, seqs: Sequence[int]) -> dict[int, list[Way]]:
    """The alternatives of the messages at these seqs, without the messages. Raises as `alternatives_of`."""
    window = Window.of(scope.tenant, thread_id, branch)
    ways_of = await scope.read(lambda sql: _find(sql, window, find_path(sql, window), seqs), snapshot=True)
    return {seq: [way for _, way in ways] for seq, ways in ways_of.items()}


async def alternatives_of(scope: Scope, thread_id: str, at: At, *, branch: int | None = None) -> list[Alternative]:
    """Raises ThreadNotFound, BranchNotFound and MessageNotFound."""
    window = Window.of(scope.tenant, thread_id, branch)
    return await scope.read(lambda sql: _read(sql, window, _find_at(sql, window, at)), snapshot=True)


class Alternatives:
    """The alternatives of a message in parts. What tells them, the lineages of all branches, is read once."""

    def __init__(self, scope: Scope, thread_id: str, at: At) -> None:
        self._scope = scope
        self._at = at
        self._window = Window.of(scope.tenant, thread_id)
        self._found: Sequence[tuple[_Place, Way]] | None = None

    async def read(self, skip: int, limit: int) -> list[Alternative]:
        """`limit` of them after the first `skip`. Raises as `alternatives_of`. One that was removed since is left
        out.
        """
        window = self._window
        if self._found is None:
            self._found = await self._scope.read(lambda sql: _find_at(sql, window, self._at), snapshot=True)
        part = self._found[part_of(skip, limit)]
        return await self._scope.read(lambda sql: _read(sql, window, part), snapshot=True)


def _find_at(sql: ReadSql, window: Window, at: At) -> list[tuple[_Place, Way]]:
    path, seq = seek(sql, window, at)
    return _find(sql, window, path, [seq])[seq]


def _read(sql: ReadSql, window: Window, places_and_ways: Sequence[tuple[_Place, Way]]) -> list[Alternative]:
    messages = _load(sql, window, [place for place, _ in places_and_ways]) if places_and_ways else {}
    return [
        Alternative(message=messages[place], **way._asdict()) for place, way in places_and_ways if place in messages
    ]


def _find(sql: ReadSql, window: Window, path: Path, seqs: Iterable[int]) -> dict[int, list[tuple[_Place, Way]]]:
    path = ended(path)
    before = {seq: _last_before(sql, window, path.segments, seq) for seq in seqs if _stored_by(window, path, seq)}
    stored = read_paths(sql, window)
    paths = apart_if_many(lambda: [ended(other) for other in stored], stored)
    return {seq: _find_one(sql, window, path, seq, before[seq], paths) for seq in before}


def _stored_by(window: Window, path: Path, seq: int) -> list[Segment]:
    """The position, and the branch that stores it. Raises MessageNotFound."""
    segments = cut(path.segments, seq, seq)
    if not segments:
        raise MessageNotFound(window.thread_id, seq=seq)
    return segments


def _find_one(
    sql: ReadSql, window: Window, path: Path, seq: int, before: _Place | None, paths: Sequence[Path]
) -> list[tuple[_Place, Way]]:
    parting = apart_if_many(lambda: _parting(paths, before), paths)
    showing: dict[_Place, list[int]] = {}
    for branch, place in _first_places(sql, window, parting).items():
        showing.setdefault(place, []).append(branch)
    current = (_stored_by(window, path, seq)[0].branch, seq)
    if current not in showing:
        raise MessageNotFound(window.thread_id, seq=seq)
    return [
        (place, Way(path.branch if path.branch in on else on[-1], place == current))
        for place, on in sorted(showing.items())
    ]


def _parting(paths: Sequence[Path], before: _Place | None) -> dict[int, list[Segment]]:
    """What follows the message before the place, on each branch that has that message."""
    first = (before[1] if before else 0) + 1
    return {
        path.branch: tail(path.segments, first) for path in paths if before is None or has_place(path.segments, *before)
    }


def _first_places(sql: ReadSql, window: Window, parting: dict[int, list[Segment]]) -> dict[int, _Place]:
    """The first message of each branch that has one. It nearly always stands in the branch's first segment."""
    first = _firsts(sql, window, {segments[0] for segments in parting.values() if segments})
    empty = {
        segment for segments in parting.values() if segments and segments[0] not in first for segment in segments[1:]
    }
    if empty:
        first |= _firsts(sql, window, empty)
    first_of = {
        branch: next((first[segment] for segment in segments if segment in first), None)
        for branch, segments in parting.items()
    }
    return {branch: place for branch, place in first_of.items() if place is not None}


_LAST_BEFORE = """
SELECT max(seq) FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last
"""


def _last_before(sql: ReadSql, window: Window, segments: Sequence[Segment], seq: int) -> _Place | None:
    """The message before `seq` on the path. Nearly always it is the position before, so one look-up finds it."""
    for branch, first, last in reversed(cut(segments, 1, seq - 1)):
        place = {"tenant": window.tenant.key, "thread": window.thread, "branch": branch}
        seq_before = sql.fetch(_LAST_BEFORE, {**place, "first": first, "last": last})[0][0]
        if seq_before is not None:
            return branch, seq_before
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


def _firsts(sql: ReadSql, window: Window, segments: Collection[Segment]) -> dict[Segment, _Place]:
    """The first message in each of the segments that has one."""
    parameters: dict[str, Any] = {"tenant": window.tenant.key, "thread": window.thread}
    if sql.dialect == "postgresql":
        names = {"branches": "branch", "lows": "first", "highs": "last"}
        parameters |= {name: [getattr(segment, field) for segment in segments] for name, field in names.items()}
    else:
        parameters["segments"] = dumps([list(segment) for segment in segments])
    rows = sql.fetch(_FIRST + _GIVEN[sql.dialect], parameters)
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


def _load(sql: ReadSql, window: Window, places: Iterable[_Place]) -> dict[_Place, ChatMessage]:
    columns = {name: [*dict.fromkeys(column)] for name, column in zip(_PAIR, zip(*places, strict=True), strict=True)}
    parameters: dict[str, Any] = {"tenant": window.tenant.key, "thread": window.thread}
    parameters |= columns if sql.dialect == "postgresql" else {name: dumps(column) for name, column in columns.items()}
    messages, parts, calls = (sql.fetch(scan, parameters) for scan in _SCANS[sql.dialect])
    decoded = decode_messages(window.tenant, window.thread_id, messages, parts, calls)
    return {(message.branch or 0, message.seq or 0): message for message in decoded}
