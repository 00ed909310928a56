"""The queue in which the appends of one process wait before they reach PostgreSQL.

While no statement is in flight, an append runs immediately and alone. Appends that arrive meanwhile share a statement:
one statement for sixteen turns costs the server a quarter of sixteen statements. Appends to one thread take turns:
without turns each would write on a tip that another has just moved, and would have to try again. An append that cannot
share a statement waits for its thread only.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol, Self

from chatledger.models import Appended
from chatledger.storage.append.request import AppendRequest

GROUP = 64
"""Maximum number of appends that share a statement."""
CHARACTERS = 1_000_000
"""Maximum number of characters in all texts of a group. A larger append runs alone."""
IN_FLIGHT = 3
"""Maximum number of statements that count as in flight, while appends wait that may share one. With more, fewer would
share each.
"""
PATIENCE = 0.05
"""Seconds after which a statement no longer counts as in flight: it may wait for a lock of somebody else's."""


Thread = tuple[str, str]
"""Tenant and thread as stored."""


class Together(Protocol):
    def can_share(self, request: AppendRequest) -> bool:
        """Whether the append may share a statement now. Otherwise it runs alone."""
        ...

    async def together(self, requests: Sequence[AppendRequest]) -> tuple[Mapping[int, Appended], bool]:
        """Run the appends in one statement. Returns the outcomes of those that it did, by index, and whether it may
        have sent the others too. These must run alone. If it raises or is cancelled, it is unknown what was sent.
        """
        ...


class AppendQueue:
    def __init__(self, appends: Together) -> None:
        self._appends = appends
        self._queues: dict[Thread, deque[_Waiter]] = {}
        """By thread: the appends that wait. A thread with an append in flight or waiting has a queue."""
        self._ready: dict[str, dict[Thread, None]] = {}
        """By tenant: the threads with no append in flight whose first waiter may share a statement. The tenants take
        turns.
        """
        self._in_flight: dict[_Flight, float] = {}
        """The flights that count as in flight, oldest first, with the time at which each began."""
        self._starting = False
        self._look: asyncio.TimerHandle | None = None
        """A later look for flights that no longer count. There is one only while appends wait."""

    @property
    def length(self) -> int:
        """The number of appends that wait for their turn."""
        return sum(map(len, self._queues.values()))

    def turn(self, request: AppendRequest) -> Turn:
        return Turn(self, request)

    def enter(self, request: AppendRequest) -> _Flight | _Waiter:
        """A flight if the append may run immediately, which is the usual case; otherwise a waiter in the queue."""
        thread = (request.tenant.key, request.thread)
        queue = self._queues.get(thread)
        if queue is None:
            queue = self._queues[thread] = deque()
            if not self._in_flight and not self._ready:
                return self._begin((thread,))
            if not self._appends.can_share(request):
                return _Flight(self, (thread,))
            self._ready.setdefault(request.tenant.key, {})[thread] = None
        waiter = _Waiter(request, thread)
        queue.append(waiter)
        self._go_on()
        return waiter

    async def wait(self, waiter: _Waiter) -> Appended | _Flight:
        """The outcome, if a group's statement did the append; a flight when the append has its turn to run alone."""
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            queue = self._queues.get(waiter.thread)
            if waiter.group is not None:
                waiter.group.leave()
            elif queue is not None and waiter in queue:
                queue.remove(waiter)
                self._go_on()
            elif not waiter.turn.cancelled() and isinstance(flight := waiter.turn.result(), _Flight):
                flight.end()  # the append got its turn, and was cancelled before it used it
            raise

    def _begin(self, threads: Sequence[Thread]) -> _Flight:
        """A flight that counts."""
        flight = _Flight(self, threads)
        self._in_flight[flight] = time.monotonic()
        return flight

    def end(self, flight: _Flight) -> None:
        self._in_flight.pop(flight, None)
        for thread in flight.threads:
            self._next(thread)
        self._go_on()

    def _next(self, thread: Thread) -> None:
        """The thread has no append in flight. Its first waiter, if it cannot share a statement, runs; otherwise it is
        ready. A thread without waiters loses its queue.
        """
        queue = self._queues[thread]
        while queue and queue[0].turn.cancelled():
            queue.popleft()
        if not queue:
            del self._queues[thread]
        elif self._may_share(queue[0]):
            self._ready.setdefault(thread[0], {})[thread] = None
        else:
            queue.popleft().turn.set_result(_Flight(self, (thread,)))

    def _go_on(self) -> None:
        """Start the next flights as soon as the callers that are about to append have entered the queue."""
        if self._ready and not self._starting:
            self._starting = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        self._starting = False
        late = time.monotonic() - PATIENCE
        for flight in [flight for flight, began in self._in_flight.items() if began <= late]:
            del self._in_flight[flight]
        while self._ready and (free := IN_FLIGHT - len(self._in_flight)) > 0:
            group = self._take_group(free)
            if not group:
                continue
            flight = self._begin(list(dict.fromkeys(waiter.thread for waiter in group)))
            if len(group) == 1:
                group[0].turn.set_result(flight)
                continue
            task = asyncio.create_task(self._appends.together([waiter.request for waiter in group]))
            _Group(group, task)
            task.add_done_callback(partial(self._finish_group, group, flight))
        if self._ready and self._look is None:
            oldest = next(iter(self._in_flight.values()))
            self._look = asyncio.get_running_loop().call_later(oldest - late, self._look_again)

    def _look_again(self) -> None:
        self._look = None
        self._start()

    def _finish_group(self, group: Sequence[_Waiter], flight: _Flight, task: asyncio.Task[Any]) -> None:
        """Called however the task ended, even if it was cancelled before it began, so that the queue always goes on.
        The waiters that are not done return to the front of their queues.
        """
        done, sent = ({}, True) if task.cancelled() or task.exception() is not None else task.result()
        for index, waiter in reversed(list(enumerate(group))):
            waiter.group = None
            if waiter.turn.done():  # cancelled
                continue
            if index in done:
                waiter.turn.set_result(done[index])
            else:
                waiter.alone = True
                waiter.sent = waiter.sent or sent
                self._queues[waiter.thread].appendleft(waiter)
        flight.end()

    def _take_group(self, free: int) -> list[_Waiter]:
        """The first waiter of the next tenant, and those of the tenant that may share its statement, taken out of their
        queues. A thread that has none any more, because they were cancelled, loses its queue.

        The ready threads are spread over the `free` flights: if one group took them all, the process would wait while
        the server works, and the server while the process does.
        """
        share = math.ceil(sum(map(len, self._ready.values())) / free)
        tenant = next(iter(self._ready))
        threads = self._ready.pop(tenant)
        group: list[_Waiter] = []
        characters = 0
        for thread in list(threads)[:share]:
            queue = self._queues[thread]
            size = len(group)
            while queue and (queue[0].turn.cancelled() or self._may_join(queue[0], group, characters)):
                waiter = queue.popleft()
                if not waiter.turn.cancelled():
                    group.append(waiter)
                    characters += waiter.request.characters
            if len(group) > size:
                del threads[thread]
            elif not queue:
                del threads[thread], self._queues[thread]
            if group and not self._may_grow(group):
                break
        if threads:
            self._ready[tenant] = threads
        return group

    def _may_grow(self, group: Sequence[_Waiter]) -> bool:
        return len(group) < GROUP and self._may_share(group[0])

    def _may_join(self, waiter: _Waiter, group: Sequence[_Waiter], characters: int) -> bool:
        if not group:
            return True
        if not self._may_grow(group) or not self._may_share(waiter):
            return False
        last = group[-1]
        if waiter.thread == last.thread and waiter.request.branch != last.request.branch:
            return False  # they may be two names of one branch, judged on two cached tips
        return characters + waiter.request.characters <= CHARACTERS

    def _may_share(self, waiter: _Waiter) -> bool:
        return not waiter.alone and self._appends.can_share(waiter.request)


