"""python -m benchmarks.against --base REV [--only postgres|sqlite] [--rounds N]: the working tree beside a commit.

A machine that others use is faster in one minute than in the next, so two runs one after the other do not compare.
Here each tree has a process that stays open for the whole run, with a database of its own on the same server and the
same disk. The two processes share one core, and take turns in blocks of a few calls.

Each round compares two blocks that ran right after each other. The ratio of a case is the median of its rounds: above
1, the working tree takes longer. The range beside it is the lowest and the highest median in five stretches of the run.
Run it on a commit beside itself to see how far ratios stray here for no reason.

CPU time is that of the client process: it includes the thread of SQLite, and not the PostgreSQL server. Several writers
have turns a second, and the CPU time of one turn.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Protocol

import asyncpg
from tests.postgres import server

from benchmarks.against_worker import CASES, Block, Case
from benchmarks.ending import run_to_the_end
from benchmarks.machine import fsync_time, machine
from benchmarks.measure import BLOCKS, Ratio, Sample, stretches
from benchmarks.postgres import require_durable
from benchmarks.progress import say
from benchmarks.report import milliseconds, show_ratio

ROOT = Path(__file__).parents[1]
BASE, NOW = "base", "now"
ROUNDS = 150
SECONDS_A_ROUND = 0.04
"""A case ends early when its rounds take longer than this on average."""
FEWEST_ROUNDS = 2 * BLOCKS
ANSWER_TIMEOUT = 120
"""Seconds to wait for one block of calls, or for a worker to fill its database."""
HEADINGS = ("case", BASE, NOW, "now/base", "CPU base", "CPU now", "now/base")


def main() -> int:
    options = _options()
    start = time.monotonic()
    commit = git("rev-parse", "--verify", "--end-of-options", f"{options.base}^{{commit}}")
    print(machine())
    changed = git("status", "--porcelain", "--", "src", "migrations")
    print(f"base: {git('log', '-1', '--format=%h %s', commit)}")
    print(f"now:  {git('log', '-1', '--format=%h %s')}{' (with uncommitted changes)' if changed else ''}")
    print(f"fsync of a page: {fsync_time() * 1e6:,.0f} µs", flush=True)
    with checked_out(commit) as tree:
        trees = {BASE: tree, NOW: ROOT}
        for name in ("PostgreSQL", "SQLite"):
            if options.only is None or name.lower().startswith(options.only):
                print(f"\n{compare(name, trees, options.rounds)}", flush=True)
    print(f"\nin {time.monotonic() - start:.0f} s")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description="this tree beside a commit")
    parser.add_argument("--base", required=True, metavar="REV", help="the commit to compare with")
    parser.add_argument("--only", choices=["postgres", "sqlite"], help="one database")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"for each case, by default {ROUNDS}")
    options = parser.parse_args()
    if options.rounds < FEWEST_ROUNDS:
        parser.error(f"--rounds must be at least {FEWEST_ROUNDS}")
    return options


def git(*arguments: str) -> str:
    """What git prints. Ends this program if git fails."""
    # A hook or `git rebase --exec` sets these variables, and git would then use another index or another folder.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    }
    command = ["git", "-C", str(ROOT), "-c", "core.hooksPath=/dev/null", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"git {' '.join(arguments)}: {done.stderr.strip()}", file=sys.stderr)
        raise SystemExit(1)
    return done.stdout.strip()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A temporary worktree of that commit."""
    with tempfile.TemporaryDirectory(prefix="chatledger-base-") as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


# --- Databases and workers --------------------------------------------------------------------------------------------


def compare(name: str, trees: Mapping[str, Path], rounds: int) -> str:
    """The table of all cases on one of the databases."""
    with ExitStack() as stack:
        urls = stack.enter_context(_sqlite_urls() if name == "SQLite" else _postgresql_urls())
        say(f"{name}: filling two databases")
        workers = {side: Worker(stack, side, tree, urls[side], rounds) for side, tree in trees.items()}
        for worker in workers.values():
            worker.wait_until_filled()
        if name == "PostgreSQL":
            for url in urls.values():
                asyncio.run(_collect_statistics(url))
        comparisons = []
        for case in CASES:
            say(f"{name}: {case.name}")
            comparisons.append(Comparison(case, *take_turns(workers, case, rounds).values()))
    return table(name, comparisons)


