"""A ledger with keys does everything that it does without them, and returns no cell that was tampered with."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import Text

from chatledger import Encryption, InvalidArgument, KeyRing, Ledger, ThreadNotFound, Transaction, Turns
from chatledger.admin import configure_sqlite
from chatledger.errors import EncryptionError, IdConflict
from chatledger.models import CONTINUES
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.repositories.bulk import load_threads
from chatledger.storage.rows.encryption import ENCRYPTED
from chatledger.storage.schema.columns import Key
from chatledger.storage.schema.tables import metadata
from chatledger.storage.schema.text import CIPHERTEXT_HEADER
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, texts, turn, user
from tests.reasons import because
from tests.storage.raw import Run, query, raw_connection
from tests.storage.words import READERS, RING, Said, read_everything, say_everything

OTHER = KeyRing({"k1": bytes(32)})
NEXT = KeyRing({"k1": bytes(range(32)), "k2": bytes(32)}, current="k2")

PLAIN = {
    "threads": {"rules"},
    "branches": {"lineage", "last_role", "open_calls"},
    "runs": {"agent", "model", "status", "usage_details", "call_secret"},
    "run_leases": {"database_id"},
    "run_decisions": {"decision"},
    "messages": {
        *("role", "name", "content_form", "reasoning_form", "tool_call_id", "state", "format"),
        "violations",
    },
    "message_parts": {"channel", "kind"},
    "tool_calls": {"call_id", "name", "arguments_form"},
    "feedback": {"key", "source"},
    "outputs": {"nonce", "mime_type"},
    "revisions": {"kind"},
    "kv": {"kind"},
    "erasures": {"kind", "rows"},
    "kept_scores": {"key", "agent", "model"},
    "tenants": {"tombstone_secret"},
}
"""The columns that are compared, counted, joined or shown without keys. A new column is added here or to ENCRYPTED."""


def test_every_text_column_is_encrypted_or_plain_on_purpose() -> None:
    for table in metadata.tables.values():
        texts_of = {column.name for column in table.c if _holds_text(column) and type(column.type) is not Key}
        assert texts_of == PLAIN.get(table.name, set()) | set(ENCRYPTED.get(table.name, ())), table.name


def _holds_text(column: Any) -> bool:
    return isinstance(getattr(column.type, "impl", None), Text)


async def test_all_words_are_read_back_and_every_cell_is_encrypted(database: Database) -> None:
    said = Said()
    async with database.open(encryption=RING) as ledger:
        await say_everything(ledger, said)
        read = repr(await read_everything(ledger))
    assert [word for word in said.words if word not in read and not word.startswith("first")] == []
    for table, columns in ENCRYPTED.items():
        for column in columns:
            cells = [row[0] for row in await query(database, f"SELECT {column} FROM {table}") if row[0] is not None]
            assert cells, f"nothing was said in {table}.{column}"
            assert all(CIPHERTEXT_HEADER.match(cell) for cell in cells), f"{table}.{column}"


async def test_a_ledger_returns_the_same_with_and_without_keys(database: Database) -> None:
    def word(label: str) -> str:
        return f"{label} \ue0011:k1:\0\ud800"  # which the codec has to escape as well

    async with (
        database.open(tenant="encrypted", encryption=RING) as encrypted,
        database.open(tenant="plain", encryption=None) as plain,
    ):
        for ledger in (encrypted, plain):
            await say_everything(ledger, word)
        assert _without_chance(await read_everything(encrypted)) == _without_chance(await read_everything(plain))


CHANCE = {"created_at", "active_at", "started_at", "ended_at", "message_id", "detail", "updated_at", "version"}


def _without_chance(read: Any) -> Any:
    if isinstance(read, dict):
        return {name: _without_chance(value) for name, value in read.items() if name not in CHANCE}
    if isinstance(read, (list, tuple)):
        return [_without_chance(value) for value in read]
    return _without_chance(read.model_dump()) if hasattr(read, "model_dump") else read


# --- Missing keys -----------------------------------------------------------------------------------------------------


async def test_a_missing_key_is_named_and_nothing_is_read(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        await say_everything(ledger, Said())
    for keys in (None, KeyRing({"k2": bytes(32)}), Encryption(lambda _: None)):
        async with database.open(encryption=keys) as ledger:
            for read in READERS.values():
                with pytest.raises(
                    EncryptionError, check=because("no-key"), match="encrypted with the key 'k1'"
                ) as caught:
                    await read(ledger)
                assert caught.value.key_id == "k1"
    async with database.open(encryption=OTHER) as ledger:
        for read in READERS.values():
            with pytest.raises(EncryptionError, check=because("not-authentic")):
                await read(ledger)


async def test_keys_are_asked_for_by_tenant(database: Database) -> None:
    asked: list[str] = []

    def keys(tenant: str) -> KeyRing | None:
        asked.append(tenant)
        return {"acme": RING, "other": OTHER}.get(tenant)

    async with database.open(tenant="acme", encryption=Encryption(keys)) as ledger:
        for one in (ledger, ledger.tenant("other")):
            await one.threads.create("t", title="mine")
            assert (await one.threads.get("t")).title == "mine"
        with pytest.raises(
            EncryptionError, check=because("no-key"), match="tenant 'nobody' has no keys to encrypt with"
        ):
            await ledger.tenant("nobody").threads.create("t", title="mine")
    assert set(asked) == {"acme", "other", "nobody"}


async def test_words_without_a_key_are_lost_and_can_still_be_erased(database: Database) -> None:
    rings: dict[str, KeyRing] = {"default": RING}
    async with database.open(encryption=Encryption(rings.get)) as ledger:
        await say_everything(ledger, Said())
        del rings["default"]
        for read in READERS.values():
            with pytest.raises(EncryptionError, check=because("no-key")):
                await read(ledger)
        with pytest.raises(EncryptionError, check=because("no-key")):
            await ledger.messages.append("t", [user("more")])
        assert [branch.last_seq for branch in await ledger.branches.list("t")] == [9, 4]
        assert (await ledger.erasures.erase(("thread", "t"), keep_scores=True)).scores == 1
        await ledger.threads.delete("u")
        await ledger.erasures.erase(("tenant",))
        assert list(await ledger.threads.list()) == []


# --- Tampering --------------------------------------------------------------------------------------------------------


def _quoted(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


async def _put(run: Run, table: str, column: str, key: dict[str, Any], cell: str) -> None:
    where = " AND ".join(f"{name} = {_quoted(value)}" for name, value in key.items())
    await run(f"UPDATE {table} SET {column} = {_quoted(cell)} WHERE {where}")


async def _cells(run: Run, table: str, column: str, tenant: str) -> list[tuple[dict[str, Any], str]]:
    """(primary key, cell) of the cells that are not NULL, in order."""
    names = [one.name for one in metadata.tables[f"chatledger.{table}"].primary_key]
    key = ", ".join(names)
    rows = await run(
        f"SELECT {key}, {column} FROM {table} WHERE tenant_id = '{tenant}' AND {column} IS NOT NULL ORDER BY {key}"
    )
    return [(dict(zip(names, row, strict=False)), row[-1]) for row in rows]


def _forgeries(cell: str, neighbour: str, of_another_tenant: str, of_another_column: str) -> list[str]:
    """Cells that somebody without a key, who can write to the database, could put there."""
    body = cell.index(":k1:") + 30
    altered = cell[:body] + ("A" if cell[body] != "A" else "B") + cell[body + 1 :]
    return [neighbour, of_another_tenant, of_another_column, altered, cell[:-4], "\ue0011:k1:", "\ue0012:k1:"]


async def test_a_cell_that_was_moved_altered_or_planted_is_refused_wherever_it_is(database: Database) -> None:
    async with database.open(encryption=RING) as ledger, raw_connection(database) as run:
        await say_everything(ledger, Said())
        await say_everything(ledger.tenant("other"), Said())
        title = (await _cells(run, "threads", "title", "default"))[0][1]
        error = (await _cells(run, "runs", "error", "default"))[0][1]
        for table, column in [(table, column) for table, columns in ENCRYPTED.items() for column in columns]:
            of_gone = column in ("digest", "digest_secret") and table != "revisions"
            read = _repeat if of_gone else READERS[READER_OF.get(table, table)]
            (key, cell), *others = await _cells(run, table, column, "default")
            elsewhere = (await _cells(run, table, column, "other"))[0][1]
            neighbour = others[0][1] if others else elsewhere  # a tenant has one secret
            for planted in _forgeries(cell, neighbour, elsewhere, error if table == "threads" else title):
                await _put(run, table, column, key, planted)
                with pytest.raises(EncryptionError, check=because("not-authentic"), match=rf"^{table}\.{column} of "):
                    await read(ledger)
            await _put(run, table, column, key, '"planted"')
            with pytest.raises(EncryptionError, check=because("not-encrypted"), match=rf"^{table}\.{column} of "):
                await read(ledger)
            await _put(run, table, column, key, cell.replace("\ue0012:", "\ue0019:"))
            with pytest.raises(EncryptionError, match=rf"^{table}\.{column} of .*version 9"):
                await read(ledger)
            await _put(run, table, column, key, cell)
        await read_everything(ledger)


async def _repeat(ledger: Ledger) -> object:
    """Only a repeat of its append asks for the digest of a redacted message."""
    return await ledger.messages.append("t", [assistant("gone", message_id="t gone")])


READER_OF = dict.fromkeys(("messages", "message_parts", "tool_calls"), "histories")


# --- What a ledger does with messages ---------------------------------------------------------------------------------


async def test_a_retry_is_compared_by_its_decrypted_content(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        await ledger.threads.create("t")
        first = await ledger.messages.append("t", turn(ids="m"), run_id="r")
        again = await ledger.messages.append("t", turn(ids="m"), run_id="r")
        assert (again.replayed, again.messages) == (True, first.messages)
        with pytest.raises(IdConflict):
            await ledger.messages.append("t", [user("other words", message_id="m0")])
        assert (await ledger.messages.sync("t", [*turn(), user("next")])).messages[0].seq == 6


async def test_turn_starts_are_found_in_encrypted_residuals(database: Database) -> None:
    """A user message that was one message with the results before it begins no turn."""
    grouped = [*turn()[:4], user("and", residual={CONTINUES: True})]
    async with (
        database.open(tenant="encrypted", encryption=RING) as encrypted,
        database.open(tenant="plain", encryption=None) as plain,
    ):
        for ledger in (encrypted, plain):
            await ledger.threads.create("t")
            for _ in range(3):
                await ledger.messages.append("t", grouped, rules="lenient")
        for turns in range(1, 8):
            asked = [await ledger.messages.history("t", Turns(turns)) for ledger in (encrypted, plain)]
            assert [message.seq for message in asked[0].messages] == [message.seq for message in asked[1].messages]


async def test_a_redacted_message_stays_redacted(database: Database) -> None:
    said = Said()
    async with database.open(encryption=RING) as ledger:
        await say_everything(ledger, said)
        await erase_at(scope_of(ledger), "t", 3, branch=0)
        stored = (await ledger.messages.history("t", branch=0)).messages[2]
        assert (stored.content, [call.arguments for call in stored.tool_calls or ()]) == ("[redacted]", ["{}", "{}"])
        assert await findings_of(ledger, "t", branch=0) is not None


async def test_a_transaction_encrypts_as_well(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        async with ledger.begin() as tx:
            await tx.threads.create("t", title="mine")
            await tx.messages.append("t", turn())
            assert len((await tx.messages.history("t")).messages) == 5
        assert (await ledger.threads.get("t")).preview == "It is sunny in both."
    for table, column in (("threads", "title"), ("messages", "text"), ("tool_calls", "arguments")):
        cells = [row[0] for row in await query(database, f"SELECT {column} FROM {table}") if row[0] is not None]
        assert cells
        assert all(CIPHERTEXT_HEADER.match(cell) for cell in cells)


async def test_a_callers_own_transaction_takes_keys(database: Database) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    if database.kind == "postgresql":
        engine = create_async_engine(database.url.replace("postgresql://", "postgresql+asyncpg://"))
    else:
        engine = create_async_engine(f"sqlite+aiosqlite:///{database.url}")
        configure_sqlite(engine)
    async with engine.connect() as connection, connection.begin():
        own = Transaction(connection, encryption=RING)
        await own.threads.create("t", title="mine")
        await own.messages.append("t", [user("mine too")])
        assert texts(await own.messages.history("t")) == ["mine too"]
    await engine.dispose()
    assert all(CIPHERTEXT_HEADER.match(row[0]) for row in await query(database, "SELECT title FROM threads"))


async def test_sixteen_writers_encrypt_at_once(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        await ledger.threads.create("t")

        async def write(number: int) -> None:
            for _ in range(5):
                await ledger.messages.append("t", [user(f"by {number}")], rules="lenient")

        await asyncio.gather(*[write(number) for number in range(16)])
        stored = sorted(texts(await ledger.messages.history("t")))
    assert stored == sorted(f"by {number}" for number in range(16) for _ in range(5))


async def test_another_tenants_row_is_not_found_whatever_the_keys(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        await ledger.threads.create("t", title="mine")
        with pytest.raises(ThreadNotFound):
            await ledger.tenant("other").threads.get("t")


async def test_plain_rows_are_read_only_with_plaintext(database: Database) -> None:
    said = Said()
    async with database.open(encryption=None) as ledger:
        await say_everything(ledger, said)
    async with database.open(encryption=RING) as ledger:
        for read in READERS.values():
            with pytest.raises(EncryptionError, check=because("not-encrypted")):
                await read(ledger)
    async with database.open(encryption=Encryption(RING, plaintext=True)) as ledger:
        read_back = repr(await read_everything(ledger))
        assert [word for word in said.words if word not in read_back and not word.startswith("first")] == []


async def test_a_thread_is_loaded_by_a_ledger_like_the_one_that_prepared_it(database: Database) -> None:
    from tests.storage.repositories.test_bulk import new_thread

    async with Ledger.open(":memory:") as plain, database.open(encryption=RING) as ledger:
        with pytest.raises(InvalidArgument, match="was prepared by a ledger with other keys"):
            await load_threads(scope_of(ledger), [new_thread(plain, "t", [user("plain")])])


async def test_a_rotated_ring_reads_both_and_writes_with_the_new_key(database: Database) -> None:
    rings = {"default": RING}
    async with database.open(encryption=Encryption(rings.get)) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [user("old")])
        rings["default"] = NEXT
        await ledger.messages.append("t", [user("new")], rules="lenient")
        assert texts(await ledger.messages.history("t")) == ["old", "new"]
    stored = await query(database, "SELECT text FROM messages ORDER BY seq")
    assert [CIPHERTEXT_HEADER.match(row[0])[2] for row in stored] == ["k1", "k2"]  # type: ignore[index]


async def test_a_ledger_on_an_applications_engine_encrypts(database: Database) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    if database.kind == "sqlite":
        engine = create_async_engine(f"sqlite+aiosqlite:///{database.url}")
        configure_sqlite(engine)
    else:
        engine = create_async_engine(database.url.replace("postgresql://", "postgresql+asyncpg://"))
    said = Said()
    async with Ledger.open(engine, encryption=RING) as ledger:
        await say_everything(ledger, said)
        read = repr(await read_everything(ledger))
    await engine.dispose()
    assert [word for word in said.words if word not in read and not word.startswith("first")] == []
    assert all(CIPHERTEXT_HEADER.match(row[0]) for row in await query(database, "SELECT text FROM messages") if row[0])
