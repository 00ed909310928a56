"""The statements for a person to run, instead of `migrate`."""

from __future__ import annotations

import asyncio

import pytest

from chatledger import InvalidArgument, Ledger, PostgreSQL
from chatledger.admin import migrate, offline_sql
from tests.conftest import Database
from tests.migrations.access import run_script
from tests.migrations.catalog import read_catalog


def test_the_statements_make_the_same_schema(empty: Database, other: Database) -> None:
    run_script(empty, offline_sql(empty.url))
    migrate(other.url)
    assert read_catalog(empty) == read_catalog(other)


def test_the_statements_do_not_wait_for_a_lock(empty_postgresql: Database) -> None:
    assert offline_sql(empty_postgresql.url).startswith("SET lock_timeout = 3000;")


def test_the_statements_of_another_schema(empty_postgresql: Database) -> None:
    run_script(empty_postgresql, offline_sql(empty_postgresql.url, schema="Other-1"))

    async def use() -> None:
        async with Ledger.open(empty_postgresql.url, postgresql=PostgreSQL(schema="Other-1")) as ledger:
            await ledger.threads.create("t")

    asyncio.run(use())


def test_no_database_is_needed() -> None:
    assert "CREATE VIEW" in offline_sql("postgresql://nobody@127.0.0.1:1/nothing")


def test_an_unknown_revision_is_refused(empty: Database) -> None:
    with pytest.raises(InvalidArgument, match=r"^to must be head, base or one of 0001, .* not '0042'"):
        offline_sql(empty.url, to="0042")
