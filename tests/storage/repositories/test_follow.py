"""Following a thread: each change of its active branch is told once, in order, whoever writes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from chatledger import Ledger
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.following import LONG, Reader


@pytest.fixture
async def writer(database: Database) -> AsyncIterator[Ledger]:
    """Another process, as far as the follower knows."""
    async with database.open() as opened:
        await opened.threads.create("t")
        await opened.messages.append("t", turn("first "))
        yield opened


async def test_an_append_of_another_ledger_is_heard(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    changes = ledger.follow("t", after=reader.cursor)
    hearing = asyncio.create_task(reader.hear(changes, "appended", "appended"))
    await asyncio.sleep(0)
    await writer.messages.append("t", [user("And in Oslo?"), assistant("Rain.")])
    await hearing
    await changes.aclose()
    assert reader.has(await ledger.messages.history("t"))


async def test_a_cursor_goes_on_where_it_was_given(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    for number in range(3):
        await writer.messages.append("t", [user(f"{number}?"), assistant(f"{number}!")])
    changes = ledger.follow("t", after=reader.cursor)
    change = await reader.hear(changes, "appended", "appended")
    await changes.aclose()
    changes = writer.follow("t", after=change.cursor)
    await reader.hear(changes, "appended", "appended", "appended", "appended")
    await changes.aclose()
    assert reader.has(await ledger.messages.history("t"))


async def test_without_a_cursor_it_begins_now(ledger: Ledger, writer: Ledger) -> None:
    changes = ledger.follow("t")
    async with asyncio.timeout(LONG):
        hearing = asyncio.ensure_future(anext(changes))
        while not ledger._guard._pollers:  # noqa: ASYNC110 - nothing tells of the first read
            await asyncio.sleep(0.001)
        await writer.messages.append("t", [user("And in Oslo?")])
        change = await hearing
    await changes.aclose()
    assert (change.kind, change.seq, change.message) == (
        "appended",
        6,
        (await ledger.messages.history("t")).messages[5],
    )
