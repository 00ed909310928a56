"""Pages of one user's threads among the threads of everybody: 50 of 10,000 of 300,000.

The database tells how much the statements of each page read. A page that reads more than its own rows ends the run,
however quick it was.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import asyncpg
from sqlalchemy import Engine, event

from benchmarks.cases import Extent
from benchmarks.measure import Call, race
from benchmarks.progress import say
from benchmarks.report import Row, Target, sample_rows
from chatledger import Ledger, Thread
from chatledger.types import Page

PAGE = 50
SHARE = 30
"""One in so many threads is the user's."""
USER, SMALL = "ada", "small"
"""SMALL is a tenant with no more threads than a page and the one that tells of the next page; all are USER's."""
FIRST = "newest activity, the first page"
ORDERS: Mapping[str, Mapping[str, Any]] = {
    "newest activity": {},
    "oldest activity": {"newest_first": False},
    "newest thread": {"order": "created"},
}
STEPS = 1.1
"""The steps of SQLite for a page may be so many times those for the page of SMALL."""

Preflight = tuple[str, Sequence[Any]]
"""A statement and its parameters, as the driver got them."""


async def postgres_list_rows(url: str, extent: Extent) -> list[Row]:
    say(f"seeding {extent.threads:,} threads")
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            _script(extent.threads, "chatledger.", "timestamptz 'epoch' + ({}) * interval '1 second'")
        )
        await connection.execute("VACUUM ANALYZE")
        async with Ledger.open(url) as ledger:
            pages = await _pages(ledger, extent)
            for name, kwargs in pages.items():
                for statement, values in await _statements(ledger, kwargs):
                    await _require_own_rows(connection, name, statement, values)
            return await _rows(ledger, pages, extent)
    finally:
        await connection.close()


async def sqlite_list_rows(path: str, extent: Extent) -> list[Row]:
    say(f"seeding {extent.threads:,} threads")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(f"BEGIN; {_script(extent.threads, '', '({}) * 1000000')} COMMIT; ANALYZE")
    try:
        async with Ledger.open(path) as ledger:
            pages = await _pages(ledger, extent)
            for name, kwargs in pages.items():
                small = {key: value for key, value in kwargs.items() if key != "cursor"}
                steps, least = [
                    sum(_steps(connection, *one) for one in await _statements(owner, of))
                    for owner, of in ((ledger, kwargs), (ledger.tenant(SMALL), small))
                ]
                _require(name, "steps", steps, int(STEPS * least))
            return await _rows(ledger, pages, extent)
    finally:
        connection.close()


async def _rows(ledger: Ledger, pages: Mapping[str, Mapping[str, Any]], extent: Extent) -> list[Row]:
    """The times of the pages, each beside the first one."""
    calls = {name: _call(ledger, kwargs) for name, kwargs in pages.items()}
    targets = {name: Target(1.5) for name in calls if name != FIRST}
    case = f"{PAGE} of {extent.threads // SHARE:,} threads of {extent.threads:,}"
    return sample_rows(case, await race(calls, extent.rounds), FIRST, targets)


def _call(ledger: Ledger, kwargs: Mapping[str, Any]) -> Call:
    async def read(_number: int) -> None:
        assert len((await _list(ledger, kwargs)).items) == PAGE

    return read


async def _list(ledger: Ledger, kwargs: Mapping[str, Any], limit: int = PAGE) -> Page[Thread]:
    return await ledger.user(USER).threads.list(limit=limit, **kwargs)


async def _pages(ledger: Ledger, extent: Extent) -> dict[str, Mapping[str, Any]]:
    """The first page and one in the middle, in each order."""
    pages: dict[str, Mapping[str, Any]] = {}
    for name, order in ORDERS.items():
        pages[f"{name}, the first page"] = order
        half = extent.threads // SHARE // 2
        cursor, seen = None, 0
        while seen < half:
            page = await _list(ledger, {**order, "cursor": cursor}, limit=min(500, half))
            cursor, seen = page.next_cursor, seen + len(page.items)
        pages[f"{name}, in the middle"] = {**order, "cursor": cursor}
    return pages


