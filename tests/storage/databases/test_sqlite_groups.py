"""Appends that queue up behind a commit of a SQLite file are written together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, RuleViolation, ToolCall
from chatledger.errors import IdConflict, RunConflict
from chatledger.models.weight import CALLER
from chatledger.repositories import scope_of
from chatledger.storage.databases.sqlite import writer
from chatledger.storage.drivers.sqlite import SqliteConnection

THREADS = [f"t{number}" for number in range(8)]


@pytest.fixture
async def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ledger]:
    """A ledger that has the tips of its threads in its cache. No job counts as long, however slow the machine is."""
    monkeypatch.setattr(writer, "LONG", 60.0)
    async with Ledger.open(tmp_path / "chat.db") as ledger:
        for thread_id in THREADS:
            await ledger.threads.create(thread_id)
            await ledger.messages.append(thread_id, turn(), run_id=f"first of {thread_id}")
        yield ledger


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the writer runs beside its statements: BEGIN, SAVEPOINT, COMMIT and so on."""
    texts: list[str] = []
    execute = SqliteConnection.execute

    def noting(self: SqliteConnection, text: str) -> None:
        texts.append(text)
        execute(self, text)

    monkeypatch.setattr(SqliteConnection, "execute", noting)
    return texts


def turn(*ids: str) -> list[ChatMessage]:
    question, answer = ids or (None, None)
    return [
        ChatMessage(role="user", content="Where to?", message_id=question),
        ChatMessage(role="assistant", content="Kyoto.", message_id=answer),
    ]


