"""`sql` reads with SQL, on both databases alike, and never writes. `schema --views` explains what it can read."""

from __future__ import annotations

import asyncio
import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chatledger import ChatMessage, Ledger, Usage
from chatledger.storage.schema.view_columns import VIEW_COLUMNS
from tests.cli.commands import chatledger
from tests.conftest import Database
from tests.conversations import turn
from tests.storage.raw import count_rows, query

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
async def filled(database: Database) -> Database:
    async with Ledger.open(database.url) as ledger:
        await ledger.user("ada").threads.create("t")
        await ledger.messages.append("t", [ChatMessage(role="user", content='größe,\n"x"', created_at=NOON)])
        await ledger.messages.append("t", turn(), run_id="r")
        await ledger.runs.finish("r", status="completed", usage=Usage(input_tokens=3, cost="0.002"))
    return database


def test_a_table_by_default(filled: Database) -> None:
    outcome = chatledger("sql", "SELECT seq, role FROM transcript ORDER BY seq LIMIT 2", url=filled.url)
    assert (outcome.code, outcome.out) == (0, "SEQ  ROLE\n1    user\n2    user\n")
    assert outcome.error == "chatledger: 2 rows"


def test_a_table_tells_null_from_an_empty_text(filled: Database) -> None:
    assert chatledger("sql", "SELECT NULL AS said, '' AS empty, 0 AS no", url=filled.url).out == (
        "SAID  EMPTY  NO\nNULL         0\n"
    )


def test_a_table_is_cut_and_says_so(filled: Database) -> None:
    many = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) SELECT i FROM n"
    outcome = chatledger("sql", many, url=filled.url)
    assert len(outcome.out.splitlines()) == 101
    assert outcome.error == ("chatledger: the first 100 rows; --limit N prints more, --csv and --json print all")
    assert len(chatledger("sql", many, "--limit", 200, url=filled.url).out.splitlines()) == 201
    assert len(chatledger("sql", many, "--csv", url=filled.url).out.splitlines()) == 251
    assert len(chatledger("sql", many, "--csv", "--limit", 7, url=filled.url).out.splitlines()) == 8


READ = "SELECT text, created_at, seq, run_id FROM transcript WHERE seq = 1"


def test_csv_is_read_back(filled: Database) -> None:
    outcome = chatledger("sql", READ, "--csv", url=filled.url)
    header, row = csv.reader(io.StringIO(outcome.out))
    assert header == ["text", "created_at", "seq", "run_id"]
    assert row == ['größe,\n"x"', "2024-05-01T12:00:00.000000Z", "1", ""]


def test_json_is_the_same_on_both_databases(filled: Database) -> None:
    assert chatledger("sql", READ, "--json", url=filled.url).json == {
        "items": [{"text": 'größe,\n"x"', "created_at": "2024-05-01T12:00:00.000000Z", "seq": 1, "run_id": None}],
        "next_cursor": None,
    }
    summed = "SELECT user_id, sum(cost) AS cost, sum(input_tokens) AS tokens FROM run_usage GROUP BY user_id"
    assert chatledger("sql", summed, "--json", url=filled.url).json["items"] == [
        {"user_id": "ada", "cost": 0.002, "tokens": 3}
    ]
    assert chatledger("sql", "SELECT 1 AS a WHERE 1 = 0", "--json", url=filled.url).json["items"] == []


def test_columns_of_the_same_name_are_kept(filled: Database) -> None:
    assert chatledger("sql", "SELECT 1 AS a, 2 AS a", "--json", url=filled.url).json["items"] == [{"a": 1, "a_2": 2}]


def test_a_statement_comes_from_standard_input(filled: Database) -> None:
    outcome = chatledger("sql", "-", "--csv", url=filled.url, given=b"SELECT count(*) AS n\nFROM transcript\n")
    assert outcome.out == "n\n6\n"


WRITES = [
    "DELETE FROM messages",
    "UPDATE threads SET title = 'x'",
    "INSERT INTO tenants (tenant_id) VALUES ('x')",
    "DROP VIEW transcript",
    "CREATE TABLE more (a int)",
    "SELECT 1; DELETE FROM messages",
    "COMMIT; DELETE FROM messages",
]
ON_SQLITE = [
    "PRAGMA user_version = 7",
    "PRAGMA query_only = OFF",
    "ATTACH 'other.db' AS other",
    "VACUUM INTO 'copy.db'",
    "CREATE TEMP TABLE more (a int)",
]
ON_POSTGRESQL = [
    "WITH gone AS (DELETE FROM messages RETURNING seq) SELECT * FROM gone",
    "SELECT set_config('transaction_read_only', 'off', true)",
    "SET TRANSACTION READ WRITE",
    "COMMIT",
]


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


async def test_a_write_is_refused_and_changes_nothing(filled: Database, tmp_path: Path) -> None:
    before, files = await count_rows(filled), names(tmp_path)
    for write in WRITES + (ON_SQLITE if filled.kind == "sqlite" else ON_POSTGRESQL):
        outcome = await asyncio.to_thread(chatledger, "sql", write, url=filled.url, cwd=tmp_path)
        assert (outcome.code, outcome.out) == (3, ""), write
        assert "only statements that read are allowed" in outcome.error or "the statement " in outcome.error, write
    assert await count_rows(filled) == before
    assert names(tmp_path) - files <= {"ledger.db-wal", "ledger.db-shm"}


async def test_what_a_function_writes_is_rolled_back(pg_database: Database) -> None:
    """Some functions write in a READ ONLY transaction."""
    await asyncio.to_thread(chatledger, "sql", "SELECT lo_create(0)", url=pg_database.url)
    assert await query(pg_database, "SELECT count(*) FROM pg_largeobject_metadata") == [(0,)]


@pytest.mark.parametrize(
    ("statement", "said"),
    [("SELEC 1", "syntax error"), ("SELECT * FROM nowhere", "nowhere"), ("SELECT nobody FROM transcript", "nobody")],
)
def test_an_error_of_the_database_is_one_line(filled: Database, statement: str, said: str) -> None:
    outcome = chatledger("sql", statement, "--json", url=filled.url)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.error.startswith("chatledger: the statement failed: ")
    assert said in outcome.error


def test_a_file_that_is_missing_or_no_database_is_told(tmp_path: Path) -> None:
    assert chatledger("sql", "SELECT 1", url="no.db", cwd=tmp_path).error.startswith("chatledger: there is no database")
    (tmp_path / "text.db").write_text("no database" * 100)
    outcome = chatledger("sql", "SELECT 1", url="text.db", cwd=tmp_path)
    assert (outcome.code, outcome.error) == (3, "chatledger: the statement failed: file is not a database")
    assert chatledger("sql", "SELECT 1", url=":memory:").code == 3
    assert chatledger("sql", "SELECT 1", "--csv", "--json", url="text.db", cwd=tmp_path).code == 2


def test_the_views_are_explained_without_a_database(tmp_path: Path) -> None:
    outcome = chatledger("schema", "--views", url="no.db", cwd=tmp_path)
    assert outcome.code == 0
    for name, view in VIEW_COLUMNS.items():
        assert f"{name}: {view.meaning}" in outcome.out
        assert all(column.meaning in outcome.out for column in view.columns)
    told = chatledger("schema", "--views", "--json", url="no.db", cwd=tmp_path).json
    assert [one["view"] for one in told["items"]] == list(VIEW_COLUMNS)
    assert told["items"][3]["columns"][1] == {
        "name": "day",
        "sqlite": "TEXT",
        "postgresql": "DATE",
        "meaning": "The day in UTC on which the runs started, such as `2026-03-01`.",
    }
