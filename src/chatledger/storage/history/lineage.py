"""The path through a thread: which interval of which branch a branch consists of.

Because seq is dense along the path, a page is an interval of seq, and cutting it by the lineage gives plain ranges,
nearly always one. An OR of ranges would read whole threads and sort, on both databases.
"""

from __future__ import annotations

from typing import NamedTuple

from chatledger.models.json import dumps, loads

END = 2**62
"""A seq beyond every other: the open end of a branch's own interval."""

MAX_BRANCH = 2**31 - 1


class Segment(NamedTuple):
    """The messages `first` to `last` of the path rest on `branch`."""

    branch: int
    first: int
    last: int


def read_lineage(stored: str) -> list[Segment]:
    """The column `lineage`: [[branch, first, last or null], …] from the first message to the open end."""
    return [Segment(branch, first, END if last is None else last) for branch, first, last in loads(stored)]


def write_lineage(segments: list[Segment]) -> str:
    return dumps([[branch, first, None if last == END else last] for branch, first, last in segments])


def cut(segments: list[Segment], first: int, last: int) -> list[Segment]:
    """The parts of the path that lie within first … last, in order."""
    inside = (Segment(branch, max(first, low), min(last, high)) for branch, low, high in segments)
    return [segment for segment in inside if segment.first <= segment.last]


def forked(segments: list[Segment], branch: int, at: int) -> list[Segment]:
    """The lineage of a new branch that shares the path up to and including `at`."""
    return [*cut(segments, 1, at), Segment(branch, at + 1, END)]


def branch_column(branch: int | None) -> int | None:
    """A branch as the column can be asked for it: a number that it cannot hold is that of no branch."""
    return branch if branch is None or 0 <= branch <= MAX_BRANCH else -1
