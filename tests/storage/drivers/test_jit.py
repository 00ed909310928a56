"""PostgreSQL's just-in-time compiler is off in the sessions of a ledger, without a startup parameter."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import Ledger, Newest, PostgreSQL, StorageError
from chatledger.admin import migrate
from chatledger.storage.drivers import urls
from chatledger.storage.drivers.sql import ReadSql
from tests.conftest import Database
from tests.faults.proxy import proxied
from tests.faults.test_pool import connected
from tests.postgres import Server, own_server

JIT = "SELECT setting, source FROM pg_settings WHERE name = 'jit'"


def jit(sql: ReadSql) -> tuple[str, str]:
    ((setting, source),) = sql.fetch(JIT, {})
    return setting, source


@pytest.fixture(scope="module")
def compiling_server() -> Iterator[Server]:
    """A server that compiles unless it is told not to: the default of PostgreSQL, which a packager may change."""
    with own_server(settings=("jit=on",)) as running:
        yield running


@pytest.fixture
def compiling(compiling_server: Server) -> Iterator[Database]:
    with compiling_server.database() as url:
        migrate(url)
        yield Database("postgresql", url)


async def test_the_sessions_of_a_ledger_compile_nothing(compiling: Database) -> None:
    """Neither for a read or a write, nor in a transaction that is held open. The session says so itself: a startup
    parameter would have the source `client`.
    """
    async with compiling.open() as ledger:
        assert await ledger._scope.read(jit) == ("off", "session")
        assert await ledger._scope.write(jit) == ("off", "session")
        async with ledger.begin() as tx:
            assert await tx._scope.read(jit, snapshot=True) == ("off", "session")


async def test_a_ledger_sends_its_name_as_the_only_startup_parameter(compiling: Database) -> None:
    """A pooler may refuse any other parameter."""
    sent = "SELECT name FROM pg_settings WHERE source = 'client' AND name <> 'client_encoding'"
    async with compiling.open() as ledger:
        names = await ledger._scope.read(lambda sql: sql.fetch(sent, {}))
    assert [name for (name,) in names] == ["application_name"]


async def test_a_connection_that_is_used_again_asks_for_nothing(compiling: Database) -> None:
    async with proxied(compiling.url) as proxy, Ledger.open(proxy.url) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.history("t", Newest(1))
        trips, connections = proxy.round_trips, proxy.connections
        await ledger.messages.history("t", Newest(1))
        assert (proxy.round_trips, proxy.connections) == (trips + 1, connections)


async def test_a_replica_compiles_nothing(compiling: Database) -> None:
    async with Ledger.open(compiling.url, postgresql=PostgreSQL(replica=compiling.url)) as ledger:
        assert ledger._guard.replica is not None
        assert await ledger._guard.replica.database.read(ledger._scope.tenant, jit) == ("off", "session")


async def test_sessions_that_are_not_ours_alone_keep_their_setting(compiling: Database) -> None:
    """Behind a transaction pooler a session is somebody else's next; an application's engine is its own."""
    async with compiling.open(postgresql=PostgreSQL(pooler="transaction")) as ledger:
        assert (await ledger._scope.read(jit))[0] == "on"
    engine = create_async_engine(compiling.url.replace("postgresql:", "postgresql+asyncpg:"))
    async with Ledger.open(engine) as ledger:
        assert (await ledger._scope.read(jit))[0] == "on"
    await engine.dispose()


async def test_a_connection_lost_while_it_is_prepared_is_a_retryable_error(compiling: Database) -> None:
    """At each round trip until the connection is ready."""
    errors: list[StorageError] = []
    async with proxied(compiling.url) as proxy:
        for trip in itertools.count(1):
            proxy.cut("before", trip)
            try:
                await (await Ledger.open(proxy.url)).close()
            except StorageError as error:
                errors.append(error)
            if not proxy.spare():
                break
    assert len(errors) > 3
    assert all(error.retryable for error in errors)


async def test_a_connection_that_cannot_be_prepared_is_closed(
    compiling: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and not when its error is forgotten."""
    said = ["off"]

    async def prepare(connection: Any, lock_wait: float) -> None:
        await connection.execute(f"SET jit = {said[0]}")

    monkeypatch.setattr(urls, "_set_up", prepare)
    async with compiling.open() as ledger, ledger.begin():
        said[0] = "perhaps"
        with pytest.raises(StorageError, match="jit") as caught:
            await ledger.threads.find("t")
        assert await connected(compiling, 1) == 1
        assert not caught.value.retryable
