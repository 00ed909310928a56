"""Connections are given out in the order in which calls ask for them, on PostgreSQL."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context, ContextVar
from typing import Any

import pytest
from sqlalchemy import event

from chatledger import Ledger, Newest, PostgreSQL, StorageError
from chatledger.storage.databases.postgresql.database import PostgresqlDatabase
from chatledger.storage.drivers.asyncpg import AsyncpgConnections
from chatledger.storage.drivers.urls import POOL
from tests.conftest import Database
from tests.conversations import user
from tests.faults.connections import busy, connections_of
from tests.faults.test_pool import connected
from tests.storage.databases.test_lifetime import soon

TASKS = 50
ROUNDS = 10


class Asked:
    """Finds the calls that still waited for a connection after a later call had got one."""

    def __init__(self) -> None:
        self._asked = itertools.count()
        self._waiting: set[int] = set()
        self.waited = 0
        self.overtaken: set[int] = set()
        self.of_network: set[int] = set()
        """The calls that made a connection, or closed one that was too much. They wait for no other call meanwhile."""
        self._call = ContextVar[int]("call")

    def ask(self) -> int:
        self.waited += bool(self._waiting)
        self._waiting.add(call := next(self._asked))
        self._call.set(call)
        return call

    def get(self, call: int) -> None:
        self._waiting.discard(call)
        earlier = {waiting for waiting in self._waiting if waiting < call}
        later(4, lambda: self.overtaken.update(earlier & self._waiting))

    def connects(self, *_: object) -> None:
        self.of_network.add(self._call.get(-1))


def later(turns: int, call: Callable[[], None]) -> None:
    """After some turns of the event loop: a task that was woken has its connection by then."""
    loop = asyncio.get_running_loop()
    loop.call_soon(call if turns == 0 else lambda: later(turns - 1, call))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The three ways to a connection, each noted when it asks for one and when it has one."""
    asked = Asked()
    checkout, checked_out = AsyncpgConnections.checkout, AsyncpgConnections._checked_out
    transaction = PostgresqlDatabase.transaction

    async def noted_checkout(self: AsyncpgConnections) -> Any:
        call = asked.ask()
        connection = await checkout(self)
        asked.get(call)
        return connection

    @contextmanager
    def noted_checked_out(self: AsyncpgConnections, timeout: float | None) -> Iterator[Any]:
        call = asked.ask()
        with checked_out(self, timeout) as connection:
            asked.get(call)
            yield connection

    @asynccontextmanager
    async def noted_transaction(self: PostgresqlDatabase, tenant: Any) -> AsyncIterator[Any]:
        call = asked.ask()
        async with transaction(self, tenant) as begun:
            asked.get(call)
            yield begun

    monkeypatch.setattr(AsyncpgConnections, "checkout", noted_checkout)
    monkeypatch.setattr(AsyncpgConnections, "_checked_out", noted_checked_out)
    monkeypatch.setattr(PostgresqlDatabase, "transaction", noted_transaction)
    return asked


async def use(ledger: Ledger, number: int) -> None:
    """Each way to a connection in turn."""
    for way in range(number, number + ROUNDS):
        if way % 3 == 0:
            await ledger.messages.history("t", Newest(1))
        elif way % 3 == 1:
            await ledger.threads.count()
        else:
            async with ledger.begin() as tx:
                await tx.threads.count()


async def all_connected(ledger: Ledger, connections: int) -> None:
    """A pool that is full: a call that connects would be overtaken by calls for which there is a connection."""
    both = asyncio.Barrier(connections)

    async def hold() -> None:
        async with ledger.begin() as tx:
            await tx.threads.count()
            await both.wait()

    await asyncio.gather(*(hold() for _ in range(connections)))


@pytest.mark.parametrize(("size", "overflow"), [(5, 0), (4, 1)])
async def test_no_call_overtakes_another(
    pg_database: Database, asked: Asked, caplog: pytest.LogCaptureFixture, size: int, overflow: int
) -> None:
    async with pg_database.open(postgresql=PostgreSQL(pool_size=size, max_overflow=overflow)) as ledger:
        await ledger.messages.append("t", [user("x")], create=True)
        await all_connected(ledger, size)
        for change in ("do_connect", "close"):
            event.listen(connections_of(ledger)._engine, change, asked.connects)
        asked.overtaken.clear()
        await asyncio.gather(*(use(ledger, number) for number in range(TASKS)))
        assert busy(ledger) == 0
    assert asked.waited > TASKS * ROUNDS / 2
    assert asked.overtaken <= asked.of_network
    assert not asked.overtaken or overflow
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_full_pool_keeps_its_connections_for_the_next_statement(pg_database: Database) -> None:
    """Without a way through SQLAlchemy's pool and a greenlet, which an append of one table a statement always takes."""
    async with pg_database.open(postgresql=PostgreSQL(pool_size=2, max_overflow=0, distributed=False)) as ledger:
        await ledger.messages.append("t", [user("x")], create=True)
        await asyncio.gather(*(ledger.messages.history("t", Newest(1)) for _ in range(2)))
        taken: list[object] = []
        event.listen(connections_of(ledger)._engine, "checkout", lambda *one: taken.append(one))
        await asyncio.gather(*(ledger.messages.history("t", Newest(1)) for _ in range(50)))
        await asyncio.gather(*(ledger.messages.append(f"t{n}", [user("x")], create=True) for n in range(2)))
        assert taken == []


