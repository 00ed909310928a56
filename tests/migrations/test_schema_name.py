"""Our tables in a schema of another name, on PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest

from chatledger import InvalidArgument, Ledger, PostgreSQL
from chatledger.admin import SchemaStatus, migrate, offline_sql, schema_status
from chatledger.errors import SchemaMismatch
from tests.conftest import Database
from tests.conversations import turn
from tests.migrations.access import fetch, run_script
from tests.migrations.catalog import read_catalog
from tests.migrations.revisions import HEAD

NAMES = ["other", "Other", "order", "a-b_C9"]


@pytest.mark.parametrize("schema", NAMES)
async def test_a_ledger_in_a_schema_of_another_name(schema: str, empty_postgresql: Database) -> None:
    url = empty_postgresql.url
    assert await asyncio.to_thread(migrate, url, schema=schema) == SchemaStatus(HEAD, HEAD)
    assert await asyncio.to_thread(schema_status, url, schema=schema) == SchemaStatus(HEAD, HEAD)
    async with Ledger.open(url, postgresql=PostgreSQL(schema=schema)) as ledger:
        await ledger.threads.create("t")
        stored = await ledger.messages.append("t", turn(), run_id="run-7")
        assert (await ledger.messages.history("t")).messages == stored.messages
        assert (await ledger.threads.delete("t")).total == 12
    assert await asyncio.to_thread(migrate, url, schema=schema, to="base") == SchemaStatus(None, HEAD)


async def test_opening_can_create_the_schema(empty_postgresql: Database) -> None:
    async with Ledger.open(empty_postgresql.url, migrate=True, postgresql=PostgreSQL(schema="other")) as ledger:
        await ledger.threads.create("t")


async def test_two_schemas_of_one_database_are_two_ledgers(pg_database: Database) -> None:
    async with (
        Ledger.open(pg_database.url) as one,
        Ledger.open(pg_database.url, migrate=True, postgresql=PostgreSQL(schema="other")) as two,
    ):
        await one.threads.create("t")
        assert await two.threads.find("t") is None


def test_the_schema_is_the_same_under_another_name(pg_database: Database) -> None:
    migrate(pg_database.url, schema="other")
    ours, others = read_catalog(pg_database), read_catalog(pg_database, "other")
    assert str(others).replace("other.", "chatledger.") == str(ours)


async def test_a_database_without_that_schema_is_refused(pg_database: Database) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        await Ledger.open(pg_database.url, postgresql=PostgreSQL(schema="other"))
    assert caught.value.found is None


@pytest.mark.parametrize("schema", ["", 'a"b', "a.b", "9a", "a b", "a%b", "a:b", "{a}", "x" * 64, "a\n"])
async def test_a_name_that_cannot_be_quoted_simply_is_refused(schema: str, empty_postgresql: Database) -> None:
    url = empty_postgresql.url
    for attempt in (
        asyncio.to_thread(migrate, url, schema=schema),
        asyncio.to_thread(schema_status, url, schema=schema),
        asyncio.to_thread(offline_sql, url, schema=schema),
    ):
        with pytest.raises(InvalidArgument, match="schema must have up to 63 letters"):
            await attempt
    with pytest.raises(InvalidArgument, match="schema must have up to 63 letters"):
        PostgreSQL(schema=schema)


def test_a_role_that_may_not_create_schemas_can_migrate_an_existing_one(empty_postgresql: Database) -> None:
    run_script(
        empty_postgresql,
        "DROP ROLE IF EXISTS chatledger_tenant; CREATE ROLE chatledger_tenant LOGIN;"
        " CREATE SCHEMA chatledger AUTHORIZATION chatledger_tenant",
    )
    try:
        url = empty_postgresql.url.replace("//chatledger@", "//chatledger_tenant@")
        assert migrate(url) == SchemaStatus(HEAD, HEAD)
        owners = fetch(empty_postgresql, "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'chatledger'")
        assert owners == [("chatledger_tenant",)]
    finally:
        run_script(empty_postgresql, "DROP OWNED BY chatledger_tenant; DROP ROLE chatledger_tenant")
