"""On PostgreSQL a revision does not queue for a table's lock, because every later statement would wait behind it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from chatledger import StorageError
from chatledger.admin import SchemaStatus, migrate
from chatledger.storage.upgrade import migrate as migrate_module
from chatledger.storage.upgrade import revisions
from tests.conftest import Database
from tests.migrations.later import later_revision
from tests.migrations.revisions import NEXT

ADDS_A_COLUMN = """
def upgrade(schema):
    op.add_column("messages", sa.Column("colour", sa.Text()), schema=schema)

def downgrade(schema):
    op.drop_column("messages", "colour", schema=schema)
"""


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later_revision(ADDS_A_COLUMN, tmp_path, monkeypatch)
    for module in (migrate_module, revisions):
        monkeypatch.setattr(module, "LOCK_TIMEOUT", 0.1)


@pytest.mark.usefixtures("later")
async def test_an_unavailable_lock_is_a_retryable_error(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate_module, "RETRY_AFTER", (0,))
    reader = await asyncpg.connect(pg_database.url)
    async with reader.transaction():
        await reader.fetch("SELECT count(*) FROM chatledger.messages")
        with pytest.raises(StorageError, match="lock timeout") as caught:
            await asyncio.to_thread(migrate, pg_database.url)
    await reader.close()
    assert caught.value.retryable


@pytest.mark.usefixtures("later")
async def test_a_lock_is_requested_again(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate_module, "RETRY_AFTER", (0.2,) * 20)
    reader = await asyncpg.connect(pg_database.url)
    async with reader.transaction():
        await reader.fetch("SELECT count(*) FROM chatledger.messages")
        migrating = asyncio.create_task(asyncio.to_thread(migrate, pg_database.url))
        await asyncio.sleep(1)
        await asyncio.wait_for(writes(pg_database), 2)
        assert not migrating.done()
    await reader.close()
    assert await migrating == SchemaStatus(NEXT, NEXT)


async def writes(database: Database) -> None:
    """Another client is not held up by the one that would migrate."""
    client = await asyncpg.connect(database.url)
    for _ in range(5):
        await client.execute("UPDATE chatledger.messages SET text = text")
    await client.close()
