"""A transaction that the server ends to solve a deadlock is begun again."""

from __future__ import annotations

import asyncio

import asyncpg

from chatledger import Ledger
from chatledger.storage.drivers.sql import WriteSql
from tests.conftest import Database

_TITLE = "UPDATE {schema}threads SET title = :title WHERE tenant_id = 'default' AND thread_id = :thread"
_LOCK = "SELECT 1 FROM chatledger.threads WHERE thread_id = $1 FOR UPDATE"


async def test_the_loser_of_a_deadlock_tries_again(pg_database: Database) -> None:
    other = await asyncpg.connect(pg_database.url)
    await other.execute("SET deadlock_timeout = '1min'")  # so that the ledger's side is the one that finds the deadlock
    async with Ledger.open(pg_database.url) as ledger:
        for thread in ("a", "b"):
            await ledger.threads.create(thread)
        begun: list[int] = []

        def rename_both(sql: WriteSql) -> None:
            begun.append(1)
            for thread in ("a", "b"):
                sql.fetch(_TITLE + " RETURNING 1", {"title": "new", "thread": thread})

        async with other.transaction():
            await other.fetch(_LOCK, "b")
            renaming = asyncio.create_task(ledger._scope.write(rename_both))
            await asyncio.sleep(0.3)  # it holds a, and waits for b
            await other.fetch(_LOCK, "a")
        await renaming
        assert len(begun) > 1
        assert [thread.title for thread in await ledger.threads.list()] == ["new", "new"]
    await other.close()
