"""The value objects that a ledger is opened with check themselves, and a ledger takes nothing in their place."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import Encryption, KeyRing, Ledger, PostgreSQL, Transaction
from chatledger.admin import configure_sqlite
from chatledger.errors import InvalidArgument
from tests.conftest import Database
from tests.conversations import turn

RING = KeyRing({"k1": bytes(32)})
WRONG: dict[str, list[Any]] = {
    "schema": [None, 7, "", 'a"b', "x" * 64],
    "pooler": [None, "statement", True],
    "pool_size": [0, -1, 10_001, True, "16", None],
    "max_overflow": [-1, 10_001, True, 1.0, None],
    "replica": [7, b"postgresql://x"],
    "rls": ["yes", 1],
    "distributed": ["yes", 0],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_value_names_its_field(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name} ") as refused:
        PostgreSQL(**{name: value})
    assert refused.value.argument == name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"keys": None}, "keys"),
        ({"keys": "secret"}, "keys"),
        ({"keys": Encryption(RING)}, "keys"),
        ({"keys": RING, "plaintext": 1}, "plaintext"),
        ({"keys": RING, "required": "yes"}, "required"),
        ({"keys": RING, "plaintext": True, "required": True}, "plaintext"),
    ],
)
def test_a_wrong_encryption_names_its_field(given: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name} ") as refused:
        Encryption(**given)
    assert refused.value.argument == name


def test_they_do_not_change_and_take_no_other_fields() -> None:
    for value in (PostgreSQL(), Encryption(RING)):
        field = dataclasses.fields(value)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, None)
        assert not hasattr(value, "__dict__")


def test_they_show_no_secret() -> None:
    shown = repr([PostgreSQL(replica="postgresql://ada:s3cret@standby/chat"), Encryption({"default": RING}.get)])
    assert "s3cret" not in shown
    assert "KeyRing" not in shown


def open_blocking(url: Path, **options: Any) -> object:
    from chatledger import blocking

    return blocking.open(url, **options)


@pytest.mark.parametrize("open_", [Ledger.open, open_blocking], ids=["Ledger", "blocking"])
def test_a_ledger_takes_nothing_in_their_place(open_: Any, tmp_path: Path) -> None:
    for name, wrong, said in (
        ("encryption", lambda _: RING, "must be a KeyRing, an Encryption of a KeyRing or of a function, or None"),
        ("postgresql", {"schema": "x"}, "must be a PostgreSQL or None, not dict"),
    ):
        with pytest.raises(InvalidArgument, match=f"^{name} {said}") as refused:
            open_(tmp_path / "ledger.db", **{name: wrong})
        assert refused.value.argument == name
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [{"rls": True}, {"distributed": True}, {"replica": "postgresql://standby/chat"}])
async def test_a_file_has_none_of_what_a_caller_would_rely_on(options: dict[str, Any], tmp_path: Path) -> None:
    (name,) = options
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'ledger.db'}")
    configure_sqlite(engine)
    for url in (tmp_path / "ledger.db", engine):
        with pytest.raises(InvalidArgument, match=f"^{name} needs PostgreSQL, and this database is SQLite"):
            await Ledger.open(url, postgresql=PostgreSQL(**options))
    if name != "replica":  # a transaction reads through its own connection on PostgreSQL as well
        async with engine.begin() as connection:
            with pytest.raises(InvalidArgument, match=f"^{name} needs PostgreSQL"):
                Transaction(connection, postgresql=PostgreSQL(**options))
    await engine.dispose()


async def test_options_for_production_do_for_a_file(tmp_path: Path) -> None:
    """What changes nothing that a caller sees of a file is ignored: one program, a file on the desk."""
    options = PostgreSQL(schema="chat", pooler="transaction", pool_size=5, max_overflow=2, rls=False, distributed=False)
    async with Ledger.open(tmp_path / "ledger.db", postgresql=options) as ledger:
        await ledger.messages.append("t", turn(), create=True)


async def test_one_value_opens_a_ledger_and_transactions(pg_database: Database) -> None:
    """A transaction uses the schema of the value, and has no pool of its own."""
    options = PostgreSQL(schema="other", pool_size=2)
    engine = create_async_engine(pg_database.url.replace("postgresql:", "postgresql+asyncpg:"))
    async with Ledger.open(pg_database.url, migrate=True, postgresql=options) as ledger, engine.begin() as connection:
        await Transaction(connection, postgresql=options).threads.create("t")
        await connection.commit()
        assert await ledger.threads.find("t")
    await engine.dispose()
