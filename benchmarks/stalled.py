"""python -m benchmarks.stalled [--seconds N]: appends to free threads while a foreign transaction locks other threads.

Tasks append without a pause, each to a thread of its own, on the default pool. First only those whose threads stay
free; then all of them, while another transaction holds the rows of the other branches. The free ones should keep at
least half of their rate. Server processes and those that wait for a lock are counted twice a second.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress

import asyncpg
from tests.postgres import server

from benchmarks.ending import run_to_the_end
from benchmarks.machine import machine
from chatledger import ChatLedgerError, ChatMessage, Ledger
from chatledger.admin import migrate

THREADS, LOCKED = 60, 34
SECONDS = 15.0
LOCK = f"SELECT FROM chatledger.branches WHERE thread_id < 't{LOCKED}' FOR UPDATE"
BACKENDS = """
SELECT count(*), count(*) FILTER (WHERE wait_event_type = 'Lock') FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'chatledger'
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stalled", description="appends beside stalled threads")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for each part, by default {SECONDS:g}")
    seconds = parser.parse_args().seconds
    logging.disable(logging.CRITICAL)  # each append that is locked out is logged
    print(machine())
    with server() as running, running.database() as url:
        migrate(url)
        asyncio.run(measure(url, seconds))
    return 0


async def measure(url: str, seconds: float) -> float:
    """The rate of the free threads beside the locked ones, as a part of their rate alone."""
    numbers = range(THREADS)
    async with Ledger.open(url) as ledger:
        for number in numbers:
            await _append(ledger, number, create=True)
        alone = await _rate(url, ledger, numbers[LOCKED:], seconds)
        other = await asyncpg.connect(url, server_settings={"application_name": "another"})
        async with other.transaction():
            await other.execute(LOCK)
            beside = await _rate(url, ledger, numbers, seconds)
        await other.close()
    ratio = beside / alone
    print(f"{THREADS - LOCKED} threads: {alone:,.0f}/s alone, {beside:,.0f}/s beside {LOCKED} locked: {ratio:.2f}")
    return ratio


async def _rate(url: str, ledger: Ledger, numbers: Sequence[int], seconds: float) -> float:
    """Appends to the free threads a second, while tasks append to all of these."""
    done = 0

    async def work(number: int) -> None:
        nonlocal done
        while True:
            with suppress(ChatLedgerError):
                await _append(ledger, number)
                done += number >= LOCKED

    tasks = [asyncio.create_task(work(number)) for number in numbers]
    most = await _watch(url, time.monotonic() + seconds)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    print(f"{len(numbers)} tasks: at most {most[0]} server processes, at most {most[1]} of them waiting for a lock")
    return done / seconds


async def _watch(url: str, end: float) -> tuple[int, int]:
    watch = await asyncpg.connect(url, server_settings={"application_name": "watch"})
    seen = []
    while time.monotonic() < end:
        await asyncio.sleep(0.5)
        seen.append(await watch.fetchrow(BACKENDS))
    await watch.close()
    return max(count for count, _ in seen), max(waiting for _, waiting in seen)


async def _append(ledger: Ledger, number: int, *, create: bool = False) -> None:
    await ledger.messages.append(f"t{number:02}", [ChatMessage(role="user", content="x")], create=create)


if __name__ == "__main__":
    run_to_the_end(main)
