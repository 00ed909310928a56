"""Clocks and medians. Contenders take turns call by call, so that a noisy second falls on all of them."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

K = TypeVar("K")

Call = Callable[[int], Awaitable[object]]
"""One measured call; it is told which round this is."""

BLOCKS = 5
"""A ratio is also taken in so many stretches of the run; their lowest and highest say how far to trust it."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often a case is repeated: that many rounds, or fewer where they take longer than `seconds`.

    `alone`: what others left to the garbage collector is collected before each call, so that a call that makes
    thousands of objects pays for its own only.
    """

    count: int
    seconds: float
    warm_up: int = 20
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """Durations in seconds, in the order of the rounds. `cpu`: the CPU time of this process, where it was measured."""

    times: Sequence[float]
    cpu: Sequence[float] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def spread(self) -> float:
        """The middle half of all durations, as a part of the median."""
        first, _, third = statistics.quantiles(self.times, n=4)
        return (third - first) / self.median

    def percentile(self, percent: int) -> float:
        return statistics.quantiles(self.times, n=100, method="inclusive")[percent - 1]

    def ratio(self, other: Sample) -> Ratio:
        pairs = zip(stretches(self.times), stretches(other.times), strict=True)
        parts = [statistics.median(own) / statistics.median(others) for own, others in pairs]
        return Ratio(self.median / other.median, min(parts), max(parts))


@dataclass(frozen=True, slots=True)
class Ratio:
    value: float
    low: float
    high: float


def stretches(times: Sequence[float]) -> list[Sequence[float]]:
    """Parts of the run in order, of equal length."""
    count = min(BLOCKS, len(times))
    size = len(times) // count
    return [times[size * block : size * (block + 1)] for block in range(count)]


async def race(
    calls: Mapping[K, Call], rounds: Rounds, *, prepare: Mapping[K, Call] = MappingProxyType({})
) -> dict[K, Sample]:
    """Each call once a round, always in the same order; round numbers are never given twice.

    `prepare` runs before the call of that name, and is not measured.
    """
    times: dict[K, list[float]] = {name: [] for name in calls}
    cpu: dict[K, list[float]] = {name: [] for name in calls}
    for number in range(rounds.warm_up):
        for name, call in calls.items():
            await prepare.get(name, _nothing)(number)
            await call(number)
    gc.collect()
    gc.freeze()
    end = time.monotonic() + rounds.seconds
    for number in range(rounds.warm_up, rounds.warm_up + rounds.count):
        for name, call in calls.items():
            await prepare.get(name, _nothing)(number)
            if rounds.alone:
                gc.collect()
            cpu_start, start = time.process_time(), time.perf_counter()
            await call(number)
            times[name].append(time.perf_counter() - start)
            cpu[name].append(time.process_time() - cpu_start)
        if time.monotonic() > end and len(times[name]) >= 2 * BLOCKS:
            break
    return {name: Sample(own, cpu[name]) for name, own in times.items()}


async def _nothing(_number: int) -> None:
    pass


# --- Many writers at once ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Throughput:
    """What writers did together: calls a second in each slice, and how long each call took."""

    rates: Sequence[float]
    latencies: Sample
    failed: int

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)


async def race_crowds(
    crowds: Mapping[K, Sequence[Call]],
    *,
    slices: int,
    seconds: float,
    rate: int = 5_000,
    prepare: Mapping[K, Call] = MappingProxyType({}),
) -> dict[K, Throughput]:
    """Each crowd works for a slice while the others rest, in turns; a slice also ends after
    `rate` calls for each of its seconds.

    `prepare` of that name runs before each slice with the most calls that the slice can have, and is not measured.
    """
    calls = round(rate * seconds)
    seen: dict[K, list[_Slice]] = {name: [] for name in crowds}
    for number in range(slices + 1):
        for name, crowd in crowds.items():
            await prepare.get(name, _nothing)(calls + len(crowd))
            gc.collect()
            gc.freeze()
            done = await _slice(crowd, seconds if number else seconds / 3, calls)
            if number:  # the first slice warms up
                seen[name].append(done)
    return {name: _together(parts) for name, parts in seen.items()}


@dataclass(slots=True)
class _Slice:
    times: list[float]
    failed: int = 0
    elapsed: float = 0.0


async def _slice(crowd: Sequence[Call], seconds: float, calls: int) -> _Slice:
    done = _Slice([])
    start = time.perf_counter()
    end = start + seconds
    await asyncio.gather(*(_work(call, done, end, calls) for call in crowd))
    done.elapsed = time.perf_counter() - start
    return done


async def _work(call: Call, done: _Slice, end: float, calls: int) -> None:
    while len(done.times) + done.failed < calls and (start := time.perf_counter()) < end:
        try:
            await call(len(done.times))
        except Exception:  # counted: a figure is worth nothing where appends fail
            done.failed += 1
        else:
            done.times.append(time.perf_counter() - start)


def _together(parts: Sequence[_Slice]) -> Throughput:
    times = [duration for part in parts for duration in part.times]
    return Throughput([len(part.times) / part.elapsed for part in parts], Sample(times), sum(p.failed for p in parts))
