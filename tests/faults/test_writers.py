"""Sixteen writers of one branch: every acknowledged turn is there once, positions are dense, turns are contiguous."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from chatledger import ChatMessage, Ledger, Newest, VersionConflict
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import turn
from tests.faults.writer import THREAD, TURN, Acknowledged, append_turns, assert_whole, read_line, start_process, work

WRITERS, TURNS = 16, 12


@pytest.fixture
async def reader(ledger: Ledger) -> Ledger:
    await ledger.threads.create(THREAD)
    return ledger


async def assert_all_stored(reader: Ledger, acknowledged: list[Acknowledged]) -> None:
    assert len({name for name, _, _ in acknowledged}) == WRITERS * TURNS
    history = await reader.messages.history(THREAD)
    assert history.last_seq == WRITERS * TURNS * TURN
    assert_whole(history.messages, acknowledged)
    assert await findings_of(reader, THREAD) == []
    assert (await reader.threads.get(THREAD)).message_count == history.last_seq


async def test_writers_on_one_thread(database: Database, reader: Ledger) -> None:
    acknowledged: list[Acknowledged] = []
    await work(database.url, "w", WRITERS, TURNS, acknowledged.append)
    await assert_all_stored(reader, acknowledged)


async def test_writers_on_threads_of_their_own(database: Database, reader: Ledger) -> None:
    def run(number: int) -> list[Acknowledged]:
        told: list[Acknowledged] = []
        asyncio.run(work(database.url, f"w{number}", 1, TURNS, told.append))
        return told

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(WRITERS) as threads:
        told = await asyncio.gather(*(loop.run_in_executor(threads, run, number) for number in range(WRITERS)))
    await assert_all_stored(reader, [one for own in told for one in own])


async def test_writers_in_processes_of_their_own(database: Database, reader: Ledger) -> None:
    processes = [start_process(database.url, f"p{n}", tasks=WRITERS // 4, turns=TURNS) for n in range(4)]
    outputs = await asyncio.gather(*(asyncio.to_thread(process.communicate) for process in processes))
    assert [process.returncode for process in processes] == [0] * 4
    await assert_all_stored(reader, [read_line(line) for out, _ in outputs for line in out.splitlines()])


async def test_writers_that_share_a_ledger_and_expect_a_mark(reader: Ledger) -> None:
    """Optimistic writers: a writer that loses reads again; in the end each has written once."""

    async def insist(name: str) -> Acknowledged:
        while True:
            seen = await reader.messages.history(THREAD, Newest(0))
            with contextlib.suppress(VersionConflict):
                stored = await reader.messages.append(THREAD, turn(ids=f"{name}/"), expected=seen.mark)
                assert stored.messages[0].seq == seen.last_seq + 1
                return name, stored.messages[0].seq, stored.last_seq

    acknowledged = await asyncio.gather(*(insist(f"w{number}") for number in range(8)))
    assert_whole((await reader.messages.history(THREAD)).messages, acknowledged)


async def test_cancelled_writers_leave_whole_turns_and_a_ledger_that_works(reader: Ledger) -> None:
    acknowledged: list[Acknowledged] = []
    for group in range(4):
        writers = [
            asyncio.create_task(append_turns(reader, f"c{group}-{number}", TURNS, acknowledged.append))
            for number in range(WRITERS)
        ]
        before = len(acknowledged)
        while len(acknowledged) == before:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.001)
        for writer in writers:
            writer.cancel()
        outcomes = await asyncio.gather(*writers, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {asyncio.CancelledError}
        assert_whole((await reader.messages.history(THREAD)).messages, acknowledged)
    await reader.messages.append(THREAD, turn(ids="after/"))
    assert await findings_of(reader, THREAD) == []


def placed(*ids: str) -> list[ChatMessage]:
    """The turns of these ids as a history gives them."""
    messages = [message for one in ids for message in turn(ids=f"{one}/")]
    return [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]


@pytest.mark.parametrize(
    ("messages", "acknowledged"),
    [
        (placed("a"), [("a", 1, 5), ("b", 6, 10)]),
        (placed("a", "b"), [("a", 6, 10), ("b", 1, 5)]),
        (placed("a", "a"), [("a", 1, 5)]),
        (placed("a", "b")[:-1], [("a", 1, 5)]),
        (placed("a", "b")[5:], [("b", 6, 10)]),
        ([*placed("a", "b")[:3], *placed("b", "a")[3:]], []),
    ],
    ids=["lost", "elsewhere", "twice", "in half", "not dense", "mixed"],
)
def test_the_proof_can_fail(messages: list[ChatMessage], acknowledged: list[Acknowledged]) -> None:
    assert_whole(placed("a", "b"), [("a", 1, 5), ("b", 6, 10)])
    with pytest.raises(AssertionError):
        assert_whole(messages, acknowledged)
