"""A database that is large in every direction: a thread of 10,000 messages, 10,000 threads, runs and scores, and a
thousand other tenants with one of each.

They have a thread of the same id: a planner that takes tenant and thread for independent of each other then expects
hundreds of rows where the key allows one.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import asyncpg

ROWS = 10_000
OTHERS = 1_000
LONG, SHORT = "t1", "t2"
"""Threads of 10,000 messages and of five; any other is empty."""

_OTHERS = f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {OTHERS})"
_PLACES = f"(SELECT '{LONG}' AS thread, n FROM numbers UNION ALL SELECT '{SHORT}', n FROM numbers WHERE n <= 5) AS p"
_BOTH = "(SELECT 0 AS idx UNION ALL SELECT 1) AS i"


def _script(schema: str, moment: str, rows: int) -> str:
    """The same rows on either database; `moment`: a time made of n. `rows`: the threads, and the messages of one."""
    numbers = f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})"
    return f"""
    {numbers}
    INSERT INTO {schema}threads (tenant_id, thread_id, user_id, active_branch, created_at, active_at)
    SELECT 'default', 't' || n, CASE n % 2 WHEN 0 THEN 'ada' ELSE 'eve' END, 0, {moment}, {moment} FROM numbers;

    {numbers}
    INSERT INTO {schema}branches (tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, created_at)
    SELECT 'default', 't' || n, 0, '[[0,1,null]]', CASE n WHEN 1 THEN {rows} WHEN 2 THEN 5 ELSE 0 END, n,
           CASE WHEN n <= 2 THEN 'assistant' END, {moment}
    FROM numbers;

    {numbers}
    INSERT INTO {schema}runs (tenant_id, run_id, thread_id, agent, status, started_at)
    SELECT 'default', 'r' || n, 't' || n, CASE n % 2 WHEN 0 THEN 'guide' ELSE 'clerk' END, 'completed', {moment}
    FROM numbers;

    {numbers}
    INSERT INTO {schema}messages (tenant_id, thread_id, branch, seq, message_id, role, content_form, text,
                                  call_count, tool_call_id, run_id, state, created_at)
    SELECT 'default', thread, 0, n, 'm' || n,
           CASE n % 5 WHEN 1 THEN 'user' WHEN 3 THEN 'tool' WHEN 4 THEN 'tool' ELSE 'assistant' END,
           'str', 'text ' || n, CASE n % 5 WHEN 2 THEN 2 END,
           CASE n % 5 WHEN 3 THEN 'call 0' WHEN 4 THEN 'call 1' END, 'r' || substr(thread, 2), 'complete', {moment}
    FROM {_PLACES};

    {numbers}
    INSERT INTO {schema}tool_calls (tenant_id, thread_id, branch, seq, idx, call_id, name)
    SELECT 'default', thread, 0, n, idx, 'call ' || idx, 'f' FROM {_PLACES}, {_BOTH} WHERE n % 5 = 2;

    {numbers}
    INSERT INTO {schema}tool_results (tenant_id, thread_id, branch, seq, call_branch, call_seq, call_idx)
    SELECT 'default', thread, 0, n + 1 + idx, 0, n, idx FROM {_PLACES}, {_BOTH} WHERE n % 5 = 2;

    {numbers}
    INSERT INTO {schema}feedback (tenant_id, feedback_id, run_id, key, score, kwargs, created_at)
    SELECT 'default', 'f' || n, 'r' || n, CASE n % 2 WHEN 0 THEN 'stars' ELSE 'thumbs' END, n % 5, '{{}}', {moment}
    FROM numbers;

    {_OTHERS}
    INSERT INTO {schema}threads (tenant_id, thread_id, active_branch, created_at, active_at)
    SELECT 'tenant ' || n, 't1', 0, {moment}, {moment} FROM numbers;

    {_OTHERS}
    INSERT INTO {schema}runs (tenant_id, run_id, thread_id, agent, status, started_at)
    SELECT 'tenant ' || n, 'r1', 't1', 'guide', 'completed', {moment} FROM numbers;

    {_OTHERS}
    INSERT INTO {schema}feedback (tenant_id, feedback_id, run_id, key, score, kwargs, created_at)
    SELECT 'tenant ' || n, 'f1', 'r1', 'stars', 1, '{{}}', {moment} FROM numbers;
    """


def seed_sqlite(path: Path, rows: int = ROWS, more: str = "SELECT 1") -> None:
    """`more`: statements on tables that are named `{schema}table`."""
    connection = sqlite3.connect(path)
    connection.executescript(_script("", "n * 1000000", rows))
    connection.executescript(more.format(schema=""))
    connection.execute("ANALYZE")
    connection.commit()
    connection.close()


def seed_postgresql(url: str, rows: int = ROWS, more: str = "SELECT 1") -> None:
    """As `seed_sqlite`."""

    async def seed() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(_script("chatledger.", "timestamptz 'epoch' + n * interval '1 second'", rows))
        await connection.execute(more.format(schema="chatledger."))
        await connection.execute("VACUUM ANALYZE")
        await connection.close()

    asyncio.run(seed())
