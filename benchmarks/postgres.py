"""All cases on PostgreSQL. The baseline is one chained statement on a held connection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import asyncpg
from tests.postgres import Server

from benchmarks.bare_postgres import CallPerTable, OneStatement
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
from benchmarks.delay import DELAY, delayed
from benchmarks.measure import Rounds
from benchmarks.ours import Chatledger
from benchmarks.report import Row, Target
from benchmarks.seed import Plan, fill_postgres
from benchmarks.sizes import postgres_sizes, size_rows
from chatledger import migrate

REFERENCE = OneStatement.name
SCANS = "asyncpg, three range scans"
APPEND, GROWTH, DELAYED = Target(1.25), Target(1.15), Target(1.1)
Kinds = Sequence[type[OneStatement] | type[CallPerTable] | type[Chatledger]]
ALL: Kinds = (OneStatement, CallPerTable, Chatledger)
TWO: Kinds = (OneStatement, Chatledger)


def run_postgres(server: Server, extent: Extent) -> Outcome:
    with server.database() as empty:
        migrate(empty)
        version = asyncio.run(require_durable(empty))
        outcome = Outcome(f"PostgreSQL {version}")
        with server.database(template=empty) as url:
            outcome.growth, rows = asyncio.run(_main(url, extent))
            outcome.rows += rows
        for statistics in (True, False):
            with server.database(template=empty) as url:
                outcome.rows += asyncio.run(_growth(url, extent, statistics=statistics))
        for runs, target in ((False, Target(5.8, " kB")), (True, None)):
            with server.database(template=empty) as url:
                sizes = asyncio.run(postgres_sizes(url, extent.size_turns, runs=runs))
                outcome.rows += size_rows("bytes per turn" + ", a run each" * runs, sizes, target)
    return outcome


async def require_durable(url: str) -> str:
    """The server's version. Raises RuntimeError where a commit is not on the disk when it returns."""
    connection = await asyncpg.connect(url)
    try:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            if await connection.fetchval(f"SHOW {setting}") != "on":
                raise RuntimeError(f"{setting} is off: not a figure that anybody could use; see tests.postgres")
        return str(await connection.fetchval("SHOW server_version")).split()[0]
    finally:
        await connection.close()


async def _main(url: str, extent: Extent) -> tuple[Growth, list[Row]]:
    plan = Plan()
    appends = {kind.name: plan_appends(plan, extent) for kind in ALL}
    slow = {kind.name: {100: plan.threads(100, 20)} for kind in ALL}
    crowds = {kind.name: plan.threads(100, WRITERS + 1) for kind in ALL}
    loads = {length: plan.threads(length)[0] for length in sorted({50, 1_000, max(extent.lengths)} | {10_000})}
    await fill_postgres(url, plan)
    contenders = await _open(url, ALL)
    growth = await grow(contenders, appends, extent.rounds)
    rows = append_rows(growth, REFERENCE, APPEND) + growth_rows(growth, GROWTH)
    readers = {SCANS: contenders[REFERENCE], Chatledger.name: contenders[Chatledger.name]}
    rows += await load_rows(readers, loads, extent, SCANS)
    await close_all(list(contenders.values()))
    rows += await _writers(url, crowds, extent)
    with delayed(url) as far:
        contenders = await _open(far, ALL)
        growth_far = await grow(contenders, slow, Rounds(extent.rounds.count // 2, extent.rounds.seconds))
        await close_all(list(contenders.values()))
    label = f"{DELAY * 1000:g} ms away, append"
    return growth, rows + append_rows(growth_far, REFERENCE, DELAYED, label=label)


async def _open(url: str, kinds: Kinds) -> dict[str, Contender]:
    return {kind.name: await kind.open(url) for kind in kinds}


async def _writers(url: str, threads: dict[str, list[str]], extent: Extent) -> list[Row]:
    """A connection for each bare writer; one ledger with its pool for all of ours."""
    bare = {kind.name: [await kind.open(url) for _ in range(WRITERS)] for kind in (OneStatement, CallPerTable)}
    ours = await Chatledger.open(url)
    teams: dict[str, Sequence[Contender]] = {**bare, Chatledger.name: [ours] * WRITERS}
    rows = await writer_rows(teams, threads, extent, REFERENCE, Target(0.8, at_least=True))
    await close_all([*(one for team in bare.values() for one in team), ours])
    return rows


async def _growth(url: str, extent: Extent, *, statistics: bool) -> list[Row]:
    """One long thread among short ones: what a planner takes for typical, or guesses, is wrong for it."""
    plan = Plan()
    longest = max(extent.lengths)
    lengths = {
        kind.name: {0: plan.threads(0, 20), 100: plan.threads(100), longest: plan.threads(longest)} for kind in TWO
    }
    await fill_postgres(url, plan, statistics=statistics)
    contenders = await _open(url, TWO)
    growth = await grow(contenders, lengths, Rounds(extent.rounds.count // 2, extent.rounds.seconds))
    await close_all(list(contenders.values()))
    label = "growth, most threads short" if statistics else "growth, no statistics"
    return growth_rows(growth, GROWTH, label=label)
