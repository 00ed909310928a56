"""The rounds of the long form: each proof by name, what a round of it does with a seed, and its share of the time."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from tests.conftest import Database
from tests.faults import test_cancellation, test_interleavings, test_machine
from tests.faults.awaits import cancelled_at, timed_out_at
from tests.faults.checker import Figures
from tests.faults.cuts import cut_everything, cut_writers
from tests.faults.damage import damage_often, leave
from tests.faults.growth import require_bounded, spread
from tests.faults.kills import kill_clients, kill_server
from tests.faults.streams import kill_streamers
from tests.faults.writers import write_group
from tests.migrations import test_traffic
from tests.migrations.released.kept import restore
from tests.postgres import Server

MEMORY = Path("/dev/shm")
"""The folder of the damaged files. It is in memory, because a round would wait for a disk ten times."""


@dataclass
class Place:
    """The place where proofs run: new databases of either kind, in their own folder and on their own server."""

    folder: Path
    server: Server
    template: Path
    pg_template: str

    @contextmanager
    def database(self, kind: str) -> Iterator[Database]:
        """With our tables."""
        if kind == "sqlite":
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                path = Path(folder) / "ledger.db"
                shutil.copyfile(self.template, path)
                yield Database("sqlite", str(path))
            return
        with self.server.database(template=self.pg_template) as url:
            yield Database("postgresql", url)

    @contextmanager
    def empty(self, kind: str) -> Iterator[Database]:
        if kind == "sqlite":
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                yield Database("sqlite", str(Path(folder) / "empty.db"))
            return
        with self.server.database() as url:
            yield Database("postgresql", url)


Run = Callable[[Place, int], Figures]


@dataclass(frozen=True)
class Proof:
    """`share` of the time, beside those of the others."""

    name: str
    share: float
    run: Run


def _on(kind: str, one: Callable[[Database, int], Awaitable[Figures]]) -> Run:
    def run(place: Place, seed: int) -> Figures:
        async def awaited(database: Database) -> Figures:
            return await one(database, seed)

        with place.database(kind) as database:
            return asyncio.run(awaited(database))

    return run


# --- What a round does ------------------------------------------------------------------------------------------------


def _kill_clients(database: Database, seed: int) -> Awaitable[Figures]:
    return kill_clients(database, kills=40, seed=seed, at_once=4)


def _kill_streamers(database: Database, seed: int) -> Awaitable[Figures]:
    return kill_streamers(database, kills=20, seed=seed)


def _kill_server(place: Place, seed: int) -> Figures:
    with place.database("postgresql") as database:
        return asyncio.run(kill_server(place.server, database, kills=10, seed=seed))


def _damage(place: Place, seed: int) -> Figures:
    async def run(folder: Path) -> Figures:
        left = await leave(place.template, folder, appends=60, seed=seed)
        return await damage_often(left, folder, times=250, seed=seed)

    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else place.folder) as folder:
        return asyncio.run(run(Path(folder)))


def _write(threads: int, appends: int) -> Callable[[Database, int], Awaitable[Figures]]:
    def run(database: Database, seed: int) -> Awaitable[Figures]:
        return write_group(database, threads=threads, appends=appends, seed=seed)

    return run


async def _stop(database: Database, seed: int) -> Figures:
    """Some of the public calls, at every await."""
    figures = Figures()
    chance = random.Random(seed)
    calls = [*test_cancellation.CALLS, *test_cancellation.OTHERS]
    async with database.open() as ledger:
        for call in chance.sample(calls, 3):
            stop = chance.choice((cancelled_at, timed_out_at))
            figures.add(await test_cancellation.stop_everywhere(database, call, stop))
            await ledger.threads.delete(test_cancellation.THREAD)
    return figures


async def _halt(database: Database, seed: int) -> Figures:
    chance = random.Random(seed)
    first = chance.choice([name for name in test_interleavings.CALLS if name != "migrate"])
    watcher = await asyncpg.connect(database.url, server_settings={"application_name": "watcher"})
    try:
        return await test_interleavings.halt_everywhere(database, watcher, first, test_interleavings.CALLS)
    finally:
        await watcher.close()


def _cut_writers(database: Database, seed: int) -> Awaitable[Figures]:
    return cut_writers(database, cuts=100, seed=seed)


def _any_calls(kind: str) -> Run:
    def run(place: Place, seed: int) -> Figures:
        with place.database(kind) as database:
            return Figures(test_machine.run_any_calls(database, examples=25, steps=50, seed=seed))

    return run


def _migrate(kind: str) -> Run:
    """From a released schema with its rows: step by step to the newest, or one step whose migrators are killed."""

    def run(place: Place, seed: int) -> Figures:
        chance = random.Random(seed)
        figures = Figures()
        below = chance.choice(test_traffic.OLDER)
        with place.empty(kind) as database:
            restore(database, below)
            if chance.random() < 0.5:
                traffic, figures.faults = test_traffic.kill_migrators(database, below)
                done = [traffic]
            else:
                done = test_traffic.climb_under_writers(database, below)
                figures.faults = len(done)
        figures.acknowledged = sum(len(traffic.written) for traffic in done)
        return figures

    return run


def _spread(kind: str) -> Run:
    """One process for the whole round."""

    def run(place: Place, seed: int) -> Figures:
        with place.database(kind) as database:
            growth = spread(database, threads=100_000, appends=200_000, seed=seed)
        require_bounded(growth)
        return Figures(growth.appends, growths=[growth])

    return run


PROOFS = (
    Proof("clients killed, SQLite", 10, _on("sqlite", _kill_clients)),
    Proof("clients killed, PostgreSQL", 12, _on("postgresql", _kill_clients)),
    Proof("PostgreSQL killed under 16 writers", 10, _kill_server),
    Proof("WAL of SQLite damaged", 14, _damage),
    Proof("8 writers cut now and then", 4, _on("postgresql", _cut_writers)),
    Proof("cut at each message of a call", 4, _on("postgresql", cut_everything)),
    Proof("streamers killed, SQLite", 2, _on("sqlite", _kill_streamers)),
    Proof("streamers killed, PostgreSQL", 2, _on("postgresql", _kill_streamers)),
    Proof("16 writers on 1 thread, SQLite", 2, _on("sqlite", _write(1, 2_000))),
    Proof("16 writers on 16 threads, SQLite", 3, _on("sqlite", _write(16, 5_000))),
    Proof("16 writers on 1,000 threads, SQLite", 3, _on("sqlite", _write(1_000, 5_000))),
    Proof("16 writers on 1 thread, PostgreSQL", 2, _on("postgresql", _write(1, 2_000))),
    Proof("16 writers on 16 threads, PostgreSQL", 4, _on("postgresql", _write(16, 5_000))),
    Proof("16 writers on 1,000 threads, PostgreSQL", 4, _on("postgresql", _write(1_000, 5_000))),
    Proof("100,000 threads, SQLite", 12, _spread("sqlite")),
    Proof("100,000 threads, PostgreSQL", 12, _spread("postgresql")),
    Proof("cancelled and timed out at each await, SQLite", 1, _on("sqlite", _stop)),
    Proof("cancelled and timed out at each await, PostgreSQL", 5, _on("postgresql", _stop)),
    Proof("halted at each await while another runs", 4, _on("postgresql", _halt)),
    Proof("any calls in any order, SQLite", 5, _any_calls("sqlite")),
    Proof("any calls in any order, PostgreSQL", 8, _any_calls("postgresql")),
    Proof("migrated under 8 writers, SQLite", 3, _migrate("sqlite")),
    Proof("migrated under 8 writers, PostgreSQL", 4, _migrate("postgresql")),
)
