"""The database without the library: reads the rows as stored, and changes them without the library."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

import asyncpg

from chatledger import Ledger
from tests.conftest import Database

TABLES = (
    "threads",
    "branches",
    "runs",
    "messages",
    "message_parts",
    "tool_calls",
    "tool_results",
    "feedback",
)


async def query(database: Database, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a statement that names our tables bare; it is committed."""
    if database.kind == "sqlite":
        return await asyncio.to_thread(_query_file, database.url, statement)
    connection = await asyncpg.connect(database.url, server_settings={"search_path": "chatledger"})
    try:
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()


Run = Callable[[str], Awaitable[list[tuple[Any, ...]]]]


@asynccontextmanager
async def raw_connection(database: Database) -> AsyncIterator[Run]:
    """`query` for many statements, on one connection; each is committed."""
    if database.kind == "sqlite":
        with closing(sqlite3.connect(database.url, isolation_level=None, check_same_thread=False)) as file:

            async def run(statement: str) -> list[tuple[Any, ...]]:
                return await asyncio.to_thread(lambda: file.execute(statement).fetchall())

            yield run
        return
    connection = await asyncpg.connect(database.url, server_settings={"search_path": "chatledger"})
    try:

        async def fetch(statement: str) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in await connection.fetch(statement)]

        yield fetch
    finally:
        await connection.close()


def _query_file(path: str, statement: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(statement).fetchall()
    finally:
        connection.close()


async def count_rows(database: Database, where: str = "") -> dict[str, int]:
    """The number of rows by table."""
    counts = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name} {where}" for name in TABLES)
    return {row[0]: row[1] for row in await query(database, counts)}


def elsewhere(database: Database, work: Callable[[Ledger], Awaitable[object]]) -> None:
    """Do something through a ledger in another thread and wait for it, wherever this is called from."""

    async def opened() -> None:
        async with database.open() as ledger:
            await work(ledger)

    failures: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(opened())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
