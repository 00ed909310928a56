"""A ledger in more than one event loop, which a script with several `asyncio.run` or a pool of threads makes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chatledger import Ledger, StorageError
from tests.conftest import Database
from tests.conversations import turn

CALLS: dict[str, Callable[[Ledger], Awaitable[Any]]] = {
    "append": lambda ledger: ledger.messages.append("t", turn()),
    "history": lambda ledger: ledger.messages.history("t"),
    "update": lambda ledger: ledger.threads.update("t", title="x"),
    "close": lambda ledger: ledger.close(),
}


async def opened(database: Database) -> Ledger:
    ledger: Ledger = await database.open()
    await ledger.threads.create("t", exist_ok=True)
    return ledger


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_on_postgresql_another_loop_is_refused(pg_database: Database, call: Callable[[Ledger], Awaitable[Any]]) -> None:
    with asyncio.Runner() as first, asyncio.Runner() as second:
        ledger = first.run(opened(pg_database))
        with pytest.raises(StorageError, match="another event loop"):
            second.run(called(call, ledger))
        first.run(called(CALLS["append"], ledger))
        first.run(ledger.close())


def test_on_postgresql_a_transaction_in_another_loop_is_refused(pg_database: Database) -> None:
    async def begin(ledger: Ledger) -> None:
        async with ledger.begin() as tx:
            await tx.threads.get("t")

    with asyncio.Runner() as first, asyncio.Runner() as second:
        ledger = first.run(opened(pg_database))
        with pytest.raises(StorageError, match="another event loop"):
            second.run(begin(ledger))
        first.run(begin(ledger))
        first.run(ledger.close())


def test_a_file_is_used_in_any_loop(sqlite_database: Database) -> None:
    with asyncio.Runner() as first, asyncio.Runner() as second:
        ledger = first.run(opened(sqlite_database))
        for name in ("append", "history", "update", "close"):
            second.run(called(CALLS[name], ledger))


async def called(call: Callable[[Ledger], Awaitable[Any]], ledger: Ledger) -> None:
    await call(ledger)
