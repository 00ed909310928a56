"""Bytes per turn, and where they go: by table and index, after turns of many threads in alternation."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from typing import Any

import asyncpg

from benchmarks.progress import say
from benchmarks.report import Row, Target
from benchmarks.turns import turns
from chatledger import Ledger
from chatledger.storage.append.write import ACTIVITY_RESOLUTION

THREADS = 30
"""Conversations that are held at the same time: pages split as they do in a service."""


async def write_turns(ledger: Ledger, count: int, *, runs: bool) -> None:
    """`runs`: each turn is a run of its own."""
    say(f"bytes of {count:,} turns{', a run each' * runs}")
    threads = [(await ledger.threads.create()).thread_id for _ in range(THREADS)]
    stock = turns()
    for number in range(count):
        turn = stock[number % len(stock)]
        run = f"run-{number:032d}" if runs else None
        await ledger.messages.append(threads[number % THREADS], turn.models, run_id=run)


async def postgres_sizes(url: str, count: int, *, runs: bool) -> dict[str, float]:
    """Bytes per turn of each table and index, out-of-line values with their table."""
    connection = await asyncpg.connect(url)
    try:
        before = await _relations(connection)
        async with Ledger.open(url) as ledger:
            await write_turns(ledger, count, runs=runs)
        after = await _relations(connection)
    finally:
        await connection.close()
    return {name: (size - before[name]) / count for name, size in after.items() if size > before[name]}


async def _relations(connection: Any) -> dict[str, int]:
    rows = await connection.fetch(
        "SELECT c.relname, CASE c.relkind WHEN 'r' THEN pg_table_size(c.oid) ELSE pg_relation_size(c.oid) END"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'chatledger' AND c.relkind IN ('r', 'i')"
    )
    return {row[0]: row[1] for row in rows}


async def sqlite_sizes(path: str, count: int, *, runs: bool) -> dict[str, float]:
    before = _pages(path)
    async with Ledger.open(path) as ledger:
        await write_turns(ledger, count, runs=runs)
    after = _pages(path)
    return {name: (size - before[name]) / count for name, size in after.items() if size > before[name]}


async def sqlite_wal(path: str) -> float:
    """Bytes that a turn adds to the WAL, if nothing else is written at its time: one turn on each thread of the file,
    longer ago than the ledger waits before it notes the activity of a thread again.
    """
    say("WAL of a lone turn")
    stock = turns()
    with closing(sqlite3.connect(path)) as connection:
        async with Ledger.open(path) as ledger:
            threads = await ledger.threads.list(limit=THREADS)
            await asyncio.sleep(ACTIVITY_RESOLUTION.total_seconds())
            size = 0
            for number, thread in enumerate(threads):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                await ledger.messages.append(thread.thread_id, stock[number].models)
                size += _size(f"{path}-wal")
    return size / len(threads)


def _size(path: str) -> int:
    return os.stat(path).st_size


def _pages(path: str) -> dict[str, int]:
    """Bytes of each table and index; of the file as a whole where this SQLite cannot tell them apart."""
    connection = sqlite3.connect(path)
    try:
        return dict(connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall())
    except sqlite3.OperationalError:
        ((pages, size),) = connection.execute("SELECT * FROM pragma_page_count(), pragma_page_size()").fetchall()
        return {"the file": pages * size}
    finally:
        connection.close()


def size_rows(case: str, sizes: dict[str, float], target: Target | None) -> list[Row]:
    """The whole, then its parts from the largest down to 1 %, then the rest."""
    whole = sum(sizes.values())
    shown = {name: size for name, size in sizes.items() if size >= whole / 100}
    parts = sorted(shown.items(), key=lambda item: -item[1])
    rest = whole - sum(shown.values())
    rows = [Row(case, "all", f"{whole / 1000:.2f} kB", target=target, judged=whole / 1000)]
    for name, size in [*parts, *([("the rest", rest)] if rest else [])]:
        rows.append(Row(case, f"  {name}", f"{size / 1000:.2f} kB", ratio=f"{size / whole:.0%}"))
    return rows
