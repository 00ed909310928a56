"""What revision 0007 adds, in a copy: the versions of deleted values, and the id by which a copy knows its source."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from chatledger import Ledger, StorageError
from chatledger.admin import copy, migrate
from chatledger.storage.schema.tables import INSERTION_ORDER
from chatledger.storage.schema.text import to_microseconds
from chatledger.storage.upgrade.discard import ADDED
from chatledger.storage.upgrade.versions import HEAD
from tests.conftest import Database
from tests.migrations.released.candidate import KINDS, candidate_environment, name_of
from tests.migrations.released.candidate.program import read
from tests.migrations.released.kept import kept_reads, restore
from tests.migrations.test_candidate import assert_reads
from tests.storage.raw import query
from tests.transfer.copy.test_passes import fill

HOUR = 3_600_000_000


@pytest.fixture
async def source(tmp_path: Path) -> Database:
    url = str(tmp_path / "source.db")
    await fill(url)
    found = Database("sqlite", url)
    await query(found, f"UPDATE kv SET version = version + {HOUR}")
    return found


async def versions(database: Database) -> dict[str, int]:
    rows = await query(database, "SELECT kind, version FROM kv WHERE tenant_id = 'default'")
    return dict(rows)


async def deleted_version(database: Database) -> int | None:
    rows = await query(database, "SELECT kv_version FROM tenants WHERE tenant_id = 'default'")
    return rows[0][0] if rows else None


async def id_of(database: Database) -> str:
    found: str = (await query(database, "SELECT database_id FROM chatledger_version"))[0][0]
    return found


# --- The versions of deleted values -----------------------------------------------------------------------------------


async def test_a_value_that_was_deleted_in_the_source_begins_above_it_in_the_target(
    source: Database, database: Database
) -> None:
    stored = await versions(source)
    async with Ledger.open(source.url) as ledger:
        await ledger.kv.delete(("tenant",), "a")
    await copy(source.url, database.url)
    assert await deleted_version(database) == stored["tenant"]
    async with Ledger.open(source.url) as ledger:
        await ledger.kv.delete(("user", "ada"), "a")
    compared = await copy(source.url, database.url, verify=True)
    assert "tenant 'default': the versions of its deleted values" in compared.differences
    await copy(source.url, database.url)
    assert (await copy(source.url, database.url, verify=True, done=True)).ended
    async with Ledger.open(database.url) as ledger:
        again = await ledger.kv.put(("tenant",), "a", 2, expected=0)
    assert again.version == max(stored.values()) + 1


async def test_no_copy_lowers_the_versions_of_the_target(source: Database, database: Database) -> None:
    """The source is set back to an older file, and then loses the tenant."""
    older, stored = f"{source.url}.old", await versions(source)
    shutil.copyfile(source.url, older)
    async with Ledger.open(source.url) as ledger:
        await ledger.kv.put(("tenant",), "a", 2)
        await ledger.kv.delete(("tenant",), "a")
    await copy(source.url, database.url)
    highest = await deleted_version(database)
    shutil.copyfile(older, source.url)
    await copy(source.url, database.url)
    assert await deleted_version(database) == highest
    async with Ledger.open(source.url) as ledger:
        for thread in await ledger.threads.list():
            await ledger.threads.delete(thread.thread_id)
    await query(source, "DELETE FROM kv")
    await query(source, "DELETE FROM tenants")
    for _ in range(2):
        await copy(source.url, database.url, allow_empty=True)
        assert await deleted_version(database) == max(highest or 0, stored["user"])
    assert (await copy(source.url, database.url, verify=True, done=True)).ended


async def test_a_value_that_vanished_from_an_older_source_keeps_its_version(
    source: Database, database: Database
) -> None:
    await asyncio.to_thread(migrate, source.url, to="0006")
    stored = await versions(source)
    await copy(source.url, database.url)
    assert await deleted_version(database) is None
    await query(source, "DELETE FROM kv")
    await copy(source.url, database.url)
    assert await deleted_version(database) == max(stored.values())
    assert (await copy(source.url, database.url, verify=True, done=True)).ended


# --- The id of a database ---------------------------------------------------------------------------------------------


async def test_each_database_has_an_id_of_its_own(source: Database, database: Database) -> None:
    own = [await id_of(source), await id_of(database)]
    assert len(set(own)) == 2
    await copy(source.url, database.url)
    await copy(source.url, database.url, done=True)
    assert [await id_of(source), await id_of(database)] == own
    await asyncio.to_thread(migrate, database.url, to="0006")
    await asyncio.to_thread(migrate, database.url)
    assert len({*own, await id_of(database)}) == 3


async def test_a_source_is_known_at_another_address_and_another_one_is_not(
    source: Database, database: Database, tmp_path: Path
) -> None:
    await copy(source.url, database.url)
    moved = str(tmp_path / "moved.db")
    shutil.move(source.url, moved)
    await fill(source.url)
    with pytest.raises(StorageError, match="from another source"):
        await copy(source.url, database.url)
    assert (await copy(moved, database.url, verify=True)).differences == []


async def test_a_source_that_is_migrated_on_the_way_is_the_same(source: Database, database: Database) -> None:
    await asyncio.to_thread(migrate, source.url, to="0006")
    await copy(source.url, database.url)
    await asyncio.to_thread(migrate, source.url)
    assert (await copy(source.url, database.url)).copied == 0
    assert (await copy(source.url, database.url, verify=True, done=True)).ended


# --- A database of the candidate --------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgresql"])
def candidate(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """An empty database."""
    url = str(tmp_path / "candidate.db") if request.param == "sqlite" else request.getfixturevalue("pg_url")
    return Database(request.param, url)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_database_of_the_candidate_is_copied_to_head(
    candidate: Database, database: Database, kind: str
) -> None:
    """It is read as it is, and what it lacks takes the values that a migration gives."""
    await asyncio.to_thread(restore, candidate, name_of(kind))
    before = await stored(candidate)
    assert (await copy(candidate.url, database.url, keep_open_runs=True)).copied
    assert (await copy(candidate.url, database.url, keep_open_runs=True)).copied == 0
    assert await stored(candidate) == before
    assert before["chatledger_version"][0][0] == "0008"
    assert await query(database, "SELECT version_num FROM chatledger_version") == [(HEAD,)]
    assert_reads(await read(database.url, kind), kept_reads(name_of(kind)))
    await asyncio.to_thread(migrate, candidate.url)
    assert (await copy(candidate.url, database.url, keep_open_runs=True, verify=True, done=True)).ended
    for statement in ("SELECT * FROM tenants ORDER BY 1", "SELECT encrypted_at FROM chatledger_version"):
        assert [list(map(moment, row)) for row in await query(database, statement)] == [
            list(map(moment, row)) for row in await query(candidate, statement)
        ]


@pytest.mark.old_program
async def test_a_copy_that_the_candidate_began_is_ended_by_it(candidate: Database, tmp_path: Path) -> None:
    source = Database("sqlite", str(tmp_path / "source.db"))
    await asyncio.to_thread(restore, source, name_of("plain"))
    command = [sys.executable, "-m", "chatledger.cli", "copy", "--from", source.url, "--to", candidate.url]

    async def copy_by_the_candidate(*more: str) -> None:
        await asyncio.to_thread(
            subprocess.run, [*command, *more], env=candidate_environment(), capture_output=True, check=True
        )

    await copy_by_the_candidate()
    before = await stored(candidate)
    for done in (False, True):
        with pytest.raises(StorageError, match="was begun by an older release, at schema 0008; end it there"):
            await copy(source.url, candidate.url, done=done)
    assert await stored(candidate) == before
    await copy_by_the_candidate("--done")
    await asyncio.to_thread(migrate, candidate.url)


async def stored(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    later = ADDED["0008"]
    names = [*(table.name for table in INSERTION_ORDER if table.name not in later), "chatledger_version"]
    return {name: sorted(await query(database, f"SELECT * FROM {name}"), key=repr) for name in names}


def moment(cell: Any) -> Any:
    return to_microseconds(cell) if isinstance(cell, datetime) else cell
