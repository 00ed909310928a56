"""The tip: all that the rules need to know about the end of a branch, so that an append reads no earlier messages.

It takes a few hundred bytes, however long the thread is. Positions are (branch, seq, idx), since a fork may leave calls
of the shared part open. The types are named tuples, because every appended message creates a new tip.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple


class OpenCall(NamedTuple):
    """A call without a result, and its position."""

    branch: int
    seq: int
    idx: int
    id: str | None
    name: str


class Writer(NamedTuple):
    """A draft, by its token, and which of its holders writes: 0 is the one that opened it, and each that attaches to it
    has a number of its own. The token is a secret of the draft's holders, so nothing prints it. `grown_at`: when pieces
    of a holder without a process last came, in microseconds of the database's clock.
    """

    token: int
    holder: int = 0
    grown_at: int = 0

    def __repr__(self) -> str:
        return "Writer()"


class Lease(NamedTuple):
    """The time for which a partial message belongs to its writer: `seconds` from its last write. `writer` tells a draft
    from another one that took the message over when the lease was over; None if no draft writes it. `written`, and
    `read_at`, the time when the lease was read, are times of the database's clock, so those of no process matter.
    """

    written: datetime
    seconds: float
    writer: Writer | None
    read_at: datetime

    @property
    def age(self) -> timedelta:
        """The time since the last write."""
        return self.read_at - self.written

    @property
    def left(self) -> timedelta:
        """The time until the lease ends."""
        return timedelta(seconds=self.seconds) - self.age

    @property
    def holds(self) -> bool:
        """Also false for a write in the far future: the clock was set back since."""
        return abs(self.age) < timedelta(seconds=self.seconds)


class Tip(NamedTuple):
    """The end of a branch.

    `last_role` is the role of the last message that is neither `custom` nor a system message after the conversation
    began. `answered` holds the ids of the calls that this turn has answered: it tells a repeated result from an orphan,
    and shows that the turn's results have begun. `turn_run` is the run of the assistant turn whose calls are open, or
    have just been answered.

    `partial_seq` is the partial message at the end, and `partial_calls` are its calls so far. They are not open yet: a
    call is answered only after it is complete. Storage sets the `lease`, since it has a clock; without a lease nobody
    is writing the message.
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
    """The tip after its partial message, if any, is interrupted: its calls are open."""
    if tip.partial_seq is None:
        return tip
    return tip._replace(open_calls=tip.open_calls + tip.partial_calls, partial_seq=None, partial_calls=(), lease=None)
