"""What a process holds does not grow with the threads that it writes to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import chatledger
from chatledger import Ledger
from tests.conftest import Database
from tests.faults.growth import (
    LIMITS,
    Growth,
    Sample,
    check_stored,
    growth,
    require_bounded,
    spread,
    thread_name,
    turn,
)
from tests.storage.raw import query

PER_APPEND = 0.25
"""Blocks of memory that an append may leave. A cached tip takes about five."""


def test_appends_over_many_threads_leave_nothing_behind(database: Database) -> None:
    # Each connection of the pool remembers the statements that it prepares, which takes longer on PostgreSQL.
    appends = 24_000 if database.kind == "postgresql" else 3_000
    found = spread(database, threads=1_500, appends=appends, seed=1, cache=256)
    assert found.blocks / 100_000 <= PER_APPEND
    assert found.files <= 0
    assert found.connections <= 0


@pytest.mark.parametrize("where", ["seq = 3", "seq = 6", "seq > 4", "true"])
async def test_a_lost_message_is_missed(database: Database, ledger: Ledger, where: str) -> None:
    for number in range(3):
        await ledger.messages.append(thread_name(1, 0), turn(thread_name(1, 0), number), create=True)
    await check_stored(database, [3], seed=1)
    await query(database, f"DELETE FROM message_parts WHERE {where}")
    await query(database, f"DELETE FROM messages WHERE {where}")
    with pytest.raises(AssertionError, match="3 turns, stored"):
        await check_stored(database, [3], seed=1)


async def test_a_doubled_turn_is_found(database: Database, ledger: Ledger) -> None:
    for number in (0, 1, 1):
        again = [one.model_copy(update={"message_id": None}) for one in turn(thread_name(1, 0), number)]
        await ledger.messages.append(thread_name(1, 0), again, create=True)
    with pytest.raises(AssertionError, match="2 turns, stored"):
        await check_stored(database, [2], seed=1)


def test_every_cache_of_a_function_has_a_limit() -> None:
    caches = []
    for path in Path(chatledger.__file__).parent.rglob("*.py"):
        source = path.read_text()
        assert not re.search(r"\bfunctools import (.*, )?cache\b|\bfunctools\.(lru_)?cache\b", source), path
        caches += re.findall(r"(?<!import )(?<!, )\blru_cache\b(.{0,20})", source)
    assert len(caches) > 10
    assert [limit for limit in caches if not re.match(r"\(maxsize=\d", limit)] == []


def _samples(memory: float, files: int, connections: int) -> list[Sample]:
    """A steep beginning, and then that much for each of nine samples."""
    beginning = [Sample(1_000 * number, 2**20 * number, 0, number, number) for number in range(8)]
    return beginning + [
        Sample(1_000 * number, int(2**20 * (8 + memory * number)), 0, 8 + files * number, 8 + connections * number)
        for number in range(8, 17)
    ]


def test_growth_is_measured_after_the_warm_up() -> None:
    found = growth(_samples(0.5, 2, 1), threads=10)
    assert (found.appends, found.threads) == (16_000, 10)
    assert found.memory == pytest.approx(50)
    assert found.files == pytest.approx(200)
    assert found.connections == pytest.approx(100)


def test_growth_beyond_a_limit_fails() -> None:
    require_bounded(growth(_samples(0, 0, 0), threads=10))
    with pytest.raises(AssertionError, match="memory grew"):
        require_bounded(growth(_samples(0.5, 0, 0), threads=10))
    with pytest.raises(AssertionError, match="files and connections grew"):
        require_bounded(Growth(1, 1, LIMITS.memory, LIMITS.blocks, 2, 2))
