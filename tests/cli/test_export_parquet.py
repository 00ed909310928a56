"""`export --parquet`: files that pyarrow, DuckDB and Polars read alike; and exports of a part of the threads."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import polars
import pyarrow.parquet as pq
import pytest

from chatledger import ChatMessage, Feedback, Ledger, TextPart, Usage
from chatledger.reports.frames import frame_schema
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.transfer.parquet import FRAMES, export_parquet
from tests.cli.commands import chatledger
from tests.conftest import KEYS, Database
from tests.conversations import assistant, call, result

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


async def fill(ledger: Ledger) -> None:
    for number, (thread, owner, model) in enumerate([("a", "ada", "m"), ("b", "bob", "n")]):
        at = NOON + timedelta(days=number)
        await ledger.user(owner).threads.create(thread, created_at=at)
        await ledger.runs.start(thread, run_id=f"r{thread}", agent=f"agent {thread}", model=model)
        parts = ChatMessage(role="user", content=[TextPart(text="grö"), TextPart(text="ße 😀")], created_at=at)
        said = [parts, assistant(calls=[call("x")], created_at=at), result("x", "sunny", created_at=at)]
        await ledger.messages.append(thread, [*said, assistant("a\ud800\0b", created_at=at)], run_id=f"r{thread}")
        usage = Usage(input_tokens=2**40, cost="0.000000000001")
        await ledger.runs.finish(f"r{thread}", status="completed", usage=usage)
        await ledger.feedback.record(Feedback(run_id=f"r{thread}", key="stars", score=number + 0.5, created_at=at))


@pytest.fixture
async def filled(database: Database) -> Database:
    async with Ledger.open(database.url) as ledger:
        await fill(ledger)
    return database


def in_duckdb(query: str) -> duckdb.DuckDBPyRelation:
    duckdb.execute("SET timezone = 'UTC'")
    found = duckdb.sql(query)
    assert found is not None
    return found


def test_the_files_are_read_alike_by_pyarrow_duckdb_and_polars(filled: Database, tmp_path: Path) -> None:
    outcome = chatledger("export", "--parquet", tmp_path / "out", url=filled.url)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.error == (
        f"chatledger: rows written to {tmp_path / 'out'}: messages.parquet 8, calls.parquet 2, runs.parquet 2, "
        "scores.parquet 2"
    )
    assert {file.name for file in (tmp_path / "out").iterdir()} == {f"{name}.parquet" for name in FRAMES}
    for name in FRAMES:
        file = tmp_path / "out" / f"{name}.parquet"
        table = pq.read_table(file)
        assert table.schema.equals(frame_schema(name))
        by_duckdb = in_duckdb(f"SELECT * FROM '{file}'").to_arrow_table()
        by_polars = polars.read_parquet(file)
        assert by_duckdb.to_pylist() == by_polars.to_dicts() == table.to_pylist()


async def test_branches_and_values_that_have_no_file_are_counted(filled: Database, tmp_path: Path) -> None:
    async with Ledger.open(filled.url) as ledger:
        await fork_at(scope_of(ledger), "b", 1)
        await ledger.threads.create("silent")
        for scope in (("thread", "b"), ("thread", "silent"), ("tenant",)):
            await ledger.kv.put(scope, "step", 1)
    told = "chatledger: left out, because an export has no place for it: "
    for words, counts in (((), "1 branch, 3 values"), (("--user", "bob"), "1 branch, 1 value")):
        outcome = chatledger("export", "--parquet", tmp_path / "out", *words, url=filled.url)
        assert (outcome.code, outcome.err.splitlines()[1:]) == (0, [told + counts])
    outcome = chatledger("export", "--parquet", tmp_path / "out", "--user", "ada", url=filled.url)
    assert len(outcome.err.splitlines()) == 1


def test_values_come_back_as_they_are(filled: Database, tmp_path: Path) -> None:
    chatledger("export", "--parquet", tmp_path, url=filled.url)
    messages = pq.read_table(tmp_path / "messages.parquet").to_pylist()
    assert [row["text"] for row in messages[:4]] == ["größe 😀", None, "sunny", "a\ufffd\0b"]
    assert messages[0]["created_at"] == NOON
    assert messages[1]["tool_names"] == ["weather"]
    [run, _] = pq.read_table(tmp_path / "runs.parquet").to_pylist()
    assert (run["input_tokens"], run["cost"]) == (2**40, Decimal("0.000000000001"))
    summed = (
        "SELECT agent, avg(score) FROM '{0}/scores.parquet' JOIN '{0}/runs.parquet' USING (run_id, agent) GROUP BY 1"
    )
    assert in_duckdb(summed.format(tmp_path) + " ORDER BY 1").fetchall() == [("agent a", 0.5), ("agent b", 1.5)]


@pytest.mark.parametrize(
    ("words", "threads"),
    [
        ("--user ada", {"a"}),
        ("--model n", {"b"}),
        ("--agent nobody", set()),
        ("--since 2024-05-02T00:00:00Z", {"b"}),
        ("--until 2024-05-02T00:00:00Z", {"a"}),
        ("--user ada --model n", set()),
    ],
)
def test_filters_choose_rows(filled: Database, tmp_path: Path, words: str, threads: set[str]) -> None:
    told = chatledger("export", "--parquet", tmp_path, *words.split(), "--json", url=filled.url).json
    for name in ("messages", "calls", "scores"):
        table = pq.read_table(tmp_path / f"{name}.parquet")
        assert (set(table["thread_id"].to_pylist()), table.num_rows) == (threads, told["rows"][name])
        assert table.schema.equals(frame_schema(name))


async def test_an_encrypted_ledger_is_exported_in_clear(database: Database, tmp_path: Path) -> None:
    async with Ledger.open(database.url, encryption=KEYS) as ledger:
        await fill(ledger)
        await export_parquet(ledger, tmp_path)
    table = await asyncio.to_thread(pq.read_table, tmp_path / "messages.parquet")
    assert table["text"][0].as_py() == "größe 😀"


def test_a_damaged_row_is_left_out_and_told(sqlite_database: Database, tmp_path: Path) -> None:
    async def make() -> None:
        async with Ledger.open(sqlite_database.url) as ledger:
            await fill(ledger)

    asyncio.run(make())
    with closing(sqlite3.connect(sqlite_database.url)) as file, file:
        file.execute("UPDATE messages SET residual = '{' WHERE thread_id = 'a' AND seq = 1")
    outcome = chatledger("export", "--parquet", tmp_path, url=sqlite_database.url)
    assert outcome.code == 1
    assert "messages.parquet 7," in outcome.err
    assert outcome.err.splitlines()[-1] == "chatledger: 1 damaged row left out"


def test_an_export_that_fails_leaves_the_files_of_the_last_one(
    filled: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chatledger("export", "--parquet", tmp_path, url=filled.url)
    before = {file: file.read_bytes() for file in tmp_path.glob("*.parquet")}

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("chatledger.cli.files.parquet._Progress.batch", fail)
    outcome = chatledger("export", "--parquet", tmp_path, url=filled.url)
    assert (outcome.code, outcome.error) == (3, "chatledger: the disk is full")
    assert {file: file.read_bytes() for file in tmp_path.glob("*.par*")} == before


@pytest.mark.parametrize("words", ["a", "--latest", "--jsonl", "-o x.json", "--format anthropic", "--min-score s=1"])
def test_parquet_goes_with_filters_only(filled: Database, tmp_path: Path, words: str) -> None:
    outcome = chatledger("export", "--parquet", tmp_path / "out", *words.split(), url=filled.url)
    assert (outcome.code, (tmp_path / "out").exists()) == (2, False)


def test_without_pyarrow_the_extra_is_named(filled: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    outcome = chatledger("export", "--parquet", tmp_path / "out", url=filled.url)
    assert (outcome.code, (tmp_path / "out").exists()) == (3, False)
    assert "pip install 'chatledger[frames]'" in outcome.error


@pytest.mark.parametrize(
    ("words", "threads"),
    [
        ("--user ada", ["a"]),
        ("--user ada --all", ["a"]),
        ("--model n", ["b"]),
        ("--agent nobody", []),
        ("--user bob --agent agent_b", ["b"]),
        ("--since 2100-01-01T00:00:00Z", []),
        ("--until 2100-01-01T00:00:00Z", ["a", "b"]),
    ],
)
def test_a_json_export_takes_the_same_filters(filled: Database, words: str, threads: list[str]) -> None:
    given = [word.replace("_", " ") for word in words.split()]
    outcome = chatledger("export", *given, "--container", "array", url=filled.url)
    assert [record["thread_id"] for record in outcome.json] == threads
    lines = chatledger("export", *given, "--jsonl", "--format", "openai-chat", url=filled.url).out.splitlines()
    assert len(lines) == len(threads)


def test_filters_and_a_thread_do_not_go_together(filled: Database) -> None:
    assert chatledger("export", "a", "--user", "ada", url=filled.url).code == 2
    assert chatledger("export", "--since", "yesterday", url=filled.url).code == 2
