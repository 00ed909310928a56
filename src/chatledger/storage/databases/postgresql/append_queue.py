"""The queues in which the appends of one process wait before they reach PostgreSQL. Each tenant has its own.

While no statement of the tenant is running, an append runs immediately and alone. Appends that arrive meanwhile share
a statement: one statement for sixteen turns costs the server a quarter of sixteen statements. Appends to one thread
take turns: without turns each would write on a tip that another has just moved, and would have to try again. An append
that cannot share a statement waits for its thread only, and does not count as running.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

from chatledger.errors import ChatLedgerError, OutcomeUnknown, StorageError
from chatledger.models import Appended
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.databases.postgresql.unanswered import ANYTHING, Unanswered

GROUP = 64
"""Maximum number of appends that share a statement."""
BYTES = 1_000_000
"""Maximum number of bytes in all texts of a group. A larger append runs alone."""
MOST_RUNNING = 3
"""Maximum number of a tenant's running statements, while appends wait that may share one. With more, fewer appends
would share each.
"""
STALLED_AFTER = 0.05
"""Seconds after which a statement no longer counts as running: it may wait for a lock of somebody else's."""


class GroupWriter(Protocol):
    @property
    def timeout(self) -> float:
        """The time limit of an append in seconds."""
        ...

    def can_share(self, request: AppendRequest) -> bool:
        """Whether the append may share a statement now. Otherwise it runs alone."""
        ...

    async def write_group(self, requests: Sequence[AppendRequest]) -> Shared:
        """Write the appends in one statement, as far as it can. If it raises or is cancelled, it is unknown what was
        sent.
        """
        ...

    async def rejudge(self, requests: Sequence[AppendRequest]) -> Shared:
        """Look for appends that such statements left out, and do as many as it can."""
        ...


@dataclass(frozen=True, slots=True)
class Shared:
    """The outcomes of the appends that a statement did, by index. `again` are others that may be judged anew together;
    of the rest, the first of each thread runs alone. `unanswered` are those that were sent without an answer, each with
    the stamp of the branch with which it would still be written.
    """

    done: Mapping[int, Appended | ChatLedgerError]
    again: Collection[int] = ()
    unanswered: Mapping[int, int] = field(default_factory=dict)


class AppendQueues:
    def __init__(self, appends: GroupWriter) -> None:
        self._appends = appends
        self._queues: dict[str, AppendQueue] = {}
        """By tenant, while it has appends that wait or are under way."""

    @property
    def length(self) -> int:
        """The number of appends that wait for their turn."""
        return sum(queue.length for queue in self._queues.values())

    def slot(self, request: AppendRequest) -> QueueSlot:
        tenant = request.tenant.key
        queue = self._queues.get(tenant)
        if queue is None:
            queue = self._queues[tenant] = AppendQueue(self._appends, partial(self._queues.pop, tenant))
        return QueueSlot(queue, request)


