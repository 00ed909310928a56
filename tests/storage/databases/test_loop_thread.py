"""A loop in a thread of its own: every caller gets the outcome of its work, and no work continues after its caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from chatledger import StorageError
from chatledger.storage.databases.loops.loop_thread import LoopThread


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread("chatledger-test")
    yield thread
    thread.stop()


async def name() -> str:
    return threading.current_thread().name


async def test_work_runs_there(thread: LoopThread) -> None:
    assert thread.run(name) == "chatledger-test"
    assert await thread.serve(name) == "chatledger-test"


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, asyncio.TimeoutError])
def test_every_error_comes_back_and_the_loop_goes_on(thread: LoopThread, kind: type[BaseException]) -> None:
    async def fail() -> None:
        raise kind

    with pytest.raises(kind):
        thread.run(fail)
    assert thread.run(name)


async def test_the_caller_that_is_cancelled_waits_for_the_end(thread: LoopThread) -> None:
    steps: list[str] = []
    begun = threading.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            steps.append("ended")

    async def caller() -> None:
        try:
            await thread.serve(work)
        finally:
            steps.append("caller")

    task = asyncio.create_task(caller())
    assert await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["ended", "caller"]


async def test_work_that_ends_in_spite_of_a_cancellation_cancels_its_caller_all_the_same(thread: LoopThread) -> None:
    begun = threading.Event()

    async def work() -> str:
        try:
            begun.set()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
        return "done"

    task = asyncio.create_task(thread.serve(work))
    assert await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_its_own_calls_are_refused(thread: LoopThread) -> None:
    async def again() -> str:
        return thread.run(name)

    with pytest.raises(StorageError, match="would never return"):
        thread.run(again)


def test_stopping_the_thread_ends_every_call(thread: LoopThread) -> None:
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(60)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(thread.run, work)
        assert begun.wait(10)
        thread.stop()
        assert isinstance(waiting.exception(10), StorageError)
    with pytest.raises(StorageError, match="closed"):
        thread.run(work)
    thread.begin(work)
    thread.stop()
