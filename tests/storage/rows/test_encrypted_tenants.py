"""A ledger without keys writes nothing for a tenant that is encrypted, so that no plain text slips in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import ChatLedgerError, Encryption, KeyRing, Ledger, ThreadNotFound, Transaction
from chatledger.admin import backup, configure_sqlite
from chatledger.errors import EncryptionError
from chatledger.repositories import Repositories, scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.drivers.urls import read_url
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from chatledger.storage.schema.tables import INSERTION_ORDER
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.faults.proxy import proxied
from tests.reasons import because
from tests.storage.databases.test_scope import CALLS, NOON, THEIRS, fill, in_ledger, in_transaction, new_thread
from tests.storage.raw import query
from tests.storage.words import RING

DELETE = {"runs.delete", "threads.delete", "threads.delete_inactive", "erasures.erase"}
WRITE = {
    *(
        "messages.stream",
        "threads.create",
        "storage.load_threads",
        "threads.update",
        "messages.append",
        "messages.erase",
    ),
    *(
        "messages.revise",
        "messages.close_open_calls",
        "branches.fork",
        "branches.activate",
        "runs.start",
        "runs.finish",
    ),
    *("feedback.record", "feedback.remove", "storage.add_outputs", "storage.replace_agents", "drafts.interrupt"),
}
"""The calls that the mark refuses. Other calls read, or read before they write, and cannot read the words."""


async def everything(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    return {table.name: await query(database, f"SELECT * FROM {table.name}") for table in INSERTION_ORDER}


async def encrypted(database: Database, tenant: str = "default") -> list[str]:
    rows = await query(database, "SELECT tenant_id FROM tenants WHERE encrypted_at IS NOT NULL ORDER BY tenant_id")
    return [row[0] for row in rows]


@asynccontextmanager
async def external(database: Database, **options: Any) -> AsyncIterator[tuple[Any, Transaction]]:
    """A connection of the application's own in a transaction, and a Transaction on it."""
    engine = create_async_engine(
        read_url(database.url) if database.kind == "postgresql" else f"sqlite+aiosqlite:///{database.url}"
    )
    if database.kind == "sqlite":
        configure_sqlite(engine)
    try:
        async with engine.connect() as connection:
            await connection.begin()
            yield connection, Transaction(connection, **options)
    finally:
        await engine.dispose()


# --- Without keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [in_ledger, in_transaction])
async def test_every_call_that_writes_is_refused_and_stores_nothing(database: Database, scope: Any) -> None:
    async with database.open(encryption=RING) as ledger:
        await fill(ledger, THEIRS)
    before = await everything(database)
    refused = set()
    async with database.open(encryption=None) as ledger:
        for name, calls in CALLS.items():
            for call in calls if name not in DELETE else ():
                with suppress(ChatLedgerError):
                    async with scope(ledger) as repositories:
                        try:
                            await call(repositories, THEIRS)
                        except EncryptionError:
                            refused.add(name)
    assert await everything(database) == before
    assert refused >= WRITE


