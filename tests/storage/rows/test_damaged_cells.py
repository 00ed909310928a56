"""Every cell of every table, damaged in every way: reading it raises an error with its place, or reads as before."""

from __future__ import annotations

import sqlite3
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import asyncpg
import pytest

from chatledger import ChatLedgerError, Feedback, KeyRing, Ledger, Oldest, StorageError
from chatledger.errors import DamagedCell, EncryptionError
from chatledger.storage.rows.encryption import ENCRYPTED
from chatledger.storage.schema.tables import metadata
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, user
from tests.storage.raw import Run, raw_connection
from tests.storage.words import ALL_READERS, RING, Said, say_everything

CANARY = "c4n4ry"
BROKEN = f'{{"{CANARY}'
OBJECT = (BROKEN, "", f'["{CANARY}"]', f'"{CANARY}"', "null", "1")
LIST = (BROKEN, "", f'{{"{CANARY}": 1}}', f'"{CANARY}"', "null", "1", "[1]")
ANY_JSON = (BROKEN, "")
LINEAGE = (BROKEN, "", "{}", "[]", "[[0]]", '[["a", 1, null]]', "null")
NUMBER = (BROKEN,)
"""PostgreSQL refuses a text there; SQLite stores it."""
WORD = (BROKEN,)
"""One of a few words: both databases refuse another one."""
TEXT: tuple[str, ...] = ()
"""Any text is a right one."""
KEY: tuple[str, ...] = ()
"""Another value is another row, or a row of something else."""
UNREAD: tuple[str, ...] = ()
"""Only statements read the cell: they count, sum, join or sort by it."""

