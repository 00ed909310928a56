"""The tip: what the rules need to know of a branch's end, so that judging an append never reads its past.

A few hundred bytes however long the thread is. Positions are (branch, seq, idx), since a fork may leave calls of the
shared part open. Named tuples, because each message of each append makes a new one.
"""

from __future__ import annotations

from typing import NamedTuple


class OpenCall(NamedTuple):
    """A call that has no result yet, and where it stands."""

    branch: int
    seq: int
    idx: int
    id: str | None
    name: str


class Tip(NamedTuple):
    """The end of a branch.

    `last_role` is that of the last message that is neither `custom` nor a system message after the conversation began.
    `answered` holds the ids of the calls that this turn answered: it tells a doubled result from an orphan, and that a
    turn's results began. `turn_run` is the run of the assistant turn whose calls are open, or were till just now.
    """

    last_seq: int = 0
    last_role: str | None = None
    open_calls: tuple[OpenCall, ...] = ()
    answered: tuple[str | None, ...] = ()
    turn_run: str | None = None
    partial_seq: int | None = None