async def test_a_cancelled_waiter_passes_its_place_on(pg_database: Database) -> None:
    async with pg_database.open(postgresql=PostgreSQL(pool_size=1, max_overflow=0)) as ledger:
        await ledger.threads.create("t")
        for turns in range(8):
            begun, end = asyncio.Event(), asyncio.Event()
            holder = asyncio.create_task(hold(ledger, begun, end))
            await begun.wait()
            first, second = (asyncio.create_task(read(ledger)) for read in (count, last, count)[turns % 2 :][:2])
            await in_line(ledger, 2)
            end.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            first.cancel()
            await soon(asyncio.wait([holder, first, second]))
            assert second.exception() is None
            assert (busy(ledger), connections_of(ledger).unused) == (0, 1)


async def test_a_transaction_that_needs_a_second_connection_goes_first(pg_database: Database) -> None:
    """Those that hold none can only have one when it goes on."""
    order: list[str] = []
    async with pg_database.open(postgresql=PostgreSQL(pool_size=2, max_overflow=0)) as ledger:
        begun, end = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold(ledger, begun, end))
        await begun.wait()

        async def read(name: str) -> None:
            await ledger.threads.count()
            order.append(name)

        async with ledger.begin():
            waiting = [asyncio.create_task(read(name), context=Context()) for name in "abc"]
            await in_line(ledger, 3)
            second = asyncio.create_task(read("second"))  # in a task that was started inside
            await in_line(ledger, 4)
            end.set()
            await soon(second)
        await soon(asyncio.gather(holder, *waiting))
    assert order[0] == "second"


async def test_transactions_that_hold_every_connection_fail_and_the_rest_goes_on(pg_database: Database) -> None:
    async with pg_database.open(timeout=2) as ledger:
        all_begun = asyncio.Barrier(POOL.size)
        asked: list[object] = []

        async def needs_two() -> None:
            async with ledger.begin() as tx:
                await tx.threads.count()
                await all_begun.wait()
                asked.append(1)
                await ledger.threads.count()

        async def needs_one() -> object:
            await in_line(ledger, POOL.size)
            return await ledger.threads.count()

        rest = [asyncio.create_task(needs_one()) for _ in range(POOL.size)]
        outcomes = await soon(asyncio.gather(*(needs_two() for _ in range(POOL.size)), return_exceptions=True))
        assert len(asked) == POOL.size
        for outcome in outcomes:
            assert isinstance(outcome, StorageError)
            assert outcome.retryable
            assert "a transaction that is open here (`async with ledger.begin() as tx`)" in str(outcome)
        assert await soon(asyncio.gather(*rest)) == [0] * POOL.size
        assert busy(ledger) == 0


async def test_a_call_that_gets_no_connection_says_so(pg_database: Database) -> None:
    async with pg_database.open(timeout=0.2, postgresql=PostgreSQL(pool_size=1, max_overflow=0)) as ledger:
        begun, end = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold(ledger, begun, end))
        await begun.wait()
        before = ledger.metrics().retries
        for call in (count(ledger), last(ledger), ledger.messages.append("t", [user("x")], create=True)):
            with pytest.raises(StorageError, match=r"no connection of the pool is free: all 1 were in use") as refused:
                await call
            assert refused.value.retryable
        assert ledger.metrics().retries == before  # each has waited for as long as it may
        end.set()
        await holder


async def test_closing_ends_the_wait_for_a_connection(pg_database: Database) -> None:
    ledger = await pg_database.open(postgresql=PostgreSQL(pool_size=1, max_overflow=0))
    await ledger.threads.create("t")
    begun, end = asyncio.Event(), asyncio.Event()
    holder = asyncio.create_task(hold(ledger, begun, end))
    await begun.wait()
    waiting = [asyncio.create_task(read(ledger)) for read in (count, last)]
    await in_line(ledger, 2)
    await soon(ledger.close(timeout=0.01))
    for outcome in await soon(asyncio.gather(*waiting, return_exceptions=True)):
        assert isinstance(outcome, StorageError)
    end.set()
    with pytest.raises(StorageError):
        await holder
    assert await connected(pg_database, 0) == 0


async def hold(ledger: Ledger, begun: asyncio.Event, end: asyncio.Event) -> None:
    async with ledger.begin() as tx:
        await tx.threads.count()
        begun.set()
        await end.wait()


async def in_line(ledger: Ledger, number: int) -> None:
    while len(connections_of(ledger)._gate.line) < number:  # noqa: ASYNC110 - the line tells nobody
        await asyncio.sleep(0)


async def count(ledger: Ledger) -> object:
    return await ledger.threads.count()


async def last(ledger: Ledger) -> object:
    return await ledger.messages.history("t", Newest(1))
