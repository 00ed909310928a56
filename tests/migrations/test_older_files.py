"""A SQLite file of an older release is copied, and then upgraded whole or not at all."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chatledger import Ledger, StorageError
from chatledger.admin import SchemaStatus, migrate, schema_status
from chatledger.errors import SchemaMismatch
from chatledger.storage.upgrade import versions as schema_module
from tests.conftest import Database
from tests.conversations import texts
from tests.migrations.access import all_rows, fetch, store_one
from tests.migrations.catalog import read_catalog
from tests.migrations.later import later_revision
from tests.migrations.revisions import HEAD, NEXT

ADDS_A_COLUMN = """
def upgrade(schema):
    with op.batch_alter_table("threads", schema=schema) as table:
        table.add_column(sa.Column("colour", sa.Text()))
        table.create_check_constraint("threads_colour_check", "colour <> ''")

def downgrade(schema):
    with op.batch_alter_table("threads", schema=schema) as table:
        table.drop_column("colour")
"""
FAILS = ADDS_A_COLUMN.replace("def downgrade", "    raise LookupError('halfway')\n\ndef downgrade")


async def test_an_older_file_is_copied_and_upgraded(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_one(sqlite_database)
    before = await asyncio.to_thread(all_rows, sqlite_database), await asyncio.to_thread(read_catalog, sqlite_database)
    later_revision(ADDS_A_COLUMN, tmp_path / "later", monkeypatch)
    async with Ledger.open(sqlite_database.url) as ledger:
        assert texts(await ledger.messages.history("t")) == ["Tokyo?"]
    assert schema_status(sqlite_database.url) == SchemaStatus(NEXT, NEXT)
    copy = Database("sqlite", f"{sqlite_database.url}.{HEAD}.bak")
    assert (all_rows(copy), read_catalog(copy)) == before
    assert fetch(sqlite_database, "SELECT colour FROM threads") == [(None,)]


async def test_rows_still_in_the_wal_are_in_the_copy(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later_revision(ADDS_A_COLUMN, tmp_path / "later", monkeypatch)
    with closing(sqlite3.connect(sqlite_database.url)) as reader:  # keeps the WAL from being folded in at the close
        reader.execute("PRAGMA journal_mode = WAL")
        monkeypatch.setattr(schema_module, "HEAD", HEAD)
        await store_one(sqlite_database)
        monkeypatch.setattr(schema_module, "HEAD", NEXT)
        migrate_file = asyncio.to_thread(migrate, sqlite_database.url)
        assert await migrate_file == SchemaStatus(NEXT, NEXT)
    copy = Database("sqlite", f"{sqlite_database.url}.{HEAD}.bak")
    assert fetch(copy, "SELECT text FROM messages") == [("Tokyo?",)]


async def test_a_migration_that_fails_leaves_the_file_as_it_was(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_one(sqlite_database)
    before = all_rows(sqlite_database), read_catalog(sqlite_database)
    later_revision(FAILS, tmp_path / "later", monkeypatch)
    with pytest.raises(LookupError, match="halfway"):
        await Ledger.open(sqlite_database.url)
    assert (all_rows(sqlite_database), read_catalog(sqlite_database)) == before


def test_a_migration_that_fails_leaves_postgresql_as_it_was(
    pg_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = all_rows(pg_database), read_catalog(pg_database)
    later_revision(FAILS, tmp_path, monkeypatch)
    with pytest.raises(LookupError, match="halfway"):
        migrate(pg_database.url)
    assert (all_rows(pg_database), read_catalog(pg_database)) == before


def test_a_migration_that_breaks_a_reference_is_undone(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(store_one(sqlite_database))
    before = all_rows(sqlite_database)
    body = "def upgrade(schema):\n    op.execute('DELETE FROM threads')\n\ndef downgrade(schema):\n    pass\n"
    later_revision(body, tmp_path / "later", monkeypatch)
    with pytest.raises(StorageError, match="rows that point nowhere"):
        migrate(sqlite_database.url)
    assert all_rows(sqlite_database) == before


async def test_an_older_file_is_refused_if_it_may_not_be_migrated(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_module, "HEAD", NEXT)
    with pytest.raises(SchemaMismatch) as caught:
        await Ledger.open(sqlite_database.url, migrate=False)
    assert (caught.value.found, caught.value.expected) == (HEAD, NEXT)
    assert caught.value.command == f"chatledger migrate --url {sqlite_database.url}"


def test_an_upgraded_copy_can_take_the_place_of_the_file(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The purpose of the copy: the release before opens it."""
    asyncio.run(store_one(sqlite_database))
    with monkeypatch.context() as release:
        later_revision(ADDS_A_COLUMN, tmp_path / "later", release)
        migrate(sqlite_database.url)
    restored = tmp_path / "restored.db"
    shutil.copyfile(f"{sqlite_database.url}.{HEAD}.bak", restored)
    asyncio.run(store_one(Database("sqlite", str(restored)), "again"))
    assert len(all_rows(Database("sqlite", str(restored)))["messages"]) == 2
