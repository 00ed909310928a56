"""A ledger in more than one event loop, which a script with several `asyncio.run` or a pool of threads makes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, Mark, StorageError
from tests.conftest import Database
from tests.conversations import turn

CALLS: dict[str, Callable[[Ledger], Awaitable[Any]]] = {
    "append": lambda ledger: ledger.messages.append("t", turn()),
    "history": lambda ledger: ledger.messages.history("t"),
    "update": lambda ledger: ledger.threads.update("t", title="x"),
    "close": lambda ledger: ledger.close(),
}


async def opened(database: Database) -> Ledger:
    ledger: Ledger = await database.open()
    await ledger.threads.create("t", exist_ok=True)
    return ledger


@pytest.mark.parametrize("call", [call for name, call in CALLS.items() if name != "close"])
def test_another_loop_may_call(database: Database, call: Callable[[Ledger], Awaitable[Any]]) -> None:
    """A loop for each call, while the ledger's own loop waits."""
    with asyncio.Runner() as first:
        ledger = first.run(opened(database))
        for _ in range(3):
            asyncio.run(called(call, ledger))
        first.run(called(CALLS["append"], ledger))
        first.run(ledger.close())


def test_postgresql_is_closed_in_its_own_loop(pg_database: Database) -> None:
    with asyncio.Runner() as first:
        ledger = first.run(opened(pg_database))
        with pytest.raises(StorageError, match="event loop that opened it; close this ledger in that loop"):
            asyncio.run(ledger.close())
        first.run(ledger.close())


def test_a_transaction_in_another_loop(database: Database) -> None:
    async def write(ledger: Ledger) -> None:
        async with ledger.begin() as tx:
            await tx.messages.append("t", turn())
            assert len((await tx.messages.history("t")).messages) == len(turn())
            with pytest.raises(StorageError, match="call tx and not the ledger"):
                await ledger.messages.append("t", turn())
        with pytest.raises(ZeroDivisionError):
            async with ledger.begin() as tx:
                await tx.messages.append("t", turn())
                raise ZeroDivisionError

    with asyncio.Runner() as first:
        ledger = first.run(opened(database))
        asyncio.run(write(ledger))
        assert len(first.run(ledger.messages.history("t")).messages) == len(turn())
        first.run(ledger.close())


def test_a_draft_and_a_follower_in_other_loops(database: Database) -> None:
    async def say(ledger: Ledger) -> None:
        async with ledger.messages.stream("t") as draft:
            await draft.feed("Sunny")

    async def hear(ledger: Ledger, mark: Mark) -> str:
        async with aclosing(ledger.messages.follow("t", cursor=mark)) as changes:
            async with asyncio.timeout(10):
                return (await anext(changes)).kind

    with asyncio.Runner() as first:
        ledger = first.run(opened(database))
        mark = first.run(ledger.messages.history("t")).mark
        with ThreadPoolExecutor(1) as pool:
            heard = pool.submit(asyncio.run, hear(ledger, mark))
            asyncio.run(say(ledger))
            assert heard.result(15) == "appended"
        first.run(ledger.close())


def test_loops_of_several_threads_lose_nothing(database: Database) -> None:
    """Four threads with a loop for each call, and the ledger's own loop, write to one thread."""

    async def write(ledger: Ledger, name: str) -> None:
        await ledger.messages.append("t", [ChatMessage(role="user", content=name)])

    def loops(ledger: Ledger, writer: int) -> None:
        for number in range(8):
            asyncio.run(write(ledger, f"{writer} {number}"))

    async def main() -> None:
        async with database.open() as ledger:
            await ledger.threads.create("t")
            others = [asyncio.to_thread(loops, ledger, writer) for writer in range(4)]
            await asyncio.gather(*others, *(write(ledger, f"own {number}") for number in range(8)))
            found = [message.content for message in (await ledger.messages.history("t")).messages]
            assert sorted(found) == sorted(f"{writer} {number}" for writer in [*range(4), "own"] for number in range(8))
            for writer in (*range(4), "own"):
                assert [one for one in found if one.startswith(f"{writer} ")] == [f"{writer} {n}" for n in range(8)]
            assert ledger.metrics().appends == 40
            assert ledger.metrics().running == 0

    asyncio.run(main())


def test_the_own_loop_may_be_blocked_by_a_runner(database: Database) -> None:
    """A synchronous runner that is called inside a loop has a loop in another thread, and blocks the first one."""

    async def main() -> None:
        async with database.open() as ledger:
            await ledger.threads.create("t")
            with ThreadPoolExecutor(1) as pool:
                pool.submit(asyncio.run, called(CALLS["append"], ledger)).result(20)

    asyncio.run(main())


def test_a_cancellation_reaches_the_other_loop(pg_database: Database) -> None:
    """The call ends in the loop that serves it, before its caller goes on."""

    async def cancelled(ledger: Ledger) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await ledger.threads.update("t", title="late")
        assert ledger.metrics().running == 0

    async def main() -> None:
        async with pg_database.open() as ledger, pg_database.open() as other:
            await ledger.threads.create("t")
            async with other.begin() as tx:
                await tx.threads.update("t", title="held")
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(asyncio.run, cancelled(ledger)).result(20)
            await ledger.threads.update("t", metadata={})
            assert (await ledger.threads.get("t")).title == "held"

    asyncio.run(main())


def test_the_ledgers_own_loop_starts_no_thread(pg_database: Database) -> None:
    async def main() -> None:
        async with pg_database.open() as ledger:
            await ledger.threads.create("t")
            for call in list(CALLS.values())[:3]:
                await call(ledger)
            assert "chatledger-loops" not in {thread.name for thread in threading.enumerate()}
            await asyncio.to_thread(asyncio.run, called(CALLS["append"], ledger))
            assert "chatledger-loops" in {thread.name for thread in threading.enumerate()}
        assert "chatledger-loops" not in {thread.name for thread in threading.enumerate()}

    asyncio.run(main())


def test_hints_of_other_loops_are_sent(pg_database: Database) -> None:
    """A write from another loop wakes a follower of another process, which the second ledger represents."""

    async def main() -> None:
        async with pg_database.open(notify=True) as ledger, pg_database.open(notify=True) as other:
            await ledger.threads.create("t")
            mark = (await other.messages.history("t")).mark
            async with aclosing(other.messages.follow("t", cursor=mark)) as changes:
                change = asyncio.create_task(anext(changes))
                await asyncio.to_thread(asyncio.run, called(CALLS["append"], ledger))
                async with asyncio.timeout(10):
                    assert (await change).kind == "appended"

    asyncio.run(main())


def test_a_file_is_used_in_any_loop(sqlite_database: Database) -> None:
    with asyncio.Runner() as first, asyncio.Runner() as second:
        ledger = first.run(opened(sqlite_database))
        for name in ("append", "history", "update", "close"):
            second.run(called(CALLS[name], ledger))


async def called(call: Callable[[Ledger], Awaitable[Any]], ledger: Ledger) -> None:
    await call(ledger)
