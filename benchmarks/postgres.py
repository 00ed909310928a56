"""All cases on PostgreSQL. The baseline is one chained statement on a held connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import asyncpg
from tests.postgres import Server

from benchmarks.bare_postgres import CallPerTable, OneStatement, TipFirst
from benchmarks.cases import (
    WRITERS,
    Contender,
    Extent,
    Outcome,
    append_rows,
    close_all,
    cpu_rows,
    grow,
    growth_rows,
    load_rows,
    plan_appends,
    service_append_rows,
    writer_rows,
)
from benchmarks.delay import DELAY, delayed
from benchmarks.forks import fork_rows
from benchmarks.frames import frame_plan, frame_rows
from benchmarks.imports import postgres_import_rows
from benchmarks.lists import postgres_list_rows
from benchmarks.measure import Rounds
from benchmarks.memory import memory_rows
from benchmarks.million import SHORT, giant_rows, plan_giant, plan_rested, read_rows, rested_rows
from benchmarks.ours import Chatledger
from benchmarks.progress import say
from benchmarks.repeats import repeat_rows
from benchmarks.report import Row, Target
from benchmarks.scores import postgres_score_rows
from benchmarks.search import search_rows
from benchmarks.seed import Plan, fill_postgres
from benchmarks.service import service_rows
from benchmarks.sizes import postgres_sizes, size_rows
from chatledger.admin import migrate

REFERENCE = OneStatement.name
SCANS = "asyncpg, three range scans"
APPEND, GROWTH, DELAYED = Target(1.3), Target(1.15), Target(1.12)
APPEND_CPU = Target(1.9)
SERVICE, SERVICE_FAR = Target(1.4), Target(1.12)
TOGETHER = Target(0.85, at_least=True)
AWAY = f"{DELAY * 1000:g} ms away, "
Appends = Mapping[str, Mapping[int, Sequence[str]]]
Kinds = Sequence[type[OneStatement] | type[CallPerTable] | type[Chatledger]]
ALL: Kinds = (OneStatement, CallPerTable, Chatledger)
TWO: Kinds = (OneStatement, Chatledger)
COLD: Kinds = (OneStatement, TipFirst, Chatledger)


def sections(server: Server, extent: Extent) -> dict[str, Callable[[], Outcome]]:
    """Parts of a run by name; each makes its own databases, and drops them."""
    found: dict[str, Callable[[], Outcome]] = {
        "append, load, writers": partial(_main_section, server, extent),
        "growth among short threads": partial(_growth_section, server, extent),
        "bytes per turn": partial(_size_section, server, extent),
        "import": partial(_import_section, server, extent),
        "service": partial(_service_section, server, extent),
        "repeats": partial(_repeat_section, server, extent),
        "lists": partial(_list_section, server, extent),
        "frames": partial(_frame_section, server, extent),
        "search": partial(_search_section, server, extent),
        "scores": partial(_score_section, server, extent),
    }
    return found | {"a million messages": partial(_million_section, server, extent)} if extent.giant else found


@contextmanager
def _database(server: Server) -> Iterator[str]:
    with server.database() as url:
        migrate(url)
        yield url


def _outcome(url: str) -> Outcome:
    return Outcome(f"PostgreSQL {asyncio.run(require_durable(url))}")


def _main_section(server: Server, extent: Extent) -> Outcome:
    with _database(server) as url:
        outcome = _outcome(url)
        asyncio.run(_main(url, extent, outcome))
    return outcome


def _growth_section(server: Server, extent: Extent) -> Outcome:
    outcome = None
    for statistics in (True, False):
        with _database(server) as url:
            outcome = outcome or _outcome(url)
            outcome.rows += asyncio.run(_growth(url, extent, statistics=statistics))
    assert outcome is not None
    return outcome


def _size_section(server: Server, extent: Extent) -> Outcome:
    outcome = None
    for runs, target in ((False, Target(5.8, " kB")), (True, None)):
        with _database(server) as url:
            outcome = outcome or _outcome(url)
            sizes = asyncio.run(postgres_sizes(url, extent.size_turns, runs=runs))
            outcome.rows += size_rows("bytes per turn" + ", a run each" * runs, sizes, target)
    assert outcome is not None
    return outcome


def _import_section(server: Server, extent: Extent) -> Outcome:
    with _database(server) as url:
        outcome = _outcome(url)
        outcome.rows += asyncio.run(postgres_import_rows(url, extent))
        with delayed(url) as far:
            outcome.rows += asyncio.run(postgres_import_rows(far, extent, label=AWAY))
    return outcome


def _service_section(server: Server, extent: Extent) -> Outcome:
    with _database(server) as url:
        outcome = _outcome(url)
        outcome.rows += asyncio.run(service_rows(url, extent))
    return outcome


def _repeat_section(server: Server, extent: Extent) -> Outcome:
    with _database(server) as url:
        outcome = _outcome(url)
        outcome.rows += asyncio.run(repeat_rows(url, extent, judged=True))
    return outcome


def _search_section(server: Server, extent: Extent) -> Outcome:
    with _database(server) as url:
        outcome = _outcome(url)
        outcome.rows += asyncio.run(search_rows(url, extent))
    return outcome


def _score_section(server: Server, extent: Extent) -> Outcome:
    with _database(server) as url:
        outcome = _outcome(url)
        outcome.rows += asyncio.run(postgres_score_rows(url, extent))
    return outcome


def _list_section(server: Server, extent: Extent) -> Outcome:
    with _database(server) as url:
        outcome = _outcome(url)
        outcome.rows += asyncio.run(postgres_list_rows(url, extent))
    return outcome


def _frame_section(server: Server, extent: Extent) -> Outcome:
    with _database(server) as url:
        outcome = _outcome(url)
        plan = frame_plan(extent)
        asyncio.run(fill_postgres(url, plan))
        outcome.rows += frame_rows(url, plan)
    return outcome


def _million_section(server: Server, extent: Extent) -> Outcome:
    with _database(server) as url:
        outcome = _outcome(url)
        asyncio.run(_million(url, extent, outcome))
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


async def _main(url: str, extent: Extent, outcome: Outcome) -> None:
    plan, far_extent = Plan(), extent.far()
    near = {kind.name: plan_appends(plan, extent) for kind in ALL}
    far = {name: plan_appends(plan, far_extent, shared=own) for name, own in near.items()}
    crowds = {kind.name: plan.threads(100, WRITERS + 1) for kind in ALL}
    loads = {length: plan.threads(length)[0] for length in extent.loaded}
    say(f"filling a database with {sum(plan.lengths.values()):,} messages")
    await fill_postgres(url, plan)
    await _at(url, extent, near, crowds, loads, outcome)
    outcome.rows += await memory_rows(url, loads[1_000], loads[max(loads)])
    with delayed(url) as away:
        await _at(away, far_extent, far, crowds, loads, outcome, label=AWAY)


async def _at(
    url: str,
    extent: Extent,
    appends: Appends,
    crowds: dict[str, list[str]],
    loads: dict[int, str],
    outcome: Outcome,
    *,
    label: str = "",
) -> None:
    """All of these cases on the database at the end of that line."""
    contenders = await _open(url, ALL)
    growth = await grow(contenders, appends, extent.rounds, label=label)
    outcome.plots[f"{label}append of one turn"] = growth
    outcome.rows += append_rows(growth, REFERENCE, DELAYED if label else APPEND, label=f"{label}append")
    outcome.rows += cpu_rows(growth, REFERENCE, APPEND_CPU, label=label)
    outcome.rows += growth_rows(growth, None if label else GROWTH, label=f"{label}growth")
    warm = {who: own[1_000] for who, own in appends.items()}
    target = SERVICE_FAR if label else SERVICE
    outcome.rows += await service_append_rows(contenders, warm, extent, REFERENCE, target, label=label)
    readers = {SCANS: contenders[REFERENCE], Chatledger.name: contenders[Chatledger.name]}
    outcome.rows += await load_rows(readers, loads, extent, SCANS, label=label)
    await close_all(list(contenders.values()))
    outcome.rows += await fork_rows(url, extent, label=label)
    outcome.rows += await _writers(url, crowds, extent, label)


async def _open(url: str, kinds: Kinds) -> dict[str, Contender]:
    return {kind.name: await kind.open(url) for kind in kinds}


async def _writers(url: str, threads: dict[str, list[str]], extent: Extent, label: str) -> list[Row]:
    """A connection for each bare writer; one ledger with its pool for all of ours."""
    bare = {kind.name: [await kind.open(url) for _ in range(WRITERS)] for kind in (OneStatement, CallPerTable)}
    ours = await Chatledger.open(url)
    teams: dict[str, Sequence[Contender]] = {**bare, Chatledger.name: [ours] * WRITERS}
    rows = await writer_rows(teams, threads, extent, REFERENCE, TOGETHER, label=label)
    await close_all([*(one for team in bare.values() for one in team), ours])
    return rows


async def _growth(url: str, extent: Extent, *, statistics: bool) -> list[Row]:
    """One long thread among short ones: what a planner takes for typical, or guesses, is wrong for it."""
    plan = Plan()
    longest, calls = extent.longest, extent.rounds.count
    lengths = {
        kind.name: {0: plan.threads(0, calls), 100: plan.threads(100, 40), longest: plan.threads(longest)}
        for kind in TWO
    }
    await fill_postgres(url, plan, statistics=statistics)
    contenders = await _open(url, TWO)
    label = "growth, most threads short" if statistics else "growth, no statistics"
    say(label)
    growth = await grow(contenders, lengths, Rounds(extent.rounds.count // 2, extent.rounds.seconds))
    await close_all(list(contenders.values()))
    return growth_rows(growth, GROWTH, label=label)


async def _million(url: str, extent: Extent, outcome: Outcome) -> None:
    """Each contender has a giant thread of its own: who finds that another wrote to it has to look again."""
    plan = Plan()
    warm = {kind.name: plan_giant(plan, extent) for kind in TWO}
    cold = {kind.name: plan_rested(plan, extent) for kind in COLD}
    short, giant = plan.threads(SHORT)[0], warm[Chatledger.name][extent.giant][0]
    say(f"filling a database with {sum(plan.lengths.values()):,} messages")
    await fill_postgres(url, plan)
    contenders = await _open(url, TWO)
    readers = {SCANS: contenders[REFERENCE], Chatledger.name: contenders[Chatledger.name]}
    outcome.rows += await read_rows(readers, url, short, giant, extent, SCANS)
    outcome.rows += await giant_rows(contenders, warm, extent, REFERENCE, append=APPEND, service=SERVICE, growth=GROWTH)
    await close_all(list(contenders.values()))
    contenders = await _open(url, COLD)
    outcome.rows += await rested_rows(contenders, cold, extent, TipFirst.name)
    await close_all(list(contenders.values()))