COLUMNS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "threads": {
        "tenant_id": KEY,
        "thread_id": KEY,
        "user_id": KEY,
        "title": TEXT,
        "metadata": OBJECT,
        "rules": WORD,
        "active_branch": NUMBER,
        "created_at": NUMBER,
        "active_at": NUMBER,
        "kind": KEY,
        "archived_at": NUMBER,
        "revision": NUMBER,
    },
    "branches": {
        "tenant_id": KEY,
        "thread_id": KEY,
        "branch": KEY,
        "lineage": LINEAGE,
        "last_seq": NUMBER,
        "stamp": NUMBER,
        "last_role": TEXT,
        "open_calls": (*OBJECT, '{"calls": [1]}', '{"partial": 1}'),
        "partial_seq": NUMBER,
        "created_at": NUMBER,
        "absent": NUMBER,
    },
    "runs": {
        "tenant_id": KEY,
        "run_id": KEY,
        "thread_id": KEY,
        "agent": TEXT,
        "model": TEXT,
        "status": WORD,
        "input": ANY_JSON,
        "input_tokens": NUMBER,
        "output_tokens": NUMBER,
        "total_tokens": NUMBER,
        "usage_details": OBJECT,
        "cost": NUMBER,
        "error": TEXT,
        "metadata": OBJECT,
        "started_at": NUMBER,
        "ended_at": NUMBER,
        "question_id": KEY,
        "branch": NUMBER,
        "tools_of": KEY,
        "call_secret": TEXT,
        "attempts": NUMBER,
    },
    "run_leases": {
        "tenant_id": KEY,
        "thread_id": KEY,
        "run_id": KEY,
        "agent": KEY,
        "attempt": NUMBER,
        "worker_id": KEY,
        "paused_at": NUMBER,
        "user_id": KEY,
        "place": NUMBER,
        "database_id": TEXT,
    },
    "run_decisions": {
        "tenant_id": KEY,
        "thread_id": KEY,
        "run_id": KEY,
        "branch": KEY,
        "seq": KEY,
        "idx": KEY,
        "revision": NUMBER,
        "decision": WORD,
        "reason": TEXT,
        "pending_reason": TEXT,
        "author": KEY,
        "decided_at": NUMBER,
        "begun_at": NUMBER,
    },
    "workers": dict.fromkeys(("worker_id", "lease_until"), UNREAD),
    "messages": {
        "tenant_id": KEY,
        "thread_id": KEY,
        "branch": KEY,
        "seq": KEY,
        "message_id": KEY,
        "role": TEXT,
        "name": TEXT,
        "content_form": WORD,
        "text": TEXT,
        "reasoning_form": WORD,
        "call_count": NUMBER,
        "tool_call_id": TEXT,
        "is_error": NUMBER,
        "run_id": KEY,
        "state": WORD,
        "format": TEXT,
        "residual": ANY_JSON,
        "response_metadata": OBJECT,
        "custom_data": OBJECT,
        "violations": LIST,
        "created_at": NUMBER,
        "revision": UNREAD,
        "digest": TEXT,
    },
    "message_parts": {
        "tenant_id": KEY,
        "thread_id": KEY,
        "branch": KEY,
        "seq": KEY,
        "idx": KEY,
        "channel": WORD,
        "kind": TEXT,
        "text": TEXT,
        "body": OBJECT,
    },
    "tool_calls": {
        "tenant_id": KEY,
        "thread_id": KEY,
        "branch": KEY,
        "seq": KEY,
        "idx": KEY,
        "call_id": TEXT,
        "name": TEXT,
        "arguments": TEXT,  # an object is tried below
        "arguments_form": WORD,
        "extras": OBJECT,
    },
    "tool_results": dict.fromkeys(
        ("tenant_id", "thread_id", "branch", "seq", "call_branch", "call_seq", "call_idx"), UNREAD
    ),
    "feedback": {
        "tenant_id": KEY,
        "feedback_id": KEY,
        "run_id": KEY,
        "key": TEXT,
        "score": NUMBER,
        "kwargs": OBJECT,
        "author": TEXT,
        "source": TEXT,
        "thread_id": UNREAD,
        "branch": UNREAD,
        "seq": UNREAD,
        "idempotency_key": KEY,
        "created_at": NUMBER,
        "message_id": KEY,
        "call_idx": NUMBER,
        "user_id": KEY,
        "retracted_at": NUMBER,
    },
    "agents": {
        "tenant_id": KEY,
        "thread_id": KEY,
        "name": KEY,
        "idx": NUMBER,
        "definition": OBJECT,
        "settings": OBJECT,
        "is_default": UNREAD,  # SQLAlchemy takes anything for true
    },
    "outputs": {
        "tenant_id": KEY,
        "thread_id": KEY,
        "branch": KEY,
        "seq": KEY,
        "idx": KEY,
        "call_idx": NUMBER,
        "nonce": TEXT,
        "mime_type": TEXT,
        "text": TEXT,
        "body": OBJECT,
        "created_at": NUMBER,
    },
    "revisions": {
        "tenant_id": KEY,
        "thread_id": KEY,
        "branch": KEY,
        "seq": KEY,
        "idx": KEY,
        "kind": WORD,
        "target_branch": NUMBER,
        "target_seq": NUMBER,
        "message_id": KEY,
        "body": (*OBJECT, '{"message": {"seq": 1}, "parts": [1], "calls": []}'),
        "digest": TEXT,
        "created_at": NUMBER,
    },
    "kv": {
        "tenant_id": KEY,
        "kind": WORD,
        "scope_id": KEY,
        "namespace": KEY,
        "key": KEY,
        "value": ANY_JSON,
        "version": NUMBER,
        "updated_at": NUMBER,
    },
    "tenants": {
        "tenant_id": KEY,
        **dict.fromkeys(("encrypted_at", "digest_secret", "tombstone_secret", "kv_version"), UNREAD),
    },
    "erasures": {
        "tenant_id": KEY,
        "erasure_id": KEY,
        "kind": WORD,
        "subject": KEY,
        "rows": OBJECT,
        "scores": NUMBER,
        "created_at": NUMBER,
    },
    "kept_scores": dict.fromkeys(
        ("tenant_id", "erasure_id", "idx", "key", "score", "agent", "model", "created_at"), UNREAD
    ),
}
"""How each cell is damaged. A new column is added here."""

REFUSED = (asyncpg.PostgresError, sqlite3.IntegrityError)


def test_every_column_is_listed() -> None:
    stored = {table.name: [column.name for column in table.c] for table in metadata.tables.values()}
    assert {table: list(columns) for table, columns in COLUMNS.items()} == stored


async def fill(ledger: Ledger) -> None:
    await say_everything(ledger, Said())
    await ledger.threads.create("v")
    await ledger.messages.append("v", [user("?"), result("c", "orphan")], rules="lenient")
    for branch in await ledger.branches.list("t"):
        if branch.branch == 1:
            await ledger.messages.append("t", [assistant(calls=[call("open")])], branch=1)
    await ledger.threads.create("gone")
    await ledger.runs.start("gone", run_id="run gone")
    await ledger.feedback.record(Feedback(run_id="run gone", key="k", score=1))
    await ledger.erasures.erase(("thread", "gone"), keep_scores=True)


