"""python -m benchmarks.import_against --base REV [--rounds N]: the CPU time of the first import, beside a commit.

Each round starts a process for each tree, and the other tree goes first in the next one. All modules are compiled to
bytecode before. The ratio is the median of the rounds' ratios; the range beside it is the lowest and the highest median
in five stretches of the run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.against import BASE, NOW, ROOT, checked_out, git, paired_ratio
from benchmarks.ending import run_to_the_end
from benchmarks.measure import BLOCKS, Sample
from benchmarks.report import milliseconds, show_ratio

ROUNDS = 50
CASES = {
    "import chatledger": "import chatledger",
    "its ledger": "from chatledger import Ledger",
    "its ledger, after SQLAlchemy": "from chatledger import Ledger",
}
_BEFORE = {"its ledger, after SQLAlchemy": "import sqlalchemy.ext.asyncio"}
_SCRIPT = """
import time
{before}
start = time.process_time()
{statement}
print(time.process_time() - start)
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.import_against", description="the CPU time of an import"
    )
    parser.add_argument("--base", required=True, metavar="REV", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"by default {ROUNDS}")
    given = parser.parse_args()
    rounds = max(given.rounds, 2 * BLOCKS)
    with checked_out(git("rev-parse", "--verify", "--end-of-options", f"{given.base}^{{commit}}")) as tree:
        for case in CASES:
            print(compare(case, {BASE: tree / "src", NOW: ROOT / "src"}, rounds), flush=True)
    return 0


def compare(case: str, sources: dict[str, Path], rounds: int) -> str:
    """The line of a case."""
    measured: dict[str, list[list[float]]] = {side: [] for side in sources}
    order = list(sources)
    for number in range(rounds + 1):  # the first compiles modules to bytecode and is not counted
        for side in order:
            seconds = cpu_time(case, sources[side])
            measured[side] += [[seconds]] if number else []
        order.reverse()
    base, now = (Sample([block[0] for block in side]).median for side in measured.values())
    ratio = show_ratio(paired_ratio(*measured.values()))
    return f"{case}: {BASE} {milliseconds(base)}, {NOW} {milliseconds(now)} of CPU, {NOW}/{BASE} {ratio}"


def cpu_time(case: str, source: Path) -> float:
    """Seconds of CPU that a new process spends in the statement."""
    script = _SCRIPT.format(before=_BEFORE.get(case, ""), statement=CASES[case])
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, env=environment | {"PYTHONPATH": str(source)}, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    run_to_the_end(main)
