"""Writers of one branch in one process take turns before they reach the database.

Otherwise they would meet at the branch's row: each writes on a tip that another has just moved, and tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class Turns:
    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, place: Hashable) -> AsyncIterator[None]:
        """First come, first served; a place that nobody waits for costs nothing to keep."""
        lock, waiting = self._locks.get(place) or (asyncio.Lock(), 0)
        self._locks[place] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._locks.pop(place)
            if waiting > 1:
                self._locks[place] = lock, waiting - 1
