"""One more turn, the whole thread and its end, for all stores of a database in turns, at a few lengths."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from benchmarks.measure import Rounds, race
from benchmarks.peers.peer import Peer, fill
from benchmarks.progress import say
from benchmarks.report import Row, sample_rows
from benchmarks.turns import MESSAGES, turns

Opened = Mapping[type[Peer], str]
"""Each store with a database of its own."""

LAST = 50
SIZE_THREADS, SIZE_TURNS = 10, 20


@dataclass(frozen=True, slots=True)
class Extent:
    """`timeout`: the seconds that a store may take to write a thread of a length. A slower store is left out there."""

    lengths: tuple[int, ...]
    rounds: Rounds
    loads: Rounds
    timeout: float


FULL = Extent(
    lengths=(0, 100, 1_000, 10_000),
    rounds=Rounds(count=60, seconds=25, warm_up=3),
    loads=Rounds(count=25, seconds=15, warm_up=2, alone=True),
    timeout=120,
)
QUICK = Extent(
    lengths=(0, 100),
    rounds=Rounds(count=10, seconds=10, warm_up=1),
    loads=Rounds(count=10, seconds=10, warm_up=1, alone=True),
    timeout=30,
)


@dataclass(slots=True)
class Lane:
    """A store on its threads of one length: what comes next is made ready outside the clock."""

    peer: Peer
    threads: Sequence[Any]
    waiting: Any = field(default=None)

    def thread(self, number: int) -> Any:
        return self.threads[number % len(self.threads)]

    async def prepare(self, number: int) -> None:
        stock = turns()
        self.waiting = await self.peer.ready(self.thread(number), stock[number % len(stock)])

    async def append(self, number: int) -> None:
        await self.peer.append(self.thread(number), self.waiting)

    async def load(self, _number: int) -> None:
        await self.peer.load(self.threads[0])

    async def last(self, _number: int) -> None:
        await self.peer.last(self.threads[0], LAST)


async def run(opened: Opened, extent: Extent) -> list[Row]:
    peers = {kind.name: await kind.open(url) for kind, url in opened.items()}
    reference = next(iter(peers))
    try:
        rows = []
        for length in extent.lengths:
            rows += await _at(peers, length, extent, reference)
        return rows + await _sizes(peers, {kind.name: url for kind, url in opened.items()}, reference)
    finally:
        for peer in peers.values():
            await peer.close()


async def _at(peers: Mapping[str, Peer], length: int, extent: Extent, reference: str) -> list[Row]:
    lanes: dict[str, Lane] = {}
    late = []
    for who, peer in peers.items():
        say(f"{who}: threads of {length:,}")
        try:
            lanes[who] = Lane(peer, await _threads(peer, length, extent))
        except TimeoutError:
            late.append(Row(f"append at {length:,}", who, f"over {extent.timeout:g} s to write", ratio="left out"))
    say(f"append at {length:,}")
    samples = await race(
        {who: lane.append for who, lane in lanes.items()},
        extent.rounds,
        prepare={who: lane.prepare for who, lane in lanes.items()},
    )
    rows = sample_rows(f"append at {length:,}", samples, reference) + late
    return rows + await _loads(lanes, length, extent, reference) if length else rows


async def _threads(peer: Peer, length: int, extent: Extent) -> list[Any]:
    """One for each call where they are to be empty; else a few, so that what is appended does not make them long."""
    if not length:
        return [await peer.new_thread() for _ in range(extent.rounds.count + extent.rounds.warm_up)]
    async with asyncio.timeout(extent.timeout):
        return [await fill(peer, length, at_once=True) for _ in range(max(1, 400 // length))]


async def _loads(lanes: Mapping[str, Lane], length: int, extent: Extent, reference: str) -> list[Row]:
    """All of the thread, grown by the appends, which are as many for each; and its end, for those that can."""
    say(f"load {length:,}")
    samples = await race({who: lane.load for who, lane in lanes.items()}, extent.loads)
    rows = sample_rows(f"load {length:,}", samples, reference)
    able = {who: lane.last for who, lane in lanes.items() if lane.peer.loads_last}
    say(f"last {LAST} of {length:,}")
    rows += sample_rows(f"last {LAST} of {length:,}", await race(able, extent.loads), reference)
    return rows + [Row(f"last {LAST} of {length:,}", who, "cannot") for who in lanes if who not in able]


# --- Bytes ------------------------------------------------------------------------------------------------------------


async def _sizes(peers: Mapping[str, Peer], urls: Mapping[str, str], reference: str) -> list[Row]:
    """Bytes per turn over a few threads of 100 messages, tables and indexes together."""
    rows, base = [], 1.0
    for who, peer in peers.items():
        say(f"{who}: bytes per turn")
        before = await _size(urls[who])
        for _ in range(SIZE_THREADS):
            await fill(peer, SIZE_TURNS * MESSAGES)
        size = (await _size(urls[who]) - before) / (SIZE_THREADS * SIZE_TURNS)
        base = size if who == reference else base
        ratio = "1" if who == reference else f"{size / base:.2f}"
        rows.append(Row(f"bytes per turn, {SIZE_TURNS * MESSAGES} messages", who, f"{size / 1000:.1f} kB", ratio=ratio))
    return rows


async def _size(url: str) -> int:
    return await _postgres_size(url) if url.startswith("postgresql") else _sqlite_size(url)


async def _postgres_size(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(
            await connection.fetchval(
                "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c"
                " JOIN pg_namespace n ON n.oid = c.relnamespace"
                " WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')"
            )
        )
    finally:
        await connection.close()


def _sqlite_size(path: str) -> int:
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((size,),) = connection.execute(
            "SELECT (page_count - freelist_count) * page_size"
            " FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
        ).fetchall()
        return int(size)
    finally:
        connection.close()
