"""Hints between processes: a follower hears of a write at once, and loses nothing where a hint is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import asyncpg
import pytest

from chatledger import Ledger
from chatledger.repositories import scope_of
from chatledger.storage.databases import hints, poller
from chatledger.storage.repositories.branches import fork_at
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.faults.proxy import proxied
from tests.following import LONG, Reader
from tests.storage.repositories.test_follow import changes_of, until_waiting


@pytest.fixture
async def writer(database: Database) -> AsyncIterator[Ledger]:
    async with database.open(notify=True) as opened:
        await opened.threads.create("t")
        await opened.messages.append("t", turn("first "))
        yield opened


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """No poll comes of itself."""
    monkeypatch.setattr(poller, "INTERVAL", 3600)


@pytest.mark.usefixtures("never")
async def test_every_change_of_another_process_is_hinted(pg_database: Database) -> None:
    async with pg_database.open(notify=True) as ledger, pg_database.open(notify=True) as writer:
        await writer.threads.create("t")
        await writer.messages.append("t", turn("first "))
        await every_change(ledger, writer)


@pytest.mark.usefixtures("never")
async def test_every_change_of_this_process_is_hinted(writer: Ledger) -> None:
    await every_change(writer, writer)


async def every_change(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    async with aclosing(ledger.messages.follow("t", cursor=reader.cursor)) as changes:
        async for kinds in changes_of(writer):
            await reader.hear(changes, *kinds.split())
        async with writer.begin() as transaction:
            await transaction.messages.append("t", [user("In one"), assistant("commit")])
            await fork_at(scope_of(transaction), "t", 1)
        await reader.hear(changes, "appended", "appended", "activated")
    assert reader.has(await ledger.messages.history("t"))


@pytest.mark.usefixtures("never")
async def test_the_end_of_a_run_is_hinted(writer: Ledger) -> None:
    await writer.messages.append("t", [assistant("!", run_id="r")])
    async with aclosing(writer.messages.follow("t", deltas=True)) as changes:
        assert (await anext(changes)).status == "running"
        hearing = asyncio.create_task(anext(changes))
        await until_waiting(writer)
        await writer.runs.finish("r", status="completed")
        async with asyncio.timeout(LONG):
            assert (await hearing).status == "completed"


@pytest.mark.usefixtures("never")
async def test_a_hint_between_the_first_read_and_the_first_wait_counts(writer: Ledger) -> None:
    reader = await Reader.of(writer, "t")
    await writer.messages.append("t", [user("And in Oslo?")])
    async with aclosing(writer.messages.follow("t", cursor=reader.cursor)) as changes:
        await reader.hear(changes, "appended")
        await writer.messages.append("t", [assistant("Rain.")])
        await reader.hear(changes, "appended")


@pytest.mark.usefixtures("never")
async def test_a_hint_does_not_reveal_the_thread_and_wakes_no_other(pg_database: Database) -> None:
    heard: list[str] = []
    listener = await asyncpg.connect(pg_database.url)
    await listener.add_listener(hints.CHANNEL, lambda *given: heard.append(given[3]))
    async with pg_database.open(notify=True) as ledger, pg_database.open(notify=True) as writer:
        for thread in ("s3cr3t", "another"):
            await writer.threads.create(thread)
        other = asyncio.create_task(anext(ledger.messages.follow("another")))
        await until_waiting(ledger)
        await writer.messages.append("s3cr3t", [user("s3cr3t")])
        async with asyncio.timeout(LONG):
            while not heard:  # noqa: ASYNC110 - a test may poll
                await asyncio.sleep(0.001)
        assert [len(payload) for payload in heard] == [4]
        assert not other.done()
        other.cancel()
    await listener.close()


async def test_a_poll_finds_what_a_lost_hint_was_about(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints.Hints, "_hear", lambda *_: None)
    async with pg_database.open(notify=True) as ledger, pg_database.open(notify=True) as writer:
        await writer.threads.create("t")
        hearing = asyncio.create_task(anext(ledger.messages.follow("t")))
        await until_waiting(ledger)
        await writer.messages.append("t", [user("?")])
        assert (await asyncio.wait_for(hearing, LONG)).kind == "appended"


@pytest.mark.usefixtures("never")
@pytest.mark.plain
async def test_a_lost_listener_comes_back_and_asks_what_it_missed(pg_database: Database) -> None:
    async with (
        proxied(pg_database.url) as proxy,
        pg_database.open(notify=True) as writer,
        Ledger.open(proxy.url, notify=True) as ledger,
    ):
        await writer.threads.create("t")
        reader = await Reader.of(ledger, "t")
        async with aclosing(ledger.messages.follow("t", cursor=reader.cursor)) as changes:
            hearing = asyncio.create_task(reader.hear(changes, "appended"))
            await until_waiting(ledger)
            proxy.down = True
            await proxy.close()
            await writer.messages.append("t", [user("?")])
            proxy.down = False
            await hearing  # no later hint helps it
            await writer.messages.append("t", [assistant("!")])
            await reader.hear(changes, "appended")
        assert reader.has(await writer.messages.history("t"))


async def test_without_notify_nothing_is_sent_and_nobody_listens(pg_database: Database) -> None:
    """An append of a warm thread is one round trip, and a ledger without hints opens no further connection."""
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [user("?")])
        before = (proxy.round_trips, proxy.connections)
        await ledger.messages.append("t", [assistant("!")])
        assert (proxy.round_trips, proxy.connections) == (before[0] + 1, before[1])


async def test_hints_of_many_writes_are_sent_together(pg_database: Database) -> None:
    """A hundred appends and their hints: far fewer notifications than appends, on one connection."""
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url, notify=True) as ledger:
        await ledger.threads.create("t")
        for number in range(5):
            await ledger.messages.append("t", [user(f"{number}")])
        before = proxy.round_trips
        for number in range(100):
            await ledger.messages.append("t", [user(f"{number}")])
        assert proxy.round_trips - before < 200