async def cells_of(run: Run, table: str, column: str) -> list[tuple[str, Any]]:
    """(condition of the row, cell) of the cells, those that are not NULL first."""
    names = [one.name for one in metadata.tables[f"chatledger.{table}"].primary_key]
    rows = await run(f"SELECT {', '.join(names)}, {column} FROM {table} ORDER BY {column} IS NULL, {', '.join(names)}")
    return [
        (" AND ".join(f"{name} = {quoted(value)}" for name, value in zip(names, row, strict=False)), row[-1])
        for row in rows
    ]


def quoted(value: object) -> str:
    if value is None or isinstance(value, (int, float)):
        return "NULL" if value is None else str(value)
    return "'" + str(value).replace("'", "''") + "'"


def damages(table: str, column: str, cells: list[tuple[str, Any]], *, encrypted: bool) -> Iterator[str]:
    if encrypted and column in ENCRYPTED.get(table, ()):
        yield from (CANARY, BROKEN, f'"{CANARY}"', f'{{"{CANARY}": 1}}')
        yield cells[1][1]  # the ciphertext of another cell
    else:
        yield from COLUMNS[table][column]


async def readings(ledger: Ledger) -> dict[str, Any]:
    """The result or error of each reader. `check` raises the first of its findings about damage."""
    found: dict[str, Any] = {}
    for name, read in ALL_READERS.items():
        try:
            found[name] = repr(await read(ledger))
        except ChatLedgerError as error:
            found[name] = error
    return found


async def told_by_check(ledger: Ledger) -> list[str]:
    return [
        finding.detail
        async for checked in ledger.check()
        for finding in checked.findings
        if finding.rule == "R11" and finding.severity == "error"
    ]


@pytest.mark.parametrize("keys", [None, RING], ids=["plain", "keys"])
@pytest.mark.parametrize("table", [table for table, columns in COLUMNS.items() if any(columns.values())])
async def test_a_damaged_cell_is_named_or_changes_nothing(database: Database, table: str, keys: KeyRing | None) -> None:
    async with database.open(encryption=keys) as ledger, raw_connection(database) as run:
        await fill(ledger)
        before = await readings(ledger)
        assert not any(isinstance(read, Exception) for read in before.values())
        assert await told_by_check(ledger) == []
        for column in COLUMNS[table]:
            cells = await cells_of(run, table, column)
            for planted in damages(table, column, cells, encrypted=keys is not None):
                where, cell = cells[0]
                try:
                    await run(f"UPDATE {table} SET {column} = {quoted(planted)} WHERE {where}")
                except REFUSED:
                    assert COLUMNS[table][column] in (WORD, NUMBER)
                    continue
                assert COLUMNS[table][column] is not WORD
                told = await told_by_check(ledger)
                require_told(f"{table}.{column}", planted, before, await readings(ledger), told)
                if database.kind == "sqlite" or COLUMNS[table][column] is not NUMBER:
                    await run(f"UPDATE {table} SET {column} = {quoted(cell)} WHERE {where}")
        assert await readings(ledger) == before


def require_told(place: str, planted: str, before: dict[str, Any], after: dict[str, Any], by_check: list[str]) -> None:
    raised = {name: error for name, error in after.items() if isinstance(error, Exception)}
    for name, error in raised.items():
        assert isinstance(error, (DamagedCell, EncryptionError, EncryptionError)), (place, planted, name, error)
        assert str(error).startswith(f"{place} of "), (place, planted, name, error)
        assert CANARY not in "".join(traceback.format_exception(error)), (place, planted)
    assert {name: read for name, read in after.items() if name not in raised} == {
        name: read for name, read in before.items() if name not in raised
    }, (place, planted)
    assert len(by_check) == (0 if place.startswith("erasures.") else 1), (place, planted, by_check)
    assert all(text.startswith(f"{place} of ") and CANARY not in text for text in by_check), (place, planted, by_check)
    assert raised or by_check, (place, planted)


# --- One damaged cell does not hide the rest --------------------------------------------------------------------------


