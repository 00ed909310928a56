"""A draft whose process is killed, or whose connection is: what was written stays, and the thread goes on."""

from __future__ import annotations

import asyncio
import random
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Literal

import pytest

from chatledger import ChatMessage, DraftLost, Ledger, RuleViolation, StorageError, ToolCall, ToolCallDelta
from tests.conftest import Database
from tests.conversations import user
from tests.faults.proxy import Proxy, proxied
from tests.faults.streamer import THREAD, start_process, word

KILLS = 4
SIZE = 40
LEASE = 3_600.0

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(database: Database) -> Iterator[Start]:
    """Starts streamers, of which none is left running. They write by size alone, so that what may be lost can be
    counted.
    """
    started: list[subprocess.Popen[str]] = []

    def one(run: str, *, interval: float = LEASE / 2, lease: float = LEASE) -> subprocess.Popen[str]:
        started.append(start_process(database.url, run, interval=interval, size=SIZE, lease=lease))
        return started[-1]

    yield one
    for process in started:
        process.kill()
        process.communicate()


def kill_after(process: subprocess.Popen[str], words: int, seconds: float) -> tuple[int, int]:
    """How many words it had fed, and how many it knew to be written, when it was killed."""
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(words)]
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    told += process.stdout.readlines()  # to the end of the pipe, which is that of the process
    timer.join()
    assert process.wait() == -9
    fed, stored = [line for line in told if line.endswith("\n")][-1].split()
    return int(fed), int(stored)


async def test_a_killed_streamer_loses_no_more_than_its_last_interval(ledger: Ledger, start: Start) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    await ledger.threads.create(THREAD)
    for number in range(KILLS):
        await ledger.messages.append(THREAD, [user("?")])
        fed, stored = kill_after(start(f"k{number}"), chance.randrange(1, 40), chance.uniform(0, 0.1))
        assert_kept((await ledger.messages.history(THREAD)).messages[-1], fed, stored)
        (left,) = await ledger.partials.list()
        with pytest.raises(RuleViolation, match="R10"):  # its lease is not over: it could be alive
            await ledger.messages.append(THREAD, [user("next")])
        async with asyncio.timeout(10):  # what the dead writer had sent may come in only now
            while not await ledger.partials.interrupt(left):
                (left,) = await ledger.partials.list()
    await ledger.messages.append(THREAD, [user("next")])
    states = [message.state for message in await ledger.messages.history(THREAD)]
    assert [state for state in states if state != "synthetic"] == ["complete", "interrupted"] * KILLS + ["complete"]
    assert {finding.rule for finding in await ledger.threads.check(THREAD)} <= {"R9", "R13"}  # half of the arguments


def assert_kept(left: ChatMessage, fed: int, stored: int) -> None:
    """A beginning of what was fed, not shorter than what was known to be written nor than all but the last interval."""
    words = left.text.count(" ")
    assert left.text == "".join(word(number) for number in range(words))
    written = left.tool_calls[0].arguments if left.tool_calls else ""  # killed before the first write: no call
    assert isinstance(written, str)
    arguments = written.count(" ")
    assert written == "".join(word(number) for number in range(arguments))
    assert words - 1 <= arguments <= words
    assert words >= stored
    last_interval = sum(2 * len(word(number)) for number in range(words, fed))
    assert last_interval <= SIZE + 2 * len(word(fed))


async def test_behind_a_killed_streamer_a_plain_append_succeeds_once_its_lease_is_over(
    ledger: Ledger, start: Start
) -> None:
    await ledger.threads.create(THREAD)
    kill_after(start("k", interval=0.01, lease=0.05), 5, 0.01)
    async with asyncio.timeout(10):
        while not await ledger.partials.abandoned():
            pass
    await ledger.messages.append(THREAD, [user("hello?")])
    states = [message.state for message in await ledger.messages.history(THREAD)]
    assert [state for state in states if state != "synthetic"] == ["interrupted", "complete"]  # its call, if it was in
    assert await ledger.partials.list() == []


# --- A connection that is cut -----------------------------------------------------------------------------------------


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[Proxy]:
    async with proxied(pg_database.url) as running:
        yield running


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("ending", ["write", "complete"])
async def test_a_cut_connection_costs_a_draft_nothing(
    proxy: Proxy, where: Literal["before", "after"], ending: str
) -> None:
    async with Ledger.open(proxy.url) as ledger:
        await ledger.threads.create(THREAD)
        async with ledger.stream(THREAD, interval=0, lease=LEASE) as draft:
            await draft.feed("Sun")
            await draft.flush()
            if ending == "write":
                proxy.cut(where, 1)
                await draft.feed("ny")
                assert proxy.spare()
            await draft.feed(ToolCallDelta(index=0, id="a", name="f", arguments="{}"))
            if ending == "complete":
                await draft.flush()
                proxy.cut(where, 1)
                whole = await draft.complete()
                assert proxy.spare()
        history = (await ledger.messages.history(THREAD)).messages
        assert history == [draft.message]
        assert [one.state for one in history] == ["complete"]
        assert draft.message.text == ("Sunny" if ending == "write" else whole.text)
        assert draft.message.tool_calls == [ToolCall(id="a", name="f", arguments="{}")]


async def test_a_database_that_stays_away_leaves_the_draft_to_be_found(
    proxy: Proxy, pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatledger.storage.drafts.PATIENCE", 0.5)
    async with Ledger.open(proxy.url) as ledger, pg_database.open() as other:
        await ledger.threads.create(THREAD)
        with pytest.raises(StorageError):
            async with ledger.stream(THREAD, interval=0, lease=LEASE) as draft:
                await draft.feed("Sun")
                proxy.down = True
                proxy.cut("before", 1)
                await draft.feed("ny")
                await draft.feed(".")
        (left,) = await other.partials.list()
        assert (await other.messages.history(THREAD)).messages[-1].text == "Sun"
        assert await other.partials.interrupt(left)


async def test_a_draft_that_was_taken_for_abandoned_says_so(ledger: Ledger, database: Database) -> None:
    """Its process was stopped for longer than its lease, and somebody went on without it."""
    await ledger.threads.create(THREAD)
    async with database.open() as other:
        with pytest.raises(DraftLost):
            async with other.stream(THREAD, interval=LEASE / 2, lease=LEASE) as draft:
                (found,) = await ledger.partials.abandoned(older_than=0)
                assert await ledger.partials.interrupt(found)
                await draft.feed("too late")
    assert [message.state for message in await ledger.messages.history(THREAD)] == ["interrupted"]
