"""Following in every kind of ledger: row-level security, keys, an engine of the application, a replica, a user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from chatledger import KeyRing, Ledger, PostgreSQL, StorageError, ThreadNotFound, Transaction
from chatledger.admin import configure_sqlite
from chatledger.errors import EncryptionError
from chatledger.storage.databases import poller
from chatledger.storage.drivers.urls import read_url
from chatledger.storage.follow import follower
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.faults.proxy import Proxy, proxied
from tests.following import LONG, Reader
from tests.storage.repositories.test_follow import changes_of, count_calls, until_called, until_waiting
from tests.storage.schema.test_row_security import owned, secured
from tests.storage.sent import record

__all__ = ["owned", "secured"]  # fixtures

RING = KeyRing({"k1": bytes(range(32))})


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "INTERVAL", 0.01)


async def hear_every_change(ledger: Ledger, writer: Ledger) -> Reader:
    await writer.threads.create("t")
    await writer.messages.append("t", turn("first "))
    reader = await Reader.of(ledger, "t")
    async with aclosing(ledger.messages.follow("t", cursor=reader.cursor)) as changes:
        async for kinds in changes_of(writer):
            await reader.hear(changes, *kinds.split())
    assert reader.has(await writer.messages.history("t"))
    return reader


# --- Row-level security -----------------------------------------------------------------------------------------------


async def test_two_tenants_are_followed_under_row_level_security(secured: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement sees the rows of one tenant, so a poll takes one for each tenant, and not one for each follower."""
    await follow_two_tenants(secured, monkeypatch, PostgreSQL(rls=True))