class Turn:
    """An append's turn, as an asynchronous context manager. `appended` is the outcome if a group's statement did the
    append; if it is None, the append runs alone inside the block. `sent`: a part of the append may have reached the
    database. `since`: the time at which it began to wait.
    """

    __slots__ = ("_flight", "_queue", "_request", "appended", "sent", "since")

    def __init__(self, queue: AppendQueue, request: AppendRequest) -> None:
        self._queue = queue
        self._request = request
        self._flight: _Flight | None = None
        self.appended: Appended | None = None
        self.sent = False
        self.since = time.monotonic()

    async def __aenter__(self) -> Self:
        entered = self._queue.enter(self._request)
        if isinstance(entered, _Waiter):
            given = await self._queue.wait(entered)
            self.sent = entered.sent
            if isinstance(given, Appended):
                self.appended = given
                return self
            entered = given
        self._flight = entered
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._flight is not None:
            self._flight.end()


class _Flight:
    """An append alone, or a group in one statement, on its way to the database and back."""

    __slots__ = ("_queue", "threads")

    def __init__(self, queue: AppendQueue, threads: Sequence[Thread]) -> None:
        self._queue = queue
        self.threads = threads

    def end(self) -> None:
        self._queue.end(self)


class _Waiter:
    """`alone`: it must not share a statement. `sent`: a statement that was to do it may have reached the database."""

    __slots__ = ("alone", "group", "request", "sent", "thread", "turn")

    def __init__(self, request: AppendRequest, thread: Thread) -> None:
        self.request = request
        self.thread = thread
        self.turn: asyncio.Future[Appended | _Flight] = asyncio.get_running_loop().create_future()
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
