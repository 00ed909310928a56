"""Frames: Arrow batches of what the ledger returns, on both databases, decrypted."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, get_args

import pyarrow as pa
import pytest

from chatledger import (
    ChatLedgerError,
    ChatMessage,
    Feedback,
    InvalidArgument,
    Ledger,
    StorageError,
    TextPart,
    ThinkPart,
    ToolCall,
    Usage,
)
from chatledger.errors import DamagedCell, MissingExtra
from chatledger.reports.frame_rows import POSITIONS, THREADS
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.types import FrameTable
from tests.conftest import KEYS, Database
from tests.conversations import assistant, call, result, turn, user
from tests.storage.repositories.test_check_all import counted
from tests.views import of_user

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(params=["plain", "encrypted"])
async def own(request: pytest.FixtureRequest, database: Database) -> AsyncIterator[Ledger]:
    async with Ledger.open(database.url, encryption=KEYS if request.param == "encrypted" else None) as ledger:
        yield ledger


async def rows(batches: AsyncIterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row async for batch in batches for row in batch.to_pylist()]


async def conversations(ledger: Ledger) -> None:
    """Two threads of ada's and one of bob's, each with a run of its own."""
    for number, (thread, owner, model) in enumerate([("a", "ada", "m"), ("b", "ada", "n"), ("c", "bob", "m")]):
        hour = NOON + timedelta(hours=number)
        await ledger.user(owner).threads.create(thread, created_at=hour)
        await ledger.runs.start(thread, run_id=f"r{thread}", agent=f"agent {thread}", model=model, input={"q": number})
        asked = assistant(calls=[call("x", "map", '{"a": 1}'), call("y", "sky", "{}")], created_at=hour)
        said = [user(f"hello {thread}", message_id=f"m{thread}", created_at=hour), asked, result("y", "sunny")]
        await ledger.messages.append(thread, said, run_id=f"r{thread}", rules="lenient")
        usage = Usage(input_tokens=3, cost="0.25", details={"cached": 1})
        await ledger.runs.finish(f"r{thread}", status="completed", usage=usage)
        given = {"run_id": f"r{thread}", "key": "stars", "user_id": "eve", "created_at": hour}
        for score in (1, 4):
            await ledger.feedback.record(Feedback.model_validate({**given, "score": score, "kwargs": {"why": "ü"}}))
            given["created_at"] = hour + timedelta(minutes=1)


async def test_messages_are_those_of_the_histories(own: Ledger) -> None:
    await conversations(own)
    await fork_at(scope_of(own), "b", 1)
    await own.messages.append("b", [assistant("other")])
    found = await rows(own.frames("messages"))
    said = [message for thread in "abc" for message in await own.messages.history(thread)]
    assert [(row["thread_id"], row["seq"], row["branch"]) for row in found] == [
        (message.thread_id, message.seq, message.branch) for message in said
    ]
    for row, message in zip(found, said, strict=True):
        same = ("message_id", "role", "name", "tool_call_id", "is_error", "run_id", "state", "created_at")
        assert {name: row[name] for name in same} == {name: getattr(message, name) for name in same}
        assert (row["text"] or "") == message.text
        assert row["tool_names"] == (None if message.tool_calls is None else [one.name for one in message.tool_calls])
    assert {row["thread_id"]: row["user_id"] for row in found} == {"a": "ada", "b": "ada", "c": "bob"}
    of_run = {(row["run_id"], row["agent"], row["model"]) for row in found}
    assert of_run == {("ra", "agent a", "m"), ("rb", "agent b", "n"), (None, None, None), ("rc", "agent c", "m")}


async def test_parts_and_reasoning_are_texts_and_json(own: Ledger) -> None:
    await own.threads.create("t")
    parts = [ThinkPart(text="hm"), TextPart(text="su"), TextPart(text="n")]
    await own.messages.append("t", [user("?"), ChatMessage(role="assistant", content=parts, reasoning="why")])
    first, second = await rows(own.frames("messages"))
    assert (first["text"], first["content"], first["reasoning"]) == ("?", None, None)
    assert (second["text"], second["reasoning"]) == ("sun", "whyhm")
    assert second["content"] == (
        '[{"kind":"think","text":"hm"},{"kind":"text","text":"su"},{"kind":"text","text":"n"}]'
    )


async def test_calls_have_the_result_on_the_active_branch(own: Ledger) -> None:
    await conversations(own)
    await own.threads.create("f", rules="lenient", created_at=NOON + timedelta(days=1))
    await own.messages.append("f", [user("?"), assistant(calls=[ToolCall(id="k", name="map", arguments={"b": 2})])])
    await fork_at(scope_of(own), "f", 2, activate=False)
    await own.messages.append("f", [result("k", "far")], branch=0)
    await own.messages.append(
        "f", [ChatMessage(role="tool", tool_call_id="k", content="near", is_error=True)], branch=1
    )
    await own.branches.activate("f", 1)
    columns = ("thread_id", "seq", "call_index", "call_id", "name", "arguments", "result_seq", "result", "is_error")
    found = [tuple(row[name] for name in columns) for row in await rows(own.frames("calls"))]
    assert found == [
        *[
            one
            for thread in "abc"
            for one in (
                (thread, 2, 0, "x", "map", '{"a": 1}', None, None, None),
                (thread, 2, 1, "y", "sky", "{}", 3, "sunny", None),
            )
        ],
        ("f", 2, 0, "k", "map", '{"b":2}', 3, "near", True),
    ]
    [answered] = [row for row in await rows(own.user("bob").frames("calls")) if row["result"]]
    [_, _, tool] = await own.messages.history("c")
    assert (answered["called_at"], answered["answered_at"]) == (NOON + timedelta(hours=2), tool.created_at)
    assert (answered["agent"], answered["model"], answered["run_id"]) == ("agent c", "m", "rc")


async def test_runs_have_usage_and_json(own: Ledger) -> None:
    await conversations(own)
    found = await rows(own.user("bob").frames("runs"))
    stored = await own.runs.get("rc")
    assert found == [
        {
            "run_id": "rc", "thread_id": "c", "user_id": "bob", "agent": "agent c", "model": "m",
            "status": "completed", "input_tokens": 3, "output_tokens": None, "total_tokens": None,
            "details": '{"cached":1}', "cost": Decimal("0.25"), "input": '{"q":2}', "error": None, "metadata": None,
            "started_at": stored.started_at, "ended_at": stored.ended_at,
        }
    ]  # fmt: skip
    assert [row["run_id"] for row in await rows(own.frames("runs"))] == ["ra", "rb", "rc"]


async def test_scores_are_those_that_count(own: Ledger) -> None:
    await conversations(own)
    found = await rows(own.frames("scores"))
    assert [(row["run_id"], row["score"], row["kwargs"]) for row in found] == [
        (run, 4.0, '{"why":"ü"}') for run in ("ra", "rb", "rc")
    ]
    assert {(row["user_id"], row["owner_id"], row["thread_id"]) for row in found} == {
        ("eve", "ada", "a"), ("eve", "ada", "b"), ("eve", "bob", "c")
    }  # fmt: skip
    current = {one.feedback_id: one.created_at for one in await own.feedback.list()}
    assert {row["feedback_id"]: row["created_at"] for row in found} == current


TABLES = get_args(FrameTable)
FILTERS: list[tuple[dict[str, Any], str]] = [
    ({"user_id": "ada"}, "ab"),
    ({"model": "m"}, "ac"),
    ({"agent": "agent b"}, "b"),
    ({"user_id": "ada", "model": "m"}, "a"),
    ({"user_id": "nobody"}, ""),
]


@pytest.mark.parametrize(("chosen", "threads"), FILTERS)
async def test_filters_choose_rows_of_every_frame(own: Ledger, chosen: dict[str, Any], threads: str) -> None:
    await conversations(own)
    given = {name: value for name, value in chosen.items() if name != "user_id"}
    for table in TABLES:
        found = await rows(of_user(own, chosen.get("user_id")).frames(table, **given))
        assert {row["thread_id"] for row in found} == set(threads)


async def test_since_and_until_are_about_the_time_of_the_row(own: Ledger) -> None:
    await conversations(own)
    one = NOON + timedelta(hours=1)
    for since, until, threads in ((one, None, "bc"), (None, one, "a"), (one, one + timedelta(hours=1), "b")):
        for table in ("calls", "scores"):
            found = await rows(own.frames(table, since=since, until=until))
            assert {row["thread_id"] for row in found} == set(threads)
        dated = await rows(own.frames("messages", since=since, until=until))
        assert {row["thread_id"] for row in dated if row["role"] == "user"} == set(threads)
    started = (await own.runs.get("rb")).started_at
    assert [row["run_id"] for row in await rows(own.frames("runs", since=started))] == ["rb", "rc"]
    with pytest.raises(InvalidArgument, match="since"):
        own.frames("runs", since=datetime(2024, 5, 1))  # noqa: DTZ001 - that is the case


async def test_a_users_ledger_has_the_users_rows_only(own: Ledger) -> None:
    await conversations(own)
    for table in TABLES:
        assert {row["thread_id"] for row in await rows(own.user("bob").frames(table))} == {"c"}


async def test_batches_are_bounded_and_cover_everything(ledger: Ledger) -> None:
    """Threads and messages beyond what one statement reads, among them a thread of more than one batch."""
    for number in range(THREADS + 20):
        await ledger.threads.create(f"t{number:04}", created_at=NOON + timedelta(seconds=number // 3))
    long = [user(str(number)) for number in range(POSITIONS + 300)]
    for start in range(0, len(long), 500):
        await ledger.messages.append("t0007", long[start : start + 500], rules="lenient")
    await ledger.messages.append("t0519", [user("last")])
    batches = [batch async for batch in ledger.frames("messages")]
    assert max(batch.num_rows for batch in batches) <= POSITIONS
    table = pa.Table.from_batches(batches)
    assert table["text"].to_pylist() == [*(str(number) for number in range(POSITIONS + 300)), "last"]
    assert table["seq"].to_pylist() == [*range(1, POSITIONS + 301), 1]


async def test_what_arrow_cannot_hold_is_replaced(own: Ledger) -> None:
    await own.threads.create("t")
    await own.messages.append("t", [user("a\ud800b\0"), assistant("😀")])
    assert [row["text"] for row in await rows(own.frames("messages"))] == ["a\ufffdb\0", "😀"]


async def test_a_cost_is_rounded_and_a_huge_one_refused(own: Ledger) -> None:
    await own.threads.create("t")
    await own.runs.start("t", run_id="r")
    await own.runs.finish("r", status="completed", usage=Usage(cost="0.1234567890125"))
    assert (await rows(own.frames("runs")))[0]["cost"] == Decimal("0.123456789012")
    await own.runs.start("t", run_id="s")
    await own.runs.finish("s", status="completed", usage=Usage(cost="1e30"))
    with pytest.raises(StorageError, match="the cost of run 's' has more than 26 digits"):
        await rows(own.frames("runs"))


async def test_a_damaged_row_is_raised_or_told(sqlite_database: Database) -> None:
    async with Ledger.open(sqlite_database.url) as ledger:
        await conversations(ledger)
        with closing(sqlite3.connect(sqlite_database.url)) as file, file:
            file.execute("UPDATE messages SET residual = '{' WHERE thread_id = 'b' AND seq = 1")
            file.execute("UPDATE runs SET metadata = '{' WHERE run_id = 'ra'")
            file.execute("UPDATE feedback SET kwargs = '{' WHERE run_id = 'rc'")
        for table in ("messages", "runs", "scores"):
            with pytest.raises(DamagedCell):
                await rows(ledger.frames(table))
        told: list[ChatLedgerError] = []
        found = await rows(ledger.frames("messages", on_damage=told.append))
        assert (len(found), [str(error) for error in told]) == (8, [str(told[0])])
        assert [row["run_id"] for row in await rows(ledger.frames("runs", on_damage=told.append))] == ["rb", "rc"]
        await rows(ledger.frames("scores", on_damage=told.append))
        assert len(told) == 4  # of run "ra" twice, because the scores look at the runs as well


async def test_the_schema_of_a_frame_without_rows(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    assert [batch async for batch in ledger.frames("messages")] == []


async def test_the_number_of_statements_does_not_grow_with_the_threads(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One looks threads up, four read the messages, parts, calls and results of all."""
    async with Ledger.open(database.url) as ledger:
        for number in range(40):
            await ledger.threads.create(f"t{number}")
            await ledger.messages.append(f"t{number}", turn())
        with counted(monkeypatch) as sent:
            assert len(await rows(ledger.frames("calls"))) == 80
        assert len(sent) == 5


async def test_without_pyarrow_the_extra_is_named(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'chatledger\[frames\]'"):
        ledger.frames("messages")
