"""All cases on SQLite. The baseline is aiosqlite: what an asynchronous service would write by hand.

Each contender has a file of its own, the same in all: a connection that sees another one write forgets its pages.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.bare_sqlite import Aiosqlite, InPlace, OneHop
from benchmarks.cases import (
    WRITERS,
    Contender,
    Extent,
    Outcome,
    append_rows,
    close_all,
    grow,
    growth_rows,
    load_rows,
    plan_appends,
    service_append_rows,
    writer_rows,
)
from benchmarks.forks import fork_rows
from benchmarks.frames import frame_plan, frame_rows
from benchmarks.imports import sqlite_import_rows
from benchmarks.lists import sqlite_list_rows
from benchmarks.memory import memory_rows
from benchmarks.million import SHORT, giant_rows, plan_giant, plan_rested, read_rows, rested_rows
from benchmarks.ours import Chatledger
from benchmarks.progress import say
from benchmarks.repeats import repeat_rows
from benchmarks.report import Row, Target
from benchmarks.scores import sqlite_score_rows
from benchmarks.search import search_rows
from benchmarks.seed import Plan, fill_sqlite
from benchmarks.service import service_rows
from benchmarks.sizes import size_rows, sqlite_sizes, sqlite_wal
from benchmarks.starts import start_rows
from chatledger.admin import migrate

REFERENCE = Aiosqlite.name
APPEND, GROWTH = Target(1.2), Target(1.15)
TOGETHER = Target(1.7, at_least=True)
WAL = Target(100, " kB")
Kind = type[InPlace] | type[Aiosqlite] | type[Chatledger]
Kinds = Sequence[Kind]
Files = Mapping[Kind, Path]
ALL: Kinds = (InPlace, OneHop, Aiosqlite, Chatledger)
TWO: Kinds = (Aiosqlite, Chatledger)


def sections(extent: Extent) -> dict[str, Callable[[], Outcome]]:
    """Parts of a run by name; each makes its own files, and removes them."""
    found: dict[str, Callable[[], Outcome]] = {
        "append, load, writers": partial(_section, _main, extent),
        "bytes per turn": partial(_section, _sizes, extent),
        "import": partial(_section, _imports, extent),
        "start of a process": partial(_section, _starts, extent),
        "service": partial(_section, _services, extent),
        "repeats": partial(_section, _repeats, extent),
        "lists": partial(_section, _lists, extent),
        "frames": partial(_section, _frames, extent),
        "search": partial(_section, _searches, extent),
        "scores": partial(_section, _scores, extent),
    }
    return found | {"a million messages": partial(_section, _million, extent)} if extent.giant else found


def _section(fill: Callable[[Path, Path, Extent, Outcome], None], extent: Extent) -> Outcome:
    outcome = Outcome(f"SQLite {sqlite3.sqlite_version}")
    with tempfile.TemporaryDirectory(prefix="chatledger-bench-") as name:
        folder = Path(name)
        empty = folder / "empty.db"
        migrate(empty)
        fill(empty, folder, extent, outcome)
    return outcome


def _main(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    asyncio.run(_cases(empty, folder, extent, outcome))


def _sizes(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    for runs, target in ((False, Target(5.1, " kB")), (True, None)):
        path = shutil.copyfile(empty, folder / f"sizes{runs}.db")
        sizes = asyncio.run(sqlite_sizes(str(path), extent.size_turns, runs=runs))
        outcome.rows += size_rows("bytes per turn" + ", a run each" * runs, sizes, target)
        if not runs:
            wal = asyncio.run(sqlite_wal(str(path))) / 1000
            outcome.rows.append(Row("WAL of a lone turn", "all", f"{wal:.1f} kB", target=WAL, judged=wal))


def _imports(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    outcome.rows += asyncio.run(sqlite_import_rows(empty, folder, extent))


def _starts(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    outcome.rows += start_rows(extent.starts, _schema(empty))


def _services(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    path = shutil.copyfile(empty, folder / "service.db")
    outcome.rows += asyncio.run(service_rows(str(path), extent))


def _repeats(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    path = shutil.copyfile(empty, folder / "repeats.db")
    outcome.rows += asyncio.run(repeat_rows(str(path), extent, judged=False))


def _lists(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    path = shutil.copyfile(empty, folder / "lists.db")
    outcome.rows += asyncio.run(sqlite_list_rows(str(path), extent))


def _frames(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    path = shutil.copyfile(empty, folder / "frames.db")
    plan = frame_plan(extent)
    fill_sqlite(str(path), plan)
    outcome.rows += frame_rows(str(path), plan)


def _searches(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    path = shutil.copyfile(empty, folder / "search.db")
    outcome.rows += asyncio.run(search_rows(str(path), extent))


def _scores(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    path = shutil.copyfile(empty, folder / "scores.db")
    outcome.rows += asyncio.run(sqlite_score_rows(str(path), extent))


def _million(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    asyncio.run(_giant(empty, folder, extent, outcome))


def _schema(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    connection.close()
    return [row[0] for row in found]


async def _cases(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    plan = Plan()
    appends = plan_appends(plan, extent)
    crowd = plan.threads(100, WRITERS + 1)
    loads = {length: plan.threads(length)[0] for length in extent.loaded}
    filled = shutil.copyfile(empty, folder / "filled.db")
    say(f"filling a file with {sum(plan.lengths.values()):,} messages")
    fill_sqlite(str(filled), plan)
    contenders = await _open(_copies(filled, folder, ALL))
    growth = await grow(contenders, dict.fromkeys(contenders, appends), extent.rounds)
    outcome.plots["append of one turn"] = growth
    outcome.rows += append_rows(growth, REFERENCE, APPEND) + growth_rows(growth, GROWTH)
    warm = dict.fromkeys(contenders, appends[1_000])
    outcome.rows += await service_append_rows(contenders, warm, extent, REFERENCE, APPEND)
    outcome.rows += await load_rows(contenders, loads, extent, REFERENCE)
    outcome.rows += await _writers(contenders, crowd, extent)
    await close_all(list(contenders.values()))
    outcome.rows += await fork_rows(str(filled), extent)
    outcome.rows += await memory_rows(str(filled), loads[1_000], loads[max(loads)])


async def _giant(empty: Path, folder: Path, extent: Extent, outcome: Outcome) -> None:
    plan = Plan()
    warm = dict.fromkeys((kind.name for kind in TWO), plan_giant(plan, extent))
    cold = dict.fromkeys(warm, plan_rested(plan, extent))
    short, giant = plan.threads(SHORT)[0], warm[Chatledger.name][extent.giant][0]
    filled = shutil.copyfile(empty, folder / "filled.db")
    say(f"filling a file with {sum(plan.lengths.values()):,} messages")
    fill_sqlite(str(filled), plan)
    files = _copies(filled, folder, TWO)
    contenders = await _open(files)
    outcome.rows += await read_rows(contenders, str(filled), short, giant, extent, REFERENCE)
    outcome.rows += await giant_rows(contenders, warm, extent, REFERENCE, append=APPEND, service=APPEND, growth=GROWTH)
    await close_all(list(contenders.values()))
    contenders = await _open(files)
    outcome.rows += await rested_rows(contenders, cold, extent, REFERENCE)
    await close_all(list(contenders.values()))


def _copies(filled: Path, folder: Path, kinds: Kinds) -> Files:
    return {kind: shutil.copyfile(filled, folder / f"contender{number}.db") for number, kind in enumerate(kinds)}


async def _open(files: Files) -> dict[str, Contender]:
    return {kind.name: await kind.open(str(path)) for kind, path in files.items()}


async def _writers(contenders: Mapping[str, Contender], threads: Sequence[str], extent: Extent) -> list[Row]:
    """One connection each, shared by all writers: SQLite has one writer at a time, however many wait."""
    teams = {who: [one] * WRITERS for who, one in contenders.items() if who in (Aiosqlite.name, Chatledger.name)}
    return await writer_rows(teams, dict.fromkeys(teams, threads), extent, REFERENCE, TOGETHER)
