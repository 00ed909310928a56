"""The connections of a ledger from its opening to its end: how many, whether they answer, and how they are closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import QueuePool

from chatledger import ChatLedgerError, InvalidArgument, Ledger, PostgreSQL, StorageError
from chatledger.admin import configure_sqlite
from chatledger.errors import OutcomeUnknown
from chatledger.storage.drivers.urls import POOL, read_url
from tests.conftest import Database
from tests.conversations import turn, user
from tests.faults.connections import busy, connections_of
from tests.faults.proxy import proxied
from tests.faults.test_pool import connected, read_at_once
from tests.storage.raw import query

T = TypeVar("T")

CLOSED = "this ledger is closed"


async def soon(call: Awaitable[T]) -> T:
    """A test that waits for a call that never ends fails here."""
    return await asyncio.wait_for(call, 20)


# --- How many ---------------------------------------------------------------------------------------------------------


async def test_a_pool_has_as_many_connections_as_it_is_given(pg_database: Database) -> None:
    async with pg_database.open(timeout=0.3, postgresql=PostgreSQL(pool_size=2, max_overflow=1)) as ledger:
        await read_at_once(ledger, 8)
        assert await connected(pg_database, 2) == 2
        all_begun, go_on = asyncio.Barrier(4), asyncio.Event()

        async def hold() -> None:
            async with ledger.begin() as transaction:
                await transaction.threads.count()
                await all_begun.wait()
                await go_on.wait()

        held = [asyncio.create_task(hold()) for _ in range(3)]
        await soon(all_begun.wait())
        assert await connected(pg_database, 3) == 3
        with pytest.raises(StorageError, match="no connection of the pool is free") as refused:
            await ledger.threads.count()
        assert refused.value.retryable
        go_on.set()
        await soon(asyncio.gather(*held))
        assert await connected(pg_database, 2) == 2


async def test_the_default_leaves_room_for_four_processes(pg_database: Database) -> None:
    async with pg_database.open() as ledger:
        await read_at_once(ledger, 64)
        pool = connections_of(ledger)._engine.pool
        assert isinstance(pool, QueuePool)
        assert pool.size() + pool.overflow() <= sum(POOL) <= 97 // 4


async def test_a_replica_has_a_pool_of_the_same_size(pg_database: Database) -> None:
    async with pg_database.open(
        postgresql=PostgreSQL(pool_size=3, max_overflow=0, replica=pg_database.url, distributed=False)
    ) as ledger:
        replica = ledger._guard.replica
        assert replica is not None
        pool: Any = replica.database._engine.pool
        assert (pool.size(), pool._max_overflow) == (3, 0)


@pytest.mark.parametrize("name", ["pool_size", "max_overflow"])
def test_other_numbers_are_refused(name: str) -> None:
    bad: list[Any] = [-1, 10_001, 10**400, True, 1.0, "16", *([0] if name == "pool_size" else ())]
    for number in bad:
        given: dict[str, Any] = {name: number}
        with pytest.raises(InvalidArgument, match=f"^{name} ") as refused:
            PostgreSQL(**given)
        assert refused.value.argument == name


async def test_a_file_ignores_the_size_of_the_pool(sqlite_database: Database) -> None:
    async with sqlite_database.open(postgresql=PostgreSQL(pool_size=1, max_overflow=0)) as ledger:
        await read_at_once(ledger, 8)
        assert await ledger.threads.count() == 1


async def test_an_engine_of_the_application_keeps_its_own_pool(pg_database: Database) -> None:
    engine = create_async_engine(read_url(pg_database.url), pool_size=1, max_overflow=1)
    for options in (PostgreSQL(pool_size=4), PostgreSQL(max_overflow=4)):
        with pytest.raises(InvalidArgument, match="does not go with an engine"):
            await Ledger.open(engine, postgresql=options)
    async with Ledger.open(engine) as ledger:
        await read_at_once(ledger, 8)
        assert busy(ledger) == 0
        pool: Any = engine.pool
        assert (pool.checkedin(), pool.checkedout(), pool.overflow()) == (1, 0, 0)
        held = await engine.connect()
        await soon(ledger.threads.count())
        await held.close()
    async with engine.connect() as connection:
        assert (await connection.exec_driver_sql("SELECT 1")).scalar() == 1
    await engine.dispose()


# --- Whether they answer ----------------------------------------------------------------------------------------------


async def test_a_ping_tells_how_long_the_answer_took(ledger: Ledger) -> None:
    assert 0 <= await ledger.ping() < 2
    assert 0 <= await ledger.tenant("other").user("ada").ping(timeout=5) < 5
    for timeout in (0, -1, float("nan"), 10**6):
        with pytest.raises(InvalidArgument, match=r"^timeout "):
            await ledger.ping(timeout=timeout)


async def test_a_ping_works_on_an_engine_of_the_application(sqlite_database: Database) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{sqlite_database.url}")
    configure_sqlite(engine)
    async with Ledger.open(engine) as ledger:
        assert await ledger.ping() >= 0
    await engine.dispose()


async def test_a_ping_is_one_round_trip_and_replaces_a_dead_connection(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url) as ledger:
        await ledger.ping()
        before = proxy.round_trips
        await ledger.ping()
        await ledger.ping()
        assert proxy.round_trips - before == 2
        await proxy.close()
        assert await ledger.ping() >= 0


async def test_a_ping_without_an_answer_fails_in_its_own_time(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url, timeout=60) as ledger:
        await ledger.ping()
        proxy.cut("hang", 1)
        with pytest.raises(StorageError, match=r"no answer within 0\.2 seconds") as failed:
            await soon(ledger.ping(timeout=0.2))
        assert failed.value.retryable
        assert await ledger.ping() >= 0
        assert busy(ledger) == 0


async def test_a_ping_fails_without_the_tables(database: Database, ledger: Ledger) -> None:
    await ledger.ping()
    await query(database, "ALTER TABLE tenants RENAME TO elsewhere")
    with pytest.raises(StorageError, match="a table or column is missing"):
        await ledger.ping()


# --- How they are closed ----------------------------------------------------------------------------------------------


async def refused(ledger: Ledger) -> None:
    """Every call on a closed ledger."""
    for call in (
        ledger.messages.append("t", turn()),
        ledger.messages.history("t"),
        ledger.threads.list(),
        ledger.threads.update("t", title="x"),
        ledger.position(),
        ledger.ping(),
    ):
        with pytest.raises(StorageError, match=CLOSED):
            await call
    with pytest.raises(StorageError, match=CLOSED):
        async with ledger.begin():
            raise AssertionError("a transaction began after close")


async def test_closing_waits_for_a_transaction_and_refuses_new_calls(database: Database) -> None:
    ledger = await database.open()
    await ledger.threads.create("t")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def transaction() -> None:
        async with ledger.begin() as tx:
            await tx.messages.append("t", turn())
            begun.set()
            await go_on.wait()
            await tx.messages.append("t", [user("after close was called")])

    running = asyncio.create_task(transaction())
    await begun.wait()
    closings = [asyncio.create_task(ledger.close()) for _ in range(2)]
    await asyncio.sleep(0)
    await refused(ledger)
    assert not any(closing.done() for closing in closings)
    go_on.set()
    await soon(asyncio.gather(running, *closings))
    await refused(ledger)
    async with database.open() as again:
        assert (await again.messages.history("t")).last_seq == 6


async def test_closing_lets_calls_in_flight_end(database: Database) -> None:
    """Appends to one thread queue up, and all of them were called before close."""
    ledger = await database.open()
    await ledger.threads.create("t")
    appends = [asyncio.create_task(ledger.messages.append("t", [user(str(n))])) for n in range(40)]
    reads = [asyncio.create_task(ledger.threads.count()) for _ in range(40)]
    await asyncio.sleep(0)
    await soon(ledger.close())
    assert len(await soon(asyncio.gather(*appends, *reads))) == 80
    if database.kind == "postgresql":
        assert await connected(database, 0) == 0
    async with database.open() as again:
        assert (await again.messages.history("t")).last_seq == 40


async def test_closing_ends_a_transaction_that_never_ends(database: Database) -> None:
    ledger = await database.open()
    await ledger.threads.create("t")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def transaction() -> None:
        async with ledger.begin() as tx:
            await tx.messages.append("t", turn())
            begun.set()
            await go_on.wait()

    running = asyncio.create_task(transaction())
    await begun.wait()
    await soon(ledger.close(timeout=0.05))
    if database.kind == "postgresql":
        assert await connected(database, 0) == 0
    go_on.set()
    with pytest.raises(ChatLedgerError):
        await soon(running)
    async with database.open() as again:
        assert (await again.messages.history("t")).last_seq == 0
        await again.messages.append("t", turn())  # no lock is left


async def test_an_append_that_closing_cuts_has_an_unknown_outcome(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy:
        ledger = await Ledger.open(proxy.url)
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
        proxy.cut("hang", 1)
        append = asyncio.create_task(ledger.messages.append("t", turn()))
        await asyncio.sleep(0)  # from Python 3.12 on, wait_for begins its call at once
        assert await soon(ledger.threads.count()) == 1  # on another connection, and after the append was sent
        await soon(ledger.close(timeout=0.05))
        with pytest.raises(OutcomeUnknown):
            await soon(append)
    assert await connected(pg_database, 0) == 0


async def test_closing_is_cut_short_by_a_cancellation(database: Database) -> None:
    """The connections are closed even so."""
    ledger = await database.open()
    begun = asyncio.Event()

    async def transaction() -> None:
        async with ledger.begin():
            begun.set()
            await asyncio.Event().wait()

    running = asyncio.create_task(transaction())
    await begun.wait()
    closing = asyncio.create_task(ledger.close(timeout=3_600))
    await asyncio.sleep(0.01)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(closing)
    if database.kind == "postgresql":
        assert await connected(database, 0) == 0
    running.cancel()
    with pytest.raises((asyncio.CancelledError, ChatLedgerError)):
        await soon(running)
    async with database.open() as again:
        await again.threads.create("t")


@pytest.mark.parametrize("timeout", [-1, float("nan"), 10**6, "1"])
async def test_another_time_to_close_is_refused(ledger: Ledger, timeout: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^timeout "):
        await ledger.close(timeout=timeout)
    assert await ledger.threads.count() == 0
