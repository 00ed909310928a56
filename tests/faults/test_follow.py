"""Readers, writers and servers killed while threads are followed: no change is skipped, and none comes twice."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator

import pytest

from chatledger import ChatLedgerError, Ledger, Oldest
from chatledger.admin import migrate
from chatledger.repositories import scope_of
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.repositories.branches import fork_at
from chatledger.types import ThreadChange
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.faults.client import Client, nursery
from tests.faults.kills import _kill_all, _kill_backend
from tests.faults.streamer import THREAD
from tests.following import LONG, Reader
from tests.postgres import Server, own_server

KILLS = 4


@pytest.fixture
def seed() -> int:
    drawn = random.randrange(2**32)
    print(f"seed {drawn}")
    return drawn


async def test_killed_readers_and_writers_skip_and_repeat_nothing(database: Database, seed: int) -> None:
    """Each reader goes on from the last cursor that came whole from the one before; some of them listen to hints."""
    chance = random.Random(seed)
    async with database.open() as ledger:
        await ledger.threads.create(THREAD)
        await ledger.messages.append(THREAD, turn("first "))
        reader = await Reader.of(ledger, THREAD)
        with nursery() as clients:
            for number in range(KILLS):
                follower = clients.follow(database.url, THREAD, reader.cursor or "", notify=number % 3 == 1)
                most = 4 if number % 2 else 30  # a poll finds one change of a draft, and many of appends
                if number % 2:
                    writer = clients.stream(database.url, f"s{seed}.{number}", interval=0.01, size=64, lease=30)
                else:
                    writer = clients.append(database.url, f"w{seed}.{number}", tasks=2, threads=[THREAD])
                try:
                    await asyncio.wait_for(asyncio.to_thread(_hear, follower, reader, chance.randrange(1, most)), LONG)
                finally:
                    follower.kill()
                    writer.kill()
                await asyncio.to_thread(_hear, follower, reader)
                await _change(ledger, chance)
        await reader.catch_up(ledger)
        assert reader.has(await ledger.messages.history(THREAD))
        assert len(reader.told) > KILLS


def _hear(follower: Client, reader: Reader, changes: int | None = None) -> None:
    """So many changes, or all up to the end of the pipe, of which a last one may have come in half."""
    while changes != 0 and (line := follower.said.readline()).endswith("\n"):
        reader.apply(ThreadChange.model_validate(json.loads(line)))
        changes = None if changes is None else changes - 1


async def _change(ledger: Ledger, chance: random.Random) -> None:
    """Something other than an append, once the draft that a killed writer left is over."""
    for partial in await ledger.drafts.list():
        await ledger.drafts.interrupt(partial)
    version = (await ledger.messages.history(THREAD, Oldest(0))).last_seq
    match chance.randrange(4):
        case 0:
            await ledger.messages.revise(THREAD, "first 0", user(f"{version}"))
        case 1:
            await ledger.messages.pop(THREAD)
        case 2:
            await fork_at(scope_of(ledger), THREAD, 5)
        case _:
            await rewind_to(scope_of(ledger), THREAD, max(5, version - 7))
    await ledger.messages.close_open_calls(THREAD)  # a removal in the middle of a turn would refuse the next writer


@pytest.fixture
def mortal_server() -> Iterator[Server]:
    with own_server() as running:
        yield running


async def test_a_server_killed_under_followers_skips_and_repeats_nothing(mortal_server: Server, seed: int) -> None:
    """Killed whole, and a backend of it, under followers with and without hints, and a writer that tries again."""
    await asyncio.to_thread(migrate, mortal_server.url)
    chance = random.Random(seed)
    database = Database("postgresql", mortal_server.url)
    # A time limit of 0.1 seconds is over before the server is back, so the follower itself has to try again.
    async with database.open(timeout=0.1) as impatient, database.open(notify=True) as hinted:
        await hinted.threads.create("t")
        readers = [(one, await Reader.of(hinted, "t")) for one in (impatient, hinted)]
        following = [asyncio.create_task(_follow(*one)) for one in readers]
        for number in range(30):
            if number in (10, 20):
                await asyncio.to_thread(_kill_all if number == 10 else _kill_backend, mortal_server, chance)
            await _append(hinted, f"{seed}.{number}")
        last = await hinted.messages.history("t")
        async with asyncio.timeout(LONG):
            while not all(reader.has(last) for _, reader in readers):
                assert not any(task.done() for task in following)
                await asyncio.sleep(0.01)
        assert all(len(reader.told) == len(last.messages) == 60 for _, reader in readers)
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def _follow(ledger: Ledger, reader: Reader) -> None:
    async for change in ledger.messages.follow("t", cursor=reader.cursor):
        reader.apply(change)


async def _append(ledger: Ledger, name: str) -> None:
    messages = [user("?", message_id=f"{name}?"), assistant("!", message_id=f"{name}!")]
    async with asyncio.timeout(LONG):
        while True:
            try:
                await ledger.messages.append("t", messages)
                return
            except ChatLedgerError:
                await asyncio.sleep(0.01)
