"""The states that a follower with deltas tells beside the changes: whether the draft is abandoned, and those of runs.

They are no entries of the log, so no cursor has them. A follower remembers what it told, and compares it with what a
read finds. One that begins remembers nothing, and tells the present states.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from chatledger.rules import Lease
from chatledger.storage.databases.states import read_statuses
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.path import Path, cut
from chatledger.storage.history.window_request import Window

MOST_NAMED = 100
"""The most runs that the messages before the next look at runs may name; it leaves out those that came first."""
MOST_OPEN = 8
"""The most runs that may still change whose changes are told."""
_MAY_CHANGE = ("running", "paused", "cancelled")  # a run that the ledger cancelled can end with another status


class Reported(NamedTuple):
    """What a follower told. `branch`: the one whose newest run it has looked for. `runs`: those that may change, with
    the status that was told, and None for those that messages name since, which come last.
    """

    branch: int | None = None
    abandoned: tuple[int, datetime | None] | None = None
    runs: tuple[tuple[str, str | None], ...] = ()

    def naming(self, run: str) -> Reported:
        """After a message that names the run, as stored."""
        if any(run == known for known, _ in self.runs):
            return self
        return self._replace(runs=(*self.runs, (run, None))[-MOST_NAMED:])

    def leaving(self, partial_seq: int | None, lease: Lease | None) -> Reported:
        """After a look at the message that is being written."""
        if partial_seq is None or (lease is not None and lease.holds):
            return self._replace(abandoned=None)
        return self._replace(abandoned=(partial_seq, lease and lease.written))

    @property
    def watched(self) -> tuple[str, ...]:
        return tuple([run for run, _ in self.runs])

    @property
    def statuses(self) -> tuple[str | None, ...]:
        return tuple([status for _, status in self.runs])


def look_at_runs(
    sql: WriteSql, window: Window, path: Path, reported: Reported
) -> tuple[Reported, list[tuple[str, str]]]:
    """What is told after the look, and the runs whose status it found to be another one."""
    if reported.branch != path.branch:
        newest = next(_newest_runs(sql, window, path), None)
        reported = (reported if newest is None else reported.naming(newest))._replace(branch=path.branch)
    statuses = read_statuses(sql, window.tenant, reported.watched)
    compared = [(run, before, statuses[run]) for run, before in reported.runs if run in statuses]
    watched = [(run, status) for run, _, status in compared if status in _MAY_CHANGE][-MOST_OPEN:]
    return reported._replace(runs=tuple(watched)), [
        (run, status) for run, before, status in compared if status != before
    ]


_NEWEST_RUN = """
SELECT run_id FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq >= :first AND seq <= :last
  AND run_id IS NOT NULL ORDER BY seq DESC LIMIT 1
"""


def _newest_runs(sql: WriteSql, window: Window, path: Path) -> Iterator[str]:
    """The newest run of the last messages of each branch that stores some of the path, the last branch first."""
    place = {"tenant": window.tenant.key, "thread": window.thread}
    for segment in reversed(cut(path.segments, path.last_seq - MOST_NAMED + 1, path.last_seq)):
        where = {"branch": segment.branch, "first": segment.first, "last": segment.last}
        yield from [row[0] for row in sql.fetch(_NEWEST_RUN, place | where)]
