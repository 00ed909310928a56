"""Behind a pooler that gives each transaction another server connection: every public method, and no trace of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chatledger import Ledger, Newest, PostgreSQL, StorageError
from chatledger.storage.drivers import urls
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import turn
from tests.faults.pooler import TransactionPooler, pooled
from tests.faults.proxy import proxied
from tests.storage.databases.test_scope import CALLS, in_ledger, in_transaction, tell


@pytest.fixture
async def pooler(pg_database: Database) -> AsyncIterator[TransactionPooler]:
    async with pooled(pg_database.url) as running:
        yield running


async def traces(pooler: TransactionPooler) -> list[list[list[str]]]:
    """The traces that clients leave on the server connections: statements, locks, settings."""
    return await pooler.ask(
        "SELECT name FROM pg_prepared_statements UNION ALL"
        " SELECT locktype FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' UNION ALL"
        " SELECT name FROM pg_settings WHERE source = 'session' AND setting <> reset_val"
    )


@pytest.mark.parametrize("scope", [in_ledger, in_transaction])
async def test_every_public_method_does_the_same_behind_a_transaction_pooler(
    pg_database: Database, pooler: TransactionPooler, scope: Any
) -> None:
    async with pg_database.open() as direct:
        async with Ledger.open(pooler.url, postgresql=PostgreSQL(pooler="transaction")) as ledger:
            behind = await tell(ledger, scope, "behind", filled_by=direct)
        assert await traces(pooler) == [[], [], []]
        assert pooler.moves > len(CALLS)
        assert behind == await tell(direct, scope, "direct")


async def test_a_large_batch_leaves_nothing_behind(pooler: TransactionPooler) -> None:
    """Its rows come as arrays, whose types the driver must know."""
    async with Ledger.open(pooler.url, postgresql=PostgreSQL(pooler="transaction")) as ledger:
        await ledger.messages.append("t", [*turn(), *turn()], create=True)
    assert await traces(pooler) == [[], [], []]


async def append_turns(ledger: Ledger, thread_id: str, count: int) -> None:
    await ledger.threads.create(thread_id)
    for number in range(count):
        await ledger.messages.append(thread_id, turn(ids=f"{number}/"))
        await ledger.messages.history(thread_id, Newest(10))
        await ledger.messages.history(thread_id)
        await ledger.threads.get(thread_id)


async def test_more_tasks_than_server_connections(pooler: TransactionPooler) -> None:
    async with Ledger.open(pooler.url, postgresql=PostgreSQL(pooler="transaction")) as ledger:
        await asyncio.gather(*(append_turns(ledger, f"t{number}", 4) for number in range(8)))
        for number in range(8):
            assert (await ledger.messages.history(f"t{number}", Newest(0))).last_seq == 20
            assert await findings_of(ledger, f"t{number}") == []
    assert await traces(pooler) == [[], [], []]


async def test_cancelled_tasks_leave_nothing_behind(pooler: TransactionPooler) -> None:
    async with Ledger.open(pooler.url, postgresql=PostgreSQL(pooler="transaction")) as ledger:
        for number in range(12):
            task = asyncio.create_task(append_turns(ledger, f"t{number}", 100))
            before = pooler.transactions
            while pooler.transactions < before + 3 + number:  # noqa: ASYNC110 - a test may poll
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await append_turns(ledger, "after", 2)
        assert (await ledger.messages.history("after", Newest(0))).last_seq == 10
    assert await traces(pooler) == [[], [], []]


async def test_without_the_pooler_setting_statements_are_missing_or_left_behind(pooler: TransactionPooler) -> None:
    """Mutation check: without the setting, the pooler breaks statements."""
    with pytest.raises(StorageError, match="prepared statement"):
        async with Ledger.open(pooler.url) as ledger:
            await append_turns(ledger, "t", 3)
    assert [name for rows in await traces(pooler) for (name,) in rows if "stmt" in name]


async def test_types_looked_up_outside_of_a_transaction_leave_a_setting(
    pooler: TransactionPooler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation check: without the lookup at connecting, asyncpg's own lookup leaves a setting behind."""

    async def nothing(_: Any) -> None:
        pass

    monkeypatch.setattr(urls, "_meet_arrays", nothing)
    async with Ledger.open(pooler.url, postgresql=PostgreSQL(pooler="transaction")) as ledger:
        await append_turns(ledger, "t", 3)
        await ledger.messages.append("t", [*turn(), *turn()])  # enough rows to come as arrays
    assert ["jit"] in [row for rows in await traces(pooler) for row in rows]


@pytest.mark.parametrize(("setting", "append", "window"), [("session", 1, 1), ("transaction", 2, 2)])
async def test_a_transaction_pooler_costs_one_round_trip_more(
    pg_database: Database, setting: Any, append: int, window: int
) -> None:
    """Without prepared statements, asking for a statement's parameter types takes a round trip of its own."""
    async with (
        proxied(pg_database.url) as proxy,
        Ledger.open(proxy.url, postgresql=PostgreSQL(pooler=setting)) as ledger,
    ):
        await append_turns(ledger, "t", 3)
        trips = proxy.round_trips
        await ledger.messages.append("t", turn())
        assert proxy.round_trips == trips + append
        await ledger.messages.history("t", Newest(10))
        assert proxy.round_trips == trips + append + window


async def test_migrating_through_a_transaction_pooler_is_refused(pooler: TransactionPooler) -> None:
    with pytest.raises(StorageError, match="own address"):
        await Ledger.open(pooler.url, migrate=True, postgresql=PostgreSQL(pooler="transaction"))
