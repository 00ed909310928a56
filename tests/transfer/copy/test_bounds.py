"""What a copy holds at once: so many bytes in memory and on the disk, and no lock of the target while it reads."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from sys import getsizeof
from typing import Any

import pytest

from chatledger import ChatMessage, Feedback, Ledger
from chatledger.admin import copy
from chatledger.storage.drivers.urls import read_url
from chatledger.storage.schema.tables import SCHEMA, messages
from chatledger.transfer.copy import parts, spool
from chatledger.transfer.copy.database_copy import DatabaseCopy
from chatledger.transfer.copy.ends import open_source
from chatledger.transfer.copy.parts import PAGE_BYTES, THREADS, Range, select_kept_scores, select_rows
from tests.conftest import Database
from tests.conversations import turn, user
from tests.transfer.copy.test_copy import move

LARGE = "x" * (PAGE_BYTES // 4)


async def test_a_page_of_rows_is_bounded_by_its_bytes(database: Database) -> None:
    """It was guessed from the rows before: large messages behind short ones took hundreds of megabytes."""
    async with Ledger.open(database.url, migrate=True) as ledger:
        await ledger.messages.append("t", [user("short") for _ in range(500)], create=True)
        for number in range(20):
            await ledger.messages.append("t", [user(f"{number}{LARGE}")])
    source = await open_source(read_url(database.url), SCHEMA)
    try:
        selection = select_rows(THREADS, messages, source.side.dialect, frozenset(), bounded=False)
        pages = [page async for page in source.side.batches(selection, Range("", None).values("default"))]
    finally:
        await source.side.close()
    sizes = [sum(getsizeof(cell) for row in page for cell in row) for page in pages]
    assert sum(map(len, pages)) == 520
    assert max(sizes) < PAGE_BYTES + 2 * len(LARGE)
    assert len(pages) >= 5


async def test_the_scores_of_a_tombstone_come_in_pages(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = str(tmp_path / "source.db")
    async with Ledger.open(source) as ledger:
        for number in range(3):
            await ledger.messages.append(f"t{number}", turn(f"m{number}-"), run_id=f"r{number}", create=True)
            for score in range(40):
                await ledger.feedback.record(Feedback(run_id=f"r{number}", key=f"stars {score}", score=4))
            await ledger.erasures.erase(("thread", f"t{number}"), keep_scores=True)
        before = list(await ledger.erasures.list())
        erasure = before[0].erasure_id
    reads = await open_source(read_url(source), SCHEMA)
    with monkeypatch.context() as patch:
        patch.setattr("chatledger.transfer.copy.sides.PAGE_BYTES", 1000)
        values = {"tenant": "default", "id": erasure}
        pages = [len(page) async for page in reads.side.batches(select_kept_scores("sqlite"), values)]
        await reads.side.close()
        assert sum(pages) == 40
        assert len(pages) > 4
        await move(source, database.url)
    async with Ledger.open(database.url) as ledger:
        assert list(await ledger.erasures.list()) == before


async def test_units_of_many_bytes_take_several_transactions(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that is too large alone goes as a whole."""
    refused: list[Range] = []
    halves = Range.halves

    def noted(span: Range) -> tuple[Range, Range]:
        refused.append(span)
        return halves(span)

    monkeypatch.setattr(Range, "halves", noted)
    monkeypatch.setattr(spool, "MOST", 20_000)
    monkeypatch.setattr(spool, "IN_MEMORY", 1_000)
    source = str(tmp_path / "source.db")
    async with Ledger.open(source) as ledger:
        for number in range(12):
            await ledger.messages.append(f"t{number}", [user("x" * 4_000)], create=True)
        await ledger.messages.append("t5", [user("x" * 30_000)])
        for number in range(12):
            await ledger.kv.put(("user", "ada"), f"k{number}", "x" * 4_000)
        report = await copy(source, database.url)
        assert (report.threads, report.copied, report.rows["kv"]) == (12, 12, 12)
        assert len(refused) > 3
        refused.clear()
        for number in range(12):
            await ledger.messages.append(f"t{number}", [user("More")])
        await ledger.threads.delete("t3")
        report = await copy(source, database.url)
        assert (report.threads, report.copied, report.removed) == (11, 11, 1)
        assert refused
    assert (await copy(source, database.url, verify=True, done=True)).differences == []


