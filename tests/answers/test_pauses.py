"""Calls that wait for a decision: approval is not a result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger
from chatledger.answers import Agent, Answer, Call, Pending, Turn
from chatledger.errors import InvalidArgument, RunConflict, RunLive, RunNotFound
from tests.answers.agents import Model, Tools, abandon, agent_of
from tests.answers.test_answers import soon, texts
from tests.conftest import Database
from tests.conversations import assistant


def asking(*, again: bool = True, calls: int = 1) -> tuple[Agent, Tools]:
    """An agent whose tools need an approval."""

    def pay(call: Call) -> str:
        if not call.approved:
            raise Pending(f"costs {call.call_id}")
        return f"paid {call.call_id}"

    tools = Tools(pay)
    return agent_of(Model(calls=calls), tools, again=again), tools


async def paused(ledger: Ledger, **options: Any) -> Answer:
    answer = await ledger.answers.start("t", "Tokyo?", create=True, **options)
    await soon(answer.wait())
    return await ledger.answers.get(answer.run.run_id)


async def test_an_approved_call_is_run_by_the_next_attempt(ledger: Ledger) -> None:
    agent, tools = asking(again=False)
    async with ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await paused(ledger)
        assert answer.waiting == {"call-0": "costs call-0"}
        assert answer.run.status == "running"
        with pytest.raises(RunLive) as live:
            await ledger.answers.start("t", "Lima?")
        assert (live.value.until, live.value.retry_after) == (None, None)
        resumed = await ledger.answers.resume(answer.run.run_id, approve=["call-0"])
        assert resumed.waiting == {}
        assert (await soon(answer.wait())).status == "completed"
    assert (await texts(ledger))[2] == ("tool", "paid call-0", "complete")
    assert [call.approved for call in tools.calls] == [False, True]
    assert len(tools.runs) == 1  # one key


async def test_a_follower_sees_the_pause(ledger: Ledger) -> None:
    agent, _ = asking()
    async with ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        told = []
        async with (
            asyncio.timeout(30),
            aclosing(ledger.messages.follow("t", cursor=answer.mark, deltas=True)) as changes,
        ):
            async for change in changes:
                if change.kind == "run":
                    told.append((change.run_id, change.status))
                    waiting = {"call-0": "costs call-0"} if change.status == "paused" else None
                    assert change.waiting == waiting
                if told and told[-1][1] == "paused":
                    await ledger.answers.resume(answer.run.run_id, refuse=["call-0"])
                if told and told[-1][1] == "completed":
                    break
    statuses = [status for run_id, status in told if run_id == answer.run.run_id]
    assert [status for status in statuses if status != "running"] == ["paused", "completed"]


async def test_a_refused_call_gets_an_error_result(ledger: Ledger) -> None:
    agent, tools = asking()
    async with ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await paused(ledger)
        await ledger.answers.resume(answer.run.run_id, refuse={"call-0": "too dear"})
        assert (await soon(answer.wait())).status == "completed"
    messages = (await ledger.messages.history("t")).messages
    assert (messages[2].text, messages[2].is_error) == ("The call was refused: too dear", True)
    assert len(tools.calls) == 1


async def test_a_result_closes_a_call(ledger: Ledger) -> None:
    agent, tools = asking(calls=2)
    async with ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await paused(ledger)
        first = await ledger.answers.resume(answer.run.run_id, {"call-0": "by hand"})
        assert first.waiting == {"call-1": "costs call-1"}
        second = ChatMessage(role="tool", content="by hand too")
        await ledger.answers.resume(answer.run.run_id, {"call-1": second}, refuse=[])
        assert (await soon(answer.wait())).status == "completed"
    assert [text for _, text, _ in await texts(ledger)][2:4] == ["by hand", "by hand too"]
    assert len(tools.calls) == 2


async def test_a_decision_stands(ledger: Ledger) -> None:
    agent, _ = asking(calls=2)
    async with ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await paused(ledger)
        run_id, resume = answer.run.run_id, ledger.answers.resume
        await resume(run_id, approve=["call-0"])
        await resume(run_id, approve=["call-0"])  # changes nothing
        with pytest.raises(RunConflict, match="'call-0' is approved already"):
            await resume(run_id, refuse=["call-0", "call-1"])
        assert (await ledger.answers.get(run_id)).waiting == {"call-1": "costs call-1"}
        with pytest.raises(InvalidArgument, match="names call 'call-9', for which run"):
            await resume(run_id, approve=["call-1", "call-9"])
        with pytest.raises(InvalidArgument, match="names call 'call-1', which another argument names too"):
            await resume(run_id, approve=["call-1"], refuse=["call-1"])
        await resume(run_id, refuse=["call-1"])
        assert (await soon(answer.wait())).status == "completed"
        await resume(run_id, approve=["call-0"], refuse=["call-1"])  # also after the end
        with pytest.raises(RunConflict):
            await resume(run_id, approve=["call-1"])
    with pytest.raises(RunNotFound):
        await ledger.answers.resume("nothing")


async def test_a_decision_about_an_answer_that_was_stopped_before_it_paused_is_a_conflict(ledger: Ledger) -> None:
    """As when somebody stops it while somebody else approves."""
    answer = await ledger.answers.start("t", "Tokyo?", agent="weather", create=True)
    await ledger.answers.stop(answer.run.run_id)
    with pytest.raises(RunConflict, match="does not wait for call 'call-0': it has ended"):
        await ledger.answers.resume(answer.run.run_id, approve=["call-0"])


async def test_a_decision_is_about_what_stood_there(ledger: Ledger) -> None:
    agent, _ = asking()
    async with ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await paused(ledger)
        asked = (await ledger.messages.history("t")).messages[1]
        calls = [call.model_copy(update={"arguments": '{"city": "Lima"}'}) for call in asked.tool_calls or ()]
        await ledger.messages.revise("t", asked, assistant(calls=calls))
        for decision in ({"approve": ["call-0"]}, {"refuse": ["call-0"]}, {"results": {"call-0": "?"}}):
            with pytest.raises(RunConflict, match="was revised or removed"):
                await ledger.answers.resume(answer.run.run_id, **decision)
        assert (await ledger.answers.get(answer.run.run_id)).waiting == {"call-0": "costs call-0"}
        assert (await ledger.answers.stop(answer.run.run_id)).status == "cancelled"


async def test_no_tool_runs_for_a_call_that_was_erased(ledger: Ledger) -> None:
    """An erasure takes the decisions about the calls of its message, and so whatever they wait for."""
    agent, tools = asking()
    async with ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await paused(ledger)
        await ledger.messages.erase("t", (await ledger.messages.history("t")).messages[1])
        assert (await ledger.answers.get(answer.run.run_id)).waiting == {}
        await ledger.answers.resume(answer.run.run_id)
        assert (await soon(answer.wait())).status == "completed"
    assert (await texts(ledger))[2][1] == "The call was erased, so no tool runs for it."
    assert len(tools.calls) == 1


async def test_a_pause_outlives_the_process(database: Database) -> None:
    agent, _ = asking(calls=2)
    async with database.open() as ledger, ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await paused(ledger)
    async with database.open() as ledger:
        await ledger.answers.resume(answer.run.run_id, {"call-0": "by hand"}, approve=["call-1"])
        async with ledger.answers.serve({"weather": agent}, lease=0.4):
            again = await ledger.answers.get(answer.run.run_id)
            assert (await soon(again.wait())).status == "completed"
        assert [text for _, text, _ in await texts(ledger)][2:4] == ["by hand", "paid call-1"]


@pytest.mark.parametrize("again", [True, False])
async def test_an_approved_call_that_was_begun_runs_again_only_if_it_may(database: Database, again: bool) -> None:
    """The process dies while the approved call runs."""
    running = asyncio.Event()

    async def pay(call: Call) -> str:
        if not call.approved:
            raise Pending
        if not call.again:
            running.set()
            await asyncio.sleep(60)
        return "paid again"

    tools = Tools(pay)
    agent = agent_of(Model(), tools, again=again)
    async with (
        database.open() as ledger,
        database.open() as other,
        ledger.answers.serve({"weather": agent}, lease=30),
    ):
        answer = await paused(ledger)
        await ledger.answers.resume(answer.run.run_id, approve=["call-0"])
        await soon(running.wait())
        async with other.answers.serve({"weather": agent}, lease=0.4):
            await abandon(ledger, database)
            assert (await soon(answer.wait())).status == "completed"
        text = "paid again" if again else "The tool was interrupted. It is unknown whether it ran."
        assert (await texts(ledger))[2][1] == text


async def test_results_beside_a_pause_are_stored(ledger: Ledger) -> None:
    def tool(call: Call) -> str:
        if call.call_id == "call-1" and not call.approved:
            raise Pending
        return f"did {call.call_id}"

    tools = Tools(tool)
    async with ledger.answers.serve({"weather": agent_of(Model(calls=3), tools)}, lease=0.4):
        answer = await paused(ledger)
        assert answer.waiting == {"call-1": None}
        assert sorted(text for role, text, _ in await texts(ledger) if role == "tool") == ["did call-0", "did call-2"]
        await ledger.answers.resume(answer.run.run_id, approve=["call-1"])
        assert (await soon(answer.wait())).status == "completed"
    assert [call.call_id for call in tools.calls].count("call-0") == 1


async def test_a_pause_has_an_end(database: Database) -> None:
    from datetime import timedelta

    agent, _ = asking()
    async with database.open() as ledger, ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await paused(ledger)
    async with (
        database.open() as ledger,
        ledger.answers.serve({"weather": agent}, lease=0.4, longest_pause=timedelta(microseconds=1)),
    ):
        async with asyncio.timeout(30):
            while (run := await ledger.runs.get(answer.run.run_id)).ended_at is None:  # noqa: ASYNC110 - by a worker
                await asyncio.sleep(0.05)
        assert (run.status, run.error) == ("cancelled", "paused for longer than 0:00:00.000001")


async def _never(prompt: Any) -> AsyncIterator[Any]:
    raise AssertionError(prompt)
    yield


async def test_a_turn_is_replayed_from_the_thread(database: Database) -> None:
    """The second attempt asks no model for what is stored."""
    agent, _ = asking()
    async with database.open() as ledger, ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await paused(ledger)

    async def replaying(turn: Turn) -> None:
        message = await turn.ask(_never)
        assert message.tool_calls
        (result,) = await turn.call_tools(lambda call: "paid")
        assert result.text == "paid"
        await turn.ask(Model())

    async with database.open() as ledger:
        await ledger.answers.resume(answer.run.run_id, approve=["call-0"])
        async with ledger.answers.serve({"weather": replaying}, lease=0.4):
            assert (await soon((await ledger.answers.get(answer.run.run_id)).wait())).status == "completed"
