"""A test never meets what another one left in its PostgreSQL database."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import asyncpg
import pytest

from chatledger import Ledger
from tests.conversations import turn
from tests.migrations.citus import EXTENSION
from tests.postgres import Server
from tests.reuse import Copies

CHANGES = {
    "a dropped index": "DO $$BEGIN EXECUTE (SELECT 'DROP INDEX ' || min(indexrelid::regclass::text) FROM pg_index"
    " WHERE indrelid = 'chatledger.threads'::regclass AND NOT indisprimary); END$$",
    "a function": "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "a trigger that is off": "ALTER TABLE chatledger.messages DISABLE TRIGGER ALL",
    "a revision": "UPDATE chatledger.chatledger_version SET version_num = version_num",
    "a grant": "GRANT SELECT ON chatledger.threads TO PUBLIC",
    "a grant on the database": 'GRANT CREATE ON DATABASE "{name}" TO PUBLIC',
    "a setting": "ALTER DATABASE \"{name}\" SET work_mem = '5MB'",
    "statistics": "ANALYZE chatledger.threads",
    "a vacuum": "VACUUM chatledger.threads",
    "an extension": EXTENSION,
    "no schema": "DROP SCHEMA chatledger CASCADE",
}


@pytest.fixture(scope="module")
def copies(pg_server: Server) -> Iterator[Copies]:
    with contextlib.closing(Copies(pg_server)) as copies:
        yield copies


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def add(url: str, *, turns: int = 1) -> None:
    async with Ledger.open(url) as ledger:
        assert list(await ledger.threads.list()) == []
        await ledger.threads.create("t")
        await ledger.messages.append("t", [message for _ in range(turns) for message in turn()])


def test_rows_are_deleted(copies: Copies, pg_template: str) -> None:
    with copies.copy(pg_template) as first:
        asyncio.run(add(first))
    with copies.copy(pg_template) as second:
        assert second == first
        asyncio.run(add(second))


def test_connections_are_ended(copies: Copies, pg_template: str) -> None:
    with asyncio.Runner() as runner:
        with copies.copy(pg_template) as first:
            other = runner.run(asyncpg.connect(first))
            runner.run(other.execute("BEGIN; DELETE FROM chatledger.kv"))
        with copies.copy(pg_template) as second:
            assert second == first
            with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
                runner.run(other.execute("SELECT 1"))


def test_two_at_a_time_are_two(copies: Copies, pg_template: str) -> None:
    with copies.copy(pg_template) as one, copies.copy(pg_template) as other:
        asyncio.run(add(one))
        asyncio.run(add(other))


@pytest.mark.parametrize("change", CHANGES)
def test_a_copy_that_was_changed_is_dropped(copies: Copies, pg_template: str, change: str) -> None:
    with copies.copy(pg_template) as first:
        asyncio.run(execute(first, CHANGES[change].replace("{name}", first.rpartition("/")[2])))
    with copies.copy(pg_template) as second:
        assert second != first
        asyncio.run(add(second))


def test_a_copy_with_a_large_table_is_dropped(copies: Copies, pg_template: str) -> None:
    with copies.copy(pg_template) as first:
        asyncio.run(add(first, turns=200))
    with copies.copy(pg_template) as second:
        assert second != first
