"""A database that is recorded as encrypted: a ledger without keys stores nothing in it, for no tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from chatledger import ChatLedgerError, InvalidArgument, Ledger, PostgreSQL
from chatledger.admin import backup, migrate, schema_status
from chatledger.errors import EncryptionError
from chatledger.repositories import Repositories, scope_of
from chatledger.storage.append import attempt
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from tests.conftest import Database
from tests.conversations import turn, user
from tests.faults.proxy import proxied
from tests.reasons import because
from tests.storage.databases.test_scope import CALLS, NOON, THEIRS, fill, in_ledger, in_transaction, new_thread
from tests.storage.rows.test_encrypted_tenants import DELETE, WRITE, everything, external
from tests.storage.words import RING


async def record(database: Database) -> None:
    status = await asyncio.to_thread(migrate, database.url, encrypted=True)
    assert status.encrypted


KINDS = [{}, {"postgresql": PostgreSQL(distributed=True)}]
"""How a plain ledger is opened."""


@pytest.fixture(params=KINDS, ids=["", "distributed"])
def options(request: pytest.FixtureRequest, database: Database) -> Any:
    return {"encryption": None} | (request.param if database.kind == "postgresql" else {})


@pytest.mark.parametrize("scope", [in_ledger, in_transaction])
@pytest.mark.parametrize("tenant", ["default", "new"])
async def test_every_call_that_writes_is_refused_and_stores_nothing(
    database: Database, options: Any, scope: Any, tenant: str
) -> None:
    async with database.open(**options) as ledger:
        await fill(ledger, THEIRS)
    await record(database)
    before = await everything(database)
    refused = set()
    async with database.open(**options, tenant=tenant) as ledger:
        for name, calls in CALLS.items():
            for call in calls if name not in DELETE else ():
                with suppress(ChatLedgerError):
                    async with scope(ledger) as repositories:
                        try:
                            await call(repositories, THEIRS)
                        except EncryptionError:
                            refused.add(name)
    assert await everything(database) == before
    assert refused >= (WRITE if tenant == "default" else {"threads.create", "storage.load_threads"})


CREATING: dict[str, Callable[[Repositories], Awaitable[object]]] = {
    "create": lambda own: own.threads.create("new"),
    "append": lambda own: own.messages.append("new", turn(), create=True),
    "load": lambda own: load_threads(scope_of(own), [prepare_thread(scope_of(own), new_thread("new"), turn())]),
    "kv": lambda own: own.kv.put(("tenant",), "name", 1),
}


@pytest.mark.parametrize("call", CREATING)
async def test_a_user_of_a_new_tenant_is_refused_too(database: Database, options: Any, call: str) -> None:
    await record(database)
    async with database.open(**options, tenant="new") as ledger:
        for own in (ledger, ledger.user("ada")) if call != "load" else (ledger,):  # a user's view loads no threads
            with pytest.raises(EncryptionError, check=because("tenant-encrypted"), match="'new'"):
                await CREATING[call](own)
    assert not any((await everything(database)).values())


async def test_a_transaction_on_a_connection_of_the_caller_is_refused(database: Database) -> None:
    await record(database)
    async with external(database, tenant="new") as (connection, tx):
        for call in CREATING.values():
            with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
                await call(tx)
        await connection.commit()
    assert not any((await everything(database)).values())


async def test_a_ledger_that_knows_the_ends_of_threads_is_refused(database: Database, options: Any) -> None:
    """Its next append would need no preflight. But the record makes what it remembers stale."""
    async with database.open(**options) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
        await record(database)
        with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
            await ledger.messages.append("t", turn())
        with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
            await asyncio.gather(*[ledger.messages.append("t", [user(str(n))], rules="lenient") for n in range(8)])
        assert (await ledger.messages.history("t")).last_seq == 5


async def test_deleting_and_reading_need_no_keys(database: Database, options: Any) -> None:
    async with database.open(**options) as ledger:
        for name in "abc":
            await ledger.user(name).threads.create(name, created_at=NOON)
        await record(database)
        await ledger.threads.delete("a")
        await ledger.erasures.erase(("thread", "b"))
        assert (await ledger.threads.delete_inactive(older_than=NOON.replace(year=2025))).rows["threads"] == 1
        await ledger.erasures.erase(("tenant",))
        assert list(await ledger.threads.list()) == []


async def test_a_ledger_with_keys_writes_for_all_tenants(database: Database) -> None:
    await record(database)
    async with database.open(encryption=RING) as ledger:
        for own in (ledger, ledger.tenant("new")):
            await own.messages.append("t", turn(), create=True)


async def test_the_record_stays(database: Database, tmp_path: Any) -> None:
    before = await asyncio.to_thread(schema_status, database.url)
    await record(database)
    for _ in range(2):
        assert (await asyncio.to_thread(migrate, database.url)).encrypted
    after = await asyncio.to_thread(schema_status, database.url)
    assert (before.encrypted, after.encrypted) == (False, True)
    if database.kind == "sqlite":
        copy = str(tmp_path / "copy.db")
        await asyncio.to_thread(backup, database.url, copy)
        async with Ledger.open(copy, tenant="new") as ledger:
            with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
                await ledger.threads.create("u")


async def test_a_new_database_can_be_recorded_at_once(pg_url: str, tmp_path: Any) -> None:
    for url in (pg_url, str(tmp_path / "new.db")):
        assert (await asyncio.to_thread(migrate, url, encrypted=True)).encrypted
        with pytest.raises(InvalidArgument, match="encrypted needs the newest revision"):
            await asyncio.to_thread(migrate, url, to="0005", encrypted=True)


async def test_the_record_costs_a_distributed_writer_that_looks_one_round_trip(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the mark of the tenant, which a creation looks for. A ledger with keys looks for neither."""
    monkeypatch.setattr(attempt, "ACTIVITY_RESOLUTION", timedelta())  # so that no append has a statement less
    writes: dict[str, Callable[[Ledger, str], Awaitable[object]]] = {
        "create": lambda own, thread: own.threads.create(thread),
        "look": lambda own, thread: own.messages.append(f"of another {thread}", turn()),
        "known": lambda own, thread: own.messages.append(thread, turn()),
        "create with messages": lambda own, thread: own.messages.append(f"new {thread}", turn(), create=True),
    }
    trips: dict[str, list[int]] = {name: [] for name in writes}
    for tenant, keys in (("plain", None), ("encrypted", RING)):
        options: dict[str, Any] = {"tenant": tenant, "encryption": keys, "postgresql": PostgreSQL(distributed=True)}
        async with pg_database.open(**options) as other:
            for thread in "tu":
                await other.threads.create(f"of another {thread}")
        async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url, **options) as ledger:
            for thread in "tu":
                for name, write in writes.items():
                    before = proxy.round_trips
                    await write(ledger, thread)
                    if thread == "u":  # the first thread's statements had to be prepared
                        trips[name].append(proxy.round_trips - before)
    assert {name: plain - keyed for name, (plain, keyed) in trips.items()} == {
        "create": 3,
        "look": 1,
        "known": 0,
        "create with messages": 2,
    }


async def test_the_record_costs_no_round_trip(pg_database: Database) -> None:
    async with pg_database.open(encryption=None) as other:
        for name in "tu":
            await other.threads.create(name)
    writes: list[tuple[Callable[[Ledger, str], Awaitable[object]], int]] = [
        (lambda own, thread: own.messages.append(thread, turn()), 2),  # a preflight, and the statement
        (lambda own, thread: own.messages.append(thread, turn()), 1),
        (lambda own, thread: own.messages.append(f"new {thread}", turn(), create=True), 1),
    ]
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url) as ledger:
        for write, _ in writes:
            await write(ledger, "t")  # so that the statements are prepared
        for write, trips in writes:
            before = proxy.round_trips
            await write(ledger, "u")
            assert proxy.round_trips - before == trips
