"""A file whose triggers or views would run with the ledger is refused, and nothing of it runs."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chatledger import Ledger, StorageError
from chatledger.admin import backup, migrate, restore
from chatledger.storage.drivers.sqlite import SqliteConnection
from tests.conftest import Database
from tests.conversations import turn

LOOT = "CREATE TABLE loot (text)"
COPY = "CREATE TRIGGER copy_all AFTER INSERT ON messages BEGIN INSERT INTO loot VALUES (new.text); END"
INTRUDERS = {
    "trigger copy_all on messages": (LOOT, COPY),
    "trigger on_view on transcript": ("CREATE TRIGGER on_view INSTEAD OF INSERT ON transcript BEGIN SELECT 1; END",),
    "view calls with another text": ("DROP VIEW calls", "CREATE VIEW calls AS SELECT 'nothing' AS tenant_id"),
    "view kv in the place of a table": ("DROP TABLE kv", "CREATE VIEW kv AS SELECT 1 AS tenant_id"),
}
HARMLESS = (
    LOOT,
    "CREATE VIEW mine AS SELECT text FROM messages",
    "CREATE TRIGGER own AFTER INSERT ON loot BEGIN DELETE FROM loot; END",
    "CREATE INDEX mine_too ON messages (role)",
)


def change(path: str | Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


async def opened(path: str) -> None:
    async with Ledger.open(path):
        pass


@pytest.mark.parametrize("said", INTRUDERS)
async def test_a_file_with_an_intruder_is_not_opened(sqlite_database: Database, said: str) -> None:
    change(sqlite_database.url, *INTRUDERS[said])
    with pytest.raises(StorageError, match=said):
        await opened(sqlite_database.url)
    with pytest.raises(StorageError, match="foreign_triggers=allow"):
        await opened(sqlite_database.url)


async def test_an_application_may_allow_what_it_made_itself(sqlite_database: Database) -> None:
    change(sqlite_database.url, LOOT, COPY)
    async with Ledger.open(f"sqlite:///{sqlite_database.url}?foreign_triggers=allow") as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
    with closing(sqlite3.connect(sqlite_database.url)) as connection:
        assert connection.execute("SELECT count(*) FROM loot").fetchone() == (5,)


async def test_other_views_and_triggers_stay(sqlite_database: Database) -> None:
    change(sqlite_database.url, *HARMLESS)
    await opened(sqlite_database.url)


def test_serve_restore_and_migrate_refuse_it_too(sqlite_database: Database, tmp_path: Path) -> None:
    from tests.cli.commands import chatledger

    path = Path(sqlite_database.url)
    change(path, LOOT, COPY)
    assert "trigger copy_all on messages" in chatledger("serve", "--url", path).error
    for attempt in (lambda: restore(path, tmp_path / "new.db"), lambda: migrate(path, to="0004")):
        with pytest.raises(StorageError, match="trigger copy_all"):
            attempt()
    assert not (tmp_path / "new.db").exists()
    restored = restore(path, f"sqlite:///{tmp_path}/new.db?foreign_triggers=allow")
    assert restored == backup(path, tmp_path / "copy.db").with_name("new.db")


@pytest.mark.parametrize("revision", ["0001", "0003", "0005"])
def test_a_file_that_was_migrated_has_the_views_of_a_new_one(sqlite_database: Database, revision: str) -> None:
    migrate(sqlite_database.url, to=revision)
    migrate(sqlite_database.url)
    change(sqlite_database.url, *HARMLESS)
    migrate(sqlite_database.url)


def test_an_older_file_is_refused_before_it_is_migrated(sqlite_database: Database) -> None:
    migrate(sqlite_database.url, to="0005")
    change(sqlite_database.url, LOOT, COPY)
    before = Path(sqlite_database.url).read_bytes()
    with pytest.raises(StorageError, match="trigger copy_all"):
        asyncio.run(opened(sqlite_database.url))
    assert Path(sqlite_database.url).read_bytes() == before


def test_a_name_in_other_letters_is_the_same_table(sqlite_database: Database) -> None:
    from tests.cli.commands import chatledger

    change(sqlite_database.url, LOOT, COPY.replace("messages", "MESSAGES"))
    assert "trigger copy_all on MESSAGES" in chatledger("threads", "--url", sqlite_database.url).error


@pytest.mark.parametrize("read_only", [False, True])
def test_the_schema_of_a_file_is_not_trusted(sqlite_database: Database, *, read_only: bool) -> None:
    connection = SqliteConnection(sqlite_database.url, read_only=read_only)
    with connection.transaction() as sql:
        assert sql.fetch("PRAGMA trusted_schema", {}) == [(0,)]
    connection.close()
