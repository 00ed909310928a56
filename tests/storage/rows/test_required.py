"""Keys that are required: the first write records the database, and no plain text is stored or read."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from chatledger import Encryption, InvalidArgument, PostgreSQL
from chatledger.admin import schema_status
from chatledger.errors import EncryptionError
from tests.conftest import Database
from tests.conversations import turn
from tests.reasons import because
from tests.storage.raw import query
from tests.storage.rows.test_encrypted_database import CREATING, KINDS, record
from tests.storage.rows.test_encrypted_tenants import FIRST_WRITES, everything, external
from tests.storage.words import RING

REQUIRED = Encryption(RING, required=True)


async def recorded(database: Database) -> bool:
    return (await asyncio.to_thread(schema_status, database.url)).encrypted


async def forget(database: Database) -> None:
    """As somebody who can write to the database may do."""
    await query(database, "UPDATE tenants SET encrypted_at = NULL")
    await query(database, "UPDATE chatledger_version SET encrypted_at = NULL")


@pytest.fixture(params=KINDS, ids=["", "distributed"])
def options(request: pytest.FixtureRequest, database: Database) -> Any:
    return request.param if database.kind == "postgresql" else {}


@pytest.mark.parametrize("first", FIRST_WRITES)
async def test_the_first_write_records_the_database(database: Database, first: str) -> None:
    async with database.open(encryption=RING) as ledger:
        await ledger.threads.create("t", rules="lenient")
    assert not await recorded(database)
    async with database.open(encryption=REQUIRED, postgresql=PostgreSQL(distributed=False)) as ledger:
        await ledger.threads.list()
        assert not await recorded(database)
        await FIRST_WRITES[first](ledger)
    assert await recorded(database)
    async with database.open(tenant="new", encryption=None) as ledger:
        with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
            await ledger.threads.create("t")


@pytest.mark.parametrize("first", FIRST_WRITES)
async def test_a_write_does_not_record_a_distributed_database(pg_database: Database, first: str) -> None:
    async with pg_database.open(encryption=RING, postgresql=PostgreSQL(distributed=True)) as ledger:
        await ledger.threads.create("t", rules="lenient")
    before = await everything(pg_database)
    async with pg_database.open(encryption=REQUIRED, postgresql=PostgreSQL(distributed=True)) as ledger:
        with pytest.raises(EncryptionError, match="run as the owner of the tables: chatledger migrate --encrypted"):
            await FIRST_WRITES[first](ledger)
        assert await everything(pg_database) == before
        await record(pg_database)
        await FIRST_WRITES[first](ledger)


async def test_a_transaction_of_the_caller_records_it_with_its_commit(database: Database) -> None:
    for end, expected in (("rollback", False), ("commit", True)):
        async with external(database, encryption=REQUIRED) as (connection, tx):
            await tx.threads.create("t")
            await getattr(connection, end)()
        assert await recorded(database) == expected


async def test_reencrypting_records_it(database: Database) -> None:
    async with database.open(encryption=REQUIRED, postgresql=PostgreSQL(distributed=False)) as ledger:
        assert await ledger.reencrypt() == {}
    assert await recorded(database)


async def test_without_the_record_it_still_refuses_plain_text(database: Database, options: Any) -> None:
    rings = {"default": RING}
    await record(database)
    async with database.open(**options, encryption=REQUIRED) as ledger:
        await ledger.threads.create("t", title="mine")
    await forget(database)
    before = await everything(database)
    async with database.open(tenant="new", **options, encryption=Encryption(rings.get, required=True)) as ledger:
        for call in CREATING.values():
            with pytest.raises(
                EncryptionError, check=because("no-key"), match="tenant 'new' has no keys to encrypt with"
            ):
                await call(ledger)
    assert await everything(database) == before
    await query(database, "UPDATE threads SET title = 'planted'")
    async with database.open(**options, encryption=REQUIRED) as ledger:
        with pytest.raises(EncryptionError, check=because("not-encrypted")):
            await ledger.threads.get("t")
        await record(database)
        await ledger.messages.append("t", turn())


async def test_deleting_needs_no_keys(database: Database) -> None:
    async with database.open(encryption=REQUIRED, postgresql=PostgreSQL(distributed=False)) as ledger:
        await ledger.threads.create("t")
    async with database.open(encryption=Encryption(lambda _: None, required=True)) as ledger:
        await ledger.threads.delete("t")
        await ledger.erasures.erase(("tenant",))


async def test_it_does_not_go_with_what_reads_or_writes_plain_text(database: Database) -> None:
    with pytest.raises(InvalidArgument, match="plaintext does not go with required=True"):
        Encryption(RING, plaintext=True, required=True)
    nothing: Any = None
    with pytest.raises(InvalidArgument, match="keys must be a KeyRing or a function"):
        Encryption(nothing, required=True)
    async with database.open(encryption=None) as ledger:
        await ledger.threads.create("t", title="plain")
    async with database.open(encryption=Encryption(RING, plaintext=True)) as ledger:
        assert (await ledger.threads.get("t")).title == "plain"
    assert not await recorded(database)


async def test_the_log_says_whether_encryption_is_on(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "chatledger.encryption")
    for keys in (None, RING, REQUIRED):
        async with database.open(encryption=keys):
            pass
    assert caplog.messages == ["encryption: off", "encryption: on", "encryption: on"]