class AppendQueue:
    """Of one tenant."""

    def __init__(self, appends: GroupWriter, when_empty: Callable[[], object]) -> None:
        self._appends = appends
        self._when_empty = when_empty
        self._waiting: dict[str, deque[_WaitingAppend]] = {}
        """By thread: the appends that wait. A thread with an append under way or waiting has an entry."""
        self._ready: dict[str, None] = {}
        """The threads with no append under way whose first waiter could share a statement when it came first."""
        self._running: dict[_Statement, float] = {}
        """The statements that count as running, oldest first, with the time at which each began."""
        self._starting = False
        self._left: deque[_Left] = deque()
        """The appends that statements left out and that wait to be judged anew."""
        self._rejudging = False
        self._look: asyncio.TimerHandle | None = None
        """Timer that drops stalled statements from the count of running ones; set only while appends wait."""
        self._alarm: asyncio.TimerHandle | None = None
        """A later look for waiters whose time limit is over."""

    @property
    def length(self) -> int:
        return sum(map(len, self._waiting.values()))

    def enter(self, request: AppendRequest) -> _Statement | _WaitingAppend:
        """A statement if the append may run immediately, which is the usual case; otherwise a waiter in the queue."""
        waiting = self._waiting.get(request.thread)
        if waiting is None:
            waiting = self._waiting[request.thread] = deque()
            if not self._running and not self._ready:
                return self._begin((request.thread,))
            if not self._appends.can_share(request):
                return _Statement(self, (request.thread,))
            self._ready[request.thread] = None
        waiter = _WaitingAppend(request, time.monotonic() + self._appends.timeout)
        waiting.append(waiter)
        if self._alarm is None:
            self._watch(waiter.until)
        self._go_on()
        return waiter

    async def wait(self, waiter: _WaitingAppend) -> Appended | _Statement:
        """The outcome, if a group did the append; a statement when the append has its turn to run alone. Raises the
        error of an append that a group refused.
        """
        try:
            outcome = await waiter.slot
            if isinstance(outcome, ChatLedgerError):
                raise outcome
            return outcome
        except asyncio.CancelledError:
            waiting = self._waiting.get(waiter.request.thread)
            if waiter.group is not None:
                waiter.group.leave()
            elif waiting is not None and waiter in waiting:
                waiting.remove(waiter)
                self._go_on()
            elif not waiter.slot.cancelled() and isinstance(statement := waiter.slot.result(), _Statement):
                statement.end()  # the append got its turn, and was cancelled before it used it
            raise

    def _watch(self, until: float) -> None:
        delay = max(until - time.monotonic(), 0)
        self._alarm = asyncio.get_running_loop().call_later(delay, self._end_waits)

    def _end_waits(self) -> None:
        """Each append waits within its own limit, however long the one before it takes."""
        self._alarm, now = None, time.monotonic()
        for waiting in self._waiting.values():
            for waiter in [late for late in waiting if late.until <= now and not late.slot.done()]:
                waiting.remove(waiter)
                waiter.slot.set_result(_waited_too_long(waiter, self._appends.timeout))
        later = [waiter.until for waiting in self._waiting.values() for waiter in waiting]
        if later:
            self._watch(min(later))
        self._go_on()

    def _begin(self, threads: Sequence[str]) -> _Statement:
        """A statement that counts as running."""
        statement = _Statement(self, threads)
        self._running[statement] = time.monotonic()
        return statement

    def end(self, statement: _Statement) -> None:
        self._running.pop(statement, None)
        for thread in statement.threads:
            self._next(thread)
        self._go_on()

    def _next(self, thread: str) -> None:
        """The thread has no append under way. Its first waiter runs if it cannot share a statement; otherwise the
        thread is ready. A thread without waiters loses its entry.
        """
        waiting = self._waiting[thread]
        while waiting and waiting[0].slot.cancelled():
            waiting.popleft()
        if not waiting:
            self._forget(thread)
        elif self._may_share(waiting[0]):
            self._ready[thread] = None
        else:
            waiting.popleft().slot.set_result(_Statement(self, (thread,)))

    def _forget(self, thread: str) -> None:
        del self._waiting[thread]
        if not self._waiting:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None
            self._when_empty()

    def _go_on(self) -> None:
        """Start the next statements as soon as the callers that are about to append have entered the queue."""
        if self._ready and not self._starting:
            self._starting = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        self._starting = False
        late = time.monotonic() - STALLED_AFTER
        for statement in [statement for statement, began in self._running.items() if began <= late]:
            del self._running[statement]
        while self._ready and (free := MOST_RUNNING - len(self._running)) > 0:
            group = self._take_group(free)
            if not group:
                continue
            statement = self._begin(list(dict.fromkeys(waiter.request.thread for waiter in group)))
            if len(group) == 1:
                group[0].slot.set_result(statement)
                continue
            task = asyncio.create_task(self._appends.write_group([waiter.request for waiter in group]))
            _WaiterGroup(group, task)
            task.add_done_callback(partial(self._finish_group, group, statement))
        if self._look is not None and not self._ready:
            self._look.cancel()
            self._look = None
        if self._ready and self._look is None:
            oldest = next(iter(self._running.values()))
            self._look = asyncio.get_running_loop().call_later(oldest - late, self._look_again)

    def _look_again(self) -> None:
        self._look = None
        self._start()

    def _finish_group(self, group: Sequence[_WaitingAppend], statement: _Statement, task: asyncio.Task[Shared]) -> None:
        """Called however the task ended, even if it was cancelled before it began, so that the queue always goes on.
        Threads whose appends are all done go on; the others wait until theirs are judged anew.
        """
        shared = _result(task, len(group))
        anew = [group[index] for index in shared.again]
        left = self._settle(group, shared)
        threads = list(dict.fromkeys(waiter.request.thread for waiter in anew if not waiter.slot.done()))
        if threads:
            statement.threads = [thread for thread in statement.threads if thread not in threads]
            waiters = [waiter for thread in threads for waiter in left.pop(thread)]
            self._left.append(_Left(waiters, _Statement(self, threads)))
        self._return(left)
        statement.end()
        self._rejudge()

    def _rejudge(self) -> None:
        """Judge anew what the statements of several groups left out. There is one such task at a time."""
        if self._rejudging or not self._left:
            return
        taken = [self._left.popleft()]
        while self._left and sum([len(left.waiters) for left in (*taken, self._left[0])]) <= GROUP:
            taken.append(self._left.popleft())
        group = [waiter for left in taken for waiter in left.waiters if not waiter.slot.cancelled()]
        if not group:
            for left in taken:
                left.statement.end()
            self._rejudge()
            return
        self._rejudging = True
        task = asyncio.create_task(self._appends.rejudge([waiter.request for waiter in group]))
        _WaiterGroup(group, task)
        task.add_done_callback(partial(self._finish_rejudged, group, [left.statement for left in taken]))

    def _finish_rejudged(
        self, group: Sequence[_WaitingAppend], statements: Sequence[_Statement], task: asyncio.Task[Shared]
    ) -> None:
        self._return(self._settle(group, _result(task, len(group))))
        for statement in statements:
            statement.end()
        self._rejudging = False
        self._rejudge()

    @staticmethod
    def _settle(group: Sequence[_WaitingAppend], shared: Shared) -> dict[str, list[_WaitingAppend]]:
        """Give the outcomes to their waiters. Returns the other waiters, by thread."""
        left: dict[str, list[_WaitingAppend]] = {}
        for index, waiter in enumerate(group):
            waiter.group = None
            if waiter.slot.done():  # cancelled
                continue
            if index in shared.done:
                waiter.slot.set_result(shared.done[index])
            else:
                if index in shared.unanswered:
                    waiter.unanswered = waiter.unanswered or Unanswered()
                    waiter.unanswered.add(shared.unanswered[index])
                left.setdefault(waiter.request.thread, []).append(waiter)
        return left

    def _return(self, left: Mapping[str, Sequence[_WaitingAppend]]) -> None:
        """Waiters return to the front of their threads. The first of each runs alone."""
        for thread, waiters in left.items():
            for number, waiter in enumerate(waiters):
                waiter.alone = waiter.unanswered is not None or not number
            self._waiting[thread].extendleft(reversed(waiters))
            if self._alarm is None:
                self._watch(waiters[0].until)

    def _take_group(self, free: int) -> list[_WaitingAppend]:
        """The first waiter, and those that may share its statement, in order. The ready threads are spread over the
        `free` statements: if one group took them all, the process would wait while the server works, and the server
        while the process does.
        """
        group: list[_WaitingAppend] = []
        length = 0
        for thread in list(self._ready)[: math.ceil(len(self._ready) / free)]:
            waiting = self._waiting[thread]
            size = len(group)
            while waiting and (waiting[0].slot.cancelled() or self._may_join(waiting[0], group, length)):
                waiter = waiting.popleft()
                if not waiter.slot.cancelled():
                    group.append(waiter)
                    length += waiter.request.bytes
            if len(group) > size:
                del self._ready[thread]
            elif not waiting:
                del self._ready[thread]
                self._forget(thread)
            if group and not self._may_grow(group):
                break
        return group

    def _may_grow(self, group: Sequence[_WaitingAppend]) -> bool:
        return len(group) < GROUP and self._may_share(group[0])

    def _may_join(self, waiter: _WaitingAppend, group: Sequence[_WaitingAppend], length: int) -> bool:
        if not group:
            return True
        if not self._may_grow(group) or not self._may_share(waiter):
            return False
        last = group[-1].request
        if waiter.request.thread == last.thread and waiter.request.branch != last.branch:
            return False  # they may be two names of one branch, judged on two cached tips
        return length + waiter.request.bytes <= BYTES

    def _may_share(self, waiter: _WaitingAppend) -> bool:
        return not waiter.alone and self._appends.can_share(waiter.request)


