"""Writers of one branch in one process take turns before they reach the database.

Otherwise they would meet at the branch's row: each writes on a tip that another has just moved, and tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from types import TracebackType


class Turns:
    def __init__(self) -> None:
        self._places: dict[Hashable, _Turn] = {}

    def of(self, place: Hashable) -> _Turn:
        """To be entered at once. First come, first served; a place that nobody waits for costs nothing to keep."""
        turn = self._places.get(place)
        if turn is None:
            turn = self._places[place] = _Turn(self._places, place)
        return turn


class _Turn:
    """The queue before one place."""

    __slots__ = ("_lock", "_place", "_places", "_taken")

    def __init__(self, places: dict[Hashable, _Turn], place: Hashable) -> None:
        self._places = places
        self._place = place
        self._lock = asyncio.Lock()
        self._taken = 0

    async def __aenter__(self) -> None:
        self._taken += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()
        self._leave()

    def _leave(self) -> None:
        self._taken -= 1
        if not self._taken:
            del self._places[self._place]
