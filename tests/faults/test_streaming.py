"""A draft whose process is killed, or whose connection is: what was written stays, and the thread goes on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Literal

import pytest

from chatledger import Ledger, Pace, StorageError, ToolCall, ToolCallDelta
from chatledger.errors import DraftLost
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import user
from tests.faults.client import nursery
from tests.faults.connections import set_limits
from tests.faults.proxy import Proxy, proxied
from tests.faults.streamer import THREAD, word
from tests.faults.streams import LEASE, SIZE, kill_after, kill_streamers
from tests.formats.streams.split_responses import split
from tests.formats.streams.test_storage import SEARCH, said

KILLS = 4


async def test_a_killed_streamer_loses_no_more_than_its_last_interval(database: Database) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    assert (await kill_streamers(database, kills=KILLS, seed=seed)).faults == KILLS


async def _abandon(ledger: Ledger, database: Database) -> None:
    """Kill a streamer, and wait until the lease of its message is over."""
    await ledger.threads.create(THREAD)
    with nursery() as streamers:
        streamer = streamers.stream(database.url, "k", interval=0.01, size=SIZE, lease=0.05)
        await asyncio.to_thread(kill_after, streamer, 5, 0.01)
    async with asyncio.timeout(10):
        while not await ledger.drafts.list(abandoned_for=0):
            pass


async def test_an_append_after_a_killed_streamer_succeeds_once_its_lease_is_over(
    ledger: Ledger, database: Database
) -> None:
    await _abandon(ledger, database)
    await ledger.messages.append(THREAD, [user("hello?")])
    states = [message.state for message in await ledger.messages.history(THREAD)]
    assert [state for state in states if state != "synthetic"] == ["interrupted", "complete"]  # its call, if it was in
    assert await ledger.drafts.list() == []


async def test_a_retry_answers_the_request_of_a_killed_streamer(ledger: Ledger, database: Database) -> None:
    await _abandon(ledger, database)
    for replayed in (False, True):
        async with ledger.messages.stream(THREAD, run_id="k", idempotency_key="k", format="openai-responses") as draft:
            for event in split([said("m1", "One."), SEARCH, said("m2", "Two.")]):
                await draft.feed(event)
        assert draft.replayed == replayed
        history = (await ledger.messages.history(THREAD)).messages
        assert history == list(draft.messages)
        assert [(message.text, message.state) for message in history] == [("One.", "complete"), ("Two.", "complete")]
    assert await findings_of(ledger, THREAD) == []


@pytest.mark.parametrize("resume", [True, False])
async def test_another_process_takes_over_the_draft_of_a_killed_streamer(
    ledger: Ledger, database: Database, resume: bool
) -> None:
    await _abandon(ledger, database)
    killed = (await ledger.messages.history(THREAD)).draft
    assert killed is not None
    async with ledger.messages.stream(THREAD, run_id="k", idempotency_key="k", resume=resume) as draft:
        begun = draft.message
        if resume:
            assert (begun.text, begun.tool_calls) == (killed.text, killed.tool_calls)
        else:
            assert (begun.content, begun.tool_calls) == (None, None)
        if not begun.tool_calls:
            await draft.feed(ToolCallDelta(index=0, id="call of k", name="f", arguments=""))
        arguments = str(begun.tool_calls[0].arguments) if begun.tool_calls else ""
        end = begun.text.count(" ") + 5
        for number in range(begun.text.count(" "), end):
            await draft.feed(word(number))
        for number in range(arguments.count(" "), end):
            await draft.feed(ToolCallDelta(index=0, arguments=word(number)))
    (whole,) = (await ledger.messages.history(THREAD)).messages
    text = "".join(word(number) for number in range(end))
    assert (whole.text, whole.state, whole.seq, whole.message_id) == (text, "complete", 1, killed.message_id)
    assert whole.tool_calls == [ToolCall(id="call of k", name="f", arguments=text)]
    async with ledger.messages.stream(THREAD, run_id="k", idempotency_key="k", resume=resume) as again:
        await again.feed("once more")
    assert (again.replayed, again.message) == (True, whole)


# --- A connection that is cut -----------------------------------------------------------------------------------------


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[Proxy]:
    async with proxied(pg_database.url) as running:
        yield running


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("ending", ["write", "complete"])
@pytest.mark.parametrize("trip", [1, 2])
async def test_a_cut_connection_costs_a_draft_nothing(
    proxy: Proxy, where: Literal["before", "after"], ending: str, trip: int
) -> None:
    """At either round trip: a statement that is new to a connection is prepared in one of its own."""
    async with Ledger.open(proxy.url) as ledger:
        await ledger.threads.create(THREAD)
        async with ledger.messages.stream(THREAD, pace=Pace(interval=0, lease=LEASE)) as draft:
            await draft.feed("Sun")
            await draft.flush()
            if ending == "write":
                proxy.cut(where, trip)
                await draft.feed("ny")
                assert proxy.spare() or trip == 2
            await draft.feed(ToolCallDelta(index=0, id="a", name="f", arguments="{}"))
            if ending == "complete":
                await draft.flush()
                proxy.cut(where, trip)
                whole = await draft.complete()
                assert proxy.spare()
        history = (await ledger.messages.history(THREAD)).messages
        assert history == [draft.message]
        assert [one.state for one in history] == ["complete"]
        assert draft.message.text == ("Sunny" if ending == "write" else whole.text)
        assert draft.message.tool_calls == [ToolCall(id="a", name="f", arguments="{}")]


async def test_a_draft_stays_partial_if_the_database_stays_away(proxy: Proxy, pg_database: Database) -> None:
    async with Ledger.open(proxy.url) as ledger, pg_database.open() as other:
        await ledger.threads.create(THREAD)
        set_limits(ledger, timeout=0.5)
        with pytest.raises(StorageError):
            async with ledger.messages.stream(THREAD, pace=Pace(interval=0, lease=LEASE)) as draft:
                await draft.feed("Sun")
                proxy.down = True
                proxy.cut("before", 1)
                await draft.feed("ny")
                await draft.feed(".")
        (left,) = await other.drafts.list()
        assert (await other.messages.history(THREAD)).draft.text == "Sun"
        assert await other.drafts.interrupt(left)


async def test_a_draft_that_was_interrupted_as_abandoned_is_lost(ledger: Ledger, database: Database) -> None:
    """Its process was stopped for longer than its lease, and somebody went on without it."""
    await ledger.threads.create(THREAD)
    async with database.open() as other:
        with pytest.raises(DraftLost):
            async with other.messages.stream(THREAD, pace=Pace(interval=LEASE / 2, lease=LEASE)) as draft:
                (found,) = await ledger.drafts.list()
                assert await ledger.drafts.interrupt(found)
                await draft.feed("too late")
    assert [message.state for message in await ledger.messages.history(THREAD)] == ["interrupted"]