class QueueSlot:
    """An append's turn, as an asynchronous context manager. `appended` is the outcome if a group's statement did the
    append; if it is None, the append runs alone inside the block. `unanswered`: the statements with it that got no
    answer. `since`: the time at which it began to wait.
    """

    __slots__ = ("_queue", "_request", "_statement", "appended", "since", "unanswered")

    def __init__(self, queue: AppendQueue, request: AppendRequest) -> None:
        self._queue = queue
        self._request = request
        self._statement: _Statement | None = None
        self.appended: Appended | None = None
        self.unanswered: Unanswered | None = None
        self.since: float = time.monotonic()

    async def __aenter__(self) -> Self:
        entered = self._queue.enter(self._request)
        if isinstance(entered, _WaitingAppend):
            outcome = await self._queue.wait(entered)
            self.unanswered = entered.unanswered
            if isinstance(outcome, Appended):
                self.appended = outcome
                return self
            entered = outcome
        self._statement = entered
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._statement is not None:
            self._statement.end()


class _Statement:
    """An append alone, or a group in one statement, on its way to the database and back. Nothing else of its threads is
    under way.
    """

    __slots__ = ("_queue", "threads")

    def __init__(self, queue: AppendQueue, threads: Sequence[str]) -> None:
        self._queue = queue
        self.threads: Sequence[str] = threads

    def end(self) -> None:
        self._queue.end(self)


