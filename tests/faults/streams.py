"""Streamers killed at random moments: what was written stays, no more than the last interval is lost, and the thread
goes on.
"""

from __future__ import annotations

import asyncio
import random
import threading

import pytest

from chatledger import ChatMessage, Ledger, Newest
from chatledger.errors import DraftLive
from chatledger.repositories.history import with_draft
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import user
from tests.faults.checker import Figures
from tests.faults.client import Client, nursery
from tests.faults.streamer import THREAD, word

SIZE = 40
LEASE = 3_600.0


async def kill_streamers(database: Database, *, kills: int, seed: int) -> Figures:
    """One after the other on one thread. They write by size alone, so that what may be lost can be counted."""
    chance = random.Random(seed)
    async with database.open() as ledger:
        await ledger.threads.create(THREAD)
        with nursery() as streamers:
            for number in range(kills):
                await ledger.messages.append(THREAD, [user("?")])
                streamer = streamers.stream(database.url, f"k{number}", interval=LEASE / 2, size=SIZE, lease=LEASE)
                told = await asyncio.to_thread(kill_after, streamer, chance.randrange(1, 40), chance.uniform(0, 0.1))
                await _take_over(ledger, *told)
        await ledger.messages.append(THREAD, [user("next")])
        states = [message.state for message in await ledger.messages.history(THREAD)]
        assert [state for state in states if state != "synthetic"] == ["complete", "interrupted"] * kills + ["complete"]
        assert {found.rule for found in await findings_of(ledger, THREAD)} <= {"R9", "R13"}  # half of the arguments
    return Figures(acknowledged=kills + 1, faults=kills)


async def _take_over(ledger: Ledger, fed: int, stored: int) -> None:
    """From a dead one whose lease is not over: it could be alive, so nothing but `interrupt` goes past it."""
    _require_kept(with_draft(await ledger.messages.history(THREAD, Newest(20)))[-1], fed, stored)
    (left,) = await ledger.drafts.list()
    with pytest.raises(DraftLive):
        await ledger.messages.append(THREAD, [user("next")])
    async with asyncio.timeout(10):  # what the dead writer had sent may come in only now
        while not await ledger.drafts.interrupt(left):
            (left,) = await ledger.drafts.list()


def kill_after(streamer: Client, words: int, seconds: float) -> tuple[int, int]:
    """How many words it had fed, and how many it knew to be written, when it was killed."""
    told = [streamer.said.readline() for _ in range(words)]
    timer = threading.Timer(seconds, streamer.kill)
    timer.start()
    told += streamer.said.readlines()  # to the end of the pipe, which is that of the process
    timer.join()
    fed, stored = [line for line in told if line.endswith("\n")][-1].split()
    return int(fed), int(stored)


def _require_kept(left: ChatMessage, fed: int, stored: int) -> None:
    """A beginning of what was fed, not shorter than what was known to be written nor than all but the last interval."""
    words = left.text.count(" ")
    assert left.text == "".join(word(number) for number in range(words))
    written = left.tool_calls[0].arguments if left.tool_calls else ""  # killed before the first write: no call
    assert isinstance(written, str)
    arguments = written.count(" ")
    assert written == "".join(word(number) for number in range(arguments))
    assert words - 1 <= arguments <= words
    assert words >= stored, f"{words} words are there, and {stored} were known to be written"
    last_interval = sum(2 * len(word(number)) for number in range(words, fed))
    assert last_interval <= SIZE + 2 * len(word(fed)), f"{last_interval} characters are lost"
