"""Which databases open and which are refused, by their revision."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import InvalidArgument, Ledger
from chatledger.admin import SchemaStatus, migrate, schema_status
from chatledger.errors import SchemaMismatch
from chatledger.storage.drivers.urls import read_url
from chatledger.storage.upgrade import versions as schema_module
from tests.conftest import Database
from tests.migrations.access import fetch, run_script, store_one
from tests.migrations.revisions import BEYOND, HEAD, NEXT


def set_revision(database: Database, revision: str) -> None:
    prefix = "chatledger." if database.kind == "postgresql" else ""
    run_script(database, f"UPDATE {prefix}chatledger_version SET version_num = '{revision}'")


async def test_postgresql_is_never_changed_by_opening(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_module, "HEAD", NEXT)
    with pytest.raises(SchemaMismatch) as caught:
        await Ledger.open(pg_database.url)
    assert (caught.value.found, caught.value.expected) == (HEAD, NEXT)
    assert caught.value.command.startswith("chatledger migrate --url postgresql")


async def test_an_empty_postgresql_is_refused_with_the_command(empty_postgresql: Database) -> None:
    with pytest.raises(SchemaMismatch, match="run: chatledger migrate") as caught:
        await Ledger.open(empty_postgresql.url)
    assert (caught.value.found, caught.value.expected) == (None, HEAD)
    assert await asyncio.to_thread(fetch, empty_postgresql, "SELECT 1 FROM pg_tables WHERE schemaname='public'") == []


@pytest.mark.parametrize("may_migrate", [False, True])
async def test_one_step_newer_opens(database: Database, may_migrate: bool) -> None:
    await asyncio.to_thread(set_revision, database, NEXT)
    async with Ledger.open(database.url, migrate=may_migrate) as ledger:
        assert (await ledger.threads.list()).items == []


def test_one_step_newer_is_left_alone_by_migrate(database: Database) -> None:
    set_revision(database, NEXT)
    assert migrate(database.url) == SchemaStatus(NEXT, HEAD)


@pytest.mark.parametrize("may_migrate", [False, True])
@pytest.mark.parametrize("revision", [BEYOND, "ae1027a6acf"])
async def test_two_steps_newer_is_refused(database: Database, revision: str, may_migrate: bool) -> None:
    await asyncio.to_thread(set_revision, database, revision)
    with pytest.raises(SchemaMismatch, match="newer than this release") as caught:
        await Ledger.open(database.url, migrate=may_migrate)
    assert (caught.value.found, caught.value.expected) == (revision, HEAD)
    assert caught.value.command == "pip install -U chatledger"


def test_two_steps_newer_is_refused_by_migrate(database: Database) -> None:
    set_revision(database, BEYOND)
    with pytest.raises(SchemaMismatch, match="newer than this release"):
        migrate(database.url)


async def test_an_applications_engine_is_checked_the_same_way(pg_database: Database) -> None:
    await asyncio.to_thread(set_revision, pg_database, BEYOND)
    engine = create_async_engine(read_url(pg_database.url))
    with pytest.raises(SchemaMismatch, match="newer"):
        await Ledger.open(engine)
    await engine.dispose()


def test_an_unknown_revision_is_refused(database: Database) -> None:
    with pytest.raises(InvalidArgument, match=r"^to must be head, base or one of 0001, .* not '0042'"):
        migrate(database.url, to="0042")


def test_downgrading_to_nothing_and_upgrading_again(database: Database) -> None:
    assert migrate(database.url, to="base") == SchemaStatus(None, HEAD)
    assert schema_status(database.url) == SchemaStatus(None, HEAD)
    assert migrate(database.url) == SchemaStatus(HEAD, HEAD)


async def test_a_file_downgraded_to_nothing_is_created_again(sqlite_database: Database) -> None:
    await asyncio.to_thread(migrate, sqlite_database.url, to="base")
    await store_one(sqlite_database)
    assert fetch(sqlite_database, "SELECT text FROM messages") == [("Tokyo?",)]
