"""The pool and the idle connections before it: none is left behind, and nobody waits while one is idle."""

from __future__ import annotations

import asyncio
import logging

import asyncpg
import pytest

from chatledger import Ledger, PostgreSQL
from tests.conftest import Database
from tests.conversations import user
from tests.faults.connections import busy, connections_of
from tests.storage.raw import query

SIZE, OVERFLOW = 8, 2
MOST = SIZE + OVERFLOW
CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'chatledger'"
)


async def connected(database: Database, expected: int) -> int:
    """The number of connections that the server sees. It takes a moment to notice that one was closed."""
    for _ in range(200):
        if (count := (await query(database, CONNECTIONS))[0][0]) == expected:
            break
        await asyncio.sleep(0.01)
    return int(count)


async def read_at_once(ledger: Ledger, count: int) -> None:
    """Each on a connection of its own; appends would share a few."""
    thread = (await ledger.threads.create()).thread_id
    await ledger.messages.append(thread, [user("x")])
    await asyncio.gather(*(ledger.messages.history(thread) for _ in range(count)))


async def test_connections_beyond_the_pool_are_closed(pg_database: Database, caplog: pytest.LogCaptureFixture) -> None:
    async with pg_database.open(postgresql=PostgreSQL(pool_size=SIZE, max_overflow=OVERFLOW)) as ledger:
        await read_at_once(ledger, MOST)
        assert await connected(pg_database, SIZE) == SIZE
    assert await connected(pg_database, 0) == 0
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_transactions_do_not_wait_for_idle_connections(pg_database: Database) -> None:
    async with pg_database.open(postgresql=PostgreSQL(pool_size=SIZE, max_overflow=OVERFLOW)) as ledger:
        await read_at_once(ledger, SIZE)
        all_begun = asyncio.Barrier(MOST)

        async def hold() -> None:
            async with ledger.begin():
                await all_begun.wait()

        await asyncio.wait_for(asyncio.gather(*(hold() for _ in range(MOST))), 8)
        assert busy(ledger) == 0


async def test_closing_closes_idle_and_pooled_connections(
    pg_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async with pg_database.open(postgresql=PostgreSQL(pool_size=SIZE, max_overflow=OVERFLOW)) as ledger:
        both = asyncio.Barrier(MOST)

        async def hold() -> None:
            async with ledger.begin():
                await both.wait()

        held = [asyncio.create_task(hold()) for _ in range(SIZE - 1)]
        await read_at_once(ledger, SIZE)
        held += [asyncio.create_task(hold()) for _ in range(MOST - len(held))]
        await asyncio.gather(*held)
        assert connections_of(ledger).unused >= SIZE
    assert await connected(pg_database, 0) == 0
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_connection_checked_out_while_the_ledger_closes_is_cut(pg_database: Database) -> None:
    ledger = await pg_database.open()
    connections = connections_of(ledger)
    with pytest.raises(asyncpg.InterfaceError, match="closed"):
        async with await connections.checkout() as connection:
            await ledger.close()
            await connection.fetch("SELECT 1", {})
    with pytest.raises(ConnectionError, match="closed"):
        await connections.checkout()
    assert await connected(pg_database, 0) == 0
