"""All cases on SQLite. The baseline is aiosqlite: what an asynchronous service would write by hand.

Each contender has a file of its own, the same in all: a connection that sees another one write forgets its pages.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.bare_sqlite import Aiosqlite, InPlace, OneHop
from benchmarks.cases import (
    WRITERS,
    Contender,
    Extent,
    Growth,
    Outcome,
    append_rows,
    close_all,
    grow,
    growth_rows,
    load_rows,
    plan_appends,
    writer_rows,
)
from benchmarks.ours import Chatledger
from benchmarks.report import Row, Target
from benchmarks.seed import Plan, fill_sqlite
from benchmarks.sizes import size_rows, sqlite_sizes
from benchmarks.starts import start_rows
from chatledger import migrate

REFERENCE = Aiosqlite.name
APPEND, GROWTH = Target(0.7), Target(1.15)
Kinds = Sequence[type[InPlace] | type[Aiosqlite] | type[Chatledger]]
ALL: Kinds = (InPlace, OneHop, Aiosqlite, Chatledger)


def run_sqlite(extent: Extent) -> Outcome:
    outcome = Outcome(f"SQLite {sqlite3.sqlite_version}")
    with tempfile.TemporaryDirectory(prefix="chatledger-bench-") as name:
        folder = Path(name)
        empty = folder / "empty.db"
        migrate(empty)
        outcome.growth, rows = asyncio.run(_main(empty, folder, extent))
        outcome.rows += rows
        for runs, target in ((False, Target(5.1, " kB")), (True, None)):
            path = shutil.copyfile(empty, folder / f"sizes{runs}.db")
            sizes = asyncio.run(sqlite_sizes(str(path), extent.size_turns, runs=runs))
            outcome.rows += size_rows("bytes per turn" + ", a run each" * runs, sizes, target)
        outcome.rows += start_rows(extent.starts, _schema(empty))
    return outcome


def _schema(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    connection.close()
    return [row[0] for row in found]


async def _main(empty: Path, folder: Path, extent: Extent) -> tuple[Growth, list[Row]]:
    plan = Plan()
    appends = plan_appends(plan, extent)
    crowd = plan.threads(100, WRITERS + 1)
    loads = {length: plan.threads(length)[0] for length in sorted({50, 1_000, max(extent.lengths)} | {10_000})}
    filled = shutil.copyfile(empty, folder / "filled.db")
    fill_sqlite(str(filled), plan)
    contenders = await _open(filled, folder)
    growth = await grow(contenders, dict.fromkeys(contenders, appends), extent.rounds)
    rows = append_rows(growth, REFERENCE, APPEND) + growth_rows(growth, GROWTH)
    rows += await load_rows(contenders, loads, extent, REFERENCE)
    rows += await _writers(contenders, crowd, extent)
    await close_all(list(contenders.values()))
    return growth, rows


async def _open(filled: Path, folder: Path) -> dict[str, Contender]:
    opened: dict[str, Contender] = {}
    for number, kind in enumerate(ALL):
        path = shutil.copyfile(filled, folder / f"contender{number}.db")
        opened[kind.name] = await kind.open(str(path))
    return opened


async def _writers(contenders: Mapping[str, Contender], threads: Sequence[str], extent: Extent) -> list[Row]:
    """One connection each, shared by all writers: SQLite has one writer at a time, however many wait."""
    teams = {who: [one] * WRITERS for who, one in contenders.items() if who in (Aiosqlite.name, Chatledger.name)}
    return await writer_rows(teams, dict.fromkeys(teams, threads), extent, REFERENCE, Target(3, at_least=True))
