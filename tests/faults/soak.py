"""The long form of the proofs: in rounds until the time is over, each with a seed of its own, and the figures.

python -m tests.faults.soak --minutes 10 [--seed N] [--only NAME] [--page docs/reliability.md]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from chatledger import migrate
from tests.conftest import Database
from tests.faults import test_cancellation, test_interleavings
from tests.faults.awaits import cancelled_at, timed_out_at
from tests.faults.checker import Figures
from tests.faults.damage import damage_often, leave
from tests.faults.kills import kill_clients, kill_server
from tests.faults.teeth import TEETH
from tests.faults.writers import write_together
from tests.postgres import Server, own_server


@dataclass
class Place:
    """Where the proofs run: new databases of either kind, in a folder and a server of their own."""

    folder: Path
    server: Server
    template: Path
    pg_template: str
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def database(self, kind: str) -> Iterator[Database]:
        if kind == "sqlite":
            path = self.folder / f"{next(self.numbers)}.db"
            shutil.copyfile(self.template, path)
            try:
                yield Database("sqlite", str(path))
            finally:
                for left in self.folder.glob(f"{path.name}*"):
                    left.unlink()
            return
        with self.server.database(template=self.pg_template) as url:
            yield Database("postgresql", url)


Round = Callable[[Place, int], Figures]


def _on(kind: str, one: Callable[[Database, int], Awaitable[Figures]]) -> Round:
    def run(place: Place, seed: int) -> Figures:
        async def awaited(database: Database) -> Figures:
            return await one(database, seed)

        with place.database(kind) as database:
            return asyncio.run(awaited(database))

    return run


def _kill_clients(database: Database, seed: int) -> Awaitable[Figures]:
    return kill_clients(database, kills=25, seed=seed)


def _kill_server(place: Place, seed: int) -> Figures:
    with place.database("postgresql") as database:
        return asyncio.run(kill_server(place.server, database, kills=5, seed=seed))


def _damage(place: Place, seed: int) -> Figures:
    async def run(folder: Path) -> Figures:
        left = await leave(place.template, folder, appends=60, seed=seed)
        return await damage_often(left, folder, times=200, seed=seed)

    with tempfile.TemporaryDirectory(dir=place.folder) as folder:
        return asyncio.run(run(Path(folder)))


def _write(threads: int, appends: int) -> Callable[[Database, int], Awaitable[Figures]]:
    def run(database: Database, seed: int) -> Awaitable[Figures]:
        return write_together(database, threads=threads, appends=appends, seed=seed)

    return run


async def _stop(database: Database, seed: int) -> Figures:
    """Every public call, at every await."""
    figures = Figures()
    chance = random.Random(seed)
    calls = [*test_cancellation.CALLS, *test_cancellation.OTHERS]
    async with database.open() as ledger:
        for call in chance.sample(calls, 4):
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


ROUNDS: dict[str, Round] = {
    "clients killed, SQLite": _on("sqlite", _kill_clients),
    "clients killed, PostgreSQL": _on("postgresql", _kill_clients),
    "PostgreSQL killed under 16 writers": _kill_server,
    "WAL of SQLite damaged": _damage,
    "16 writers on 1 thread, SQLite": _on("sqlite", _write(1, 2_000)),
    "16 writers on 16 threads, SQLite": _on("sqlite", _write(16, 10_000)),
    "16 writers on 1,000 threads, SQLite": _on("sqlite", _write(1_000, 10_000)),
    "16 writers on 1 thread, PostgreSQL": _on("postgresql", _write(1, 2_000)),
    "16 writers on 16 threads, PostgreSQL": _on("postgresql", _write(16, 10_000)),
    "16 writers on 1,000 threads, PostgreSQL": _on("postgresql", _write(1_000, 10_000)),
    "cancelled and timed out at each await, SQLite": _on("sqlite", _stop),
    "cancelled and timed out at each await, PostgreSQL": _on("postgresql", _stop),
    "halted at each await while another runs": _on("postgresql", _halt),
}


def soak(place: Place, *, minutes: float, seed: int, only: str | None) -> tuple[dict[str, Figures], list[str]]:
    """The figures by proof, and the failures. At least one round of each, then until the time is over."""
    rounds = {name: run for name, run in ROUNDS.items() if only is None or only in name}
    figures = {name: Figures() for name in rounds}
    failures: list[str] = []
    end = time.monotonic() + 60 * minutes
    for number in itertools.count():
        for name, run in rounds.items():
            if number and time.monotonic() > end:
                return figures, failures
            own, began = random.Random(f"{seed} {number} {name}").randrange(2**32), time.monotonic()
            try:
                one = run(place, own)
            except Exception as error:
                failures.append(f"{name}, seed {own}: {error!r}")
                print(f"FAILED {failures[-1]}", flush=True)
                continue
            figures[name].add(one)
            took = time.monotonic() - began
            print(
                f"{name}: seed {own}, {one.acknowledged:,} acknowledged, {one.faults:,} faults, {took:.0f} s",
                flush=True,
            )
    raise AssertionError


# --- The page ---------------------------------------------------------------------------------------------------------

_COLUMNS = (
    "appends acknowledged",
    "faults injected",
    "unknown outcomes resolved",
    "lost",
    "doubled",
    "out of order",
    "else wrong",
)
_HEAD = f"| proof | {' | '.join(_COLUMNS)} |\n|---|{'---:|' * len(_COLUMNS)}\n"


def figures_table(figures: dict[str, Figures]) -> str:
    rows = [_row(name, one) for name, one in figures.items()]
    total = Figures()
    for one in figures.values():
        total.add(one)
    return _HEAD + "\n".join([*rows, _row("**all**", total)])


def _row(name: str, one: Figures) -> str:
    counts = (one.acknowledged, one.faults, one.unknown, one.lost, one.doubled, one.disordered, one.other)
    return f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |"


def teeth_table() -> str:
    rows = [f"| `{tooth.test.split(' -k ')[0].split('::')[0]}` | `{tooth.name}` | {tooth.without} |" for tooth in TEETH]
    return "| proof | tooth | fails without |\n|---|---|---|\n" + "\n".join(rows)


def put(page: str, name: str, text: str) -> str:
    """The page with the text between its two marks of that name."""
    head, begin, rest = page.partition(f"<!-- {name} -->\n")
    _, end, tail = rest.partition(f"<!-- end of {name} -->")
    assert begin, name
    assert end, name
    return f"{head}{begin}{text}\n{end}{tail}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    seed = random.randrange(2**32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="chatledger-soak-") as folder, own_server() as server:
        template = Path(folder) / "template.db"
        migrate(template)
        with server.database() as pg_template:
            migrate(pg_template)
            place = Place(Path(folder), server, template, pg_template)
            figures, failures = soak(place, minutes=given.minutes, seed=seed, only=given.only)
    table = figures_table(figures)
    print(table)
    for failure in failures:
        print(f"FAILED {failure}")
    if given.page is not None and not failures and given.only is None:
        page = put(given.page.read_text(), "figures", f"{given.minutes:g} minutes, seed {seed}.\n\n{table}")
        given.page.write_text(put(page, "teeth", teeth_table()))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
