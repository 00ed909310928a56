"""python -m benchmarks.peers [--only postgres|sqlite] [--quick] [--page FILE]"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sqlite3
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

from tests.postgres import Server, server

from benchmarks.cases import Outcome
from benchmarks.ending import run_to_the_end
from benchmarks.machine import machine
from benchmarks.parts import write_part
from benchmarks.peers.adk import Adk
from benchmarks.peers.langchain import PostgresHistories, SqlHistories
from benchmarks.peers.langgraph import PostgresSaver, SqliteSaver
from benchmarks.peers.openai_agents import LedgerSessions, SqlalchemySessions, SqliteSessions
from benchmarks.peers.ours import BarePostgres, BareSqlite, Ours
from benchmarks.peers.peer import Peer
from benchmarks.peers.race import FULL, QUICK, Extent, Opened, run
from benchmarks.postgres import require_durable
from benchmarks.report import Row, as_markdown, as_text

POSTGRES: Sequence[type[Peer]] = (
    BarePostgres,
    Ours,
    LedgerSessions,
    SqlalchemySessions,
    PostgresHistories,
    SqlHistories,
    PostgresSaver,
    Adk,
)
SQLITE: Sequence[type[Peer]] = (
    BareSqlite,
    Ours,
    LedgerSessions,
    SqliteSessions,
    SqlalchemySessions,
    SqlHistories,
    SqliteSaver,
    Adk,
)
PACKAGES = (
    "openai-agents",
    "langchain-postgres",
    "langchain-community",
    "langgraph",
    "langgraph-checkpoint-postgres",
    "langgraph-checkpoint-sqlite",
    "google-adk",
)


def main() -> int:
    options = parse_options("python -m benchmarks.peers", "chatledger beside other stores")
    warnings.simplefilter("ignore")  # theirs, about themselves
    logging.disable(logging.WARNING)
    where = f"{machine()}; " + ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    print(where, flush=True)
    outcomes = list(_run(QUICK if options.quick else FULL, options.only))
    if options.page is not None:
        parts = [f"Measured on: {where}."]
        for outcome in outcomes:
            parts += [f"### {outcome.title}", as_markdown(outcome.rows)]
        write_part(options.page, "peers", "\n\n".join(parts))
    return 0


def parse_options(program: str, description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--only", choices=["postgres", "sqlite"], help="one database")
    parser.add_argument("--quick", action="store_true", help="few rounds on short threads, to see that it runs")
    parser.add_argument("--page", type=Path, help="write the results into this Markdown page")
    return parser.parse_args()


def _run(extent: Extent, only: str | None) -> Iterator[Outcome]:
    if only != "sqlite":
        with server(durable=True) as running, _postgres(running) as opened:
            title = f"PostgreSQL {asyncio.run(require_durable(running.url))}"
            yield _shown(Outcome(title), opened, extent)
    if only != "postgres":
        with _sqlite() as opened:
            yield _shown(Outcome(f"SQLite {sqlite3.sqlite_version}"), opened, extent)


def _shown(outcome: Outcome, opened: Opened, extent: Extent) -> Outcome:
    outcome.rows += asyncio.run(in_loop(lambda: run(opened, extent)))
    print(as_text(outcome.title, outcome.rows), flush=True)
    return outcome


async def in_loop(work: Callable[[], Awaitable[list[Row]]]) -> list[Row]:
    """A store that keeps a connection for each thread of the default executor finds it again in one of one thread."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    return await work()


@contextmanager
def _postgres(running: Server) -> Iterator[Opened]:
    with ExitStack() as stack:
        yield {kind: stack.enter_context(running.database()) for kind in POSTGRES}


@contextmanager
def _sqlite() -> Iterator[Opened]:
    with tempfile.TemporaryDirectory(prefix="chatledger-peers-") as folder:
        yield {kind: str(Path(folder) / f"peer{number}.db") for number, kind in enumerate(SQLITE)}


if __name__ == "__main__":
    run_to_the_end(main)
