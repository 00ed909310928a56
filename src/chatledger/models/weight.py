"""What the event loop may do itself, and what goes to a thread so that other callers do not wait."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from pydantic import BaseModel

from chatledger.models.messages import ToolCall

T = TypeVar("T")

LIGHT = 1_000
"""The weight of what the event loop handles in one step. A value weighs 1, and so do so many characters:"""
_CHARACTERS = 256
_PARSED = 4
"""Characters of the arguments of a call that weigh 1: a format may parse them, and values can be that short."""


def is_light(*values: object) -> bool:
    """Whether work on the values is short. Looks at no more of them than that."""
    left, pending = LIGHT, list(values)
    while pending and left > 0:
        item = pending.pop()
        left -= 1
        if isinstance(item, str):
            left -= len(item) // _CHARACTERS
            continue
        if isinstance(item, ToolCall) and isinstance(item.arguments, str):
            left -= len(item.arguments) // _PARSED
        if isinstance(item, BaseModel):
            item = vars(item)
        if isinstance(item, Mapping) and len(item) < left:
            pending += item
            pending += item.values()
        elif isinstance(item, (list, tuple)) and len(item) < left:
            pending += item
        elif isinstance(item, (Mapping, list, tuple)):
            return False
    return left > 0


async def apart(work: Callable[[], T], *values: object) -> T:
    """The result of work on the values: in a thread, unless they are light."""
    return work() if is_light(*values) else await in_thread(work)


# --- Threads ----------------------------------------------------------------------------------------------------------

CALLER: ContextVar[Hashable] = ContextVar("chatledger_caller", default=None)
"""For whom the work is. A server sets it for each request."""


_NOBODY = object()


class FairPool:
    """Threads in which the callers take turns, so that one with much work does not keep the others waiting. A caller
    has at most so many of them at once; work that is for nobody has no such limit.
    """

    def __init__(self, threads: int, name: str, *, most_of_caller: int) -> None:
        self._threads = ThreadPoolExecutor(threads, name)
        self._most = most_of_caller
        self._lock = threading.Lock()
        self._running: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[Callable[[], None]]] = {}
        """The work of each caller, of the one whose turn is next first."""

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        future, context = Future[T](), copy_context()
        with self._lock:
            self._waiting.setdefault(CALLER.get(), deque()).append(lambda: context.run(_run, future, work, *arguments))
        self._threads.submit(self._run_next)
        return future

    def _run_next(self) -> None:
        """The thread does work until there is none, or none but that of callers whose own threads will take it."""
        while (next_work := self._next()) is not None:
            caller, run = next_work
            run()
            with self._lock:
                self._running -= Counter([caller])  # which also drops a caller without work

    def _next(self) -> tuple[Hashable, Callable[[], None]] | None:
        with self._lock:
            may_run = (caller for caller in self._waiting if caller is None or self._running[caller] < self._most)
            if (caller := next(may_run, _NOBODY)) is _NOBODY:
                return None
            waiting = self._waiting.pop(caller)
            run = waiting.popleft()
            if waiting:
                self._waiting[caller] = waiting  # behind the others
            self._running[caller] += 1
            return caller, run

    def shutdown(self) -> None:
        """Wait for what was submitted."""
        self._threads.shutdown()


def _run(future: Future[T], work: Callable[..., T], *arguments: Any) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work(*arguments))
    except BaseException as error:
        future.set_exception(error)


async def in_thread(work: Callable[[], T]) -> T:
    """The result of long work. One thread does it for all: several would take turns at the interpreter's lock, and the
    event loop would wait for each of them. An application's function is called elsewhere, since it may take any time.
    """
    return await asyncio.wrap_future(_LONG_WORK.submit(work))


def _begin() -> None:
    """At the beginning, and in a forked process, which has no threads."""
    global _LONG_WORK
    _LONG_WORK = FairPool(1, "chatledger-long-work", most_of_caller=1)


_LONG_WORK: FairPool
_begin()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)
