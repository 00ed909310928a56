"""python -m benchmarks [--full] [--only postgres|sqlite] [--part NAME] [--page FILE] [--keep FOLDER]"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.postgres import server

from benchmarks import postgres, sqlite
from benchmarks.cases import FULL, SHORT, Extent, Outcome
from benchmarks.ending import run_to_the_end
from benchmarks.kept import Kept
from benchmarks.machine import fsync_time, machine
from benchmarks.page import write_page
from benchmarks.report import MISSED, REACHED, as_text

Sections = Sequence[tuple[str, Callable[[], Outcome]]]


def main() -> int:
    options = _options()
    start = time.monotonic()
    where = machine()
    print(where, flush=True)
    kept = Kept(options.keep, "full" if options.full else "short")
    with ExitStack() as stack:
        sections = _sections(stack, FULL if options.full else SHORT, options.only)
        wanted = [one for one in sections if options.part is None or options.part in one[0]]
        outcomes = list(_run(wanted, kept))
    if options.page is not None:
        write_page(options.page, where, outcomes, full=options.full)
    kept.forget()
    print(summary(outcomes, time.monotonic() - start))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="chatledger beside the bare drivers")
    parser.add_argument("--full", action="store_true", help="more rounds, and threads of up to 1,000,000 messages")
    parser.add_argument("--only", choices=["postgres", "sqlite"], help="one database")
    parser.add_argument("--part", help="only parts with this in their title: append, growth, bytes, import, million, …")
    parser.add_argument("--page", type=Path, help="write the results and their plots into this Markdown page")
    parser.add_argument("--keep", type=Path, help="where parts are kept until the run is complete: it can be resumed")
    return parser.parse_args()


def _sections(stack: ExitStack, extent: Extent, only: str | None) -> Sections:
    found: list[tuple[str, Callable[[], Outcome]]] = []
    if only != "sqlite":
        running = stack.enter_context(server(durable=True))
        found += [(f"PostgreSQL {name}", run) for name, run in postgres.sections(running, extent).items()]
    if only != "postgres":
        found += [(f"SQLite {name}", run) for name, run in sqlite.sections(extent).items()]
    return found


def _run(sections: Sections, kept: Kept) -> Iterator[Outcome]:
    for name, run in sections:
        yield kept.or_run(name, lambda name=name, run=run: _measured(name, run))  # type: ignore[misc]


def _measured(name: str, run: Callable[[], Outcome]) -> Outcome:
    """The outcome of a part, printed, with what the disk cost before and after: where it is slow, ratios lean to 1."""
    before = fsync_time()
    outcome = run()
    fsyncs = f"fsync of a page {before * 1e6:,.0f} µs before and {fsync_time() * 1e6:,.0f} µs after"
    outcome.title += f": {name.partition(' ')[2]} ({fsyncs})"
    print(as_text(outcome.title, outcome.rows), flush=True)
    return outcome


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    marks = [row.mark for outcome in outcomes for row in outcome.rows]
    return f"\n{marks.count(REACHED)} targets reached, {marks.count(MISSED)} missed, in {seconds:.0f} s"


if __name__ == "__main__":
    run_to_the_end(main)
