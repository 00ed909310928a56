"""Reencryption: of plain text, and from one key to the next, while others write."""

from __future__ import annotations

import asyncio

import pytest

from chatledger import Encryption, KeyRing, Pace
from chatledger.errors import EncryptionError
from chatledger.storage.changes import reencrypt as module
from chatledger.storage.rows.encryption import ENCRYPTED
from chatledger.storage.rows.keys import TenantKeys, header_of
from chatledger.storage.schema.text import CIPHERTEXT_HEADER
from tests.conftest import Database
from tests.conversations import assistant, texts, turn, user
from tests.reasons import because
from tests.storage.raw import query, raw_connection
from tests.storage.words import RING, Said, read_everything, say_everything

FIRST, SECOND = bytes(range(32)), bytes(range(32, 64))
BOTH = KeyRing({"k1": FIRST, "k2": SECOND}, current="k2")
LATER = KeyRing({"k2": SECOND})


async def key_ids(database: Database) -> set[str | None]:
    """The key ids of all cells that should be encrypted; None for plain text."""
    return await in_headers(database, 2)


async def versions(database: Database) -> set[str | None]:
    return await in_headers(database, 1)


async def in_headers(database: Database, group: int) -> set[str | None]:
    found: set[str | None] = set()
    async with raw_connection(database) as run:
        for table, columns in ENCRYPTED.items():
            for column in columns:
                headers = [
                    CIPHERTEXT_HEADER.match(row[0]) for row in await run(f"SELECT {column} FROM {table}") if row[0]
                ]
                found |= {header and header[group] for header in headers}
    return found


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 7)


async def test_plain_rows_are_encrypted_and_read_the_same(database: Database) -> None:
    async with database.open(encryption=None) as ledger:
        await say_everything(ledger, Said())
        before = await read_everything(ledger)
    seen: list[tuple[int, int]] = []
    async with database.open(encryption=Encryption(RING, plaintext=True)) as ledger:
        rows = await ledger.reencrypt(progress=lambda done, total: seen.append((done, total)))
        assert set(rows) == {*ENCRYPTED} - {"tenants"}  # without keys there was no secret
        assert await ledger.reencrypt() == {}
    assert (seen[0], seen[2]) == ((1, 3), (3, 3))
    assert await key_ids(database) == {"k1"}
    async with database.open(encryption=RING) as ledger:
        assert await read_everything(ledger) == before


async def test_a_key_is_replaced_and_can_go(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        await say_everything(ledger, Said())
        before = await read_everything(ledger)
    async with database.open(encryption=BOTH) as ledger:
        await ledger.reencrypt()
    assert await key_ids(database) == {"k2"}
    async with database.open(encryption=LATER) as ledger:
        assert await read_everything(ledger) == before
        gone = await ledger.messages.append("t", [assistant("gone", message_id="t gone")])  # redacted since
        assert gone.replayed


async def test_cells_of_the_first_version_are_read_and_rewritten(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(
            KeyRing, "of", lambda ring, _: TenantKeys(ring.current, header_of(ring.current, 1), ring._first)
        )
        async with database.open(encryption=RING) as ledger:
            await say_everything(ledger, Said())
            before = await read_everything(ledger)
    assert await versions(database) == {"1"}
    async with database.open(encryption=RING) as ledger:
        assert await read_everything(ledger) == before
        await ledger.messages.append("t", [assistant("gone", message_id="t gone")])  # compares a digest of version 1
        assert set(await ledger.reencrypt()) == set(ENCRYPTED)
        assert await ledger.reencrypt() == {}
        assert await read_everything(ledger) == before
    assert await versions(database) == {"2"}


async def test_only_the_tenants_own_rows_are_encrypted(database: Database) -> None:
    async with database.open(tenant="one", encryption=RING) as ledger:
        await say_everything(ledger, Said())
        await say_everything(ledger.tenant("two"), Said())
    async with database.open(tenant="one", encryption=BOTH) as ledger:
        await ledger.reencrypt()
    assert await key_ids(database) == {"k1", "k2"}
    async with database.open(tenant="two", encryption=RING) as ledger:
        await read_everything(ledger)


async def test_appends_of_others_meanwhile_are_kept(database: Database) -> None:
    """They know both keys, and begin to use the next one at any time."""
    rings = {"default": RING}
    async with database.open(encryption=Encryption(rings.get)) as ledger:
        for name in ("a", "b"):
            await ledger.threads.create(name)
            await ledger.messages.append(name, turn())

        async def write(name: str, number: int) -> None:
            for index in range(15):
                await ledger.messages.append(name, [user(f"{number} {index}")], rules="lenient")

        async def say(name: str) -> None:
            for index in range(3):
                async with ledger.messages.stream(
                    name, on_open_calls="close", pace=Pace(interval=0, lease=20)
                ) as draft:
                    for piece in range(5):
                        await draft.feed(f"piece {index}.{piece} ")

        async def rotate() -> None:
            await asyncio.sleep(0.05)
            rings["default"] = BOTH
            await ledger.reencrypt()

        writers = [write(name, number) for name in ("a",) for number in range(4)]
        await asyncio.gather(*writers, say("b"), rotate())
        await ledger.reencrypt()
        rings["default"] = LATER
        said = texts(await ledger.messages.history("a"))[5:]
        assert sorted(said) == sorted(f"{number} {index}" for number in range(4) for index in range(15))
        spoken = texts(await ledger.messages.history("b"))[5:]
        assert spoken == ["".join(f"piece {index}.{piece} " for piece in range(5)) for index in range(3)]
    assert await key_ids(database) == {"k2"}


async def test_an_interrupted_reencryption_continues(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with database.open(encryption=RING) as ledger:
        await say_everything(ledger, Said())
        before = await read_everything(ledger)

    class Stopped(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise Stopped

    async with database.open(encryption=BOTH) as ledger:
        with pytest.raises(Stopped):
            await ledger.reencrypt(progress=stop)
        assert await key_ids(database) == {"k1", "k2"}
        assert await read_everything(ledger) == before
        await ledger.reencrypt()
        assert await key_ids(database) == {"k2"}
        assert await read_everything(ledger) == before


async def test_planted_plain_text_is_not_encrypted(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        await ledger.threads.create("t", title="mine")
        await query(database, "UPDATE threads SET title = 'planted'")
        with pytest.raises(EncryptionError, check=because("not-encrypted")):
            await ledger.reencrypt()
    assert await query(database, "SELECT title FROM threads") == [("planted",)]


async def test_without_the_older_key_nothing_is_done(database: Database) -> None:
    async with database.open(encryption=RING) as ledger:
        await ledger.threads.create("t", title="mine")
    async with database.open(encryption=LATER) as ledger:
        with pytest.raises(
            EncryptionError, check=because("no-key"), match=r"threads\.title of 't': encrypted with the key 'k1'"
        ):
            await ledger.reencrypt()
    async with database.open(encryption=KeyRing({"k1": SECOND, "k2": SECOND}, current="k2")) as ledger:
        with pytest.raises(EncryptionError, check=because("not-authentic")):
            await ledger.reencrypt()


async def test_reencrypting_without_keys_is_refused(database: Database) -> None:
    async with database.open(encryption=None) as ledger:
        with pytest.raises(EncryptionError, match="open the ledger with encryption="):
            await ledger.reencrypt()
