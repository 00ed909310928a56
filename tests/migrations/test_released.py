"""Databases of released schemas, with rows: each is brought to head and read through the ledger."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel
from sqlalchemy import Connection, inspect, text

from chatledger import Ledger, Newest, Thread
from chatledger.admin import migrate
from chatledger.types import Branch
from tests.conftest import Database
from tests.conversations import turn
from tests.migrations.access import connected, schema_of
from tests.migrations.catalog import read_catalog
from tests.migrations.released.content import SEALED, opened, read
from tests.migrations.released.kept import digest_of, kept_reads, kept_rows, kept_schema, released, restore


@pytest.fixture(params=released())
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def upgraded(empty: Database, revision: str) -> Database:
    restore(empty, revision)
    migrate(empty.url)
    return empty


async def test_a_released_database_reads_as_it_did(upgraded: Database, revision: str) -> None:
    async with opened(upgraded.url) as ledgers:
        found = await read(ledgers)
    for tenant, kinds in kept_reads(revision).items():
        for kind, items in kinds.items():
            assert [_as_then(model, item) for model, item in zip(found[tenant][kind], items, strict=True)] == items


RENAMED: dict[type[BaseModel], dict[str, str]] = {Thread: {"revision": "version"}, Branch: {"version": "last_seq"}}
"""Fields by the names that the dumps have, which are those of the columns, where the models have another one now."""


def _as_then(model: BaseModel, item: dict[str, Any]) -> dict[str, Any]:
    """The model with the fields of the dump. A field that models no longer have is taken as it was."""
    now: dict[str, Any] = json.loads(json.dumps(model.model_dump(), default=str))
    now |= {then: now[name] for then, name in RENAMED.get(type(model), {}).items()}
    return _within(now, item)


def _within(now: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    kept = {name: now.get(name, value) for name, value in then.items()}
    return {
        name: _within(value, then[name]) if isinstance(value, dict) and isinstance(then[name], dict) else value
        for name, value in kept.items()
    }


def test_a_released_revision_makes_the_tables_that_it_made_then(empty: Database, revision: str) -> None:
    restore(empty, revision)
    assert digest_of(empty) == kept_schema(revision)[empty.kind]


def test_the_newest_kept_database_has_encrypted_rows_in_every_table() -> None:
    assert [table for table, _, rows in kept_rows(released()[-1]) if SEALED not in {row[0] for row in rows}] == []


async def test_a_released_database_is_written_on(upgraded: Database) -> None:
    async with Ledger.open(upgraded.url) as ledger:
        for thread in await ledger.threads.list():
            appended = await ledger.messages.append(thread.thread_id, turn(), on_open_calls="close", rules="lenient")
            assert (await ledger.messages.history(thread.thread_id, Newest(5))).messages == appended.messages


def test_an_upgraded_database_equals_a_new_one(upgraded: Database, other: Database) -> None:
    migrate(other.url)
    assert read_catalog(upgraded) == read_catalog(other)


WITHOUT_VALUE = {
    "0006": ["chatledger_version.encrypted_at"],
    "0007": ["chatledger_version.encrypted_at", "tenants.kv_version"],
    "0008": ["chatledger_version.encrypted_at", "workers.worker_id", "workers.lease_until", "workers.database_id"],
}
"""Columns that stay empty in a kept database: the first has a value only where no tenant may be plain, the second only
once a value was deleted, and `workers` has only rows of processes that run.
"""


def test_the_dumps_have_rows_in_every_table_and_a_value_in_every_column(empty: Database, revision: str) -> None:
    restore(empty, revision)
    found = connected(empty, lambda connection: columns_without_value(connection, schema_of(empty)))
    assert found == WITHOUT_VALUE.get(revision, [])


def columns_without_value(connection: Connection, schema: str | None) -> list[str]:
    prefix = f"{schema}." if schema else ""
    columns = [
        (table, column["name"])
        for table in inspect(connection).get_table_names(schema=schema)
        for column in inspect(connection).get_columns(table, schema=schema)
    ]
    return [
        f"{table}.{column}"
        for table, column in columns
        if not connection.execute(text(f'SELECT count("{column}") FROM {prefix}{table}')).scalar()
    ]
