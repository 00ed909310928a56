"""A plain way into a test's database, beside the ledger: a synchronous connection, scripts, all rows."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import asyncpg
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from chatledger import Ledger
from chatledger.admin import configure_sqlite
from chatledger.storage.drivers.urls import read_url
from tests.conftest import Database
from tests.conversations import user

T = TypeVar("T")


def schema_of(database: Database) -> str | None:
    return "chatledger" if database.kind == "postgresql" else None


def connected(database: Database, function: Callable[[Connection], T]) -> T:
    """The function's result, over a connection in a transaction that is committed."""
    if database.kind == "postgresql":
        return asyncio.run(_connected(database.url, function))
    engine = create_engine(f"sqlite:///{database.url}", poolclass=NullPool)
    configure_sqlite(engine)
    with engine.begin() as connection:
        return function(connection)


async def _connected(url: str, function: Callable[[Connection], T]) -> T:
    # The tests' role is called as our schema is, which would make ours the schema of names without one.
    settings = {"server_settings": {"search_path": "public"}}
    engine = create_async_engine(read_url(url), poolclass=NullPool, connect_args=settings)
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(function)
    finally:
        await engine.dispose()


def run_script(database: Database, script: str) -> None:
    """Several statements of SQL, as psql or the sqlite3 shell would run them."""
    if database.kind == "postgresql":
        asyncio.run(_run_script(database.url, script))
        return
    with closing(sqlite3.connect(database.url)) as connection:
        connection.executescript(script)


async def _run_script(url: str, script: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in _statements(script):  # each by itself: several at once would be a transaction
            if re.search(r"^\s*[^\s-]", statement, re.MULTILINE):  # no mere comment
                await connection.execute(statement)
    finally:
        await connection.close()


def _statements(script: str) -> list[str]:
    """The statements of a script. One with a body between dollars has semicolons of its own."""
    return [found[0] for found in re.finditer(r"(?:\$(\w+)\$.*?\$\1\$|.)+?(?:;\n|\Z)", script, re.DOTALL)]


def fetch(database: Database, statement: str) -> list[tuple[Any, ...]]:
    return connected(database, lambda connection: [tuple(row) for row in connection.execute(text(statement))])


def all_rows(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of our tables, by table."""
    return connected(database, lambda connection: _all_rows(connection, schema_of(database)))


def _all_rows(connection: Connection, schema: str | None) -> dict[str, list[tuple[Any, ...]]]:
    prefix = f'"{schema}".' if schema else ""
    tables = inspect(connection).get_table_names(schema=schema)
    return {
        table: sorted((tuple(row) for row in connection.execute(text(f"SELECT * FROM {prefix}{table}"))), key=repr)
        for table in sorted(tables)
    }


async def store_one(database: Database, text: str = "Tokyo?") -> None:
    async with Ledger.open(database.url) as ledger:
        await ledger.threads.create("t", exist_ok=True)
        await ledger.messages.append("t", [user(text)], rules="lenient")
