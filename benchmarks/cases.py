"""The cases that both databases share: what is called, on which threads, and what becomes of it as rows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

from benchmarks.measure import Call, Rounds, Sample, Throughput, race, race_crowds
from benchmarks.progress import say
from benchmarks.report import Row, Target, milliseconds, sample_rows, show_ratio, throughput_row
from benchmarks.seed import Plan
from benchmarks.turns import Turn, turns, with_own_ids
from chatledger import ChatMessage, ToolCall
from chatledger.ids import new_id
from chatledger.models.base import revive

OURS = "chatledger"
WRITERS = 16
LAST = 50
LAST_TARGET = Target(1.0)


class Contender(Protocol):
    async def meet(self, threads: Mapping[int, Sequence[str]]) -> None:
        """Threads by length, before the clock starts."""
        ...

    async def append(self, thread: str, turn: Turn, run: str | None = None) -> None:
        """With `run`, the turn is a run of that id."""
        ...

    async def load(self, thread: str) -> Sequence[Any]: ...

    async def last(self, thread: str, count: int) -> Sequence[Any]: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a run goes: how long threads get, and how often each case is repeated."""

    lengths: tuple[int, ...]
    rounds: Rounds
    loads: Rounds
    slices: int
    slice_seconds: float
    imports: Rounds
    starts: int
    size_turns: int
    threads: int
    giant: int
    """Messages of the giant thread; 0: the run has none."""

    @property
    def longest(self) -> int:
        return max(self.lengths)

    @property
    def loaded(self) -> Sequence[int]:
        """Lengths of the threads that are loaded whole, shortest first."""
        return sorted({50, 1_000, min(10_000, max(self.longest, 1_000)), max(self.longest, 1_000)})

    def far(self) -> Extent:
        """The same at a distance, where a call takes longer and varies less: fewer of each."""
        rounds, loads = (replace(one, count=one.count // 4, warm_up=3) for one in (self.rounds, self.loads))
        return replace(self, rounds=rounds, loads=loads, slices=max(2, self.slices // 2), slice_seconds=0.7)


SHORT = Extent(
    lengths=(0, 100, 1_000, 10_000),
    rounds=Rounds(count=200, seconds=20),
    loads=Rounds(count=60, seconds=5, warm_up=3, alone=True),
    slices=3,
    slice_seconds=1.0,
    imports=Rounds(count=3, seconds=12, warm_up=1, alone=True),
    starts=7,
    size_turns=1_200,
    threads=30_000,
    giant=0,
)
FULL = Extent(
    lengths=(0, 100, 1_000, 10_000, 100_000),
    rounds=Rounds(count=600, seconds=60),
    loads=Rounds(count=200, seconds=20, warm_up=5, alone=True),
    slices=7,
    slice_seconds=2.0,
    imports=Rounds(count=15, seconds=60, warm_up=1, alone=True),
    starts=15,
    size_turns=6_000,
    threads=300_000,
    giant=1_000_000,
)

Growth = dict[str, dict[int, Sample]]
"""By contender, the append at each length of the thread."""


@dataclass(slots=True)
class Outcome:
    """What some cases gave: rows for the table, and appends by length for the plots, by name."""

    title: str
    rows: list[Row] = field(default_factory=list)
    plots: dict[str, Growth] = field(default_factory=dict)


# --- Append -----------------------------------------------------------------------------------------------------------


def plan_appends(
    plan: Plan, extent: Extent, *, shared: Mapping[int, Sequence[str]] = MappingProxyType({})
) -> dict[int, Sequence[str]]:
    """Threads by length. Short ones are many, so that what a run adds does not make them long; long ones are those of
    an earlier case, where there is one.
    """
    calls = extent.rounds.count + extent.rounds.warm_up
    return {
        length: shared[length]
        if length >= 1_000 and length in shared
        else plan.threads(length, max(1, 4_000 // length) if length else calls)
        for length in extent.lengths
    }


async def grow(
    contenders: Mapping[str, Contender],
    threads: Mapping[str, Mapping[int, Sequence[str]]],
    rounds: Rounds,
    *,
    label: str = "",
) -> Growth:
    """All lengths of all contenders in one race, so that any two of them can be compared."""
    for who, contender in contenders.items():
        await contender.meet(threads[who])
    say(f"{label}append, at most {rounds.count} rounds")
    calls: dict[tuple[str, int], Call] = {
        (who, length): partial(append, contender, own)
        for length in next(iter(threads.values()))
        for who, contender in contenders.items()
        for own in (threads[who][length],)
    }
    samples = await race(calls, rounds)
    growth: Growth = {who: {} for who in contenders}
    for (who, length), sample in samples.items():
        growth[who][length] = sample
    return growth


async def append(contender: Contender, threads: Sequence[str], number: int) -> None:
    stock = turns()
    await contender.append(threads[number % len(threads)], stock[number % len(stock)])


SERVICE = "own ids and a run"
"""What services and adapters send with a turn."""


class Stock:
    """Turns with ids of their own, each with the id of its run, made before the clock starts."""

    def __init__(self) -> None:
        self._ready: deque[tuple[Turn, str]] = deque()
        self._made = 0

    async def fill(self, count: int) -> None:
        """Have at least `count` turns ready."""
        stock = turns()
        while len(self._ready) < count:
            self._ready.append((with_own_ids(stock[self._made % len(stock)]), new_id()))
            self._made += 1

    async def append(self, contender: Contender, threads: Sequence[str], number: int) -> None:
        await contender.append(threads[number % len(threads)], *self._ready.popleft())


async def race_service(
    contenders: Mapping[str, Contender], threads: Mapping[str, Sequence[str]], rounds: Rounds
) -> dict[str, Sample]:
    stocks = {who: Stock() for who in contenders}
    return await race(
        {who: partial(stocks[who].append, contender, threads[who]) for who, contender in contenders.items()},
        rounds,
        prepare={who: partial(_fill_by_one, stock) for who, stock in stocks.items()},
    )


async def _fill_by_one(stock: Stock, _number: int) -> None:
    await stock.fill(1)


async def service_append_rows(
    contenders: Mapping[str, Contender],
    threads: Mapping[str, Sequence[str]],
    extent: Extent,
    reference: str,
    target: Target,
    *,
    length: int = 1_000,
    label: str = "",
) -> list[Row]:
    """A turn with ids of the caller's own for its messages, and a run of its own, on warm threads of that length."""
    say(f"{label}append with {SERVICE}")
    case = f"{label}append with {SERVICE}, at {length:,}"
    samples = await race_service(contenders, threads, extent.rounds)
    return sample_rows(case, samples, reference, {OURS: target})


def append_rows(growth: Growth, reference: str, target: Target, *, label: str = "append") -> list[Row]:
    rows: list[Row] = []
    for length in growth[reference]:
        samples = {who: own[length] for who, own in growth.items()}
        rows += sample_rows(f"{label} at {length:,}", samples, reference, {OURS: target})
    return rows


def cpu_rows(growth: Growth, reference: str, target: Target, *, label: str = "") -> list[Row]:
    """The CPU time of this process alone, without the server's, in an append at 1,000. None is judged at a distance."""
    samples = {who: Sample(own[1_000].cpu) for who, own in growth.items()}
    targets = {} if label else {OURS: target}
    return sample_rows(f"{label}append at 1,000, CPU of the client", samples, reference, targets)


def growth_rows(growth: Growth, target: Target | None, *, label: str = "growth") -> list[Row]:
    """The append on the longest thread against the one on an empty thread, and against one of 100 messages."""
    rows = []
    for who, own in growth.items():
        longest = max(own)
        for base in sorted({0, 100} & own.keys()):
            ratio = own[longest].ratio(own[base])
            judged = target if who == OURS and base == 0 else None
            case = f"{label}, {longest:,} against {base}"
            rows.append(Row(case, who, "", ratio=show_ratio(ratio), target=judged, judged=ratio.value))
    return sorted(rows, key=lambda row: row.case)


# --- Load -------------------------------------------------------------------------------------------------------------


BUILT = "the same models, built"
LOAD_TARGET = Target(1.1)


async def load(contenders: Mapping[str, Contender], thread: str, length: int, rounds: Rounds) -> dict[str, Sample]:
    """Of each contender, and of BUILT: what ours gives, built once more from values that are at hand."""
    loaded = {who: await contender.load(thread) for who, contender in contenders.items()}
    for who, given in loaded.items():
        _require(who, given, length)
    calls: dict[str, Call] = {who: partial(_load, contender, thread) for who, contender in contenders.items()}
    return await race(calls | {BUILT: partial(_build, loaded[OURS])}, rounds)


async def _build(messages: Sequence[ChatMessage], _number: int) -> None:
    """By the quickest way there is, which checks nothing."""
    built = []
    for one in messages:
        values = one.__dict__.copy()
        if one.tool_calls is not None:
            values["tool_calls"] = [
                revive(ToolCall, call.__dict__.copy(), call.__pydantic_fields_set__) for call in one.tool_calls
            ]
        built.append(revive(ChatMessage, values, one.__pydantic_fields_set__))


async def _load(contender: Contender, thread: str, _number: int) -> None:
    await contender.load(thread)


async def _last(contender: Contender, thread: str, _number: int) -> None:
    await contender.last(thread, LAST)


def _require(who: str, given: Sequence[Any], expected: int) -> None:
    """A figure is worth nothing where a contender did not load what the others did."""
    if len(given) != expected:
        raise RuntimeError(f"{who} loaded {len(given)} messages of {expected}")


async def load_rows(
    contenders: Mapping[str, Contender],
    threads: Mapping[int, str],
    extent: Extent,
    reference: str,
    *,
    label: str = "",
) -> list[Row]:
    """Whole threads of each length, then the end of the longest. Only the nearest are held to a target."""
    rows: list[Row] = []
    for length, thread in threads.items():
        say(f"{label}load {length:,}")
        case = f"{label}load {length:,}"
        samples = await load(contenders, thread, length, extent.loads)
        rows += sample_rows(case, samples, reference)
        least = Sample([sum(pair) for pair in zip(samples[reference].times, samples[BUILT].times, strict=True)])
        ratio = samples[OURS].ratio(least)
        asked = LOAD_TARGET if length == 1_000 and not label else None
        both = milliseconds(least.median), "", "", show_ratio(ratio), asked, ratio.value
        rows.append(Row(case, f"{OURS} to bare plus built", *both))
    longest = max(threads)
    targets = {} if label else {OURS: LAST_TARGET}
    return rows + await last_rows(contenders, threads[longest], longest, extent, reference, targets, label=label)


async def last_rows(
    contenders: Mapping[str, Contender],
    thread: str,
    length: int,
    extent: Extent,
    reference: str,
    targets: dict[str, Target],
    *,
    label: str = "",
) -> list[Row]:
    """The end of a thread of that length."""
    case = f"{label}last {LAST} of {length:,}"
    say(case)
    for who, contender in contenders.items():
        _require(who, await contender.last(thread, LAST), min(length, LAST))
    calls = {who: partial(_last, contender, thread) for who, contender in contenders.items()}
    return sample_rows(case, await race(calls, extent.rounds), reference, targets)


# --- Writers ----------------------------------------------------------------------------------------------------------


def crowd(appenders: Sequence[Contender], threads: Sequence[str], stock: Stock | None = None) -> list[Call]:
    """As many writers as appenders, on threads of their own or on the one that there is."""
    call = append if stock is None else stock.append
    return [partial(call, one, [threads[n % len(threads)]]) for n, one in enumerate(appenders)]


async def writer_rows(
    teams: Mapping[str, Sequence[Contender]],
    threads: Mapping[str, Sequence[str]],
    extent: Extent,
    reference: str,
    target: Target,
    *,
    label: str = "",
) -> list[Row]:
    """All on their own threads, then all on one, then on their own with ids and runs of their own. `threads` gives each
    team one more than it has writers. The first and the last have the target.

    No target holds at a distance, where writers of one thread can only wait for each other.
    """
    own = f"{label}{WRITERS} writers, own threads"
    kinds = {own: target, f"{label}{WRITERS} writers, one thread": None, f"{own}, {SERVICE}": target}
    mine, one, service = kinds
    crowds: dict[tuple[str, str], list[Call]] = {}
    stocks = {(who, service): Stock() for who in teams}
    for who, team in teams.items():
        crowds[who, mine] = crowd(team, threads[who][:WRITERS])
        crowds[who, one] = crowd(team, threads[who][WRITERS:])
        crowds[who, service] = crowd(team, threads[who][:WRITERS], stocks[who, service])
    say(f"{label}{WRITERS} writers")
    fill = {name: stock.fill for name, stock in stocks.items()}
    seen = await race_crowds(crowds, slices=extent.slices, seconds=extent.slice_seconds, prepare=fill)
    rows = []
    for case, asked in kinds.items():
        for who in teams:
            ratio = None if who == reference else seen[who, case].rate / seen[reference, case].rate
            rows.append(throughput_row(case, who, seen[who, case], ratio, asked if who == OURS else None))
    rows += _fairness(f"{label}{WRITERS} writers, {OURS}", seen[OURS, mine], seen[OURS, one])
    return [replace(row, target=None) for row in rows] if label else rows


def _fairness(case: str, own: Throughput, one: Throughput) -> list[Row]:
    share = one.rate / own.rate
    failed = own.failed + one.failed
    return [
        Row(case, "one thread against own", "", ratio=f"{share:.2f}", target=Target(0.5, at_least=True), judged=share),
        _wait(case, "own threads", own, None),
        _wait(case, "one thread", one, Target(20)),
        Row(case, "failed appends", f"{failed:,}", target=Target(0), judged=failed),
    ]


def _wait(case: str, where: str, seen: Throughput, target: Target | None) -> Row:
    """How much longer the unlucky wait than the others."""
    half, most = seen.latencies.median, seen.latencies.percentile(99)
    ratio = most / half
    return Row(
        case,
        f"p50 and p99, {where}",
        milliseconds(half),
        milliseconds(most),
        ratio=f"{ratio:.1f}",
        target=target,
        judged=ratio,
    )


async def close_all(contenders: Sequence[Contender]) -> None:
    await asyncio.gather(*(contender.close() for contender in contenders))
