"""The states that a follower with deltas tells beside the changes: abandoned drafts, and runs that start and end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from chatledger import Ledger, Pace
from chatledger.storage.databases import poller
from chatledger.storage.follow import follower
from chatledger.storage.follow.reported import MOST_OPEN
from chatledger.types import ThreadChange
from tests.conftest import Database
from tests.conversations import assistant, user
from tests.following import LONG, Reader

NEVER = 3_600.0


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "INTERVAL", 0.01)


@pytest.fixture
async def writer(database: Database) -> AsyncIterator[Ledger]:
    """Another process, as far as the follower knows."""
    async with database.open() as opened:
        await opened.messages.append("t", [user("?")], create=True)
        yield opened


def follow(ledger: Ledger, reader: Reader, *, deltas: bool = True) -> aclosing[AsyncGenerator[ThreadChange, None]]:
    return aclosing(ledger.messages.follow("t", cursor=reader.cursor, deltas=deltas))


def stream(ledger: Ledger, lease: float = 2 * NEVER, **options: Any) -> Any:
    return ledger.messages.stream("t", pace=Pace(interval=lease / 2, lease=lease), **options)


async def statuses(
    reader: Reader, changes: AsyncGenerator[ThreadChange, None], count: int
) -> list[tuple[str | None, str | None]]:
    """The next runs and their status. The changes before them are applied."""
    found: list[tuple[str | None, str | None]] = []
    async with asyncio.timeout(LONG):
        while len(found) < count:
            change = await anext(changes)
            reader.apply(change)
            if change.kind == "run":
                found.append((change.run_id, change.status))
    return found


# --- Abandoned drafts -------------------------------------------------------------------------------------------------


async def test_the_end_of_a_lease_is_told_once(ledger: Ledger, writer: Ledger) -> None:
    """Nobody writes anything then, so no poll finds it."""
    reader = await Reader.of(ledger, "t")
    async with follow(ledger, reader) as changes:
        draft = stream(writer, 0.5, idempotency_key="k")
        await draft.__aenter__()
        await reader.hear(changes, "appended")
        await draft._stop()
        change = await reader.hear(changes, "abandoned")
        assert (change.seq, change.message_id, change.message) == (2, draft.message.message_id, None)
        async with stream(writer, idempotency_key="k", resume=True) as taker:
            await taker.feed("Sunny.")
            await taker.flush()
            await reader.hear(changes, "grown")
            await taker.leave()
        await reader.hear(changes, "abandoned")
        await writer.messages.append("t", [user("next")])
        await reader.hear(changes, "completed", "appended")
    assert reader.has(await ledger.messages.history("t"))


async def test_a_follower_that_begins_is_told_what_is_abandoned(ledger: Ledger, writer: Ledger) -> None:
    async with stream(writer) as draft:
        await draft.leave()
    reader = await Reader.of(ledger, "t")
    for _ in range(2):
        async with follow(ledger, reader) as changes:
            await reader.hear(changes, "abandoned")
    reader.cursor = None
    async with follow(ledger, reader) as changes:
        await reader.hear(changes, "abandoned")


async def test_a_lease_that_is_renewed_does_not_end(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    async with follow(ledger, reader) as changes, stream(writer, 0.5) as draft:
        await reader.hear(changes, "appended")
        for _ in range(8):
            await asyncio.sleep(0.1)
            await draft.feed("more ")
            await draft.flush()
            await reader.hear(changes, "grown")


# --- Runs -------------------------------------------------------------------------------------------------------------


async def test_a_run_is_told_when_it_starts_and_when_it_ends(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    async with follow(ledger, reader) as changes:
        async with stream(writer, run_id="r") as draft:
            await draft.feed("Sunny.")
            await draft.flush()
            await reader.hear(changes, "appended")
            change = await reader.hear(changes, "grown" if reader.messages[-1].content is None else "run")
            if change.kind == "grown":
                change = await reader.hear(changes, "run")
            assert (change.run_id, change.status, change.seq, change.message) == ("r", "running", 2, None)
        await writer.runs.finish("r", status="completed")
        assert await statuses(reader, changes, 1) == [("r", "completed")]
    assert reader.has(await ledger.messages.history("t"))


async def test_a_follower_that_begins_is_told_the_newest_run(ledger: Ledger, writer: Ledger) -> None:
    for run in ("first", "second"):
        await writer.messages.append("t", [user("?"), assistant("!", run_id=run)])
    reader = await Reader.of(ledger, "t")
    for _ in range(2):
        async with follow(ledger, reader) as changes:
            assert await statuses(reader, changes, 1) == [("second", "running")]
    await writer.runs.finish("second", status="failed")
    reader.cursor = None
    async with follow(ledger, reader) as changes:
        assert await statuses(reader, changes, 1) == [("second", "failed")]
        await writer.messages.append("t", [user("next")])
        await reader.hear(changes, "appended")


async def test_no_run_is_lost_between_two_reads(ledger: Ledger, writer: Ledger) -> None:
    await writer.messages.append("t", [assistant("!", run_id="a")])
    reader = await Reader.of(ledger, "t")
    async with follow(ledger, reader) as changes:
        assert await statuses(reader, changes, 1) == [("a", "running")]
        async with writer.begin() as tx:
            await tx.runs.finish("a", status="completed")
            for run in ("b", "c"):
                await tx.messages.append("t", [user("?"), assistant("!", run_id=run)])
            await tx.runs.finish("b", status="failed")
        assert await statuses(reader, changes, 3) == [("a", "completed"), ("b", "failed"), ("c", "running")]
        async with writer.begin() as tx:
            for run in ("d", "e"):
                await tx.messages.append("t", [user("?"), assistant("!", run_id=run)])
        assert await statuses(reader, changes, 2) == [("d", "running"), ("e", "running")]
        for run in ("d", "c", "e"):
            await writer.runs.finish(run, status="completed")
            assert await statuses(reader, changes, 1) == [(run, "completed")]


async def test_the_messages_of_a_run_come_before_its_end(
    ledger: Ledger, writer: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "MOST", 2)
    reader = await Reader.of(ledger, "t")
    for _ in range(3):
        await writer.messages.append("t", [assistant("!", run_id="r"), user("?")])
    await writer.runs.finish("r", status="completed")
    async with follow(ledger, reader) as changes:
        await reader.hear(changes, *["appended"] * 6)
        change = await reader.hear(changes, "run")
    assert (change.run_id, change.status, change.seq) == ("r", "completed", 7)


async def test_a_run_that_the_ledger_cancelled_can_end_otherwise(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    async with follow(ledger, reader) as changes:
        async with stream(writer, run_id="r") as draft:
            assert await statuses(reader, changes, 1) == [("r", "running")]
            await draft.interrupt()
        assert await statuses(reader, changes, 1) == [("r", "cancelled")]
        await writer.runs.finish("r", status="completed")
        assert await statuses(reader, changes, 1) == [("r", "completed")]


async def test_a_run_of_the_branch_that_was_left_is_told_to_its_end(ledger: Ledger, writer: Ledger) -> None:
    await writer.messages.append("t", [user("Oslo?", message_id="q"), assistant("!", run_id="a")])
    reader = await Reader.of(ledger, "t")
    async with follow(ledger, reader) as changes:
        assert await statuses(reader, changes, 1) == [("a", "running")]
        await writer.messages.append("t", [assistant("?!", run_id="b")], reply_to="q")
        assert await statuses(reader, changes, 1) == [("b", "running")]
        await writer.runs.finish("a", status="cancelled")
        assert await statuses(reader, changes, 1) == [("a", "cancelled")]
    assert reader.has(await ledger.messages.history("t"))


async def test_the_open_runs_that_are_asked_for_are_few(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    async with follow(ledger, reader) as changes:
        runs = [f"r{number}" for number in range(MOST_OPEN + 2)]
        async with writer.begin() as tx:
            for run in runs:
                await tx.messages.append("t", [assistant("!", run_id=run), user("?")])
        assert await statuses(reader, changes, len(runs)) == [(run, "running") for run in runs]
        for run in runs:
            await writer.runs.finish(run, status="completed")
        reported = await statuses(reader, changes, MOST_OPEN)
    assert reported == [(run, "completed") for run in runs[2:]]


async def test_a_run_that_was_deleted_is_asked_for_no_more(
    ledger: Ledger, writer: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await writer.messages.append("t", [assistant("!", run_id="a")])
    reads = list[int]()
    original = follower.read_changes

    def counted(*given: Any, **named: Any) -> Any:
        reads.append(1)
        return original(*given, **named)

    monkeypatch.setattr(follower, "read_changes", counted)
    reader = await Reader.of(ledger, "t")
    async with follow(ledger, reader) as changes:
        assert await statuses(reader, changes, 1) == [("a", "running")]
        await writer.runs.delete("a")
        await asyncio.sleep(0.2)  # in which a follower that compares other states would read a dozen times
        await writer.messages.append("t", [user("next")])
        await reader.hear(changes, "appended")
    assert len(reads) <= 4


async def test_without_deltas_no_state_is_told(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    async with follow(ledger, reader, deltas=False) as changes:
        async with stream(writer, run_id="r") as draft:
            await draft.leave()
        await reader.hear(changes, "appended")
        await writer.runs.finish("r", status="completed")
        await writer.messages.append("t", [user("next")])
        await reader.hear(changes, "completed", "appended")


async def test_a_user_is_told_the_runs_of_the_own_thread_alone(ledger: Ledger, writer: Ledger) -> None:
    ada, bob = writer.user("ada"), writer.user("bob")
    for owner, thread in ((ada, "of ada"), (bob, "of bob")):
        await owner.messages.append(thread, [user("?"), assistant("!", run_id=f"run {thread}")], create=True)
    async with aclosing(ledger.user("ada").messages.follow("of ada", deltas=True)) as changes:
        assert (await anext(changes)).run_id == "run of ada"
        await bob.runs.finish("run of bob", status="completed")
        await ada.runs.finish("run of ada", status="failed")
        change = await anext(changes)
    assert (change.run_id, change.status) == ("run of ada", "failed")


async def test_all_followers_share_the_reads(ledger: Ledger, writer: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = list[int]()
    original = follower.read_changes

    def counted(*given: Any, **named: Any) -> Any:
        reads.append(1)
        return original(*given, **named)

    async def until_run_ends(reader: Reader) -> list[str]:
        async with follow(ledger, reader) as changes:
            async for change in changes:
                reader.apply(change)
                if change.status == "completed":
                    return [one.kind for one in reader.told]
        return []

    async with AsyncExitStack() as stack:
        readers = [await Reader.of(ledger, "t") for _ in range(40)]
        following = [asyncio.create_task(until_run_ends(reader)) for reader in readers]
        for task in following:
            stack.callback(task.cancel)
        async with asyncio.timeout(LONG):
            while len(ledger._scope.guard.poller()._waiting) < 40:  # type: ignore[union-attr] # noqa: ASYNC110
                await asyncio.sleep(0.01)
        monkeypatch.setattr(follower, "read_changes", counted)
        async with stream(writer, run_id="r") as draft:
            for number in range(10):
                await draft.feed(f"{number} ")
                await draft.flush()
        await writer.runs.finish("r", status="completed")
        reported = await asyncio.gather(*following)
    assert {tuple(kinds) for kinds in reported} == {tuple(reported[0])}
    assert len(reads) <= 2 * 13, "a write, the start, the end and the finish"
