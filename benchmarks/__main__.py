"""python -m benchmarks [--full] [--only postgres|sqlite] [--page FILE]"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.postgres import server

from benchmarks.cases import FULL, SHORT, Extent, Outcome
from benchmarks.measure import Sample
from benchmarks.page import write_page
from benchmarks.postgres import run_postgres
from benchmarks.report import MISSED, REACHED, as_text
from benchmarks.sqlite import run_sqlite


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="chatledger beside the bare drivers")
    parser.add_argument("--full", action="store_true", help="more rounds, and threads of 100,000 messages")
    parser.add_argument("--only", choices=["postgres", "sqlite"], help="one database")
    parser.add_argument("--page", type=Path, help="write the results and their plots as a Markdown page")
    options = parser.parse_args()
    extent = FULL if options.full else SHORT
    start = time.monotonic()
    where = machine()
    print(where, flush=True)
    outcomes = list(_run(extent, options.only))
    if options.page is not None:
        write_page(options.page, where, outcomes)
    print(summary(outcomes, time.monotonic() - start))
    return 0


def _run(extent: Extent, only: str | None) -> Sequence[Outcome]:
    outcomes = []
    if only != "sqlite":
        with server(durable=True) as running:
            outcomes.append(_shown(lambda: run_postgres(running, extent)))
    if only != "postgres":
        outcomes.append(_shown(lambda: run_sqlite(extent)))
    return outcomes


def _shown(run: Callable[[], Outcome]) -> Outcome:
    """The outcome of a run, printed, with what the disk cost before and after: where it is slow, ratios lean to 1."""
    before = _fsync()
    outcome = run()
    outcome.title += f", fsync of a page {before * 1e6:,.0f} µs before and {_fsync() * 1e6:,.0f} µs after"
    print(as_text(outcome.title, outcome.rows), flush=True)
    return outcome


def machine() -> str:
    """What the figures were measured on."""
    load, folder = os.getloadavg()[0], tempfile.gettempdir()
    return (
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, load {load:.1f}, {folder}"
    )


def _fsync() -> float:
    times = []
    with tempfile.TemporaryFile() as file:
        for _ in range(100):
            file.write(b"x" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - start)
    return Sample(times).median


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    marks = [row.mark for outcome in outcomes for row in outcome.rows]
    return f"\n{marks.count(REACHED)} targets reached, {marks.count(MISSED)} missed, in {seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
