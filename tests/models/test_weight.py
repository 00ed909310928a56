"""Long work: one thread does it, and the callers take turns."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter

import pytest

from chatledger.models.weight import CALLER, FairPool, in_thread


async def submit(pool: FairPool, caller: str, done: list[str], *numbers: int) -> None:
    CALLER.set(caller)
    await asyncio.gather(*(asyncio.wrap_future(pool.submit(done.append, f"{caller}{number}")) for number in numbers))


async def test_the_callers_take_turns() -> None:
    pool, begin, done = FairPool(1, "test", most_of_caller=1), threading.Event(), list[str]()
    busy = pool.submit(begin.wait)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(submit(pool, "eve", done, 1, 2, 3, 4))
        tasks.create_task(submit(pool, "ada", done, 1))
        tasks.create_task(submit(pool, "bob", done, 1, 2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        begin.set()
    assert done == ["eve1", "ada1", "bob1", "eve2", "bob2", "eve3", "eve4"]
    assert busy.result()
    pool.shutdown()


async def test_a_caller_has_some_of_the_threads_and_nobody_has_all() -> None:
    pool, end, at_work = FairPool(4, "test", most_of_caller=2), threading.Event(), list[str]()
    begun = threading.Semaphore(0)

    def work(name: str) -> None:
        at_work.append(name)
        begun.release()
        assert end.wait(30)

    async def submitting(caller: str | None, count: int) -> None:
        CALLER.set(caller)
        await asyncio.gather(*(asyncio.wrap_future(pool.submit(work, str(caller))) for _ in range(count)))

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(submitting("eve", 6))
        await asyncio.to_thread(lambda: [begun.acquire() for _ in range(2)])
        tasks.create_task(submitting("ada", 1))
        tasks.create_task(submitting(None, 1))
        await asyncio.to_thread(lambda: [begun.acquire() for _ in range(2)])
        assert Counter(at_work) == {"eve": 2, "ada": 1, "None": 1}
        end.set()
    assert Counter(at_work) == {"eve": 6, "ada": 1, "None": 1}
    pool.shutdown()


async def test_the_work_of_a_caller_who_has_gone_is_not_done() -> None:
    pool, begin, done = FairPool(1, "test", most_of_caller=1), threading.Event(), list[str]()
    pool.submit(begin.wait)
    gone = asyncio.create_task(submit(pool, "eve", done, 1))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    begin.set()
    await submit(pool, "ada", done, 1)
    assert done == ["ada1"]
    pool.shutdown()


async def test_an_error_of_the_work_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)


async def test_one_thread_does_all_long_work() -> None:
    threads = await asyncio.gather(*(in_thread(threading.get_ident) for _ in range(20)))
    assert len(set(threads)) == 1
    assert threading.get_ident() not in threads


FORKED = """
import os
from chatledger.models import weight
weight._LONG_WORK.submit(int).result()
if (child := os.fork()) == 0:
    os._exit(weight._LONG_WORK.submit(lambda: 7).result(10))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_has_a_thread_of_its_own() -> None:
    words = [sys.executable, "-W", "ignore", "-c", FORKED]
    assert subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout == "7\n"