async def test_what_vanished_goes_in_ranges(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it was compared and deleted at once, however much stood between two threads of the source, or behind."""
    monkeypatch.setattr(parts, "UNITS", 3)
    parts.far_unit.cache_clear()
    source = str(tmp_path / "source.db")
    async with Ledger.open(source) as ledger:
        for number in range(30):
            await ledger.messages.append(f"t{number:02}", [user("Hi")], create=True)
            await ledger.kv.put(("user", "ada"), f"k{number:02}", 1)
        await copy(source, database.url)
        for number in range(30):
            if number not in (1, 17):
                await ledger.threads.delete(f"t{number:02}")
                await ledger.kv.delete(("user", "ada"), f"k{number:02}")
        await ledger.messages.append("t17", [user("More")])
    deleted: list[int] = []
    delete = DatabaseCopy._delete

    async def counted(self: DatabaseCopy, part: Any, units: Any) -> None:
        deleted.append(len(units))
        await delete(self, part, units)

    monkeypatch.setattr(DatabaseCopy, "_delete", counted)
    report = await copy(source, database.url)
    assert (report.threads, report.copied, report.removed) == (2, 1, 28)
    assert max(deleted) <= 3
    assert (await copy(source, database.url, verify=True, done=True)).differences == []
    parts.far_unit.cache_clear()


async def test_a_target_file_is_not_locked_while_the_source_is_read(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long thread kept the writers of other tenants waiting for as long as it took to read it."""
    target = str(tmp_path / "target.db")
    async with Ledger.open(database.url, migrate=True) as ledger:
        for number in range(3):
            await ledger.messages.append(f"t{number}", turn(f"m{number}-"), run_id=f"r{number}", create=True)
        await ledger.feedback.record(Feedback(run_id="r0", key="stars", score=4))
        await ledger.erasures.erase(("thread", "t0"), keep_scores=True)
        await ledger.kv.put(("tenant",), "a", 1)
    async with Ledger.open(target) as other:
        await other.tenant("other").threads.create("mine")
    source = await open_source(read_url(database.url), SCHEMA)
    kind: Any = type(source.side)
    await source.side.close()
    batches, begun = kind.batches, []

    async def watched(self: Any, *arguments: Any) -> AsyncIterator[Any]:
        async for page in batches(self, *arguments):
            if self.name != target:
                with closing(sqlite3.connect(target, timeout=0, isolation_level=None)) as writer:
                    writer.execute("BEGIN IMMEDIATE")
                begun.append(page)
            yield page

    monkeypatch.setattr(kind, "batches", watched)
    await move(database.url, target, tenant="default")
    assert len(begun) > 5


# --- Values -----------------------------------------------------------------------------------------------------------


async def test_one_changed_value_is_written_alone(database: Database, tmp_path: Path) -> None:
    source = str(tmp_path / "source.db")
    scopes: list[Any] = [("tenant",), ("tenant", "space"), ("user", "ada"), ("user", "ada", "space"), ("user", "eve")]
    async with Ledger.open(source) as ledger:
        for scope in scopes:
            for number in range(3):
                await ledger.kv.put(scope, f"k{number}", number)
        report = await copy(source, database.url)
        assert report.rows["kv"] == 15
        await ledger.kv.put(("user", "ada", "space"), "k1", "new")
        await ledger.kv.delete(("tenant",), "k2")
        differences = (await copy(source, database.url, verify=True)).differences
        assert "tenant 'default': value 'k1' of user 'ada' in namespace 'space'" in differences
        assert "tenant 'default': value 'k2'" in differences
        assert (await copy(source, database.url)).rows["kv"] == 1
        assert (await copy(source, database.url)).rows == {}
    await copy(source, database.url, verify=True, done=True)
    async with Ledger.open(database.url) as ledger:
        assert (await ledger.kv.get(("user", "ada", "space"), "k1")).value == "new"  # type: ignore[union-attr]
        assert await ledger.kv.get(("tenant",), "k2") is None


async def test_many_values_go_in_ranges(database: Database, tmp_path: Path) -> None:
    source = str(tmp_path / "source.db")
    async with Ledger.open(source) as ledger:
        await ledger.kv.put(("user", "ada"), "k", 1)
        await ledger.messages.append("t", [ChatMessage.user("Hi")], create=True)
    with closing(sqlite3.connect(source)) as file:
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)"
        owner = "tenant_id, kind, scope_id, namespace"
        file.execute(f"{numbers} INSERT INTO kv SELECT {owner}, 'k' || i, '1', 1, updated_at FROM kv, n")
        file.commit()
    assert (await copy(source, database.url)).rows["kv"] == 2_501
    assert (await copy(source, database.url, verify=True, done=True)).differences == []