async def at_once(ledger: Ledger, *calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """The outcomes of calls that all wait while a transaction occupies the writer."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def occupy() -> None:
        async with ledger.begin() as transaction:
            await transaction.threads.create()
            begun.set()
            await over.wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(occupy())
        await begun.wait()
        waiting = asyncio.gather(*calls, return_exceptions=True)
        while ledger.metrics().queue_length < len(calls):  # noqa: ASYNC110 - nothing tells when a queue has grown
            await asyncio.sleep(0)
        over.set()
        return await waiting


async def texts_of(ledger: Ledger, thread_id: str) -> list[str]:
    return [message.text for message in await ledger.messages.history(thread_id)]


async def test_appends_with_ids_and_runs_of_their_own_share_a_transaction_without_savepoints(
    ledger: Ledger, executed: list[str]
) -> None:
    calls = [ledger.messages.append(name, turn("q", "a"), run_id=f"run of {name}") for name in THREADS]
    outcomes = await at_once(ledger, *calls)
    assert executed[executed.index("COMMIT") + 1 :] == ["BEGIN IMMEDIATE", "COMMIT"]
    for name, appended in zip(THREADS, outcomes, strict=True):
        history = await ledger.messages.history(name)
        assert history.messages[2:] == appended.messages
        assert [(message.seq, message.message_id) for message in appended.messages] == [(3, "q"), (4, "a")]
        assert (await ledger.runs.get(f"run of {name}")).thread_id == name
        assert history.mark == appended.mark


async def test_a_refused_append_refuses_no_other(ledger: Ledger) -> None:
    foreign, repeated, odd, *others = THREADS
    taken = (await ledger.messages.history(repeated)).messages[0].message_id
    assert taken is not None
    outcomes = await at_once(
        ledger,
        ledger.messages.append(foreign, turn(), run_id=f"first of {odd}"),
        ledger.messages.append(repeated, turn(taken, "new")),
        ledger.messages.append(odd, [ChatMessage(role="tool", tool_call_id="none", content="?")]),
        *[ledger.messages.append(name, turn("q", "a")) for name in others],
    )
    assert [type(outcome) for outcome in outcomes[:3]] == [RunConflict, IdConflict, RuleViolation]
    assert [len(await texts_of(ledger, name)) for name in THREADS] == [2, 2, 2, 4, 4, 4, 4, 4]
    assert (await ledger.runs.get(f"first of {odd}")).thread_id == odd


async def test_a_repeat_stores_nothing(ledger: Ledger) -> None:
    first, second, *_ = THREADS
    stored = await ledger.messages.append(first, turn("q", "a"), run_id="r")
    repeat, other = await at_once(
        ledger,
        ledger.messages.append(first, turn("q", "a"), run_id="r"),
        ledger.messages.append(second, turn("q", "a")),
    )
    assert (repeat.replayed, repeat.messages) == (True, stored.messages)
    assert not other.replayed
    assert len(await texts_of(ledger, first)) == 4


async def test_appends_to_one_thread_follow_each_other(ledger: Ledger, executed: list[str]) -> None:
    calls = [ledger.messages.append("t0", turn(f"q{n}", f"a{n}"), run_id=f"r{n % 2}") for n in range(8)]
    outcomes = await at_once(ledger, *calls)
    assert [appended.messages[0].seq for appended in outcomes] == list(range(3, 19, 2))
    assert "SAVEPOINT job" not in executed[executed.index("COMMIT") :]
    assert [message.seq for message in await ledger.messages.history("t0")] == list(range(1, 19))


async def test_appends_that_name_the_branch_and_that_do_not_are_both_stored(ledger: Ledger) -> None:
    await ledger.messages.append("t0", turn(), branch=0)  # so that the cache has the tip under both names
    await ledger.messages.append("t0", turn())
    outcomes = await at_once(
        ledger, ledger.messages.append("t0", turn("q", "a")), ledger.messages.append("t0", turn("x", "y"), branch=0)
    )
    assert [appended.messages[0].seq for appended in outcomes] == [7, 9]


async def test_a_branch_that_another_process_changed_is_read_anew(ledger: Ledger, tmp_path: Path) -> None:
    async with Ledger.open(tmp_path / "chat.db") as other:
        await other.messages.append("t3", turn("other q", "other a"))
    outcomes = await at_once(ledger, *[ledger.messages.append(name, turn("q", "a")) for name in THREADS])
    assert [appended.messages[0].seq for appended in outcomes] == [3, 3, 3, 5, 3, 3, 3, 3]


async def test_an_append_alone_on_a_cached_tip_finds_its_repeat_and_its_foreign_run(ledger: Ledger) -> None:
    stored = await ledger.messages.append("t0", turn("q", "a"), run_id="r")
    await ledger.messages.append("t0", turn())
    repeat = await ledger.messages.append("t0", turn("q", "a"), run_id="r")
    assert (repeat.replayed, repeat.messages) == (True, stored.messages)
    await ledger.messages.append("t1", turn())
    with pytest.raises(RunConflict):
        await ledger.messages.append("t1", turn(), run_id="r")
    assert [len(await texts_of(ledger, name)) for name in ("t0", "t1")] == [6, 4]


async def test_a_long_job_commits_alone_and_its_caller_waits_behind_the_others(
    ledger: Ledger, executed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LONG", -1.0)  # so that each job counts as long
    done: list[str] = []

    async def write(caller: str, title: str) -> None:
        CALLER.set(caller)
        await ledger.threads.update("t0", title=title)
        done.append(title)

    calls = [write("eve", f"eve {number}") for number in range(3)] + [write("ada", "ada 0"), write("ada", "ada 1")]
    assert await at_once(ledger, *calls) == [None] * 5
    assert done == ["eve 0", "ada 0", "eve 1", "ada 1", "eve 2"]
    assert executed[executed.index("COMMIT") + 1 :].count("COMMIT") == 5


async def test_a_short_job_shares_no_commit_with_the_next_job_of_a_long_caller(
    ledger: Ledger, executed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = ledger_writer(ledger)

    async def write(caller: str) -> None:
        CALLER.set(caller)
        await ledger.threads.update("t0", title=caller)

    writing._long.add("eve")
    await at_once(ledger, *[write(caller) for caller in ("ada", "bob", "eve", "eve", "ada")])
    assert executed[executed.index("COMMIT") + 1 :].count("COMMIT") == 3  # ada and bob; eve; eve and ada
    assert not writing._long


async def test_a_long_group_counts_for_the_caller_with_the_most_messages(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LONG", -1.0)  # so that each group counts as long
    marked: list[str] = []
    put_back = writer.SqliteWriter._put_back

    def noting(self: writer.SqliteWriter, jobs: Any, caller: Any) -> None:
        marked.append(caller)
        put_back(self, jobs, caller)

    async def append(caller: str, thread: str, count: int) -> None:
        CALLER.set(caller)
        await ledger.messages.append(thread, turn() * count)

    monkeypatch.setattr(writer.SqliteWriter, "_put_back", noting)
    marked.clear()
    await at_once(ledger, append("ada", "t0", 1), append("eve", "t1", 50))
    assert marked[-1] == "eve"
    monkeypatch.setattr(writer, "_MOST_LONG", 1)  # callers who never come again are forgotten
    await append("bob", "t2", 1)
    assert ledger_writer(ledger)._long == {"bob"}


def ledger_writer(ledger: Ledger) -> writer.SqliteWriter:
    found: writer.SqliteWriter = scope_of(ledger).database._writer  # type: ignore[attr-defined]
    return found


async def test_a_group_ends_at_a_thousand_messages(ledger: Ledger, executed: list[str]) -> None:
    calls = [ledger.messages.append(name, turn() * 300) for name in THREADS[:4]]
    await at_once(ledger, *calls)
    assert executed[executed.index("COMMIT") + 1 :].count("COMMIT") == 2


async def test_a_large_tip_is_not_cached(ledger: Ledger) -> None:
    calls = [ToolCall(id=f"{number} " * 100, name="f", arguments="{}") for number in range(50)]
    await ledger.messages.append("t0", [*turn(), ChatMessage(role="assistant", tool_calls=calls)], rules="lenient")
    copied = await ledger.threads.copy("t0")
    cache = scope_of(ledger).database._tips._seen  # type: ignore[attr-defined]
    assert all(copied.thread_id not in key and "t0" not in key for key in cache)
    assert any("t1" in key for key in cache)
