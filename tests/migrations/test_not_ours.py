"""Files and tables of other programs stay unchanged, and an impossible file is not created."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chatledger import ChatLedgerError, Ledger, StorageError
from chatledger.admin import SchemaStatus, migrate, schema_status
from chatledger.errors import SchemaMismatch
from tests.conftest import Database
from tests.migrations.catalog import read_catalog
from tests.migrations.revisions import HEAD


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() if path.is_file() else b"" for path in folder.iterdir()}


def somebody_elses(path: Path, journal: str = "DELETE") -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("CREATE TABLE customers (name TEXT)")


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
@pytest.mark.parametrize("may_migrate", [False, True])
async def test_a_file_of_something_else_is_left_alone(tmp_path: Path, journal: str, may_migrate: bool) -> None:
    somebody_elses(tmp_path / "app.db", journal)
    before = files(tmp_path)
    with pytest.raises(SchemaMismatch, match="another program") as caught:
        await Ledger.open(tmp_path / "app.db", migrate=may_migrate)
    assert (caught.value.found, caught.value.expected) == (None, HEAD)
    assert files(tmp_path) == before


def test_asking_for_the_status_leaves_a_file_alone(tmp_path: Path) -> None:
    somebody_elses(tmp_path / "app.db", "WAL")
    before = files(tmp_path)
    assert schema_status(tmp_path / "app.db") == SchemaStatus(None, HEAD)
    assert files(tmp_path) == before


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Remember the milk. " * 100)
    before = files(tmp_path)
    for attempt in (Ledger.open(path), asyncio.to_thread(migrate, path), asyncio.to_thread(schema_status, path)):
        with pytest.raises(StorageError, match=r"notes\.txt is not a SQLite database"):
            await attempt
    assert files(tmp_path) == before


async def test_a_missing_folder_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "no" / "ledger.db"
    for attempt in (Ledger.open(path), asyncio.to_thread(migrate, path), asyncio.to_thread(schema_status, path)):
        with pytest.raises(StorageError, match="does not exist; create it first"):
            await attempt
    assert files(tmp_path) == {}


async def test_a_path_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="it is a folder"):
        await Ledger.open(tmp_path)


async def test_a_missing_file_is_not_created_without_migrate(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        await Ledger.open(tmp_path / "ledger.db", migrate=False)
    assert (caught.value.found, caught.value.expected) == (None, HEAD)
    assert files(tmp_path) == {}


def test_a_table_of_the_same_name_is_not_touched_by_migrate(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (distance REAL)")
    found = Database("sqlite", str(path))
    before = read_catalog(found)
    with pytest.raises(ChatLedgerError, match="runs already exists"):
        migrate(path)
    assert read_catalog(found) == before


async def test_an_unreachable_server_is_a_storage_error() -> None:
    for attempt in (Ledger.open(NOBODY), asyncio.to_thread(migrate, NOBODY), asyncio.to_thread(schema_status, NOBODY)):
        with pytest.raises(StorageError) as caught:
            await attempt
        assert caught.value.retryable


NOBODY = "postgresql://nobody@127.0.0.1:1/nothing"


def test_a_blocking_call_in_a_running_loop_names_the_alternative(empty_postgresql: Database) -> None:
    async def call() -> None:
        migrate(empty_postgresql.url)

    with pytest.raises(StorageError, match="to_thread"):
        asyncio.run(call())
