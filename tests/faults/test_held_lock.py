"""Somebody holds the lock of a thread: the appends to it end within their own limits, and say what they waited for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import asyncpg
import pytest

from chatledger import Ledger, StorageError
from chatledger.errors import OutcomeUnknown
from chatledger.storage.databases.postgresql.append import PostgresqlAppend
from tests.conftest import Database
from tests.conversations import assistant
from tests.faults.connections import set_limits
from tests.faults.test_outcome import forget, until, waiting


@pytest.fixture
async def ledger(pg_database: Database) -> AsyncIterator[Ledger]:
    async with pg_database.open() as opened:
        for thread_id in ("t", "free"):
            await opened.messages.append(thread_id, [assistant("hello")], create=True)
        yield opened


@pytest.fixture
async def holder(ledger: Ledger, pg_database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A connection whose transaction holds the branches of the thread."""
    connection = await asyncpg.connect(pg_database.url)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("SELECT FROM chatledger.branches WHERE thread_id = 't' FOR UPDATE")
    yield connection
    await transaction.rollback()
    await connection.close()


async def test_an_append_that_waits_for_another_ends_at_its_own_limit_and_sends_nothing(
    ledger: Ledger, holder: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(ledger, timeout=1.0, response_timeout=0.5)
    tried: list[str] = []
    until_known = PostgresqlAppend.until_known

    async def noting(self: PostgresqlAppend, request: object, **rest: object) -> object:
        tried.append(request.messages[0].text)  # type: ignore[attr-defined]
        return await until_known(self, request, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresqlAppend, "until_known", noting)
    calls = [ledger.messages.append("t", [assistant(str(n))]) for n in range(6)]
    first, *others = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 30)
    assert isinstance(first, (OutcomeUnknown, StorageError))
    assert [type(one) for one in others] == [StorageError] * 5
    for one in others:
        assert one.retryable  # type: ignore[union-attr]
        assert "earlier append to the thread" in str(one)
    assert tried == ["0"]
    assert (await ledger.messages.append("free", [assistant("goes on")])).last_seq == 2


async def test_an_append_that_entered_later_waits_for_its_whole_limit(
    ledger: Ledger, holder: asyncpg.Connection
) -> None:
    """The limit of the one before it is not its own, and it has its turn once the lock is free."""
    set_limits(ledger, timeout=1.0, response_timeout=0.5)
    early = [asyncio.create_task(ledger.messages.append("t", [assistant(f"{n}")])) for n in range(2)]
    await asyncio.sleep(0)
    set_limits(ledger, timeout=30.0)
    late = asyncio.create_task(ledger.messages.append("t", [assistant("late")]))
    await asyncio.wait(early, timeout=20)
    assert all(isinstance(one.exception(), (OutcomeUnknown, StorageError)) for one in early)
    assert not late.done()
    await holder.execute("ROLLBACK")
    await holder.execute("BEGIN")
    assert (await asyncio.wait_for(late, 20)).messages[0].text == "late"


@pytest.mark.parametrize("steps", range(6))
async def test_an_append_that_is_cancelled_twice_prints_nothing(
    ledger: Ledger, holder: asyncpg.Connection, caplog: pytest.LogCaptureFixture, steps: int
) -> None:
    """The second cancellation meets SQLAlchemy while it drops the connection of the first."""
    forget(ledger)
    appending = asyncio.create_task(ledger.messages.append("t", [assistant("waits")]))
    await waiting(holder)
    with caplog.at_level(logging.DEBUG, "sqlalchemy.pool"):
        appending.cancel()
        for _ in range(steps):
            await asyncio.sleep(0)
        appending.cancel()
        await asyncio.wait([appending])
        await until(lambda: appending.done())
    assert appending.cancelled()
    assert [record.message for record in caplog.records if "ancell" in record.message or record.exc_info] == []
