"""Runs: made by the first append that names them or by start, ended once, of one thread."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from chatledger import Feedback, InvalidArgument, Ledger, ThreadNotFound, Usage
from chatledger.errors import LimitExceeded, RunConflict, RunNotFound, VersionConflict
from chatledger.repositories import scope_of
from chatledger.storage.repositories.runs import find_runs
from chatledger.types import Run
from tests.conftest import Database
from tests.conversations import turn, user

NAN = float("nan")
USAGE = Usage(
    input_tokens=2**62, output_tokens=0, details={"cached_tokens": 3, "": 0}, cost=Decimal("0.00000000000000000001230")
)


@pytest.fixture
async def t(ledger: Ledger) -> str:
    return (await ledger.threads.create("t")).thread_id


async def test_a_started_run_is_found_as_it_was_given(ledger: Ledger, t: str) -> None:
    run = await ledger.runs.start(t, run_id="r\0 7", agent="a", model="m", input={"b": [NAN], "a": 1}, metadata={})
    wanted = Run(
        run_id="r\0 7",
        thread_id=t,
        agent="a",
        model="m",
        input={"b": [NAN], "a": 1},
        metadata={},
        started_at=run.started_at,
    )
    assert repr(run) == repr(wanted)
    assert repr(await ledger.runs.get("r\0 7")) == repr(wanted)
    assert datetime.now(UTC) - run.started_at < timedelta(minutes=1)


async def test_an_id_is_made_for_a_run_without_one(ledger: Ledger, t: str) -> None:
    first, second = await ledger.runs.start(t), await ledger.runs.start(t)
    assert first.run_id != second.run_id
    assert await ledger.runs.get(first.run_id) == first


async def test_the_first_append_that_names_a_run_makes_it(ledger: Ledger, t: str) -> None:
    await ledger.messages.append(t, turn(), run_id="r")
    run = await ledger.runs.get("r")
    assert run == Run(run_id="r", thread_id=t, started_at=run.started_at)
    await ledger.messages.append(t, turn(), run_id="r")
    assert await ledger.runs.get("r") == run


async def test_messages_may_name_several_runs(ledger: Ledger, t: str) -> None:
    await ledger.messages.append(t, [user("a", run_id="r1"), user("b", run_id="r2"), user("c")], run_id="r3")
    assert [run.run_id for run in await ledger.runs.list()] == ["r1", "r2", "r3"]


async def test_start_completes_a_run_that_an_append_named(ledger: Ledger, t: str) -> None:
    await ledger.messages.append(t, turn(), run_id="r")
    named = await ledger.runs.get("r")
    started = await ledger.runs.start(t, run_id="r", agent="a", input=["x"])
    assert started == named.model_copy(update={"agent": "a", "input": ["x"]})
    completed = await ledger.runs.start(t, run_id="r", model="m", agent="a")
    assert completed == started.model_copy(update={"model": "m"})
    assert await ledger.runs.get("r") == completed


@pytest.mark.parametrize(
    "other", [{"agent": "b"}, {"model": "n"}, {"input": {"a": 1.0}}, {"metadata": {"b": 1, "a": 2}}]
)
async def test_start_refuses_another_value_of_a_field(ledger: Ledger, t: str, other: dict[str, Any]) -> None:
    said: dict[str, Any] = {"agent": "a", "model": "m", "input": {"a": 1}, "metadata": {"a": 2, "b": 1}}
    run = await ledger.runs.start(t, run_id="r", **said)
    assert await ledger.runs.start(t, run_id="r", **said) == run
    with pytest.raises(RunConflict) as caught:
        await ledger.runs.start(t, run_id="r", **said | other)
    assert caught.value.run_id == "r"
    assert await ledger.runs.get("r") == run


async def test_of_two_agents_that_complete_a_run_at_once_one_is_refused(database: Database) -> None:
    async with database.open() as one, database.open() as other:
        await one.threads.create("t")
        await one.messages.append("t", turn(), run_id="r")
        starts = [ledger.runs.start("t", run_id="r", agent=f"a{n}") for n, ledger in enumerate((one, other) * 4)]
        outcomes = await asyncio.gather(*starts, return_exceptions=True)
        kept = [outcome for outcome in outcomes if isinstance(outcome, Run)]
        assert kept == [await one.runs.get("r")]
        assert sum(isinstance(outcome, RunConflict) for outcome in outcomes) == 7


async def test_a_run_belongs_to_one_thread(ledger: Ledger, t: str) -> None:
    await ledger.threads.create("u")
    await ledger.runs.start(t, run_id="r")
    with pytest.raises(RunConflict):
        await ledger.runs.start("u", run_id="r")
    with pytest.raises(RunConflict):
        await ledger.messages.append("u", turn(), run_id="r")
    assert (await ledger.runs.get("r")).thread_id == t


async def test_a_run_needs_a_thread_and_a_key(ledger: Ledger, t: str) -> None:
    with pytest.raises(ThreadNotFound):
        await ledger.runs.start("nowhere", run_id="r")
    for run_id in ("", "x" * 513, "\0" * 100):
        with pytest.raises(LimitExceeded):
            await ledger.runs.start(t, run_id=run_id)
    with pytest.raises(InvalidArgument, match="input is not valid"):
        await ledger.runs.start(t, run_id="r", input={1, 2})
    assert len(await ledger.runs.list()) == 0


# --- Ending -----------------------------------------------------------------------------------------------------------


async def test_finish_tells_how_a_run_ended(ledger: Ledger, t: str) -> None:
    run = await ledger.runs.start(t, run_id="r", agent="a", input={"x": NAN})
    ended = await ledger.runs.finish("r", status="failed", usage=USAGE, error="boom \0 \ud800")
    wanted = run.model_copy(
        update={"status": "failed", "usage": USAGE, "error": "boom \0 \ud800", "ended_at": ended.ended_at}
    )
    assert ended.ended_at is not None
    assert ended.ended_at >= run.started_at
    assert repr(ended) == repr(wanted)
    assert repr(await ledger.runs.get("r")) == repr(wanted)


@pytest.mark.parametrize("usage", [None, Usage(), Usage(input_tokens=0), Usage(cost=Decimal("1.50")), USAGE])
async def test_finishing_the_same_way_again_changes_nothing(ledger: Ledger, t: str, usage: Usage | None) -> None:
    await ledger.runs.start(t, run_id="r", input={"x": NAN})
    ended = await ledger.runs.finish("r", status="completed", usage=usage)
    assert repr(await ledger.runs.finish("r", status="completed", usage=usage)) == repr(ended)
    assert repr(await ledger.runs.get("r")) == repr(ended)


@pytest.mark.parametrize(
    "other", [{"status": "failed"}, {"usage": Usage()}, {"usage": Usage(input_tokens=2)}, {"error": "boom"}]
)
async def test_another_end_is_a_conflict(ledger: Ledger, t: str, other: dict[str, Any]) -> None:
    await ledger.runs.start(t, run_id="r")
    outcome: dict[str, Any] = {"status": "completed", "usage": Usage(input_tokens=1)}
    ended = await ledger.runs.finish("r", **outcome)
    with pytest.raises(RunConflict) as caught:
        await ledger.runs.finish("r", **outcome | other)
    assert caught.value.run_id == "r"
    assert await ledger.runs.get("r") == ended


async def test_of_two_ends_at_once_one_is_refused(database: Database) -> None:
    async with database.open() as one, database.open() as other:
        await one.threads.create("t")
        await one.runs.start("t", run_id="r")
        ends = [
            ledger.runs.finish("r", status="completed", usage=Usage(input_tokens=n))
            for n, ledger in enumerate((one, other) * 4)
        ]
        outcomes = await asyncio.gather(*ends, return_exceptions=True)
        assert [outcome for outcome in outcomes if isinstance(outcome, Run)] == [await one.runs.get("r")]
        assert sum(isinstance(outcome, RunConflict) for outcome in outcomes) == 7


async def test_a_run_that_does_not_exist_does_not_end(ledger: Ledger) -> None:
    with pytest.raises(RunNotFound) as caught:
        await ledger.runs.finish("r", status="completed")
    assert caught.value.run_id == "r"


async def test_an_unknown_status_is_refused(ledger: Ledger, t: str) -> None:
    run = await ledger.runs.start(t, run_id="r")
    with pytest.raises(InvalidArgument, match=r"status must be 'running', .* not 'done'"):
        await ledger.runs.finish("r", status="done")  # type: ignore[arg-type]
    assert await ledger.runs.get("r") == run


# --- Finding ----------------------------------------------------------------------------------------------------------


async def test_get_raises_where_find_gives_none(ledger: Ledger) -> None:
    assert await ledger.runs.find("r") is None
    with pytest.raises(RunNotFound):
        await ledger.runs.get("r")


async def test_runs_are_listed_page_by_page_in_the_order_of_their_ids(ledger: Ledger, t: str) -> None:
    await ledger.threads.create("u")
    made = [await ledger.runs.start(thread_id) for thread_id in (t, "u", t, "u", t)]
    for size in (1, 2, 5):
        read: list[Run] = []
        page = await ledger.runs.list(limit=size)
        read += page.items
        while page.next_cursor is not None:
            page = await ledger.runs.list(limit=size, cursor=page.next_cursor)
            read += page.items
        assert read == sorted(made, key=lambda run: run.run_id)
    assert (await ledger.runs.list(thread_id="u")).items == sorted([made[1], made[3]], key=lambda run: run.run_id)
    assert (await ledger.runs.list(thread_id="nowhere")).items == []


async def test_many_runs_are_found_at_once(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for run_id in ("a", "with \x00 and \ud800"):
        await ledger.runs.start("t", run_id=run_id, agent=run_id)
    await ledger.tenant("other").threads.create("t")
    await ledger.tenant("other").runs.start("t", run_id="b")
    found = await find_runs(scope_of(ledger), ["a", "b", "with \x00 and \ud800", "", "k" * 513, *map(str, range(600))])
    assert {run_id: run.agent for run_id, run in found.items()} == {
        name: name for name in ("a", "with \x00 and \ud800")
    }
    assert await find_runs(scope_of(ledger), []) == {}


async def test_a_run_with_an_open_call_is_not_deleted(ledger: Ledger) -> None:
    """The result of the call brought the run back, or met another thread that had its id by then."""
    await ledger.messages.append("t", turn()[:2], create=True, run_id="r")
    with pytest.raises(RunConflict, match="has an open call; append its result or close it first"):
        await ledger.runs.delete("r")
    await ledger.messages.close_open_calls("t")
    await ledger.runs.delete("r")
    with pytest.raises(RunNotFound):
        await ledger.runs.get("r")


async def test_a_deleted_run_goes_with_its_scores_and_its_messages_stay(ledger: Ledger) -> None:
    first = await ledger.messages.append("t", turn(), create=True, run_id="r")
    await ledger.branches.fork("t", None, activate=False)
    await ledger.runs.start("t", run_id="other")
    for run_id in ("r", "r", "other"):
        await ledger.feedback.record(Feedback(run_id=run_id, key="k", score=1))
    marks = [branch.mark for branch in await ledger.branches.list("t")]
    assert (await ledger.runs.delete("r")).rows == {"feedback": 2, "run_decisions": 0, "run_leases": 0, "runs": 1}
    history = await ledger.messages.history("t")
    assert history.messages == [message.model_copy(update={"run_id": None}) for message in first.messages]
    assert [branch.mark for branch in await ledger.branches.list("t")] != marks
    assert not {*marks} & {branch.mark for branch in await ledger.branches.list("t")}
    assert [score.run_id for score in await ledger.feedback.list(events=True)] == ["other"]
    with pytest.raises(RunNotFound):
        await ledger.runs.delete("r")
    with pytest.raises(VersionConflict):
        await ledger.messages.append("t", user("?"), expected=first.mark)
    again = await ledger.messages.append("t", user("?"), run_id="r")
    assert (again.message.run_id, (await ledger.runs.get("r")).status) == ("r", "running")


async def test_a_run_whose_message_is_being_written_is_kept(ledger: Ledger) -> None:
    async with ledger.messages.stream("t", create=True, run_id="r") as draft:
        await draft.feed("So far")
        await draft.flush()
        with pytest.raises(RunConflict, match="still being written"):
            await ledger.runs.delete("r")
    assert (await ledger.runs.delete("r")).rows == {"feedback": 0, "run_decisions": 0, "run_leases": 0, "runs": 1}
