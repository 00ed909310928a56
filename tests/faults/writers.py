"""Sixteen writers on one, a few or many threads, with readers between them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime

from chatledger import Thread
from chatledger.repositories import scope_of
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from tests.conftest import Database
from tests.faults.batches import thread_ids
from tests.faults.checker import Figures, verdict
from tests.faults.recording import Recorder, Recording

WRITERS = 16
READS = 0.05
"""Reads for each append."""


async def write_group(database: Database, *, threads: int, appends: int, seed: int, ledgers: int = 2) -> Figures:
    """That many appends by sixteen tasks over two ledgers. Each ledger makes the cached tips of the other stale."""
    chance = random.Random(seed)
    names = thread_ids(seed, threads)
    recording = Recording()
    numbers = iter(range(appends))
    opened = [await database.open() for _ in range(ledgers)]
    try:
        now = datetime.now(UTC)
        new = [Thread(thread_id=name, created_at=now, active_at=now) for name in names]
        await load_threads(scope_of(opened[0]), [prepare_thread(scope_of(opened[0]), thread, []) for thread in new])
        recorders = [Recorder(ledger, recording) for ledger in opened]
        await asyncio.gather(
            *(
                _write(recorders[writer % ledgers], f"w{seed}-{writer}", names, numbers, random.Random(chance.random()))
                for writer in range(WRITERS)
            )
        )
        return await verdict(database, opened[0], names, recording, seed=seed)
    finally:
        for ledger in opened:
            await ledger.close()


async def _write(
    recorder: Recorder, writer: str, threads: list[str], numbers: Iterator[int], chance: random.Random
) -> None:
    for number in numbers:
        await recorder.work(f"{writer}.{number}", chance.choice(threads), chance)
        if chance.random() < READS:
            await recorder.read(chance.choice(threads), last=50)