# --- The rows that a page reads ---------------------------------------------------------------------------------------


async def _statements(ledger: Ledger, kwargs: Mapping[str, Any]) -> list[Preflight]:
    """The statements of a page."""
    with _listening() as seen:
        page = await _list(ledger, kwargs)
    assert len(page.items) == PAGE
    assert page.items[0].preview is not None
    return seen


@contextmanager
def _listening() -> Iterator[list[Preflight]]:
    seen: list[Preflight] = []

    def listen(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        seen.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", listen)


async def _require_own_rows(connection: Any, page: str, statement: str, values: Sequence[Any]) -> None:
    """One more row of each table than the page has: it tells of the next page. The plan for these values is asked, and
    the one for any values.
    """
    await connection.execute(f"PREPARE page AS {statement}")
    for mode in ("force_custom_plan", "force_generic_plan"):
        await connection.execute(f"SET plan_cache_mode = {mode}")
        given = f"({', '.join(map(_literal, values))})" if values else ""
        text = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page{given}")
        (explained,) = json.loads(text)
        read = _read(explained["Plan"])
        for table, rows in read.items():
            _require(f"{page} ({mode})", f"rows of {table}", rows, PAGE + 1)
        assert read["threads"] == PAGE + 1
    await connection.execute("DEALLOCATE page")


def _read(node: Mapping[str, Any]) -> Counter[str]:
    """The rows that a plan read of each table, those included that it dropped."""
    read: Counter[str] = Counter()
    if "Relation Name" in node:
        dropped = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        read[node["Relation Name"]] = round((node["Actual Rows"] + dropped) * node["Actual Loops"])
    return sum((_read(child) for child in node.get("Plans", ())), read)


def _literal(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def _steps(connection: sqlite3.Connection, statement: str, values: Sequence[Any]) -> int:
    """The instructions that SQLite runs for the statement."""
    ran = 0

    def step() -> int:
        nonlocal ran
        ran += 1
        return 0

    connection.set_progress_handler(step, 1)
    connection.execute(statement, values).fetchall()
    connection.set_progress_handler(None, 0)
    return ran


def _require(page: str, what: str, found: int, most: int) -> None:
    say(f"{page}: {found:,} {what}, at most {most:,}")
    if found > most:
        raise RuntimeError(f"{page}: {found:,} {what}, and {most:,} would do")


# --- The threads ------------------------------------------------------------------------------------------------------


def _script(threads: int, schema: str, moment: str) -> str:
    """Threads of a question and an answer. The order of their last activity is not that of their creation."""
    numbers = f"""
    WITH RECURSIVE numbers(n) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT n + 1 FROM numbers WHERE n < {threads})
    """
    tenant = f"CASE WHEN n % {SHARE} = 1 AND n <= {SHARE} * {PAGE + 1} THEN '{SMALL}' ELSE 'default' END"
    created, active = moment.format("n"), moment.format(f"{threads} + n * 7919 % {threads}")
    return f"""
    {numbers}
    INSERT INTO {schema}threads (tenant_id, thread_id, user_id, active_branch, created_at, active_at)
    SELECT {tenant}, 'thread ' || n,
           CASE WHEN n % {SHARE} = 0 OR {tenant} = '{SMALL}' THEN '{USER}' ELSE 'user ' || n % 4999 END,
           0, {created}, {active}
    FROM numbers;
    {numbers}
    INSERT INTO {schema}branches (tenant_id, thread_id, branch, lineage, last_seq, stamp, last_role, created_at)
    SELECT {tenant}, 'thread ' || n, 0, '[[0,1,null]]', 2, n, 'assistant', {created} FROM numbers;
    {numbers}
    INSERT INTO {schema}messages (tenant_id, thread_id, branch, seq, message_id, role, content_form, text, state,
                                  created_at)
    SELECT {tenant}, 'thread ' || n, 0, seq, 'm' || seq, CASE seq WHEN 1 THEN 'user' ELSE 'assistant' END, 'str',
           'The words of message ' || seq || ' in thread ' || n, 'complete', {created}
    FROM numbers, (SELECT 1 AS seq UNION ALL SELECT 2) AS s;
    """
