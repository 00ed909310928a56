"""What followers read: once for all at a position, few at a time, and a bounded number of bytes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from chatledger import Cursor, Ledger, Mark, PostgreSQL
from chatledger.models import ThreadChange
from chatledger.repositories import scope_of
from chatledger.storage.databases import poller, shared_reads
from chatledger.storage.drivers.gate import PoolGate, PoolPlace
from chatledger.storage.follow import follower
from chatledger.storage.repositories.branches import fork_at
from tests.conftest import Database
from tests.conversations import user

LONG = 30


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "INTERVAL", 0.01)


class Reads:
    """The reads of all followers: what each found, and how many ran at the same time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks: list[follower.Look] = []
        self.running = self.most = 0
        read = follower.read_changes

        def noting(*given: Any, **fields: Any) -> follower.Look:
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                look = read(*given, **fields)
            finally:
                self.running -= 1
            self.looks.append(look)
            return look

        monkeypatch.setattr(follower, "read_changes", noting)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


async def hear(ledger: Ledger, thread: str, after: Mark | Cursor, count: int) -> list[ThreadChange]:
    heard: list[ThreadChange] = []
    async with asyncio.timeout(LONG), aclosing(ledger.messages.follow(thread, cursor=after)) as changes:
        while len(heard) < count:
            heard.append(await anext(changes))
    return heard


async def test_followers_at_a_position_share_their_read(database: Database, reads: Reads) -> None:
    async with database.open() as ledger, database.open() as writer:
        await writer.threads.create("t")
        mark = (await writer.branches.get("t")).mark
        following = [asyncio.create_task(hear(ledger, "t", mark, 1)) for _ in range(20)]
        await asyncio.sleep(0.3)
        before = len(reads.looks)
        await writer.messages.append("t", [user("for all")])
        heard = await asyncio.gather(*following)
        assert len(reads.looks) - before <= 2
        assert {change.message.content for (change,) in heard if change.message} == {"for all"}


async def test_a_follower_that_leaves_does_not_end_the_read_of_the_others(database: Database, reads: Reads) -> None:
    async with database.open() as ledger, database.open() as writer:
        await writer.messages.append("t", [user("first")], create=True)
        mark = (await writer.branches.get("t")).mark
        await writer.messages.append("t", [user("second")])
        leaving, staying = (asyncio.create_task(hear(ledger, "t", mark, 1)) for _ in range(2))
        while not ledger._guard.poller().reads._running:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        leaving.cancel()
        assert [change.kind for change in await staying] == ["appended"]


async def test_followers_leave_connections_to_others(
    database: Database, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They waited for all connections of the pool at once, and who came after them got none within ten seconds."""
    waited = 0
    wait = PoolGate.wait

    async def noting(gate: PoolGate, limit: float) -> PoolPlace:
        nonlocal waited
        waited += 1
        return await wait(gate, limit)

    threads = [f"t{number}" for number in range(12)]
    options = {"postgresql": PostgreSQL(pool_size=shared_reads.MOST + 1)}  # one for the poll
    async with database.open() as writer:
        for thread in threads:
            await writer.messages.append(thread, [user("first")], create=True)
        marks = [(await writer.branches.get(thread)).mark for thread in threads]
        async with database.open(**options) as ledger:
            monkeypatch.setattr(PoolGate, "wait", noting)
            following = [
                asyncio.create_task(hear(ledger, thread, mark, 1)) for thread, mark in zip(threads, marks, strict=True)
            ]
            await asyncio.sleep(0.3)
            monkeypatch.setattr(PoolGate, "wait", wait)
            for thread in threads:
                await writer.messages.append(thread, [user("second")])
            await asyncio.gather(*following)
    assert waited == 0
    assert 0 < reads.most <= shared_reads.MOST


async def test_a_read_ends_before_it_has_too_many_bytes(
    database: Database, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "BYTES", 10_000)
    async with database.open() as ledger:
        await ledger.messages.append("t", [user("first")], create=True)
        mark = (await ledger.branches.get("t")).mark
        words = [f"{number}" * 4_000 for number in range(9)]
        await ledger.messages.append("t", [user(word, message_id=word[0]) for word in words])
        heard = await hear(ledger, "t", mark, 9)
        assert [change.message.content for change in heard if change.message] == words
        assert max(len(look.changes) for look in reads.looks) == 2

        reads.looks.clear()
        mark = heard[-1].cursor
        for word in words:
            await ledger.messages.revise("t", word[0], user(word + "!"))
        revised = await hear(ledger, "t", mark, 9)
        assert [change.message.content for change in revised if change.message] == [word + "!" for word in words]
        assert max(len(look.changes) for look in reads.looks) == 3


async def test_a_read_of_revisions_on_another_branch_is_bounded_too(
    database: Database, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "BYTES", 10_000)
    async with database.open() as ledger:
        words = [f"{number}" * 4_000 for number in range(9)]
        await ledger.messages.append("t", [user(word, message_id=word[0]) for word in words], create=True)
        await fork_at(scope_of(ledger), "t", 9)
        mark = (await ledger.branches.get("t")).mark
        for word in words:
            await ledger.messages.revise("t", word[0], user(word + "!"))
        revised = await hear(ledger, "t", mark, 9)
        assert [change.message.content for change in revised if change.message] == [word + "!" for word in words]
        assert max(len(look.changes) for look in reads.looks) == 3
