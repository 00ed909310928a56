"""What `iterate` holds of a long thread: the peak of all that Python allocates, beside that for a short one."""

from __future__ import annotations

import gc
import tracemalloc

from benchmarks.progress import say
from benchmarks.report import Row, Target
from chatledger import Ledger

TARGET = Target(1.25)


async def memory_rows(url: str, short: str, long: str) -> list[Row]:
    """`short` and `long` are threads; both have more than one page."""
    say("memory of iterate()")
    async with Ledger.open(url) as ledger:
        await _peak(ledger, short)  # what is loaded and compiled by a first call is not of a thread
        base, _ = await _peak(ledger, short)
        peak, count = await _peak(ledger, long)
    ratio = peak / base
    case = "memory of iterate()"
    return [
        Row(case, "over 1,000 messages", f"{base / 1e6:.2f} MB", ratio="1"),
        Row(case, f"over {count:,}", f"{peak / 1e6:.2f} MB", ratio=f"{ratio:.2f}", target=TARGET, judged=ratio),
    ]


async def _peak(ledger: Ledger, thread: str) -> tuple[int, int]:
    """Bytes at the worst moment, and messages seen."""
    gc.collect()
    tracemalloc.start()
    count = 0
    async for _ in ledger.messages.iterate(thread):
        count += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, count
