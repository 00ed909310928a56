"""Following a thread: each change of its active branch is told once, in order, whoever writes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import get_args

import pytest

from chatledger import Ledger
from chatledger.models import ThreadChangeKind
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


# --- Each kind of change ----------------------------------------------------------------------------------------------


async def changes_of(writer: Ledger) -> AsyncIterator[str]:
    """Changes of every kind in turn, and the kinds that they are told as."""
    await writer.messages.append("t", [user("And in Oslo?", message_id="q")])
    yield "appended"
    async with writer.stream("t", message_id="a", interval=0) as draft:
        yield "appended"
        await draft.feed("Rain")
        yield "grown"
        await draft.feed(" and wind.")
        yield "grown"
    yield "completed"
    with pytest.raises(KeyError):
        async with writer.stream("t", message_id="b", interval=0) as draft:
            yield "appended"
            raise KeyError
    yield "completed"
    await writer.messages.revise("t", "q", user("And in Bergen?"))
    yield "revised"
    await writer.messages.retract("t", "q")
    yield "retracted"
    await writer.messages.pop("t")
    yield "retracted"
    await writer.messages.append("t", [user("1", message_id="1"), assistant("2", message_id="2")])
    yield "appended appended"
    await writer.branches.rewind("t", 5)
    yield "rewound"
    await writer.branches.fork("t", 5)
    yield "activated"
    await writer.messages.append("t", [user("Elsewhere?", message_id="elsewhere")])
    yield "appended"
    await writer.messages.revise("t", "first 0", user("What is the weather?"))  # which branch 0 stores
    yield "revised"
    await writer.messages.append("t", [user("Nowhere?", message_id="nowhere")], branch=0)
    await writer.branches.activate("t", 0)
    yield "activated appended"
    await writer.messages.append("t", [user("Anywhere?")], after="first 4")
    yield "activated appended"


async def test_each_kind_of_change_is_told_once_and_in_order(ledger: Ledger, writer: Ledger) -> None:
    """A reader may go on from each change on, and from the history of each state: it comes to the same end."""
    reader, others = await Reader.of(ledger, "t"), []
    async with aclosing(ledger.follow("t", after=reader.cursor)) as changes:
        async for kinds in changes_of(writer):
            for kind in kinds.split():
                await reader.hear(changes, kind)
                others.append(reader.copy())
            assert reader.has(await writer.messages.history("t"))
            others.append(await Reader.of(writer, "t"))
    assert {change.kind for change in reader.told} == set(get_args(ThreadChangeKind))
    for other in others:
        await other.catch_up(writer)
        assert other.has(await ledger.messages.history("t"))
