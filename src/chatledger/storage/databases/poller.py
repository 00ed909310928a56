"""Waits for threads to change: one task asks the database about all awaited threads in one statement.

A follower that has read a thread waits until the thread's state differs from the state that it read. So it misses
nothing between the read and the wait, and a follower that is not waiting costs nothing. The task runs only while a
follower waits.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field

from chatledger.errors import StorageError
from chatledger.storage.databases.hints import DISTANCE, bucket_of
from chatledger.storage.databases.shared_reads import SharedReads
from chatledger.storage.databases.states import Followed, State, States

INTERVAL = 0.25
"""Seconds from one poll to the next."""
_PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Seconds until the next attempt while the database is away."""
_MOST_HINTS = 1_000


@dataclass(eq=False, slots=True)
class _Waiting:
    followed: Followed
    state: State
    since: float
    moved: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Poller:
    """The poller of one event loop."""

    def __init__(self, read: Callable[[Sequence[Followed]], Awaitable[States]]) -> None:
        self.reads: SharedReads = SharedReads()
        """The reads of the followers that wait here."""
        self._read = read
        self._waiting: set[_Waiting] = set()
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._polled_at = 0.0
        self._wanted: Counter[str] = Counter()
        self._hinted = False
        self._hints: dict[str | None, float] = {}

    async def moved(self, followed: Followed, state: State, since: float) -> None:
        """Wait until the thread's state changes or the thread is gone. `since` is the time of the read, by
        `time.monotonic`. Raises StorageError for an error that will not pass, and once the ledger is closed.
        """
        waiting, bucket = _Waiting(followed, state, since), bucket_of(followed)
        self._waiting.add(waiting)
        self._wanted[bucket] += 1
        if max(self._hints.get(bucket, 0.0), self._hints.get(None, 0.0)) >= since:
            self._hinted = True
            self._woken.set()
        if self._task is None or self._task.done():
            # In its own context: the context of this task may be inside a transaction.
            self._task = asyncio.get_running_loop().create_task(self._poll(), context=Context())
        try:
            await waiting.moved
        finally:
            self._waiting.discard(waiting)
            self._wanted[bucket] -= 1
            if not self._wanted[bucket]:
                del self._wanted[bucket]
            if not self._waiting:
                self._woken.set()  # so that the task ends

    def hint(self, buckets: set[str] | None) -> None:
        """Poll soon if a follower waits for a thread of these buckets (None: for any thread), or starts to wait for one
        that it read before this hint.
        """
        now = time.monotonic()
        if len(self._hints) > _MOST_HINTS:  # the next poll finds what older ones were about
            self._hints = {bucket: at for bucket, at in self._hints.items() if now - at < INTERVAL}
        self._hints |= dict.fromkeys(buckets or (None,), now)
        if buckets is None or not self._wanted.keys().isdisjoint(buckets):
            self._hinted = True
            self._woken.set()

    async def close(self, error: StorageError) -> None:
        """As `fail`. Cancels the running poll, because a silent server may not answer it for long."""
        self.fail(error)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _poll(self) -> None:
        failures = 0
        self._polled_at = max(self._polled_at, min(waiting.since for waiting in self._waiting))  # it was read then
        while self._waiting:
            pause = DISTANCE if self._hinted else INTERVAL
            pause = _PAUSES[min(failures, len(_PAUSES)) - 1] if failures else pause
            if (left := self._polled_at + pause - time.monotonic()) > 0:
                await self._sleep(left)
                continue
            self._polled_at, self._hinted = time.monotonic(), False
            asked = list(self._waiting)  # not followers that come meanwhile: this poll does not cover their threads
            try:
                _compare(asked, await self._read(list({waiting.followed for waiting in asked})))
                failures = 0
            except StorageError as error:
                failures += 1
                if not error.retryable:
                    self.fail(error)
            except Exception as error:
                self.fail(error)

    async def _sleep(self, seconds: float) -> None:
        self._woken.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass

    def fail(self, error: Exception) -> None:
        """Make every waiting follower raise the error."""
        for waiting in list(self._waiting):
            if not waiting.moved.done():
                waiting.moved.set_exception(error)


def _compare(asked: Sequence[_Waiting], states: States) -> None:
    for waiting in asked:
        if states.get(waiting.followed.key) != waiting.state and not waiting.moved.done():
            waiting.moved.set_result(None)
