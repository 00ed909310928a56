"""The reads of followers: made once for all that stand at the same position, and few at a time, so that the others who
use the database do not wait behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import Context
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from chatledger.models.weight import CALLER

T = TypeVar("T")
MOST = 4
"""Maximum number of reads at a time."""
_MOST_OF_CALLER = 2


class SharedReads:
    """The reads of one event loop."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}
        self._turns = asyncio.Semaphore(MOST)
        self._turns_of = WeakValueDictionary[Hashable, asyncio.Semaphore]()

    async def read(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """The result of the read that runs or waits under the key; of a new one, if there is none."""
        task = self._running.get(key)
        if task is None:
            # In its own context: the context of this task may be inside a transaction.
            context, caller = Context(), CALLER.get()
            context.run(CALLER.set, caller)
            task = asyncio.get_running_loop().create_task(self._run(key, work, self._turn_of(caller)), context=context)
            task.add_done_callback(_look_at)
            self._running[key] = task
        return cast("T", await asyncio.shield(task))

    def _turn_of(self, caller: Hashable) -> AbstractAsyncContextManager[Any]:
        """A read counts for the caller who asks first. The others who ask for the same wait for it."""
        if caller is None:
            return nullcontext()
        return self._turns_of.setdefault(caller, asyncio.Semaphore(_MOST_OF_CALLER))

    async def _run(
        self, key: Hashable, work: Callable[[], Awaitable[T]], own_turn: AbstractAsyncContextManager[Any]
    ) -> T:
        try:
            async with own_turn, self._turns:
                return await work()
        finally:
            del self._running[key]


def _look_at(task: asyncio.Task[Any]) -> None:
    """An error is no surprise, even if everybody who waited for it is gone."""
    if not task.cancelled():
        task.exception()
