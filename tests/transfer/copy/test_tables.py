"""No table and no column is forgotten: what must know all of them is watched while it works.

SQLite tells which columns a statement reads or changes, so a new column fails here until each of these knows it, or has
an exception with its reason.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chatledger import KeyRing, Ledger
from chatledger.admin import copy
from chatledger.models.outputs import ThreadAgent
from chatledger.repositories import scope_of
from chatledger.storage.drivers import sqlite
from chatledger.storage.repositories.outputs import replace_agents
from chatledger.storage.rows.encryption import ENCRYPTED
from chatledger.storage.schema.row_security import _TABLES as SECURED
from chatledger.storage.schema.tables import metadata
from chatledger.storage.upgrade.discard import ADDED
from chatledger.transfer.copy.cells import columns_of
from tests.storage.durable import make_durable
from tests.transfer.copy.random_ledger import KEYS, Filler

Columns = set[tuple[str, str]]
TABLES = {table.name: table for table in metadata.tables.values()}
ALL: Columns = {(table.name, column.name) for table in TABLES.values() for column in table.columns}

BESIDE = {
    "tenants": "the marks, the secrets and the highest deleted version of a tenant stay",
    "erasures": "the tombstones stay",
    "kept_scores": "the scores that the caller kept stay",
    "workers": "of no tenant",
}
NOT_COPIED = {
    **{("run_leases", column): "who works on a run in the source" for column in columns_of(TABLES["run_leases"])},
    **{("workers", column): "the processes of the source" for column in columns_of(TABLES["workers"])},
}
NOT_CHECKED = {
    **{(table, column): reason for table, reason in BESIDE.items() for column in columns_of(TABLES[table])},
    **{("tool_results", column): "keys, which the database holds" for column in columns_of(TABLES["tool_results"])},
    **{("feedback", column): "a place that the message may have left" for column in ("thread_id", "branch", "seq")},
    ("feedback", "idempotency_key"): "any text",
    ("messages", "revision"): "a count that no other cell depends on",
}


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, Columns]]:
    """What connections of the library read and change meanwhile, by SQLite's own number of the action."""
    seen: dict[int, Columns] = {
        action: set() for action in (sqlite3.SQLITE_READ, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
    }

    def note(action: int, table: str | None, column: str | None, *_: Any) -> int:
        if action in seen and table in TABLES:
            seen[action].add((table, column or ""))
        return sqlite3.SQLITE_OK

    connect: Callable[..., sqlite3.Connection] = sqlite._connect

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_authorizer(note)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "_connect", connected)
        yield seen


@pytest.fixture
async def filled(tmp_path: Path) -> str:
    """With a row in every table."""
    url = str(tmp_path / "filled.db")
    async with Ledger.open(url, encryption=KEYS) as ledger:
        await Filler(Random(7), ledger).fill(12)
        [thread, *_] = await ledger.threads.list(archived=None)
        agent = ThreadAgent(name="guide", definition={"a": 1}, settings={"b": 2})
        await replace_agents(scope_of(ledger), thread.thread_id, [agent], stored=[])
        await ledger.runs.start(thread.thread_id, run_id="durable")
        await make_durable(ledger, thread.thread_id, "durable")
    return url


async def test_a_copy_reads_every_column(filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target.db"
    async with Ledger.open(target):  # to create a table is to read the columns of its constraints
        pass
    with watched(monkeypatch) as seen:
        await copy(filled, target)
    assert ALL - seen[sqlite3.SQLITE_READ] == NOT_COPIED.keys()


async def test_erasing_and_retention_delete_from_every_table(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Ledger.open(filled, encryption=KEYS) as ledger:
        [thread, *_] = await ledger.threads.list(archived=None)
    calls: list[Callable[[Ledger], Any]] = [
        lambda ledger: ledger.erasures.erase(("thread", thread.thread_id)),
        lambda ledger: ledger.threads.delete_inactive(older_than=thread.active_at.replace(year=2999)),
    ]
    for call in calls:
        with watched(monkeypatch) as seen:
            async with Ledger.open(filled) as ledger:
                await call(ledger)
        assert TABLES.keys() - {table for table, _ in seen[sqlite3.SQLITE_DELETE]} == BESIDE.keys()


async def test_reencrypt_changes_every_encrypted_column(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = KeyRing({"new": bytes(32), "k": bytes(range(32))}, current="new")
    with watched(monkeypatch) as seen:
        async with Ledger.open(filled, encryption=newer) as ledger:
            await ledger.reencrypt()
    encrypted = {(table, column) for table, columns in ENCRYPTED.items() for column in columns}
    assert encrypted - seen[sqlite3.SQLITE_UPDATE] == set()


async def test_check_reads_every_column(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch) as seen:
        async with Ledger.open(filled, encryption=KEYS) as ledger:
            async for _ in ledger.check():
                pass
    assert ALL - seen[sqlite3.SQLITE_READ] == NOT_CHECKED.keys()


def test_row_level_security_takes_every_table() -> None:
    """It asks the database for the tables with a tenant."""
    assert "attname = 'tenant_id'" in SECURED
    assert [name for name, table in TABLES.items() if "tenant_id" not in table.c] == ["workers"]


def test_the_guard_of_downgrades_knows_every_table_and_column() -> None:
    """Those of a table that came as a whole go with it; a test of the migrations compares each revision."""
    names = [name for added in ADDED.values() for name in added]
    assert {name for name in names if "." not in name} == TABLES.keys()
