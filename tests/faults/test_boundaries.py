"""The connection dropped at every message of an append, of a transaction and of a read, in either direction."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.conftest import Database
from tests.conversations import turn
from tests.faults.boundaries import Side
from tests.faults.connections import busy, connections_of
from tests.faults.cuts import (
    SIDES,
    THREAD,
    Before,
    behind,
    cold,
    cut_appends,
    cut_locked_appends,
    cut_reads,
    cut_transactions,
    cut_writers,
    tip_cached,
    tip_forgotten,
)
from tests.storage.raw import query

either_side = pytest.mark.parametrize("side", SIDES)


@either_side
@pytest.mark.parametrize(("before", "least"), [(tip_cached, 3), (tip_forgotten, 6), (cold, 15)])
async def test_an_append_cut_at_any_message_is_stored_once(
    pg_database: Database, side: Side, before: Before, least: int
) -> None:
    assert (await cut_appends(pg_database, side, before)).faults >= least


@either_side
async def test_an_append_under_the_lock_cut_at_any_message_is_stored_once(pg_database: Database, side: Side) -> None:
    assert (await cut_locked_appends(pg_database, side)).faults >= 10


@either_side
async def test_a_transaction_cut_at_any_message_is_stored_whole_or_not_at_all(
    pg_database: Database, side: Side
) -> None:
    assert (await cut_transactions(pg_database, side)).faults >= 15


@either_side
@pytest.mark.parametrize("last", [20, None], ids=["one statement", "snapshot"])
async def test_a_read_cut_at_any_message_is_read_again(pg_database: Database, side: Side, last: int | None) -> None:
    assert (await cut_reads(pg_database, side, last)).faults >= 3


async def test_writers_cut_now_and_then_lose_nothing(pg_database: Database) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    assert (await cut_writers(pg_database, cuts=20, seed=seed)).faults == 20


async def test_reads_after_a_restart_find_a_connection_that_lives(pg_database: Database) -> None:
    """Every connection of the pool is dead, and several read at once."""
    async with behind(pg_database) as (ledger, _):
        await ledger.messages.append(THREAD, turn())
        await asyncio.gather(*(ledger.messages.history(THREAD) for _ in range(8)))
        assert connections_of(ledger).unused > 1
        ours = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'chatledger'"
        await query(pg_database, ours)
        histories = await asyncio.gather(*(ledger.messages.history(THREAD) for _ in range(8)))
        assert {history.last_seq for history in histories} == {5}
        assert busy(ledger) == 0
