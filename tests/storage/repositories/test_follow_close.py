"""The end of a ledger that is followed: `close` waits for no follower, and each of them hears that it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from chatledger import Ledger, Oldest, PostgreSQL, StorageError
from chatledger.storage.databases import poller
from tests.conftest import Database
from tests.conversations import turn, user
from tests.faults.proxy import proxied
from tests.faults.test_pool import connected
from tests.following import LONG
from tests.storage.repositories.test_follow import until_waiting

CLOSED = "this ledger is closed"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "INTERVAL", 0.01)


class HeldDraft:
    """Calls of a method that begin, and end only once they are let go."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self._original = original

    async def __call__(self, *given: Any, **named: Any) -> Any:
        found = await self._original(*given, **named)
        self.begun.set()
        await self.go_on.wait()
        return found

    async def until_begun(self) -> None:
        await asyncio.wait_for(self.begun.wait(), LONG)


async def ends(follower: asyncio.Task[Any]) -> None:
    with pytest.raises(StorageError, match=CLOSED):
        await asyncio.wait_for(follower, LONG)


async def test_close_does_not_wait_for_a_poll(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    before = asyncio.all_tasks()
    ledger = await database.open()
    await ledger.threads.create("t")
    poll = HeldDraft(ledger._database.states)
    monkeypatch.setattr(ledger._database, "states", poll)
    follower = asyncio.create_task(anext(ledger.messages.follow("t")))
    await poll.until_begun()
    await asyncio.wait_for(ledger.close(), LONG)
    await ends(follower)
    assert asyncio.all_tasks() == before


async def test_close_does_not_wait_for_a_server_that_is_silent(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy:
        ledger = await Ledger.open(proxy.url, timeout=3_600, postgresql=PostgreSQL(pool_size=1, max_overflow=0))
        await ledger.threads.create("t")
        follower = asyncio.create_task(anext(ledger.messages.follow("t")))
        await until_waiting(ledger)
        proxy.cut("hang", 1)
        async with asyncio.timeout(LONG):
            while proxy._cut is not None:  # noqa: ASYNC110 - nothing tells of a poll
                await asyncio.sleep(0.001)
        await asyncio.wait_for(ledger.close(timeout=0.05), LONG)
        await ends(follower)


async def test_close_does_not_wait_for_a_poll_behind_a_transaction_that_never_ends() -> None:
    """A database in memory has one connection, so a poll waits there for the transaction."""
    ledger = await Ledger.open(":memory:")
    await ledger.threads.create("t")
    follower = asyncio.create_task(anext(ledger.messages.follow("t")))
    await until_waiting(ledger)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def transaction() -> None:
        async with ledger.begin() as tx:
            await tx.messages.append("t", turn())
            begun.set()
            await go_on.wait()

    running = asyncio.create_task(transaction())
    await asyncio.wait_for(begun.wait(), LONG)
    async with asyncio.timeout(LONG):
        while not ledger.metrics().queue_length:  # noqa: ASYNC110 - nothing tells of a poll
            await asyncio.sleep(0.001)
    await asyncio.wait_for(ledger.close(timeout=0.05), LONG)
    await ends(follower)
    go_on.set()
    with pytest.raises(StorageError):
        await running


@pytest.mark.parametrize("told", [0, 1])
async def test_a_read_that_close_waits_for_is_told(
    database: Database, monkeypatch: pytest.MonkeyPatch, told: int
) -> None:
    """The changes that it found are told, and then the ledger is closed. It does not wait for another poll."""
    ledger = await database.open()
    await ledger.threads.create("t")
    mark = (await ledger.messages.history("t")).mark
    await ledger.messages.append("t", [user(f"{number}") for number in range(told)])
    read = HeldDraft(ledger._database.read)
    monkeypatch.setattr(ledger._database, "read", read)
    changes = ledger.messages.follow("t", cursor=mark)
    hearing = asyncio.create_task(anext(changes))
    await read.until_begun()
    closing = asyncio.create_task(ledger.close())
    await asyncio.sleep(0)
    assert not closing.done()
    read.go_on.set()
    for _ in range(told):
        assert (await asyncio.wait_for(hearing, LONG)).kind == "appended"
        hearing = asyncio.create_task(anext(changes))
    await ends(hearing)
    await asyncio.wait_for(closing, LONG)


async def test_a_read_that_close_does_not_wait_for_ends(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy:
        ledger = await Ledger.open(proxy.url)
        await ledger.threads.create("t")
        mark = (await ledger.messages.history("t", Oldest(0))).mark
        proxy.cut("hang", 1)
        follower = asyncio.create_task(anext(ledger.messages.follow("t", cursor=mark)))
        async with asyncio.timeout(LONG):
            while proxy._cut is not None:  # noqa: ASYNC110 - nothing tells of the read
                await asyncio.sleep(0.001)
        await asyncio.wait_for(ledger.close(timeout=0.05), LONG)
        await ends(follower)


async def test_closing_ends_a_follower_of_a_database_that_is_away(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy:
        ledger = await Ledger.open(proxy.url, timeout=0.1)
        await ledger.threads.create("t")
        waiting = asyncio.create_task(anext(ledger.messages.follow("t")))
        await until_waiting(ledger)
        proxy.down = True
        await proxy.close()
        away = asyncio.create_task(anext(ledger.messages.follow("t")))
        async with asyncio.timeout(LONG):
            while proxy.refused < 3:  # noqa: ASYNC110 - nothing tells of an attempt
                await asyncio.sleep(0.001)
        await asyncio.wait_for(ledger.close(), LONG)
        for follower in (waiting, away):
            await ends(follower)


async def test_closing_that_is_cancelled_ends_its_followers_and_connections(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await database.open()
    await ledger.threads.create("t")
    waiting = asyncio.create_task(anext(ledger.messages.follow("t")))
    await until_waiting(ledger)
    closing = asyncio.create_task(ledger.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await ends(waiting)
    if database.kind == "postgresql":
        assert await connected(database, 0) == 0


# --- Inside of a transaction ------------------------------------------------------------------------------------------


async def test_a_follower_inside_a_transaction_hears_what_is_committed(database: Database) -> None:
    """It reads beside the transaction, and outlives it."""
    async with database.open(notify=True) as ledger:
        await ledger.threads.create("t")
        mark = (await ledger.messages.append("t", turn())).mark
        async with ledger.begin() as transaction:
            await transaction.messages.append("t", [user("inside")])
            changes = ledger.messages.follow("t", cursor=mark)
            hearing = asyncio.create_task(anext(changes))
            await until_waiting(ledger)
            assert not hearing.done()
        change = await asyncio.wait_for(hearing, LONG)
        assert (change.kind, change.seq) == ("appended", 6)
        await ledger.messages.append("t", [user("after")])
        assert (await asyncio.wait_for(anext(changes), LONG)).seq == 7
        await changes.aclose()


async def test_a_follower_inside_a_transaction_of_the_one_connection_is_refused() -> None:
    """A poll of another follower waits for the transaction, and goes on."""
    async with Ledger.open(":memory:") as ledger:
        await ledger.threads.create("t")
        mark = (await ledger.messages.history("t")).mark
        follower = asyncio.create_task(anext(ledger.messages.follow("t")))
        await until_waiting(ledger)
        begun = ledger.messages.follow("t", cursor=mark)
        async with ledger.begin() as transaction:
            with pytest.raises(StorageError, match="call tx and not the ledger"):
                ledger.messages.follow("t")
            with pytest.raises(StorageError, match="call tx and not the ledger"):
                await anext(begun)
            await transaction.messages.append("t", [user("inside")])
        assert (await asyncio.wait_for(follower, LONG)).kind == "appended"
