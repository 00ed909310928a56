"""Every await of a call, one after the other: where a cancellation or a time-out may arrive.

A call gives its loop the turn at each await that is not done yet. The task is cancelled there either before the
answer is on its way to it, or when the answer is there and the task is about to go on: the two sides of each await.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Literal, TypeVar

T = TypeVar("T")

Moment = Literal["waiting", "answered"]


class Interrupted(Awaitable[T]):
    """The call, in whose `number`-th await `happen` is called; `reached` says whether there was one."""

    def __init__(self, call: Awaitable[T], number: int, moment: Moment, happen: Callable[[], object]) -> None:
        self._call = call
        self._number = number
        self._moment = moment
        self._happen = happen
        self.reached = False

    def __await__(self) -> Generator[Any, Any, T]:
        inner = self._call.__await__()
        number = 0
        try:
            waits_for = next(inner)
            while True:
                number += 1
                if number == self._number:
                    self.reached = True
                    self._interrupt(waits_for)
                try:
                    answer = yield waits_for
                except BaseException as error:
                    waits_for = inner.throw(error)
                else:
                    waits_for = inner.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def _interrupt(self, waits_for: Any) -> None:
        if self._moment == "waiting" or not isinstance(waits_for, asyncio.Future):
            self._happen()
        else:  # called before the task's own callback, which is added after this
            waits_for.add_done_callback(lambda _: self._happen())


async def cancelled_at(call: Callable[[], Awaitable[T]], number: int, moment: Moment) -> tuple[bool, bool]:
    """Run the call and cancel it at that await. Returns whether the call has that many awaits, and whether it was
    cancelled.
    """
    task: asyncio.Task[T]
    interrupted = Interrupted(call(), number, moment, lambda: task.cancel())

    async def run() -> T:
        return await interrupted

    task = asyncio.ensure_future(run())
    done, _ = await asyncio.wait({task}, timeout=20)
    assert done, f"still running long after it was cancelled at await {number} ({moment})"
    if task.cancelled():
        return interrupted.reached, True
    task.result()
    return interrupted.reached, False


async def timed_out_at(call: Callable[[], Awaitable[T]], number: int, moment: Moment) -> tuple[bool, bool]:
    """The same with asyncio.timeout, which is set to fire at that await."""
    try:
        async with asyncio.timeout(None) as timeout:
            interrupted = Interrupted(call(), number, moment, lambda: _expire(timeout))
            await interrupted
    except TimeoutError:
        return interrupted.reached, True
    return interrupted.reached, False


def _expire(timeout: asyncio.Timeout) -> None:
    """Does what its timer does, but immediately and not at the loop's next turn."""
    timeout._on_timeout()  # type: ignore[attr-defined]