async def test_a_transaction_on_a_connection_of_the_caller_is_refused_too(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        await fill(ledger, THEIRS)
    before = await everything(database)
    writes: list[Callable[[Transaction], Awaitable[object]]] = [
        lambda tx: tx.messages.append(THEIRS.thread, turn()),
        lambda tx: tx.threads.create("new"),
        lambda tx: tx.runs.start(THEIRS.thread, run_id="new"),
    ]
    async with external(database) as (connection, tx):
        for write in writes:
            with pytest.raises(
                EncryptionError,
                check=because("tenant-encrypted"),
                match="tenant 'default' is encrypted; open the ledger with encryption=…",
            ):
                await write(tx)
        await connection.commit()
    assert await everything(database) == before


async def test_a_thread_of_another_tenant_is_loaded_only_with_keys(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        other = ledger.tenant("other")
        await load_threads(scope_of(ledger), [prepare_thread(scope_of(other), new_thread("t"), turn())])
    assert await encrypted(database) == ["default", "other"]
    async with database.open(tenant="plain", encryption=None) as ledger:
        other = ledger.tenant("other")
        with pytest.raises(EncryptionError, check=because("tenant-encrypted"), match="'other'"):
            await load_threads(scope_of(ledger), [prepare_thread(scope_of(other), new_thread("u"), turn())])
        assert await other.threads.find("u") is None


async def test_deleting_needs_no_keys(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        for name in "abcde":
            await ledger.user(name).threads.create(name, title="words", created_at=NOON)
            await ledger.messages.append(name, turn(), run_id=f"run of {name}")
        await ledger.threads.create("idle", title="words", created_at=NOON)
    async with database.open(encryption=None) as ledger:
        await ledger.threads.delete("a")
        await ledger.erasures.erase(("thread", "b"))
        await ledger.erasures.erase(("user", "c"))
        assert (await ledger.threads.delete_inactive(older_than=NOON.replace(year=2025))).rows["threads"] == 1
        async with ledger.begin() as tx:
            await tx.threads.delete("d")
        await ledger.erasures.erase(("tenant",))
        with pytest.raises(EncryptionError, check=because("tenant-encrypted")):  # the mark is not erased
            await ledger.threads.create("e")
    assert (await query(database, "SELECT count(*) FROM threads"))[0][0] == 0


async def test_words_are_not_redacted_without_keys(database: Database) -> None:
    """The text in place of the words would be plain text among ciphertext."""
    async with database.open(encryption=RING) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", turn())
        async with database.open(encryption=None) as plain:
            with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
                await erase_at(scope_of(plain), "t", 1)
        assert (await ledger.messages.history("t")).messages[0].text == turn()[0].text


async def test_other_tenants_and_a_tenant_without_keys_are_written_as_before(database: Database) -> None:
    rings = {"acme": RING}
    async with database.open(tenant="acme", encryption=Encryption(rings.get)) as ledger:
        await ledger.threads.create("t", title="words")
        assert await ledger.tenant("nobody").threads.find("t") is None
        await ledger.tenant("nobody").threads.create("t")  # no words: a tenant without keys is not encrypted by it
    assert await encrypted(database) == ["acme"]
    async with database.open(tenant="nobody", encryption=None) as ledger:
        await ledger.messages.append("t", turn())
    rings.clear()
    async with database.open(tenant="acme", encryption=Encryption(rings.get)) as ledger:
        assert (await ledger.erasures.erase(("thread", "t"))).rows["threads"] == 1


async def test_a_ledger_that_knows_the_ends_of_threads_is_refused_after_the_rotation(database: Database) -> None:
    """Its next append needs no preflight. But `reencrypt` renews the stamps of what it encrypts."""
    async with (
        database.open(encryption=None) as plain,
        database.open(encryption=Encryption(RING, plaintext=True)) as ledger,
    ):
        await plain.threads.create("t")
        await plain.messages.append("t", turn())
        await ledger.reencrypt()
        with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
            await plain.messages.append("t", turn())
        assert (await ledger.messages.history("t")).last_seq == 5


async def test_a_copy_keeps_the_mark(sqlite_database: Database, tmp_path: Any) -> None:
    async with sqlite_database.open(encryption=RING) as ledger:
        await ledger.threads.create("t", title="words")
    copy = Database("sqlite", str(tmp_path / "copy.db"))
    await asyncio.to_thread(backup, sqlite_database.url, copy.url)
    async with copy.open(encryption=None) as ledger:
        with pytest.raises(EncryptionError, check=because("tenant-encrypted")):
            await ledger.threads.create("u")


# --- With keys --------------------------------------------------------------------------------------------------------


FIRST_WRITES: dict[str, Callable[[Repositories], Awaitable[object]]] = {
    "create": lambda own: own.threads.create("new"),
    "append": lambda own: own.messages.append("t", [user("?")]),
    "stream": lambda own: _stream(own),
    "load": lambda own: load_threads(scope_of(own), [prepare_thread(scope_of(own), new_thread("new"), turn())]),
    "run": lambda own: own.runs.start("t", run_id="r"),
}


async def _stream(own: Repositories) -> None:
    async with own.messages.stream("t") as draft:
        await draft.feed("!")


@pytest.mark.parametrize("first", FIRST_WRITES)
@pytest.mark.parametrize("scope", [in_ledger, in_transaction])
async def test_the_first_write_marks_the_tenant(database: Database, first: str, scope: Any) -> None:
    async with database.open(encryption=None) as plain:
        await plain.threads.create("t", rules="lenient")
    async with database.open(encryption=Encryption(RING, plaintext=True)) as ledger:
        await ledger.threads.list()
        assert await encrypted(database) == []
        async with scope(ledger) as repositories:
            await FIRST_WRITES[first](repositories)
    assert await encrypted(database) == ["default"]


async def test_reencrypting_marks_a_tenant_with_nothing_left_to_do(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        assert await ledger.reencrypt() == {}
    assert await encrypted(database) == ["default"]


async def test_a_transaction_of_the_caller_that_is_rolled_back_leaves_no_mark_and_no_memory(database: Database) -> None:
    async with database.open(encryption=None) as plain:
        await plain.threads.create("t", rules="lenient")
    async with external(database, encryption=Encryption(RING, plaintext=True)) as (connection, tx):
        outer = await connection.begin_nested()
        await tx.messages.append("t", [user("?")])
        await outer.rollback()
        await tx.messages.append("t", [user("!")])
        await connection.commit()
    assert await encrypted(database) == ["default"]
    async with external(database, tenant="other", encryption=RING) as (connection, tx):
        await tx.threads.create("t", title="words")
        await connection.rollback()
    assert await encrypted(database) == ["default"]


async def test_a_transaction_that_fails_leaves_a_marked_tenant(database: Database) -> None:
    """Its mark came before it, so it cannot be lost with it and still be remembered."""
    async with database.open(encryption=RING) as ledger:
        with pytest.raises(ThreadNotFound):
            async with ledger.begin() as tx:
                await tx.messages.append("nowhere", turn())
        await ledger.threads.create("t", title="words")
    assert await encrypted(database) == ["default"]


async def test_many_first_writes_at_once_mark_it_once(database: Database) -> None:
    async with database.open(encryption=RING) as one, database.open(encryption=RING) as other:
        made = [ledger.threads.create(f"t{n}", title="words") for n, ledger in enumerate((one, other) * 4)]
        await asyncio.gather(*made)
        assert await encrypted(database) == ["default"]
        assert len(await one.threads.list()) == 8


async def test_the_mark_costs_nothing_once_it_is_known(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url, encryption=RING) as ledger:
        await ledger.threads.create("t")
        for _ in range(2):
            await ledger.messages.append("t", turn())
        for own in (ledger, ledger.tenant("default")):
            before = proxy.round_trips
            await own.messages.append("t", turn())
            assert proxy.round_trips - before == 1


@pytest.mark.parametrize("keys", [None, RING], ids=["plain", "keys"])
async def test_a_first_append_still_is_a_preflight_and_a_statement(pg_database: Database, keys: KeyRing | None) -> None:
    async with pg_database.open(encryption=keys) as other:
        for name in "tu":
            await other.threads.create(name)
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url, encryption=keys) as ledger:
        await ledger.messages.append("t", [user("?"), assistant("!")])
        before = proxy.round_trips
        await ledger.messages.append("u", [user("?"), assistant("!")])
        assert proxy.round_trips - before == 2
