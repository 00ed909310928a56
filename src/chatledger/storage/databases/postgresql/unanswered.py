"""The statements of an append that were sent and never answered.

Such a statement may still run, however long ago its connection was lost: its server may have been stopped before it
read the statement. Each is guarded: it writes only while the branch has the stamp that it was judged on, or only while
the thread does not exist. Until that is over, nobody can say for certain that the append is refused.
"""

from __future__ import annotations

from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest

NO_THREAD, ANYTHING = -1, -2
"""Guards that are no stamps: the thread does not exist; and a guard that is not known."""


class Unanswered:
    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._guards)

    def add(self, guard: int) -> None:
        self._guards.add(guard)

    def may_write(self, request: AppendRequest, seen: Preflight | None) -> bool:
        """Whether one of the statements would still write. `seen` is what the append saw under the lock of its branch;
        None if it did not look.
        """
        if seen is None or ANYTHING in self._guards:
            return bool(self._guards)
        return guard_of(request, seen) in self._guards


def guard_of(request: AppendRequest, seen: Preflight) -> int:
    """The guard of a write that is judged on this preflight."""
    if request.after is not None:  # it may have been judged on another branch than the one that it asks for
        return ANYTHING
    return NO_THREAD if seen.tip is None else seen.stamp
