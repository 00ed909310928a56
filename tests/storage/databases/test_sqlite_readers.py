"""The threads that read a SQLite file: one is enough for one read at a time, and several reads run at the same time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chatledger import ChatMessage, Ledger, Tokens
from chatledger.storage.databases.sqlite.database import READERS
from tests.conversations import user


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    async with Ledger.open(tmp_path / "a.db") as opened:
        await opened.threads.create("t")
        await opened.messages.append("t", [user("?")])
        yield opened


def readers() -> int:
    return sum(one.name.startswith("chatledger-reader") for one in threading.enumerate())


async def test_reads_one_after_the_other_use_one_thread(ledger: Ledger) -> None:
    for _ in range(50):
        await ledger.messages.history("t")
    assert readers() == 1


async def test_reads_at_the_same_time_run_in_a_thread_each(ledger: Ledger) -> None:
    together = threading.Barrier(READERS)

    def count(_message: ChatMessage) -> int:
        together.wait(timeout=30)  # raises unless as many threads as readers are here
        return 1

    reads = [ledger.messages.history("t", Tokens(5, count)) for _ in range(READERS)]
    assert [len(one) for one in await asyncio.gather(*reads)] == [1] * READERS
    assert readers() == READERS
