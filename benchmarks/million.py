"""A thread of a million messages, and among so many messages the first append to threads that have rested.

A thread has rested if the process that writes to it has not touched it yet: nobody remembers its tip. Each rested
thread is used once.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.cases import (
    LAST_TARGET,
    OURS,
    SERVICE,
    Contender,
    Extent,
    append,
    append_rows,
    grow,
    growth_rows,
    last_rows,
    plan_appends,
    race_service,
    service_append_rows,
)
from benchmarks.measure import race
from benchmarks.memory import memory_rows
from benchmarks.progress import say
from benchmarks.report import Row, Target, sample_rows
from benchmarks.seed import Plan
from chatledger import Ledger

SHORT = 1_000
RESTED = 100
"""Messages of a rested thread."""
PASSES = 20
"""Over the short thread, which gives the pace that the giant one is compared with."""


Lengths = Mapping[int, Sequence[str]]
"""Threads of one contender by length: empty ones, and the giant."""


@dataclass(frozen=True, slots=True)
class Rested:
    """Threads of one contender, one for each call of either case."""

    plain: Sequence[str]
    service: Sequence[str]


def plan_giant(plan: Plan, extent: Extent) -> Lengths:
    return plan_appends(plan, replace(extent, lengths=(0, extent.giant)))


def plan_rested(plan: Plan, extent: Extent) -> Rested:
    calls = extent.rounds.count + extent.rounds.warm_up
    return Rested(plan.threads(RESTED, calls), plan.threads(RESTED, calls))


async def read_rows(
    readers: Mapping[str, Contender], url: str, short: str, giant: str, extent: Extent, reference: str
) -> list[Row]:
    """The end of the giant thread, then the whole of it page by page. `short` is a thread of SHORT messages."""
    return [
        *await last_rows(readers, giant, extent.giant, extent, reference, {OURS: LAST_TARGET}),
        *await _pace_rows(url, short, giant),
        *await memory_rows(url, short, giant),
    ]


async def _pace_rows(url: str, short: str, giant: str) -> list[Row]:
    """Messages a second, of ours alone: no bare store has such a call."""
    say("iterate()")
    async with Ledger.open(url) as ledger:
        await _pace(ledger, short)
        base = statistics.median([(await _pace(ledger, short))[0] for _ in range(PASSES)])
        rate, count = await _pace(ledger, giant)
    return [
        Row("iterate()", f"over {SHORT:,} messages", f"{base:,.0f}/s", ratio="1"),
        Row("iterate()", f"over {count:,}", f"{rate:,.0f}/s", ratio=f"{rate / base:.2f}"),
    ]


async def _pace(ledger: Ledger, thread: str) -> tuple[float, int]:
    """Messages a second, and messages."""
    count, start = 0, time.perf_counter()
    async for _ in ledger.messages.iterate(thread):
        count += 1
    return count / (time.perf_counter() - start), count


async def giant_rows(
    contenders: Mapping[str, Contender],
    threads: Mapping[str, Lengths],
    extent: Extent,
    reference: str,
    *,
    append: Target,
    service: Target,
    growth: Target,
) -> list[Row]:
    """Appends to the giant thread, which everybody has met."""
    grown = await grow(contenders, threads, extent.rounds)
    giants = {who: own[extent.giant] for who, own in threads.items()}
    return [
        *append_rows(grown, reference, append),
        *growth_rows(grown, growth),
        *await service_append_rows(contenders, giants, extent, reference, service, length=extent.giant),
    ]


async def rested_rows(
    contenders: Mapping[str, Contender], threads: Mapping[str, Rested], extent: Extent, reference: str
) -> list[Row]:
    """First appends by contenders that were just opened, and know no tip."""
    case = "first append to a rested thread"
    say(case)
    plain = {who: partial(append, contender, threads[who].plain) for who, contender in contenders.items()}
    own = {who: one.service for who, one in threads.items()}
    return [
        *sample_rows(case, await race(plain, extent.rounds), reference),
        *sample_rows(f"{case}, {SERVICE}", await race_service(contenders, own, extent.rounds), reference),
    ]
