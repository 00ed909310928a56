"""The reads of followers take turns by caller."""

from __future__ import annotations

import asyncio

from chatledger.models.weight import CALLER
from chatledger.storage.databases.shared_reads import SharedReads


async def test_a_caller_overtakes_the_many_reads_of_another() -> None:
    reads, held, at_work = SharedReads(), asyncio.Event(), list[str]()

    async def read(caller: str, number: int) -> object:
        CALLER.set(caller)

        async def work() -> object:
            assert CALLER.get() == caller, "the work is for whom asked first"
            at_work.append(caller)
            await held.wait()
            return caller

        return await reads.read((caller, number), work)

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(read("eve", number)) for number in range(20)]
        await asyncio.sleep(0.01)
        asked.append(tasks.create_task(read("ada", 0)))
        await asyncio.sleep(0.01)
        assert at_work == ["eve", "eve", "ada"]
        held.set()
    assert [task.result() for task in asked] == ["eve"] * 20 + ["ada"]


async def test_reads_that_are_for_nobody_have_no_limit_but_that_of_all() -> None:
    reads, held, at_work = SharedReads(), asyncio.Event(), list[int]()

    async def work() -> None:
        at_work.append(1)
        await held.wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        for number in range(9):
            tasks.create_task(reads.read(number, work))
        await asyncio.sleep(0.01)
        assert len(at_work) == 4
        held.set()
    assert len(at_work) == 9
