"""Copies of many messages in both directions: their rates beside those of bare drivers, and their memory.

python -m tests.transfer.copy.large [--messages 1000000]

It prints for each direction: the rate of the copy as a share of that of a bare SELECT on one side and a bare COPY or
executemany on the other; the time of a second pass over that of a bare SELECT on both sides; and the peak of the memory
over that of a tenth of the messages.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from chatledger.admin import copy, migrate
from chatledger.storage.schema.tables import INSERTION_ORDER
from tests.cli.commands import SOURCE
from tests.postgres import Server, server
from tests.transfer.copy.test_kill import COMMAND

TABLES = [table.name for table in INSERTION_ORDER]
OF_THREAD = 200
CHUNK = 5_000
_TEXT = "'The answer to question ' || n || ' of thread ' || t || ': ' || hex(randomblob(80))"
_SEEDS = """
INSERT INTO threads (tenant_id, thread_id, user_id, title, active_branch, created_at, active_at)
SELECT 'default', 't' || t, 'user ' || t % 97, 'Thread ' || t, 0, t * 1000000, t * 1000000 FROM threads_of;
INSERT INTO branches (tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, created_at)
SELECT 'default', 't' || t, 0, '[[0,1,null]]', {each}, t, 'assistant', t * 1000000 FROM threads_of;
INSERT INTO runs (tenant_id, run_id, thread_id, agent, model, status, input_tokens, output_tokens, cost, started_at,
                  ended_at)
SELECT 'default', 'r' || t, 't' || t, 'guide', 'model', 'completed', t, 2 * t, '0.10', t * 1000000, t * 1000001
FROM threads_of;
INSERT INTO messages (tenant_id, thread_id, branch, seq, message_id, role, content_form, text, call_count, tool_call_id,
                      run_id, state, created_at)
SELECT 'default', 't' || t, 0, n, 'm' || t || '-' || n,
       CASE n % 5 WHEN 1 THEN 'user' WHEN 3 THEN 'tool' ELSE 'assistant' END, 'str', {text},
       CASE n % 5 WHEN 2 THEN 1 END, CASE n % 5 WHEN 3 THEN 'call' END, 'r' || t, 'complete', t * 1000000 + n
