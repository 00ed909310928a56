"""python -m benchmarks.profiled URL WORK SECONDS: calls for a profiler to look at; prints their median in ms."""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from benchmarks.turns import turns
from chatledger import Ledger, Newest, Oldest, Thread
from chatledger.repositories import scope_of
from chatledger.storage.repositories.bulk import load_threads, prepare_thread

THREAD = "profiled"
MESSAGES = 1_000


def works(ledger: Ledger) -> dict[str, Callable[[int], Awaitable[object]]]:
    stock = turns()
    return {
        "append": lambda number: ledger.messages.append(THREAD, stock[number % len(stock)].models),
        "load": lambda _: ledger.messages.history(THREAD, Oldest(MESSAGES, after=0), branch=0),
        "last": lambda _: ledger.messages.history(THREAD, Newest(50)),
    }


async def main(url: str, work: str, seconds: float) -> None:
    async with Ledger.open(url) as ledger:
        await _fill(ledger)
        call = works(ledger)[work]
        await call(0)
        gc.collect()
        gc.freeze()
        print(statistics.median(await measured(call, seconds)) * 1000)


async def _fill(ledger: Ledger) -> None:
    """By the bulk path, which no profiled call goes through."""
    if await ledger.threads.find(THREAD) is None:
        now, stock = datetime.now(UTC), turns()
        messages = [message for number in range(MESSAGES // 5) for message in stock[number % len(stock)].models]
        thread = Thread(thread_id=THREAD, created_at=now, active_at=now)
        await load_threads(scope_of(ledger), [prepare_thread(scope_of(ledger), thread, messages, rules="strict")])


async def measured(call: Callable[[int], Awaitable[object]], seconds: float) -> list[float]:
    """How long each call took."""
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.perf_counter()
        await call(len(times))
        times.append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
