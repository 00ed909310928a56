"""The tip: what the rules need to know of a branch's end, so that judging an append never reads its past.

A few hundred bytes however long the thread is. Positions are (branch, seq, idx), since a fork may leave calls of the
shared part open. Named tuples, because each message of each append makes a new one.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple


class OpenCall(NamedTuple):
    """A call that has no result yet, and where it stands."""

    branch: int
    seq: int
    idx: int
    id: str | None
    name: str


class Lease(NamedTuple):
    """How long a partial message is left to whoever writes it: so many seconds from its last write."""

    written: datetime
    seconds: float

    def holds(self, now: datetime) -> bool:
        """Also false for a write in the far future, which is that of a clock that was set back since."""
        return abs(now - self.written) < timedelta(seconds=self.seconds)


class Tip(NamedTuple):
    """The end of a branch.

    `last_role` is that of the last message that is neither `custom` nor a system message after the conversation began.
    `answered` holds the ids of the calls that this turn answered: it tells a doubled result from an orphan, and that a
    turn's results began. `turn_run` is the run of the assistant turn whose calls are open, or were till just now.

    `partial_seq` is the partial message at the end; `partial_calls` are its calls so far, which are not open yet: none
    can be answered before it is written. `lease` is the storage's, which has a clock; without one nobody writes it.
    """

    last_seq: int = 0
    last_role: str | None = None
    open_calls: tuple[OpenCall, ...] = ()
    answered: tuple[str | None, ...] = ()
    turn_run: str | None = None
    partial_seq: int | None = None
    partial_calls: tuple[OpenCall, ...] = ()
    lease: Lease | None = None


def interrupted(tip: Tip) -> Tip:
    """The tip once its partial message, if it has one, will not be written on: the calls that it has are open."""
    if tip.partial_seq is None:
        return tip
    return tip._replace(open_calls=tip.open_calls + tip.partial_calls, partial_seq=None, partial_calls=(), lease=None)
