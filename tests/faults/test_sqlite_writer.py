"""The writer's thread of a SQLite file outlives whatever its jobs do: it serves everybody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from chatledger import Ledger, StorageError
from chatledger.storage.drivers.sql import WriteSql
from tests.conftest import Database
from tests.conversations import turn, user


class Panic(BaseException):
    """The error that an extension written in Rust raises when it panics. It is no Exception."""


@pytest.fixture
async def ledger(sqlite_database: Database) -> AsyncIterator[Ledger]:
    async with sqlite_database.open() as opened:
        await opened.threads.create("t")
        yield opened


def panic(_: WriteSql) -> None:
    raise Panic


async def test_a_job_that_panics_fails_alone(ledger: Ledger) -> None:
    appends = [ledger.messages.append("t", turn()) for _ in range(3)]
    outcomes = await asyncio.wait_for(asyncio.gather(*appends, ledger._scope.write(panic), return_exceptions=True), 5)
    assert isinstance(outcomes[3], Panic)
    with pytest.raises(Panic):
        await asyncio.wait_for(ledger._scope.write(panic), 5)
    assert (await ledger.messages.history("t")).last_seq == 15


def fill_the_disk(sql: WriteSql) -> None:
    """Nearly: a short message still fits."""
    pages = sql.fetch("PRAGMA page_count", {})[0][0]
    sql.fetch(f"PRAGMA max_page_count = {pages + 3}", {})


async def test_a_group_without_room_is_refused_and_leaves_what_was_stored(ledger: Ledger) -> None:
    await ledger.messages.append("t", [user("a")])
    await ledger._scope.write(fill_the_disk)
    batches = [[user(text)] for text in ("b", "c", "d" * 90_000, "e")]
    outcomes = await asyncio.gather(
        *(ledger.messages.append("t", batch, rules="lenient") for batch in batches), return_exceptions=True
    )
    stored = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert isinstance(outcomes[2], StorageError)
    assert outcomes[2].retryable
    assert (await ledger.messages.history("t")).last_seq == 1 + len(stored)
    assert (await ledger.messages.append("t", [user("f")])).last_seq == 2 + len(stored)


async def test_a_transaction_without_room_is_rolled_back_whole(ledger: Ledger) -> None:
    await ledger._scope.write(fill_the_disk)
    with pytest.raises(StorageError, match="rolled the transaction back"):
        async with ledger.begin() as tx:
            await tx.messages.append("t", [user("a")])
            with pytest.raises(StorageError, match="full"):
                await tx.messages.append("t", [user("b" * 90_000)])
    assert (await ledger.messages.history("t")).last_seq == 0


def test_a_ledger_serves_two_loops_and_a_closed_one(sqlite_database: Database) -> None:
    async def leave_behind(ledger: Ledger) -> None:
        asyncio.ensure_future(ledger.messages.append("t", turn()))  # noqa: RUF006 - cancelled with its loop
        await asyncio.sleep(0)

    ledger = asyncio.run(_opened(sqlite_database))
    for _ in range(20):
        asyncio.run(leave_behind(ledger))
    asyncio.run(asyncio.wait_for(ledger.messages.append("t", turn()), 5))
    assert asyncio.run(ledger.messages.history("t")).last_seq % 5 == 0
    asyncio.run(ledger.close())


async def _opened(database: Database) -> Ledger:
    ledger: Ledger = await database.open()
    await ledger.threads.create("t")
    return ledger
