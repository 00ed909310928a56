"""Clients and servers killed with SIGKILL at random moments: nothing acknowledged is lost, no batch stored in half."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from chatledger.admin import migrate
from tests.conftest import Database
from tests.faults.kills import kill_clients, kill_server
from tests.postgres import Server, own_server

KILLS = 10


@pytest.fixture
def seed() -> int:
    drawn = random.randrange(2**32)
    print(f"seed {drawn}")
    return drawn


@pytest.fixture
def mortal_server() -> Iterator[Server]:
    """A PostgreSQL of this test's own: the others need theirs."""
    with own_server() as running:
        yield running


async def test_a_killed_client_loses_nothing_acknowledged(database: Database, seed: int) -> None:
    figures = await kill_clients(database, kills=KILLS, seed=seed)
    assert figures.faults == KILLS
    assert figures.acknowledged > KILLS


async def test_a_killed_server_loses_nothing_acknowledged(mortal_server: Server, seed: int) -> None:
    """Killed whole, and a backend of it: its writers wait until it is back, or send the same batch again."""
    await asyncio.to_thread(migrate, mortal_server.url)
    database = Database("postgresql", mortal_server.url)
    figures = await kill_server(mortal_server, database, kills=2, seed=seed)
    assert figures.faults == 2
