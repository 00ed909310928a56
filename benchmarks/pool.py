"""python -m benchmarks.pool [--seconds N]: how long calls wait when there are more of them than connections.

Tasks read, list and begin transactions on PostgreSQL without a pause, more tasks than the pool has connections. If the
wait is fair, the slowest call takes little longer than a usual one. No call may fail.
"""

from __future__ import annotations

import argparse
import asyncio
import time

from tests.postgres import server

from benchmarks.ending import run_to_the_end
from benchmarks.machine import machine
from benchmarks.measure import Sample
from benchmarks.report import milliseconds
from chatledger import ChatMessage, Ledger, Newest, PostgreSQL, StorageError
from chatledger.admin import migrate

TASKS = 50
POOLS = ((4, 1), (5, 0), (16, 4), (20, 0))
SECONDS = 10.0
HEADINGS = ("pool", "tasks", "calls/s", "p50", "p99", "slowest", "failed")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pool", description="how long calls wait")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for each pool, by default {SECONDS:g}")
    seconds = parser.parse_args().seconds
    print(machine())
    with server() as running, running.database() as url:
        migrate(url)
        rows = [asyncio.run(measure(url, size, overflow, seconds)) for size, overflow in POOLS]
    for row in (HEADINGS, *rows):
        print("  ".join(cell.ljust(9) for cell in row).rstrip())
    return 0


async def measure(url: str, size: int, overflow: int, seconds: float) -> tuple[str, ...]:
    durations: list[float] = []
    failed = 0
    tasks = TASKS * (1 if size < 10 else 4)
    async with Ledger.open(url, postgresql=PostgreSQL(pool_size=size, max_overflow=overflow)) as ledger:
        await ledger.messages.append("t", [ChatMessage(role="user", content="x")], create=True)
        end = time.monotonic() + seconds

        async def work(number: int) -> None:
            nonlocal failed
            while time.monotonic() < end:
                number += 1
                since = time.perf_counter()
                try:
                    await call(ledger, number % 3)
                except StorageError:
                    failed += 1
                durations.append(time.perf_counter() - since)

        await asyncio.gather(*(work(number) for number in range(tasks)))
    sample = Sample(durations)
    ordered = sorted(durations)
    slow = (sample.median, ordered[len(ordered) * 99 // 100], ordered[-1])
    calls = f"{len(durations) / seconds:,.0f}"
    return (f"{size} + {overflow}", str(tasks), calls, *map(milliseconds, slow), str(failed))


async def call(ledger: Ledger, way: int) -> None:
    """Each way to a connection."""
    if way == 0:
        await ledger.messages.history("t", Newest(1))
    elif way == 1:
        await ledger.threads.count()
    else:
        async with ledger.begin() as tx:
            await tx.threads.find("t")


if __name__ == "__main__":
    run_to_the_end(main)
