"""A damaged source: the error names the table, the column, the tenant and the thread, and nothing of the cell."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from chatledger import ChatLedgerError, Feedback, Ledger, StorageError
from chatledger.admin import copy
from chatledger.errors import DamagedCell
from chatledger.storage.schema.tables import metadata
from tests.conftest import Database
from tests.conversations import turn
from tests.transfer.copy.random_ledger import Filler

SECRET = "secret words"
NOT_UTF8 = f"CAST(x'ff' || '{SECRET}' AS TEXT)"
CELLS = [
    ("threads", "created_at", f"'{SECRET}'"),
    ("threads", "user_id", f"CAST('{SECRET}' AS BLOB)"),
    ("threads", "title", NOT_UTF8),
    ("threads", "user_id", NOT_UTF8),
    ("kept_scores", "key", NOT_UTF8),
    ("kept_scores", "score", f"'{SECRET}'"),
    ("branches", "last_seq", f"'{SECRET}'"),
    ("runs", "cost", f"'{SECRET}'"),
    ("messages", "created_at", "9223372036854775807"),
    ("messages", "text", f"'a' || char(0) || '{SECRET}'"),
    ("messages", "text", NOT_UTF8),
    ("messages", "is_error", f"'{SECRET}'"),
    ("feedback", "score", f"'{SECRET}'"),
    ("kv", "version", "9.5"),
    ("kv", "updated_at", f"'{SECRET}'"),
    ("kv", "value", NOT_UTF8),
    ("erasures", "created_at", f"'{SECRET}'"),
    ("tenants", "encrypted_at", f"'{SECRET}'"),
    ("tenants", "kv_version", f"'{SECRET}'"),
]

IDS = ("tenant_id", "thread_id", "scope_id", "run_id", "erasure_id")
"""An error names the place of a row."""


def damage(path: str, table: str, column: str, value: str) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA ignore_check_constraints = ON")
        file.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid IN (SELECT max(rowid) FROM {table})")
        file.commit()


async def seeded(folder: Path) -> str:
    path = str(folder / "source.db")
    async with Ledger.open(path) as ledger:
        user = ledger.user("ada")
        await user.messages.append("my thread", turn(), run_id="r", create=True)
        await ledger.feedback.record(Feedback(run_id="r", key="stars", score=4))
        await ledger.kv.put(("thread", "my thread"), "state", 1)
        await ledger.messages.append("gone", turn("gone-"), run_id="gone", create=True)
        await ledger.feedback.record(Feedback(run_id="gone", key="stars", score=4))
        await ledger.erasures.erase(("thread", "gone"), keep_scores=True)
    return path


@pytest.mark.parametrize(("table", "column", "value"), CELLS)
async def test_a_damaged_cell_is_named(table: str, column: str, value: str, pg_url: str, tmp_path: Path) -> None:
    source = await seeded(tmp_path)
    damage(source, table, column, value)
    with pytest.raises(DamagedCell) as caught:
        await copy(source, pg_url)
    assert (caught.value.table, caught.value.column) == (table, column)
    assert caught.value.key["tenant_id"] == "default"
    assert SECRET not in str(caught.value)
    if table not in ("kv", "erasures", "kept_scores", "tenants"):
        assert caught.value.key["thread_id"] == "my thread"
    if table == "kv":
        assert caught.value.key["scope_id"] == "my thread"


async def test_no_cell_of_any_column_gives_a_raw_error(database: Database, tmp_path: Path) -> None:
    """SQLite may take the cell as it is; PostgreSQL names it."""
    path = tmp_path / "filled.db"
    async with Ledger.open(path) as ledger:
        await Filler(Random(7), ledger).fill(2)
    whole = path.read_bytes()
    values = (f"'{SECRET}'", "x'ff00'", "9e99", NOT_UTF8)
    cells = [(table.name, column.name) for table in metadata.sorted_tables for column in table.columns]
    keys = {(table.name, column.name) for table in metadata.sorted_tables for column in table.primary_key}
    for number, (table, column) in enumerate(cells):
        path.write_bytes(whole)
        # A word in a key is another row, which stays in the target, and which errors about it name later.
        fitting = values[1:] if (table, column) in keys else values
        try:
            damage(str(path), table, column, fitting[number % len(fitting)])
        except sqlite3.IntegrityError:
            continue
        refusal = ""
        try:
            await copy(path, database.url)
        except ChatLedgerError as error:
            refusal = str(error)
        assert SECRET not in refusal or column in IDS, (table, column)


async def test_rows_of_a_missing_thread_are_named(database: Database, tmp_path: Path) -> None:
    """They went into the target once, and no later pass could compare them."""
    source = await seeded(tmp_path)
    with closing(sqlite3.connect(source)) as file:
        file.execute("UPDATE kv SET scope_id = 'no thread'")
        file.commit()
    with pytest.raises(StorageError, match="has rows in kv of the thread 'no thread', which does not exist"):
        await copy(source, database.url)
