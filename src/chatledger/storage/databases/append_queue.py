"""Writers of one thread in one process stand in line before they reach the database.

Otherwise they would meet at the branch's row: each writes on a tip that another has just moved, and tries again. Who
comes first goes at once and alone; those who had to wait for it go together, as far as they can.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from functools import partial
from typing import Any

from chatledger.models import Appended
from chatledger.storage.append.request import AppendRequest

TOGETHER = 64
"""Appends that go together at most."""
CHARACTERS = 1_000_000
"""Of all texts of those that go together, unless one has more."""

Alone = Callable[[AppendRequest, bool, float], Awaitable[Appended]]
"""One append to its end: whether it may have been sent to the database before, and since when it is waited for."""
Together = Callable[[Sequence[AppendRequest]], Coroutine[Any, Any, tuple[list[Appended], int]]]
"""Several appends at once: what came of the first of them, and how many may have been sent. The next one has to go
alone. If it raises, or is cancelled, nobody knows what was sent, and each will find out.
"""


class Lines:
    def __init__(self, alone: Alone, together: Together) -> None:
        self._alone = alone
        self._together = together
        self._lines: dict[Hashable, deque[_Waiter]] = {}

    async def append(self, request: AppendRequest) -> Appended:
        place = (request.tenant, request.thread)
        line = self._lines.get(place)
        if line is None:  # as nearly always
            self._lines[place] = deque()
            return await self._go(place, request, False, time.monotonic())
        waiter = _Waiter(request)
        line.append(waiter)
        done = await self._wait(place, line, waiter)
        return await self._go(place, request, waiter.sent, waiter.since) if done is None else done

    async def _go(self, place: Hashable, request: AppendRequest, sent: bool, since: float) -> Appended:
        try:
            return await self._alone(request, sent, since)
        finally:
            self._next(place)

    async def _wait(self, place: Hashable, line: deque[_Waiter], waiter: _Waiter) -> Appended | None:
        """None when it is the waiter's turn to go alone."""
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if waiter in line:
                line.remove(waiter)
            elif waiter.group is not None:
                waiter.group.leave()
            elif not waiter.turn.cancelled() and waiter.turn.result() is None:
                self._next(place)  # it was told to go, and cancelled before it did
            raise

    def _next(self, place: Hashable) -> None:
        """Whoever is first in line, with those behind that may go along."""
        line = self._lines[place]
        group = _first_of(line)
        if not group:
            del self._lines[place]
        elif len(group) == 1:
            group[0].turn.set_result(None)
        else:
            task = asyncio.create_task(self._together([waiter.request for waiter in group]))
            _Group(group, task)
            task.add_done_callback(partial(self._went, place, line, group))

    def _went(
        self, place: Hashable, line: deque[_Waiter], group: Sequence[_Waiter], task: asyncio.Task[tuple[Any, int]]
    ) -> None:
        """Called however the task ended, even if it was cancelled before it began: the line goes on."""
        failed = task.cancelled() or task.exception() is not None
        done, sent = ([], len(group)) if failed else task.result()
        for waiter in group:
            waiter.group = None
        for waiter, appended in zip(group, done, strict=False):
            if not waiter.turn.done():
                waiter.turn.set_result(appended)
        self._go_back(line, group, len(done), sent)
        self._next(place)

    @staticmethod
    def _go_back(line: deque[_Waiter], group: Sequence[_Waiter], done: int, sent: int) -> None:
        """To the front, those that are not done yet."""
        for index in reversed(range(done, len(group))):
            waiter = group[index]
            waiter.alone = index == done
            waiter.sent = waiter.sent or index < sent
            if not waiter.turn.done():
                line.appendleft(waiter)


class _Waiter:
    __slots__ = ("alone", "group", "request", "sent", "since", "turn")

    def __init__(self, request: AppendRequest) -> None:
        self.request = request
        self.turn: asyncio.Future[Appended | None] = asyncio.get_running_loop().create_future()
        self.alone = self.sent = False
        self.since = time.monotonic()
        self.group: _Group | None = None


class _Group:
    """Waiters whose appends are on their way together. Once all of them are cancelled, so is what they wait for."""

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


def _first_of(line: deque[_Waiter]) -> list[_Waiter]:
    """Takes them out of the line."""
    group: list[_Waiter] = []
    characters = 0
    while line and len(group) < TOGETHER:
        waiter = line[0]
        if not waiter.turn.cancelled():
            characters += waiter.request.characters
            if group and not _goes_along(waiter, group[0], characters):
                break
            group.append(waiter)
        line.popleft()
        if waiter.alone and group:
            break
    return group


def _goes_along(waiter: _Waiter, first: _Waiter, characters: int) -> bool:
    return not waiter.alone and waiter.request.branch == first.request.branch and characters <= CHARACTERS
