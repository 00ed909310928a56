"""Databases with threads of given lengths, filled by COPY on PostgreSQL and executemany on SQLite.

Most threads of a real database are short, and a planner that knows only that may read a long one whole; so short
threads are always there in number.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg

from benchmarks.rows import FILLED_COLUMNS, thread_rows
from chatledger.ids import new_id

SHORT_THREADS = 4_000
SHORT_LENGTH = 5
_BATCH = 5_000


# A run of each thread. VACUUM on an empty table would make each connection that inserts runs check them by reading all.
_RUNS = """
INSERT INTO chatledger.runs (tenant_id, thread_id, run_id, status, started_at, ended_at)
SELECT tenant_id, thread_id, 'of ' || thread_id, 'completed', created_at, created_at FROM chatledger.threads
"""


class Plan:
    """Which threads a database is to hold: asked for by the cases before it is filled."""

    def __init__(self) -> None:
        self.lengths = {new_id(): SHORT_LENGTH for _ in range(SHORT_THREADS)}

    def threads(self, length: int, count: int = 1) -> list[str]:
        """Ids of new threads that will hold `length` messages each."""
        made = [new_id() for _ in range(count)]
        self.lengths |= dict.fromkeys(made, length)
        return made


async def fill_postgres(url: str, plan: Plan, *, statistics: bool = True) -> None:
    """Without `statistics` no ANALYZE runs, by us or by the server, as on a database that was just restored."""
    connection = await asyncpg.connect(url)
    try:
        if not statistics:
            for table in FILLED_COLUMNS:
                await connection.execute(f"ALTER TABLE chatledger.{table} SET (autovacuum_enabled = false)")
        for table, rows in _batches(plan, sqlite=False):
            await connection.copy_records_to_table(
                table, schema_name="chatledger", columns=FILLED_COLUMNS[table], records=rows
            )
        await connection.execute(_RUNS)
        if statistics:
            await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


def fill_sqlite(path: str, plan: Plan) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    for table, rows in _batches(plan, sqlite=True):
        columns = FILLED_COLUMNS[table]
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
    connection.execute("COMMIT")
    connection.execute("ANALYZE")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _batches(plan: Plan, *, sqlite: bool) -> Iterator[tuple[str, list[Any]]]:
    """(table, rows) in an order that the foreign keys allow, some thousand messages at a time."""
    waiting: dict[str, list[Any]] = {table: [] for table in FILLED_COLUMNS}
    for table, rows in _all_rows(plan, sqlite=sqlite):
        waiting[table] += rows
        if table == "tool_results" and len(waiting["messages"]) >= _BATCH:
            yield from _emptied(waiting)
    yield from _emptied(waiting)


def _all_rows(plan: Plan, *, sqlite: bool) -> Iterable[tuple[str, list[Any]]]:
    now = datetime.now(UTC)
    for thread, length in plan.lengths.items():
        yield from thread_rows(thread, length, now, sqlite=sqlite)


def _emptied(waiting: dict[str, list[Any]]) -> Iterator[tuple[str, list[Any]]]:
    for table, rows in waiting.items():
        if rows:
            yield table, rows
            waiting[table] = []
