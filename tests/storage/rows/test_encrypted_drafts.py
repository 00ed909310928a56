"""What a process without keys has begun when the database becomes encrypted: it stores no more words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chatledger import Encryption, Ledger, Pace, PostgreSQL
from chatledger.errors import EncryptionError
from tests.conftest import Database
from tests.conversations import turn
from tests.faults.proxy import proxied
from tests.reasons import because
from tests.storage.rows.test_encrypted_database import record
from tests.storage.rows.test_encrypted_tenants import everything
from tests.storage.rows.test_required import REQUIRED
from tests.storage.words import RING


async def mark(database: Database) -> None:
    """By a first write with keys, of the same tenant."""
    async with database.open(encryption=Encryption(RING, plaintext=True)) as ledger:
        await ledger.threads.create("by another")


async def require(database: Database) -> None:
    """By a first write whose keys are required, of another tenant."""
    async with database.open(tenant="other", encryption=REQUIRED, postgresql=PostgreSQL(distributed=False)) as ledger:
        await ledger.threads.create("by another")


Record = Callable[[Database], Awaitable[None]]
CASES: dict[str, tuple[dict[str, Any], Record]] = {
    "migrate": ({}, record),
    "mark": ({}, mark),
    "require": ({"postgresql": PostgreSQL(distributed=False)}, require),
    "distributed, migrate": ({"postgresql": PostgreSQL(distributed=True)}, record),
    "distributed, mark": ({"postgresql": PostgreSQL(distributed=True)}, mark),
}
"""How a plain ledger is opened, and how the database becomes encrypted. `migrate` alone records a distributed one."""


@pytest.fixture(params=list(CASES.values()), ids=list(CASES))
def case(request: pytest.FixtureRequest, database: Database) -> tuple[dict[str, Any], Record]:
    options, recorded = request.param
    return {"encryption": None} | (options if database.kind == "postgresql" else {}), recorded


async def _feed(draft: Any) -> None:
    await draft.feed("secret" * 9_000)  # more than `size`, so it writes


ENDS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "feed": _feed,
    "flush": lambda draft: draft.flush(),
    "complete": lambda draft: draft.complete(),
    "interrupt": lambda draft: draft.interrupt(),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("flushed", [False, True], ids=["opened", "flushed"])
async def test_an_open_draft_stores_no_more_words(
    database: Database, case: tuple[dict[str, Any], Record], end: str, flushed: bool
) -> None:
    options, recorded = case
    async with database.open(**options) as ledger:
        await ledger.threads.create("t", rules="lenient")
        with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
            async with ledger.messages.stream("t", pace=Pace(interval=3_600, lease=7_200)) as draft:
                if flushed:
                    await draft.feed("before ")
                    await draft.flush()
                await draft.feed("secret")
                await recorded(database)
                before = await everything(database)
                with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
                    await ENDS[end](draft)
                raise EncryptionError("tenant-encrypted", "default")
    after = await everything(database)
    assert after == before


async def test_an_append_to_a_thread_whose_end_is_known_stores_nothing(
    database: Database, case: tuple[dict[str, Any], Record]
) -> None:
    options, recorded = case
    async with database.open(**options) as ledger:
        for thread in "tuvw":
            await ledger.messages.append(thread, turn(), create=True)
        await recorded(database)
        before = await everything(database)
        with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
            await ledger.messages.append("t", turn())
        outcomes = await asyncio.gather(
            *[ledger.messages.append(thread, turn()) for thread in "tuvw"], return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [EncryptionError] * 4
        assert await everything(database) == before


async def test_appends_that_are_shared_store_nothing(database: Database) -> None:
    """Those that queue up behind the first one: they share a statement on PostgreSQL, and a commit on SQLite."""
    threads = [f"t{number}" for number in range(16)]
    async with database.open(encryption=None) as ledger:
        for thread in threads:
            await ledger.messages.append(thread, turn(), create=True)
        await mark(database)
        before = await everything(database)
        appending = [ledger.messages.append(thread, turn()) for thread in threads]
        outcomes = await asyncio.gather(*appending, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [EncryptionError] * 16
        assert await everything(database) == before


async def test_the_draft_of_a_ledger_without_keys_costs_no_round_trip_more(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url) as ledger:
        await ledger.threads.create("t")
        for _ in range(2):
            trips = []
            async with ledger.messages.stream("t", pace=Pace(interval=3_600, lease=7_200)) as draft:
                for _ in range(3):
                    await draft.feed("word ")
                    before = proxy.round_trips
                    await draft.flush()
                    trips.append(proxy.round_trips - before)
                before = proxy.round_trips
            trips.append(proxy.round_trips - before)
        assert trips == [2, 1, 1, 1]
