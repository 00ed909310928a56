"""The record that a database is encrypted, made and met by a role from which row-level security hides other tenants."""

from __future__ import annotations

import asyncio

import pytest

from chatledger import Encryption, Ledger, Pace, PostgreSQL, StorageError
from chatledger.admin import migrate, schema_status
from chatledger.errors import EncryptionError
from tests.conftest import Database
from tests.conversations import turn, user
from tests.reasons import because
from tests.storage.raw import query
from tests.storage.rows.test_encrypted_tenants import everything
from tests.storage.schema.test_row_security import APP, as_owner, execute, owned, secured
from tests.storage.words import RING

__all__ = ["owned", "secured"]


async def test_the_record_of_encryption_holds_for_new_tenants_under_row_security(secured: str) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        await ledger.messages.append("t", turn(), create=True)
        assert (await asyncio.to_thread(migrate, as_owner(secured), encrypted=True)).encrypted
        for own in (ledger, ledger.tenant("new")):
            for thread_id in "tu":
                with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
                    await own.messages.append(thread_id, turn(), create=True)
        assert (await ledger.messages.history("t")).last_seq == 5


async def test_only_a_role_that_sees_all_rows_records_that_the_database_is_encrypted(secured: str) -> None:
    with pytest.raises(StorageError, match="connect as the owner"):
        await asyncio.to_thread(migrate, secured, encrypted=True)
    assert not (await asyncio.to_thread(schema_status, secured)).encrypted
    assert (await asyncio.to_thread(migrate, as_owner(secured), encrypted=True)).encrypted


@pytest.mark.parametrize("tenant", ["a", "new"])
async def test_keys_that_are_required_record_the_database_for_the_tenants_that_the_role_does_not_see(
    secured: str, pg_url: str, tenant: str
) -> None:
    database, required = Database("postgresql", pg_url), Encryption(RING, required=True)
    async with (
        Ledger.open(secured, tenant="a") as plain,
        Ledger.open(secured, tenant="b", encryption=required) as ledger,
    ):
        for thread in "tu":
            await plain.threads.create(thread, rules="lenient")
            await plain.messages.append(thread, [user("before")])
        draft = await plain.messages.stream("u", pace=Pace(interval=3_600, lease=7_200)).__aenter__()
        try:
            await ledger.threads.create("t")
            assert (await asyncio.to_thread(schema_status, secured)).encrypted
            for call in (
                lambda: draft.feed("secret" * 9_000),
                lambda: plain.tenant(tenant).messages.append("t", [user("secret")], create=True),
                lambda: plain.tenant(tenant).threads.create("new"),
            ):
                with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
                    await call()
            assert await query(database, "SELECT count(*) FROM messages WHERE text LIKE '%secret%'") == [(0,)]
        finally:
            with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
                await draft.__aexit__(None, None, None)


async def test_keys_that_are_required_store_nothing_if_the_role_may_not_record_the_database(
    secured: str, pg_url: str
) -> None:
    await execute(as_owner(secured), f"REVOKE UPDATE ON chatledger.chatledger_version FROM {APP}")
    database = Database("postgresql", pg_url)
    async with Ledger.open(secured, encryption=Encryption(RING, required=True)) as ledger:
        for _ in range(2):
            with pytest.raises(EncryptionError, match="run as the owner of the tables: chatledger migrate --encrypted"):
                await ledger.threads.create("t")
        assert not any((await everything(database)).values())
        assert not (await asyncio.to_thread(schema_status, secured)).encrypted
        assert (await asyncio.to_thread(migrate, as_owner(secured), encrypted=True)).encrypted
        await ledger.threads.create("t")