async def two_of_each(ledger: Ledger) -> None:
    for name in ("t", "u", "v"):
        await ledger.threads.create(name, metadata={"m": 1})
        await ledger.runs.start(name, run_id=f"run {name}", input={"q": 1})
        await ledger.feedback.record(
            Feedback(run_id=f"run {name}", key="k", score=1, kwargs={"c": 1}, feedback_id=f"f {name}")
        )


LISTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "threads": ("metadata", "thread_id", {"thread_id": "u"}),
    "runs": ("input", "run_id", {"run_id": "run u"}),
    "feedback": ("kwargs", "feedback_id", {"feedback_id": "f u"}),
}


@pytest.mark.parametrize("noun", LISTS)
@pytest.mark.plain
async def test_a_list_returns_the_others_and_reports_the_damaged_one(
    database: Database, ledger: Ledger, noun: str
) -> None:
    column, name, key = LISTS[noun]
    await two_of_each(ledger)
    async with raw_connection(database) as run:
        await run(f"UPDATE {noun} SET {column} = {quoted(BROKEN)} WHERE {name} = '{key[name]}'")
    page = await getattr(ledger, noun).list()
    assert (len(page.items), page.next_cursor) == (2, None)
    (error,) = page.damaged
    assert (error.table, error.column, error.key, error.retryable) == (noun, column, key, False)
    assert isinstance(error, StorageError)
    seen, damaged, cursor = [], [], None
    for _ in range(3):
        page = await getattr(ledger, noun).list(limit=1, cursor=cursor)
        cursor = page.next_cursor
        seen += page.items
        damaged += page.damaged
    assert (len(seen), len(damaged), cursor) == (2, 1, None)


async def test_a_planted_cell_does_not_hide_the_other_threads(database: Database) -> None:
    async with database.open(encryption=RING) as ledger, raw_connection(database) as run:
        await two_of_each(ledger)
        await run(f"UPDATE threads SET metadata = {quoted(BROKEN)} WHERE thread_id = 'u'")
        page = await ledger.threads.list()
        assert [thread.thread_id for thread in page] == ["v", "t"]
        assert [type(error) for error in page.damaged] == [EncryptionError]
        with pytest.raises(EncryptionError, match=r"^threads\.metadata of 'u'"):
            await ledger.threads.get("u")


async def test_arguments_that_are_an_object_are_read_as_one(database: Database) -> None:
    async with database.open(encryption=None) as ledger, raw_connection(database) as run:
        await ledger.threads.create("t")
        asked = call("c").model_copy(update={"arguments": {"a": 1}})
        await ledger.messages.append("t", [user("?"), assistant(calls=[asked])])
        for planted in OBJECT:
            await run(f"UPDATE tool_calls SET arguments = {quoted(planted)}")
            with pytest.raises(DamagedCell) as caught:
                await ledger.messages.history("t")
            assert caught.value.key == {"thread_id": "t", "branch": 0, "seq": 2, "idx": 0}
            assert await told_by_check(ledger) == [str(caught.value)]


@pytest.mark.plain
async def test_a_window_beside_a_damaged_message_is_read(database: Database, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user(str(seq)) for seq in range(1, 6)], rules="lenient")
    async with raw_connection(database) as run:
        await run(f"UPDATE messages SET custom_data = {quoted(BROKEN)} WHERE seq = 2")
    with pytest.raises(DamagedCell, match=r"^messages\.custom_data of 't', 0, 2: "):
        await ledger.messages.history("t")
    assert [message.seq for message in await ledger.messages.history("t", Oldest(1_000, after=2), branch=0)] == [
        3,
        4,
        5,
    ]
    found = [(one.seq, one.rule, one.severity) for one in await findings_of(ledger, "t") if one.severity == "error"]
    assert found == [(2, "R11", "error")]


async def test_an_append_to_a_damaged_branch_says_where(database: Database) -> None:
    async with database.open() as writer, database.open() as ledger, raw_connection(database) as run:
        await writer.threads.create("t")
        await run(f"UPDATE branches SET open_calls = {quoted(BROKEN)}")
        with pytest.raises(DamagedCell, match=r"^branches\.open_calls of 't', 0: ") as caught:
            await ledger.messages.append("t", [user("?")])
        assert CANARY not in "".join(traceback.format_exception(caught.value))
