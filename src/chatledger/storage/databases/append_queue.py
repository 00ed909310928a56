"""The queue in which appends to one thread in one process take turns before they reach the database.

Without turns they would collide at the branch's row: each would write on a tip that another has just moved, and would
have to try again. The first writer runs immediately and alone. Writers that queued behind it share one statement where
they can.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Sequence
from functools import partial
from typing import Any, Self

from chatledger.models import Appended
from chatledger.storage.append.request import AppendRequest

GROUP = 64
"""Maximum number of appends that share a statement."""
CHARACTERS = 1_000_000
"""Maximum number of characters in all texts of a group. A larger append runs alone."""

Together = Callable[[Sequence[AppendRequest]], Coroutine[Any, Any, tuple[list[Appended], int]]]
"""Runs several appends in one statement. It returns the outcomes of the appends that are done, which come first in the
group, and how many may have been sent. The next append must run alone. If the function raises or is cancelled, it is
unknown what was sent, and each append finds out for itself.
"""


class AppendQueue:
    def __init__(self, together: Together) -> None:
        self._together = together
        self._queues: dict[Hashable, deque[_Waiter]] = {}

    @property
    def length(self) -> int:
        """The number of appends that wait for their turn."""
        return sum(map(len, self._queues.values()))

    def turn(self, request: AppendRequest) -> Turn:
        return Turn(self, request)

    def enter(self, thread: Hashable, request: AppendRequest) -> _Waiter | None:
        """A waiter in the thread's queue; None if the append may run immediately, which is the usual case."""
        queue = self._queues.get(thread)
        if queue is None:
            self._queues[thread] = deque()
            return None
        waiter = _Waiter(request)
        queue.append(waiter)
        return waiter

    async def wait(self, thread: Hashable, waiter: _Waiter) -> Appended | None:
        """The outcome, if a group's statement did the append; None when the append has its turn to go alone."""
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            queue = self._queues[thread]
            if waiter in queue:
                queue.remove(waiter)
            elif waiter.group is not None:
                waiter.group.leave()
            elif not waiter.turn.cancelled() and waiter.turn.result() is None:
                self.next(thread)  # it got its turn, and was cancelled before it used it
            raise

    def next(self, thread: Hashable) -> None:
        """Give the turn to the first waiter, together with those behind it that may share its statement."""
        queue = self._queues[thread]
        group = _take_group(queue)
        if not group:
            del self._queues[thread]
        elif len(group) == 1:
            group[0].turn.set_result(None)
        else:
            task = asyncio.create_task(self._together([waiter.request for waiter in group]))
            _Group(group, task)
            task.add_done_callback(partial(self._finish_group, thread, queue, group))

    def _finish_group(
        self, thread: Hashable, queue: deque[_Waiter], group: Sequence[_Waiter], task: asyncio.Task[tuple[Any, int]]
    ) -> None:
        """Called however the task ended, even if it was cancelled before it began, so that the queue always goes on."""
        failed = task.cancelled() or task.exception() is not None
        done, sent = ([], len(group)) if failed else task.result()
        for waiter in group:
            waiter.group = None
        for waiter, appended in zip(group, done, strict=False):
            if not waiter.turn.done():
                waiter.turn.set_result(appended)
        self._put_back(queue, group, len(done), sent)
        self.next(thread)

    @staticmethod
    def _put_back(queue: deque[_Waiter], group: Sequence[_Waiter], done: int, sent: int) -> None:
        """The waiters that are not done return to the front of the queue."""
        for index in reversed(range(done, len(group))):
            waiter = group[index]
            waiter.alone = index == done
            waiter.sent = waiter.sent or index < sent
            if not waiter.turn.done():
                queue.appendleft(waiter)


class Turn:
    """An append's turn, as an asynchronous context manager. `appended` is the outcome if a group's statement did the
    append; if it is None, the append goes alone inside the block. `sent`: a part of the append may have reached the
    database. `since`: the time at which it began to wait.
    """

    __slots__ = ("_queue", "_request", "_thread", "appended", "sent", "since")

    def __init__(self, queue: AppendQueue, request: AppendRequest) -> None:
        self._queue = queue
        self._request = request
        self._thread = (request.tenant.key, request.thread)
        self.appended: Appended | None = None
        self.sent = False
        self.since = time.monotonic()

    async def __aenter__(self) -> Self:
        waiter = self._queue.enter(self._thread, self._request)
        if waiter is not None:
            self.appended = await self._queue.wait(self._thread, waiter)
            self.sent = waiter.sent
        return self

    async def __aexit__(self, *error: object) -> None:
        if self.appended is None:
            self._queue.next(self._thread)


class _Waiter:
    __slots__ = ("alone", "group", "request", "sent", "turn")

    def __init__(self, request: AppendRequest) -> None:
        self.request = request
        self.turn: asyncio.Future[Appended | None] = asyncio.get_running_loop().create_future()
        self.alone = self.sent = False
        self.group: _Group | None = None


class _Group:
    """Waiters whose appends share a statement. Once all of them are cancelled, the group cancels the statement."""

    __slots__ = ("_left", "_task")

    def __init__(self, waiters: Sequence[_Waiter], task: asyncio.Task[Any]) -> None:
        self._left = len(waiters)
        self._task = task
        for waiter in waiters:
            waiter.group = self

    def leave(self) -> None:
        self._left -= 1
        if not self._left:
            self._task.cancel()


def _take_group(queue: deque[_Waiter]) -> list[_Waiter]:
    """The first waiter and those behind it that may share its statement, taken out of the queue."""
    group: list[_Waiter] = []
    characters = 0
    while queue and len(group) < GROUP:
        waiter = queue[0]
        if not waiter.turn.cancelled():
            characters += waiter.request.characters
            if group and not _may_share(waiter, group[0], characters):
                break
            group.append(waiter)
        queue.popleft()
        if waiter.alone and group:
            break
    return group


def _may_share(waiter: _Waiter, first: _Waiter, characters: int) -> bool:
    if waiter.alone or waiter.request.kv or first.request.kv:  # a conflict of values would refuse the whole group
        return False
    return waiter.request.branch == first.request.branch and characters <= CHARACTERS