FROM threads_of, places;
INSERT INTO tool_calls (tenant_id, thread_id, branch, seq, idx, call_id, name, arguments, arguments_form)
SELECT 'default', 't' || t, 0, n, 0, 'call', 'weather', '{{"city": "Tokyo"}}', 'str'
FROM threads_of, places WHERE n % 5 = 2;
INSERT INTO tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
SELECT 'default', 't' || t, 0, n, 0, n - 1, 0 FROM threads_of, places WHERE n % 5 = 3;
INSERT INTO feedback (tenant_id, feedback_id, run_id, key, score, kwargs, created_at)
SELECT 'default', 'f' || t, 'r' || t, 'stars', 4, '{{}}', t * 1000000 FROM threads_of;
INSERT INTO kv (tenant_id, kind, scope_id, namespace, key, value, version, updated_at)
SELECT 'default', 'thread', 't' || t, '', 'state', '1', 1, t * 1000000 FROM threads_of;
"""


def seed(path: str, messages: int) -> None:
    migrate(path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA synchronous = OFF")
        numbers = "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < {}) SELECT n FROM i"
        file.execute(f"CREATE TEMP TABLE threads_of AS SELECT n AS t FROM ({numbers.format(messages // OF_THREAD)})")
        file.execute(f"CREATE TEMP TABLE places AS {numbers.format(OF_THREAD)}")
        for statement in _SEEDS.format(each=OF_THREAD, text=_TEXT).split(";\n"):
            file.execute(statement)
        file.commit()


# --- The bare drivers -------------------------------------------------------------------------------------------------


def read_sqlite(path: str) -> Iterator[tuple[str, list[Any]]]:
    with closing(sqlite3.connect(path)) as file:
        for table in TABLES:
            cursor = file.execute(f"SELECT * FROM {table}")
            while rows := cursor.fetchmany(CHUNK):
                yield table, rows


def select_sqlite(path: str) -> float:
    began = time.monotonic()
    for _ in read_sqlite(path):
        pass
    return time.monotonic() - began


def insert_sqlite(source: str, target: str) -> float:
    """The seconds of `executemany` alone, with a commit after each chunk."""
    migrate(target)
    spent = 0.0
    with closing(sqlite3.connect(target)) as file:
        file.execute("PRAGMA synchronous = FULL")
        for table, rows in read_sqlite(source):
            statement = f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})"
            began = time.monotonic()
            file.executemany(statement, rows)
            file.commit()
            spent += time.monotonic() - began
    return spent


async def through_postgresql(source: str, target: str) -> tuple[float, float]:
    """The seconds of bare SELECT, and those of bare COPY into an empty database."""
    reads, writes = await asyncpg.connect(source), await asyncpg.connect(target)
    selecting = copying = 0.0
    for table in TABLES:
        async with reads.transaction():
            cursor = await reads.cursor(f"SELECT * FROM chatledger.{table}")
            while True:
                began = time.monotonic()
                rows: Sequence[Any] = await cursor.fetch(CHUNK)
                selecting += time.monotonic() - began
                if not rows:
                    break
                columns, records = list(rows[0].keys()), [tuple(row) for row in rows]
                began = time.monotonic()
                await writes.copy_records_to_table(table, schema_name="chatledger", columns=columns, records=records)
                copying += time.monotonic() - began
    await reads.close()
    await writes.close()
    return selecting, copying


# --- The copy ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spent:
    seconds: float
    megabytes: int


def run(source: str, target: str, *more: str) -> Spent:
    """The command, in a process of its own. Its memory is read while it runs: the peak that wait4 tells is at least the
    memory of the process that started it.
    """
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    began, peak = time.monotonic(), 0
    process = subprocess.Popen([*COMMAND, source, "--to", target, *more], env=environment, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        peak = max(peak, _peak_of(process.pid))
        time.sleep(0.02)
    assert process.returncode == 0
    return Spent(time.monotonic() - began, peak // 1024)


def _peak_of(pid: int) -> int:
    """In KiB; 0 for a process that has ended."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


def measure(running: Server, folder: Path, messages: int) -> list[Spent]:
    source, back, bare = (str(folder / f"{messages}-{name}.db") for name in ("source", "back", "bare"))
    seed(source, messages)
    with running.database() as url, running.database() as beside:
        there = run(source, url)
        again = run(source, url)
        asyncio.run(copy(source, url, done=True))
        returned = run(url, back)
        returned_again = run(url, back)
        assert not asyncio.run(copy(url, back, verify=True, done=True)).differences
        migrate(beside)
        selecting, copying = asyncio.run(through_postgresql(url, beside))
    reading, inserting = select_sqlite(source), insert_sqlite(source, bare)
    for name, first, second, one, other in (
        ("SQLite → PostgreSQL", there, again, reading, copying),
        ("PostgreSQL → SQLite", returned, returned_again, selecting, inserting),
    ):
        print(
            f"{messages:,} messages, {name}: {first.seconds:.1f} s, {(one + other) / first.seconds:.2f} of the rate of "
            f"bare drivers ({one:.1f} + {other:.1f} s); second pass {second.seconds:.1f} s, "
            f"{second.seconds / (reading + selecting):.1f} × reading both ({reading:.1f} + {selecting:.1f} s); "
            f"peak {first.megabytes} and {second.megabytes} MB",
            flush=True,
        )
    return [there, again, returned, returned_again]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    messages = parser.parse_args().messages
    with server() as running, tempfile.TemporaryDirectory() as folder:
        few, many = [measure(running, Path(folder), count) for count in (messages // 10, messages)]
    ratios = [f"{large.megabytes / small.megabytes:.2f}" for small, large in zip(few, many, strict=True)]
    print(f"peak memory of {messages:,} over that of {messages // 10:,}: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
