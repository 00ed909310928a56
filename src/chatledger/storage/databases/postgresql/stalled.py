"""The threads that a lock of another transaction stalls, and the turns in which their appends wait for it.

An append to such a thread waits on the server only for a moment at a time, then for its next turn, in this process. So
the stalled threads of a process hold a part of its connections, however many there are, and the others have the rest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from chatledger.storage.append.request import AppendRequest
from chatledger.storage.drivers.errors import is_locked

T = TypeVar("T")


class NoTurn(Exception):
    """The time limit of an append was over before its next turn came, or before the lock was free."""


_MOST = 4_096
"""Maximum number of threads. The one that was found first is forgotten, and is found again if it is still stalled."""


class Stalled:
    def __init__(self, turns: int) -> None:
        """`turns`: the number of appends that may wait on the server at a time."""
        self.threads: dict[tuple[str, str], None] = {}
        self._turns = asyncio.Semaphore(turns)

    def __contains__(self, request: AppendRequest) -> bool:
        return (request.tenant.key, request.thread) in self.threads

    def note(self, request: AppendRequest) -> None:
        """An append waited for a lock in vain."""
        if len(self.threads) >= _MOST:
            del self.threads[next(iter(self.threads))]
        self.threads[request.tenant.key, request.thread] = None

    async def in_turn(self, request: AppendRequest, attempt: Coroutine[Any, Any, T], until: float) -> T:
        """Make the attempt; if its thread is stalled, wait for a turn before. Raises NoTurn if there is none until
        then, by `time.monotonic`.
        """
        if request not in self:
            return await attempt
        try:
            await self._take_turn(until)
        except BaseException:
            attempt.close()
            raise
        try:
            done = await attempt
        except BaseException as error:
            if isinstance(error, Exception) and not is_locked(error):
                self._forget(request)
            raise
        finally:
            self._turns.release()
        self._forget(request)
        return done

    async def _take_turn(self, until: float) -> None:
        try:
            async with asyncio.timeout(max(0, until - time.monotonic())):
                await self._turns.acquire()
        except TimeoutError:
            raise NoTurn from None
        if time.monotonic() > until:
            self._turns.release()
            raise NoTurn

    def _forget(self, request: AppendRequest) -> None:
        self.threads.pop((request.tenant.key, request.thread), None)