class _WaitingAppend:
    """`alone`: it must not share a statement. `unanswered`: the statements with its append that got no answer. `until`:
    the time at which its time limit ends.
    """

    __slots__ = ("alone", "group", "request", "slot", "unanswered", "until")

    def __init__(self, request: AppendRequest, until: float) -> None:
        self.request: AppendRequest = request
        self.until: float = until
        self.slot: asyncio.Future[Appended | ChatLedgerError | _Statement] = asyncio.get_running_loop().create_future()
        self.alone: bool = False
        self.unanswered: Unanswered | None = None
        self.group: _WaiterGroup | None = None


def _waited_too_long(waiter: _WaitingAppend, seconds: float) -> ChatLedgerError:
    what = f"it waited {seconds:g} s for an earlier append to the thread, which has no answer from the database"
    if waiter.unanswered is not None:
        return OutcomeUnknown(waiter.request.ids, f"no answer came, and then {what}")
    return StorageError(f"the append was not sent: {what}; a transaction may hold the thread's lock", retryable=True)


class _Left(NamedTuple):
    """Waiters whose appends a statement left out. The statement keeps others of their threads waiting."""

    waiters: Sequence[_WaitingAppend]
    statement: _Statement


def _result(task: asyncio.Task[Shared], size: int) -> Shared:
    if task.cancelled() or task.exception() is not None:
        return Shared({}, unanswered=dict.fromkeys(range(size), ANYTHING))
    return task.result()


class _WaiterGroup:
    """Waiters whose appends share a statement. Once all of them are cancelled, the group cancels the statement."""

    __slots__ = ("_left", "_task")

    def __init__(self, waiters: Sequence[_WaitingAppend], task: asyncio.Task[Any]) -> None:
        self._left = len(waiters)
        self._task = task
        for waiter in waiters:
            waiter.group = self

    def leave(self) -> None:
        self._left -= 1
        if not self._left:
            self._task.cancel()