@contextmanager
def _sqlite_urls() -> Iterator[Mapping[str, str]]:
    with tempfile.TemporaryDirectory(prefix="chatledger-bench-") as folder:
        yield {side: str(Path(folder) / f"{side}.db") for side in (BASE, NOW)}


@contextmanager
def _postgresql_urls() -> Iterator[Mapping[str, str]]:
    # Autovacuum would work on one database while the other one is measured.
    with server(durable=True, settings=("autovacuum=off",)) as running:
        asyncio.run(require_durable(running.url))
        with running.database() as base, running.database() as now:
            yield {BASE: base, NOW: now}


async def _collect_statistics(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


class Worker:
    """A process that runs the cases on the code of one tree. The stack ends it."""

    def __init__(self, stack: ExitStack, side: str, tree: Path, url: str, rounds: int) -> None:
        self._side, self._tree = side, tree
        self._connection, theirs = Pipe()
        with theirs:
            command = [sys.executable, "-m", "benchmarks.against_worker", str(theirs.fileno()), url, str(rounds)]
            # One seed, so that sets have the same order on both sides.
            environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment, pass_fds=[theirs.fileno()])
        stack.callback(self._end)

    def wait_until_filled(self) -> None:
        """Raises RuntimeError if it runs other code than that of its tree."""
        package = Path(self._receive())
        if not package.is_relative_to(self._tree / "src"):
            raise RuntimeError(f"the worker of {self._side} runs {package}")

    def measure(self, case: Case, first: int) -> Block:
        self._connection.send((CASES.index(case), first))
        block: Block = self._receive()
        return block

    def _receive(self) -> Any:
        if not self._connection.poll(ANSWER_TIMEOUT):
            raise RuntimeError(f"the worker of {self._side} gave no answer for {ANSWER_TIMEOUT} s")
        try:
            return self._connection.recv()
        except EOFError:
            raise RuntimeError(f"the worker of {self._side} failed") from None

    def _end(self) -> None:
        self._connection.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


# --- Turns and figures ---------------------------------------------------------------------------------------------


class Side(Protocol):
    def measure(self, case: Case, first: int) -> Block: ...


def take_turns(sides: Mapping[str, Side], case: Case, rounds: int) -> dict[str, list[Block]]:
    """The blocks of each side, one a round. In the next round the other side goes first."""
    measured: dict[str, list[Block]] = {name: [] for name in sides}
    order = list(sides)
    for name in order:
        sides[name].measure(case, 0)  # warms up
    end = time.monotonic() + rounds * SECONDS_A_ROUND
    for number in range(1, rounds + 1):
        for name in order:
            measured[name].append(sides[name].measure(case, number * case.calls))
        order.reverse()
        if number >= FEWEST_ROUNDS and time.monotonic() > end:
            break
    return measured


@dataclass(frozen=True, slots=True)
class Comparison:
    case: Case
    base: Sequence[Block]
    now: Sequence[Block]

    @property
    def cells(self) -> tuple[str, ...]:
        wall, cpu = ([_one_clock(side, clock) for side in (self.base, self.now)] for clock in (0, 1))
        turns = self.case.turns
        return (
            self.case.name,
            *(f"{turns / _median(side):,.0f}/s" if turns else milliseconds(_median(side)) for side in wall),
            show_ratio(paired_ratio(*wall)),
            *(milliseconds(_median(side) / (turns or 1)) for side in cpu),
            show_ratio(paired_ratio(*cpu)),
        )


Times = Sequence[Sequence[float]]
"""Seconds of each call, by round."""


def _one_clock(side: Sequence[Block], clock: int) -> Times:
    return [[duration[clock] for duration in block] for block in side]


def _median(side: Times) -> float:
    return Sample([seconds for block in side for seconds in block]).median


def paired_ratio(base: Times, now: Times) -> Ratio:
    """Of blocks that ran right after each other: a slow second falls on both, and a ratio of all medians would not
    know that.
    """
    ratios = [statistics.median(own) / statistics.median(others) for others, own in zip(base, now, strict=True)]
    medians = [statistics.median(stretch) for stretch in stretches(ratios)]
    return Ratio(statistics.median(ratios), min(medians), max(medians))


def table(title: str, comparisons: Sequence[Comparison]) -> str:
    lines = [HEADINGS, *(comparison.cells for comparison in comparisons)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join([title, "=" * len(title), texts[0], "-" * len(texts[0]), *texts[1:]])


if __name__ == "__main__":
    run_to_the_end(main)
