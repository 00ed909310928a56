"""Somebody else's transaction holds rows of branches, or a table, for long: what waits for it, and what does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from chatledger import ChatLedgerError, Ledger, Newest, Pace, StorageError
from chatledger.admin import migrate
from chatledger.errors import RunNotFound
from chatledger.repositories import scope_of
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.drivers import urls
from chatledger.storage.drivers.urls import LOCK_WAIT
from chatledger.types import Deleted
from tests.conftest import Database
from tests.conversations import user
from tests.faults.connections import set_limits
from tests.storage.raw import query

THREADS = 60
LOCKED = 34
POOL_SIZE = 20
BACKENDS = """
SELECT count(*), count(*) FILTER (WHERE wait_event_type = 'Lock') FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'chatledger'
"""
ROWS = f"SELECT FROM chatledger.branches WHERE thread_id < 't{LOCKED}' FOR UPDATE"
TABLE = "LOCK TABLE chatledger.messages IN SHARE MODE"


def thread(number: int) -> str:
    return f"t{number:02}"


@asynccontextmanager
async def held(database: Database, statement: str) -> AsyncIterator[asyncpg.Connection]:
    """A foreign transaction that holds the locks of the statement."""
    other = await asyncpg.connect(database.url, server_settings={"application_name": "another"})
    try:
        async with other.transaction():
            await other.execute(statement)
            yield other
    finally:
        await other.close()


async def backends(database: Database) -> tuple[int, int]:
    """Our server processes, and those of them that wait for a lock."""
    (row,) = await query(database, BACKENDS)
    return row[0], row[1]


async def append_on_and_on(ledger: Ledger, thread: str) -> None:
    while True:
        try:
            await ledger.messages.append(thread, [user("x")])
        except ChatLedgerError:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("statement", "stalled"), [(ROWS, LOCKED), (TABLE, THREADS)], ids=["rows", "table"])
async def test_a_stalled_table_takes_no_more_connections_than_the_pool_has(
    pg_database: Database, statement: str, stalled: int
) -> None:
    """Once the ledger knows that the threads are stalled: each of them takes one wait in vain to learn."""
    async with pg_database.open(timeout=2) as ledger:
        for number in range(THREADS):
            await ledger.messages.append(thread(number), [user("x")], create=True)
        async with held(pg_database, statement):
            tasks = [asyncio.create_task(append_on_and_on(ledger, thread(number))) for number in range(THREADS)]
            seen: list[tuple[int, int]] = []
            waiting: list[int] = []
            learned = False
            while len(waiting) < 12:
                await asyncio.sleep(2 * LOCK_WAIT)  # in which the waits end that began before it was known
                seen.append(await backends(pg_database))
                waiting += [seen[-1][1]] if learned else []
                learned = learned or len(ledger._database._append.stalled.threads) == stalled
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
    most = max(count for count, _ in seen)
    assert most <= POOL_SIZE + 1
    assert max(waiting) <= POOL_SIZE // 4


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not end the wait for a lock by itself."""
    monkeypatch.setattr(urls, "LOCK_WAIT", 60)


@pytest.mark.usefixtures("patient")
async def test_a_cancelled_append_leaves_no_server_process_that_waits(pg_database: Database) -> None:
    async with pg_database.open(timeout=240) as ledger:
        await ledger.messages.append(thread(0), [user("x")], create=True)
        async with held(pg_database, ROWS):
            append = asyncio.create_task(ledger.messages.append(thread(0), [user("y")]))
            await until_waiting(pg_database, 1)
            append.cancel()
            await asyncio.wait([append])
            await until_waiting(pg_database, 0)


@pytest.mark.usefixtures("patient")
async def test_an_append_without_an_answer_leaves_no_server_process_that_waits(pg_database: Database) -> None:
    async with pg_database.open(timeout=240) as ledger:
        await ledger.messages.append(thread(0), [user("x")], create=True)
        set_limits(ledger, timeout=0.2, response_timeout=0.1)
        async with held(pg_database, ROWS):
            with pytest.raises(ChatLedgerError):
                await ledger.messages.append(thread(0), [user("y")])
            await until_waiting(pg_database, 0)


async def test_of_two_deletions_of_a_run_that_wait_the_second_finds_none(pg_database: Database) -> None:
    async with pg_database.open() as ledger:
        await ledger.messages.append(thread(0), [user("x")], create=True, run_id="r")
        async with held(pg_database, ROWS):
            deletions = [asyncio.create_task(ledger.runs.delete("r")) for _ in range(2)]
            await until_waiting(pg_database, 2)
        outcomes = await asyncio.gather(*deletions, return_exceptions=True)
    assert [one.rows for one in outcomes if isinstance(one, Deleted)] == [
        {"feedback": 0, "run_decisions": 0, "run_leases": 0, "runs": 1}
    ]
    assert [type(one) for one in outcomes if not isinstance(one, Deleted)] == [RunNotFound]


async def append(ledger: Ledger) -> None:
    await ledger.messages.append(thread(0), [user("y")])


async def append_in_a_transaction(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        await tx.messages.append(thread(0), [user("y")])


async def rewind(ledger: Ledger) -> None:
    await rewind_to(scope_of(ledger), thread(0), 0)


@pytest.mark.parametrize("call", [append, append_in_a_transaction, rewind])
@pytest.mark.parametrize("rls", [False, True], ids=["plain", "secured"])
async def test_a_call_waits_for_a_lock_until_its_limit(
    pg_database: Database, rls: bool, call: Callable[[Ledger], Coroutine[Any, Any, None]]
) -> None:
    """Longer than a statement does."""
    if rls:
        await asyncio.to_thread(migrate, pg_database.url, rls=True)
    async with pg_database.open() as ledger:
        await ledger.messages.append(thread(0), [user("x")], create=True)
        async with held(pg_database, ROWS):
            task = asyncio.create_task(call(ledger))
            await asyncio.sleep(2 * LOCK_WAIT)
            assert not task.done()
        await asyncio.wait_for(task, 20)


async def test_reads_and_drafts_wait_for_the_lock_of_a_table(pg_database: Database) -> None:
    async with pg_database.open() as ledger:
        await ledger.messages.append(thread(0), [user("x")], create=True)
        async with ledger.messages.stream(thread(0), pace=Pace(interval=3_600, lease=7_200)) as draft:
            await draft.feed("a")
            await draft.flush()
            async with held(pg_database, "LOCK TABLE chatledger.messages"):
                await draft.feed("b")
                history = ledger.messages.history(thread(0))
                last = ledger.messages.history(thread(0), Newest(1))
                tasks = [asyncio.create_task(call) for call in (draft.flush(), history, last)]
                await asyncio.sleep(2 * LOCK_WAIT)
                assert not any(task.done() for task in tasks)
            await asyncio.wait_for(asyncio.gather(*tasks), 20)


async def test_an_append_that_is_locked_out_says_so_and_stores_nothing(pg_database: Database) -> None:
    async with pg_database.open(timeout=1) as ledger:
        await ledger.messages.append(thread(0), [user("x")], create=True)
        async with held(pg_database, ROWS):
            for _ in range(2):  # the second one knows that the thread is stalled
                with pytest.raises(
                    StorageError, match="not stored: another transaction held a lock until the time limit of 1 s"
                ) as refused:
                    await append(ledger)
                assert refused.value.retryable
        await append(ledger)
        assert (await ledger.messages.history(thread(0))).last_seq == 2
        database: Any = ledger._database
        assert not database._append.stalled.threads


async def until_waiting(database: Database, number: int) -> None:
    for _ in range(200):
        if (await backends(database))[1] == number:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{await backends(database)} wait, not {number}")