async def test_two_tenants_of_a_distributed_database_are_followed(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server has the rows of a tenant, so a poll takes a statement for each tenant. One for all asks each."""
    sent = record(monkeypatch)
    await follow_two_tenants(pg_database.url, monkeypatch, PostgreSQL(distributed=True))
    assert len([one for one in sent if "unnest((SELECT $1::text[]))" in one]) > 4


async def follow_two_tenants(url: str, monkeypatch: pytest.MonkeyPatch, options: PostgreSQL) -> None:
    """With a statement for each tenant."""
    polls = count_calls(monkeypatch, poller, "_compare")
    async with (
        proxied(url) as proxy,
        Ledger.open(proxy.url, postgresql=replace(options, pool_size=1)) as ledger,
        Ledger.open(url, postgresql=options) as writer,
    ):
        tenants = ("a", "b")
        for tenant in tenants:
            await writer.tenant(tenant).user("ada").threads.create("t")
            await writer.tenant(tenant).user("ada").threads.create("other")
        views = [view for name in tenants for view in (ledger.tenant(name), ledger.tenant(name).user("ada"))]
        followed = [(view, thread) for view in views for thread in ("t", "other")]
        hearing = [asyncio.create_task(anext(view.messages.follow(thread))) for view, thread in followed[:1]]
        await until_waiting(ledger, 1)
        alone = await trips_of_a_poll(proxy, polls)
        hearing += [asyncio.create_task(anext(view.messages.follow(thread))) for view, thread in followed[1:]]
        await until_waiting(ledger, len(followed))
        assert await trips_of_a_poll(proxy, polls) == 2 * alone
        await writer.tenant("b").messages.append("t", [user("b's")])
        for task in (hearing[4], hearing[6]):
            change = await asyncio.wait_for(task, LONG)
            assert change.message is not None
            assert change.message.content == "b's"
        await until_called(polls, len(polls) + 2)
        assert [task.done() for task in hearing] == [False] * 4 + [True, False, True, False]
        for task in hearing:
            task.cancel()
        await asyncio.gather(*hearing, return_exceptions=True)


async def trips_of_a_poll(proxy: Proxy, polls: list[int]) -> int:
    """The round trips of one poll, which begins after this call."""
    for _ in range(3):  # the first one may have begun before
        before, polled = proxy.round_trips, len(polls)
        await until_called(polls, polled + 1)
    return proxy.round_trips - before


async def test_the_runs_of_a_tenant_are_told_under_row_level_security(secured: str) -> None:
    await follow_runs_of_two_tenants(secured, PostgreSQL(rls=True))


async def test_the_runs_of_a_tenant_of_a_distributed_database_are_told(pg_database: Database) -> None:
    await follow_runs_of_two_tenants(pg_database.url, PostgreSQL(distributed=True))


async def follow_runs_of_two_tenants(url: str, options: PostgreSQL) -> None:
    """With runs and threads of the same ids."""
    async with Ledger.open(url, postgresql=options) as ledger, Ledger.open(url, postgresql=options) as writer:
        for name in ("a", "b"):
            await writer.tenant(name).messages.append("t", [user("?"), assistant("!", run_id="r")], create=True)
        followers = [ledger.tenant(name).messages.follow("t", deltas=True) for name in ("a", "b")]
        assert [(await anext(changes)).status for changes in followers] == ["running"] * 2
        await writer.tenant("b").runs.finish("r", status="completed")
        await writer.tenant("a").runs.finish("r", status="failed")
        async with asyncio.timeout(LONG):
            assert [(await anext(changes)).status for changes in followers] == ["failed", "completed"]
        for changes in followers:
            await changes.aclose()


async def test_every_change_is_told_under_row_level_security(secured: str) -> None:
    async with (
        Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger,
        Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as writer,
    ):
        await hear_every_change(ledger.tenant("a"), writer.tenant("a"))
        with pytest.raises(ThreadNotFound):
            await asyncio.wait_for(anext(ledger.tenant("b").messages.follow("t")), LONG)


# --- Keys -------------------------------------------------------------------------------------------------------------


async def test_every_change_of_an_encrypted_tenant_is_told(database: Database) -> None:
    async with database.open(encryption=RING) as ledger, database.open(encryption=RING) as writer:
        await hear_every_change(ledger, writer)


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        (None, EncryptionError),
        (KeyRing({"k2": bytes(32)}), EncryptionError),
        (KeyRing({"k1": bytes(32)}), EncryptionError),
    ],
)
async def test_a_follower_with_wrong_keys_raises(
    database: Database, keys: KeyRing | None, error: type[EncryptionError]
) -> None:
    """It waits while there is nothing to decrypt, and raises at the first message, as a history does. It holds up no
    follower of another tenant.
    """
    async with database.open(encryption=RING) as writer, database.open(encryption=keys) as ledger:
        await writer.threads.create("t")
        await writer.tenant("acme").threads.create("t")
        mark = (await writer.messages.append("t", [user("?")])).mark
        follower = asyncio.create_task(anext(ledger.messages.follow("t", cursor=mark)))
        other = asyncio.create_task(anext(ledger.tenant("acme").messages.follow("t")))
        await until_waiting(ledger, 2)
        await writer.messages.append("t", [assistant("s3cr3t")])
        with pytest.raises(error):
            await ledger.messages.history("t")
        with pytest.raises(error) as raised:
            await asyncio.wait_for(follower, LONG)
        assert "s3cr3t" not in str(raised.value)
        with pytest.raises(error):
            await asyncio.wait_for(anext(ledger.messages.follow("t", cursor=mark)), LONG)
        assert not other.done()
        await writer.tenant("acme").threads.delete("t")
        with pytest.raises(ThreadNotFound):
            await asyncio.wait_for(other, LONG)


# --- An engine of the application's -----------------------------------------------------------------------------------


@asynccontextmanager
async def engine_of(database: Database) -> AsyncIterator[AsyncEngine]:
    if database.kind == "postgresql":
        engine = create_async_engine(read_url(database.url))
    else:
        engine = create_async_engine(f"sqlite+aiosqlite:///{database.url}")
        configure_sqlite(engine)
    try:
        yield engine
    finally:
        await engine.dispose()


@pytest.mark.parametrize("notify", [False, True])
async def test_every_change_is_told_on_an_engine_of_the_application(database: Database, notify: bool) -> None:
    async with (
        engine_of(database) as engine,
        Ledger.open(engine, notify=notify) as ledger,
        database.open(notify=notify, encryption=None) as writer,
    ):
        await hear_every_change(ledger, writer)
        follower = asyncio.create_task(anext(ledger.messages.follow("t")))
        await until_waiting(ledger)
        await ledger.messages.append("t", [user("of the engine's ledger")])
        assert (await asyncio.wait_for(follower, LONG)).kind == "appended"


async def test_what_the_application_commits_itself_is_told(database: Database) -> None:
    """Also that of a transaction on a connection of its own, which sends no hint."""
    async with engine_of(database) as engine, Ledger.open(engine) as ledger:
        await ledger.threads.create("t")
        follower = asyncio.create_task(anext(ledger.messages.follow("t")))
        await until_waiting(ledger)
        async with engine.begin() as connection:
            await Transaction(connection).messages.append("t", [user("?")])
        assert (await asyncio.wait_for(follower, LONG)).kind == "appended"


async def test_an_engine_outlives_its_followers(database: Database) -> None:
    async with engine_of(database) as engine:
        async with Ledger.open(engine) as ledger:
            await ledger.threads.create("t")
            follower = asyncio.create_task(anext(ledger.messages.follow("t")))
            await until_waiting(ledger)
        with pytest.raises(StorageError, match="closed"):
            await asyncio.wait_for(follower, LONG)
        async with engine.connect() as connection:
            assert (await connection.exec_driver_sql("SELECT count(*) FROM threads")).scalar() == 1


# --- A replica --------------------------------------------------------------------------------------------------------


async def test_a_follower_reads_the_primary_and_not_its_replica(pg_database: Database) -> None:
    """A replica may be behind: a state of it would be older than the one that a follower has read."""
    async with (
        proxied(pg_database.url) as line,
        pg_database.open(postgresql=PostgreSQL(replica=line.url, distributed=False)) as ledger,
        pg_database.open() as writer,
    ):
        await hear_every_change(ledger, writer)
        assert line.connections == 0


# --- A user's view ----------------------------------------------------------------------------------------------------


async def test_a_user_follows_their_own_threads_only(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's thread is not found, from any position, and no more is said of it than of none."""
    async with database.open() as ledger, database.open() as writer:
        ada, bob = ledger.user("ada"), ledger.user("bob")
        await ada.threads.create("t")
        mark = (await ada.messages.append("t", turn())).mark
        await ada.messages.append("t", [user("s3cr3t")])
        cursor = (await asyncio.wait_for(anext(ada.messages.follow("t", cursor=mark)), LONG)).cursor
        reads = count_calls(monkeypatch, follower, "read_changes")
        for after in (None, mark, cursor):
            with pytest.raises(ThreadNotFound) as theirs:
                await asyncio.wait_for(anext(bob.messages.follow("t", cursor=after)), LONG)
            assert "s3cr3t" not in str(theirs.value)
        with pytest.raises(ThreadNotFound) as nobodys:
            await asyncio.wait_for(anext(bob.messages.follow("u")), LONG)
        assert str(theirs.value) == str(nobodys.value).replace("'u'", "'t'")
        assert len(reads) == 4
        views = [asyncio.create_task(anext(view.messages.follow("t"))) for view in (ada, ledger)]
        await until_waiting(ledger, 2)
        await writer.messages.append("t", [assistant("!")])
        for view in views:
            assert (await asyncio.wait_for(view, LONG)).seq == 7
