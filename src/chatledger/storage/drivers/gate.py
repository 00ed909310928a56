"""The gate before a pool of connections: callers get connections in the order in which they ask.

SQLAlchemy's pool has a queue of its own, and it is not fair: a returned connection goes to whoever asks first, and a
caller that was woken for it waits again, behind all others. So nobody gets as far as that queue. The gate has as many
places as the pool may have connections. A place is free, or in use, or has an idle connection in it, which is kept here
for the next caller.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from sqlalchemy import PoolProxiedConnection

from chatledger.storage.drivers.errors import NoPlace, NoSecondPlace

CLOSED = "this ledger was closed before the call ended"
PoolPlace: TypeAlias = PoolProxiedConnection | None
"""The connection in a place; None if its holder takes one from the pool."""


class PoolGate:
    def __init__(self, places: float, holds: Callable[[], bool]) -> None:
        """`places` may be infinite, for a pool that others use too. `holds`: whether the task that runs has an open
        transaction, so that it holds a connection while it waits for another.
        """
        self.places = places
        self.free: float = places
        """Places that are not in use and have no idle connection."""
        self.idle: list[PoolProxiedConnection] = []
        self.line: deque[_PoolWaiter] = deque()
        """Those that wait: first the callers that hold a connection, then those that hold none."""
        self._holds = holds

    def enter(self) -> bool:
        """Take a free place, if there is one. While somebody waits, there is none."""
        if self.free < 1:
            return False
        self.free -= 1
        return True

    async def wait(self, limit: float) -> PoolPlace:
        """Wait in line for a place. A caller that holds a connection goes before those that hold none: they can have it
        only when that caller goes on. If all places are held so, nobody goes on. Then these callers fail after half of
        the limit, so that the other half is left to those behind them.

        Raises NoPlace after `limit` seconds, or NoSecondPlace, and ConnectionError if the gate is closed.
        """
        waiter = _PoolWaiter(self._holds())
        self.line.insert(self._count_holders() if waiter.holds else len(self.line), waiter)
        try:
            async with asyncio.timeout(limit / 2 if waiter.holds else limit):
                return await waiter.place
        except BaseException as error:
            self._withdraw(waiter)
            if isinstance(error, TimeoutError):
                raise (NoSecondPlace if waiter.holds else NoPlace)(self.places, limit) from None
            raise

    def leave(self, place: PoolPlace = None) -> None:
        """Give the place to the first in line. If nobody waits, it is free, or keeps its connection idle."""
        while self.line:
            waiter = self.line.popleft()
            if not waiter.place.done():  # done without a place: it was cancelled, and is about to withdraw
                waiter.place.set_result(place)
                return
        if place is not None:
            self.idle.append(place)
        else:
            self.free += 1

    def close(self) -> None:
        """Send all away who wait."""
        while self.line:
            waiter = self.line.popleft()
            if not waiter.place.done():
                waiter.place.set_exception(ConnectionError(CLOSED))

    def _withdraw(self, waiter: _PoolWaiter) -> None:
        """The waiter was cancelled or has waited for long enough. If it has been given a place meanwhile, it passes it
        on.
        """
        if waiter in self.line:
            self.line.remove(waiter)
        elif not waiter.place.cancelled() and waiter.place.exception() is None:
            self.leave(waiter.place.result())

    def _count_holders(self) -> int:
        return sum(waiter.holds for waiter in self.line)


class _PoolWaiter:
    __slots__ = ("holds", "place")

    def __init__(self, holds: bool) -> None:
        self.holds = holds
        self.place: asyncio.Future[PoolPlace] = asyncio.get_running_loop().create_future()
