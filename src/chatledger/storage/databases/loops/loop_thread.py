"""An event loop in a thread of its own. It serves calls from other threads, and from the event loops of other threads.

A call that is cancelled, or interrupted from the keyboard, is cancelled here too, and its caller waits until it has
ended. So no part of a call runs after its caller has continued.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Generic, TypeVar

from chatledger.errors import StorageError

T = TypeVar("T")


async def until_ended(wait: Callable[[], None]) -> None:
    """Wait for threads that are about to end. A process that is ending itself starts no thread to wait in."""
    try:
        await asyncio.to_thread(wait)
    except RuntimeError:
        wait()


class LoopThread:
    """The loop begins at once, and ends with `stop`, or with the process: the thread is a daemon."""

    def __init__(self, name: str) -> None:
        self._process = os.getpid()
        self._turn = threading.Lock()
        self._stopped = False
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def is_here(self) -> bool:
        """Whether the caller runs in this thread."""
        return threading.get_ident() == self._thread.ident

    @property
    def forked(self) -> bool:
        """Whether this process was forked from that of the thread. The thread does not exist here."""
        return os.getpid() != self._process

    def run(self, work: Callable[[], Awaitable[T]], *, context: Context | None = None) -> T:
        """Run the work, and wait for it in the caller's thread. `context` is the context of the work; by default a copy
        of the caller's. Raises StorageError in the thread itself, where the call would never return.
        """
        if self.is_here:
            raise StorageError(
                "a blocking call in the event loop that serves it would never return; call it in another thread, or "
                "`await` the asynchronous ledger"
            )
        call = self._begin(work, context)
        try:
            return call.ended.result()
        except BaseException as error:
            if not call.ended.done():  # an interrupt from the keyboard, in the thread that waits
                call.cancel()
                call.ended.exception()
            elif isinstance(error, asyncio.CancelledError):
                raise _stopped() from None
            raise

    async def serve(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run the work, and wait for it in the caller's event loop. Cancelling the call cancels the work."""
        call = self._begin(work, None)
        ended, cancelled = asyncio.wrap_future(call.ended), False
        while not ended.done():
            try:
                await asyncio.wait([ended])
            except asyncio.CancelledError:
                cancelled = True
                call.cancel()
        if cancelled and ended.exception() is None:
            raise asyncio.CancelledError
        return ended.result()

    def begin(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run the work without waiting for it. Does nothing once the loop has ended. An error is dropped."""
        with suppress(StorageError):
            self._begin(work, None)

    def stop(self) -> None:
        """End the loop. Calls that still run are cancelled."""
        if self.forked:
            return
        with self._turn:
            if not self._stopped:
                self._stopped = True
                self._loop.call_soon_threadsafe(self._stop.set)
        if not self.is_here:
            self._thread.join()

    async def end(self) -> None:
        """As `stop`, for another event loop."""
        await until_ended(self.stop)

    def _begin(self, work: Callable[[], Awaitable[T]], context: Context | None) -> _LoopCall[T]:
        if self.forked:
            raise StorageError(
                "this process was forked after the ledger was opened, and the connections belong to the parent "
                "process; open a ledger in this process"
            )
        call = _LoopCall(self._loop, work)
        with self._turn:
            if self._stopped:
                raise _stopped()
            self._loop.call_soon_threadsafe(call.begin, copy_context() if context is None else context)
        return call

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=_make_loop) as runner:  # cancels what is left
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._stop.wait()


def _make_loop() -> asyncio.AbstractEventLoop:
    """A loop that shares nothing with a forked process. An epoll object would be shared: when the child collects
    connections as garbage, it would remove them from the epoll, and this loop would never receive their answers.
    """
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(selectors.PollSelector())


class _LoopCall(Generic[T]):
    """Work that another thread waits for. `ended` holds its result or its error, which may be a cancellation."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[T]]) -> None:
        self.ended: Future[T] = Future()
        self.ended.set_running_or_notify_cancel()  # so that nobody cancels the future instead of the work
        self._loop = loop
        self._work = work

    def begin(self, context: Context) -> None:
        """In the loop."""
        self._task = self._loop.create_task(self._run(), context=context)
        self._task.add_done_callback(self._end)

    def cancel(self) -> None:
        with suppress(RuntimeError):  # the loop has ended, and so has the work
            self._loop.call_soon_threadsafe(lambda: self._task.cancel())

    async def _run(self) -> None:
        try:
            result = await self._work()
        except BaseException as error:  # none may reach the loop: an interrupt that is handed in would end it
            self.ended.set_exception(error)
        else:
            self.ended.set_result(result)

    def _end(self, task: asyncio.Task[None]) -> None:
        if not self.ended.done():  # cancelled before it began
            self.ended.set_exception(asyncio.CancelledError())


def _stopped() -> StorageError:
    return StorageError("this ledger is closed")
