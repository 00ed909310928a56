"""Databases of every kind: under row-level security, partitioned by tenant, recorded as encrypted; and the command."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import Ledger, StorageError
from chatledger.admin import copy, migrate, schema_status
from chatledger.errors import EncryptionError
from tests.cli.commands import chatledger
from tests.conftest import KEYS, Database
from tests.conversations import texts, turn, user
from tests.migrations.partitions import create_partitioned_schema
from tests.storage.schema.test_row_security import as_app, owned, secured
from tests.transfer.copy.random_ledger import fill, reads
from tests.transfer.copy.test_copy import move

__all__ = ["owned", "secured"]  # fixtures


async def test_row_level_security_needs_the_owner(secured: str, owned: str, tmp_path: Path) -> None:
    source, back = str(tmp_path / "source.db"), str(tmp_path / "back.db")
    await fill(source, 1, threads=2)
    before = await reads(source, encrypted=False)
    with pytest.raises(StorageError, match="connect as the owner of the tables"):
        await copy(source, secured)
    await move(source, owned, keep_open_runs=True)
    assert (await asyncio.to_thread(schema_status, owned)).rls
    assert await reads(as_app(owned), encrypted=False) == before
    with pytest.raises(StorageError, match="connect as the owner of the tables"):
        await copy(secured, back)
    await move(owned, back, keep_open_runs=True)
    assert await reads(back, encrypted=False) == before


async def test_one_tenant_under_row_level_security(owned: str, secured: str, tmp_path: Path) -> None:
    source = str(tmp_path / "source.db")
    async with Ledger.open(source, tenant="acme") as ledger:
        await ledger.messages.append("t", turn(), create=True)
    async with Ledger.open(as_app(owned)) as other:
        await other.messages.append("mine", [user("Mine")], create=True)
        await copy(source, owned, tenant="acme")
        await other.messages.append("mine", [user("Again")])
        with pytest.raises(StorageError, match="--done"):
            await other.tenant("acme").messages.append("t", [user("No")])
        assert (await copy(source, owned, tenant="acme", verify=True, done=True)).ended
        await other.tenant("acme").messages.append("t", [user("Yes")])
        assert texts(await other.messages.history("mine")) == ["Mine", "Again"]


async def test_a_partitioned_target_is_filled_and_guarded(pg_url: str, tmp_path: Path) -> None:
    engine = create_async_engine(pg_url.replace("postgresql:", "postgresql+asyncpg:"))
    async with engine.begin() as connection:
        await connection.run_sync(lambda sync: create_partitioned_schema(sync, partitions=3))
    await engine.dispose()
    source = str(tmp_path / "source.db")
    await fill(source, 4, threads=2)
    await copy(source, pg_url, keep_open_runs=True)
    async with Ledger.open(pg_url) as ledger:
        with pytest.raises(StorageError, match="--done"):
            await ledger.threads.create("no")
    await move(source, pg_url, keep_open_runs=True)
    assert await reads(pg_url, encrypted=False) == await reads(source, encrypted=False)


async def test_the_record_of_encryption_comes_first(database: Database, tmp_path: Path) -> None:
    source = str(tmp_path / "source.db")
    migrate(source, encrypted=True)
    async with Ledger.open(source, encryption=KEYS) as ledger:
        await ledger.messages.append("t", turn(), create=True)
        await ledger.runs.start("t", run_id="open")
    await move(source, database.url)
    assert (await asyncio.to_thread(schema_status, database.url)).encrypted
    async with Ledger.open(database.url, encryption=KEYS) as ledger:
        run = await ledger.runs.get("open")
        assert (run.status, run.error) == ("cancelled", None)  # a copy cannot encrypt a word
    async with Ledger.open(database.url) as ledger:
        with pytest.raises(EncryptionError):
            await ledger.threads.create("plain")


async def test_one_tenant_leaves_what_belongs_to_the_whole_database(database: Database, tmp_path: Path) -> None:
    source = str(tmp_path / "source.db")
    migrate(source, encrypted=True)
    async with Ledger.open(source, encryption=KEYS) as ledger:
        await ledger.messages.append("t", turn(), create=True)
    await move(source, database.url, tenant="default")
    assert not (await asyncio.to_thread(schema_status, database.url)).encrypted
    async with Ledger.open(database.url) as ledger:
        await ledger.tenant("other").threads.create("plain")
        with pytest.raises(EncryptionError):
            await ledger.threads.create("plain")


async def test_no_plain_words_go_into_an_encrypted_database(database: Database, tmp_path: Path) -> None:
    """Refused before the marker is put, so nothing is written."""
    plain, encrypted = str(tmp_path / "plain.db"), str(tmp_path / "encrypted.db")
    await fill(plain, 1, threads=1)
    async with Ledger.open(encrypted, encryption=KEYS, tenant="acme") as ledger:
        await ledger.messages.append("t", turn(), create=True)
    await asyncio.to_thread(migrate, database.url, encrypted=True)
    scopes: list[dict[str, Any]] = [{}, {"tenant": "default"}]
    for options in scopes:
        with pytest.raises(StorageError, match=r"is recorded as encrypted, and tenant 'default' of .* is not"):
            await copy(plain, database.url, **options)
    await move(encrypted, database.url)  # each of its tenants is encrypted
    assert (await asyncio.to_thread(schema_status, database.url)).encrypted


async def test_a_tenant_stays_encrypted(database: Database, tmp_path: Path) -> None:
    source, backup = str(tmp_path / "source.db"), str(tmp_path / "backup.db")
    async with Ledger.open(backup) as ledger:
        await ledger.messages.append("t", turn(), create=True)
    async with Ledger.open(source, encryption=KEYS) as ledger:
        await ledger.messages.append("t", turn(), create=True)
    await move(source, database.url)
    async with Ledger.open(database.url, encryption=KEYS) as ledger:
        await ledger.threads.delete("t")
    scopes: list[dict[str, Any]] = [{}, {"tenant": "default"}]
    for options in scopes:
        with pytest.raises(StorageError, match=r"is recorded as encrypted, and tenant 'default' of .* is not"):
            await copy(backup, database.url, **options)
    async with Ledger.open(backup) as ledger:
        await ledger.threads.delete("t")
    await move(backup, database.url)  # it has nothing of the tenant
    async with Ledger.open(database.url) as ledger:
        with pytest.raises(EncryptionError):
            await ledger.threads.create("plain")


async def test_a_program_without_the_library_is_kept_out(database: Database, tmp_path: Path) -> None:
    """So is one of an earlier release: the database refuses, and not the library."""
    source = str(tmp_path / "source.db")
    await fill(source, 1, threads=1)
    await copy(source, database.url)
    if database.kind == "sqlite":
        with closing(sqlite3.connect(database.url)) as file, pytest.raises(sqlite3.IntegrityError, match="--done"):
            file.execute("DELETE FROM kv")
        return
    connection = await asyncpg.connect(database.url)
    with pytest.raises(asyncpg.PostgresError, match="--done"):
        await connection.execute("DELETE FROM chatledger.kv")
    await connection.close()


async def test_no_migration_runs_while_a_copy_is_under_way(database: Database, tmp_path: Path) -> None:
    """It would make tables anew, without the triggers."""
    source = str(tmp_path / "source.db")
    await fill(source, 1, threads=1)
    await copy(source, database.url)
    with pytest.raises(StorageError, match="a copy into this database is under way"):
        await asyncio.to_thread(migrate, database.url, to="0005", discard=True, discard_tombstones=True)
    assert (await copy(source, database.url, verify=True)).differences == []


# --- The command ------------------------------------------------------------------------------------------------------


async def test_the_command_copies_compares_and_ends(tmp_path: Path, pg_url: str) -> None:
    source = str(tmp_path / "source.db")
    async with Ledger.open(source) as ledger:
        await ledger.messages.append("t", turn(), create=True)
    first = chatledger("copy", "--from", source, "--to", pg_url, "--json")
    assert (first.code, first.json["copied"], first.json["ended"]) == (0, 1, False)
    async with Ledger.open(source) as ledger:
        await ledger.messages.append("t", [user("More")])
    found = chatledger("copy", "--from", source, "--to", pg_url, "--done")
    assert found.code == 1
    assert "differs: tenant 'default': thread 't'" in found.out
    assert found.error == "chatledger: the databases differ: copy again"
    again = chatledger("copy", "--from", source, "--to", pg_url)
    assert again.err.splitlines() == [
        "chatledger: 1 of 1 threads copied, 0 removed",
        "chatledger: the target is read-only until the same command runs with --done",
    ]
    ended = chatledger("copy", "--from", source, "--to", pg_url, "--done")
    assert (ended.code, ended.err.splitlines()[-1]) == (
        0,
        "chatledger: the copy is complete: the target is open for all writers",
    )
    refused = chatledger("copy", "--from", source, "--to", pg_url)
    assert (refused.code, "no copy put them there" in refused.error) == (3, True)


def test_the_command_takes_its_databases_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(tmp_path / "source.db")
    monkeypatch.setenv("CHATLEDGER_FROM", str(tmp_path / "source.db"))
    monkeypatch.setenv("CHATLEDGER_TO", str(tmp_path / "target.db"))
    assert chatledger("copy").code == 0
    assert chatledger("copy", "--done", "--without-verify").code == 0
    monkeypatch.delenv("CHATLEDGER_TO")
    assert chatledger("copy").error == "chatledger: give --to URL"
    assert chatledger("copy", "--to", "x.db", "--without-verify").code == 2


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    migrate(tmp_path / "source.db")
    url = "postgresql://app:secret@127.0.0.1:1/chat"
    refused = chatledger("copy", "--from", tmp_path / "source.db", "--to", url)
    assert refused.code == 3
    assert "secret" not in refused.err


def test_a_read_only_source_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    migrate(folder / "source.db")
    os.chmod(folder / "source.db", 0o400)
    assert chatledger("copy", "--from", folder / "source.db", "--to", tmp_path / "target.db").code == 0
