"""Answers: a question and the run that answers it, whatever becomes of the request and of the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from chatledger import Ledger, TextDelta
from chatledger.answers import Call, Pending, Turn, calls
from chatledger.errors import (
    IdConflict,
    InvalidArgument,
    ModelFailed,
    RunConflict,
    RunLive,
    RunLost,
    RunNotFound,
    StorageError,
    TenantOnly,
    ThreadNotFound,
)
from chatledger.storage.databases.scope import Scope
from chatledger.types import Run
from tests.answers.agents import Model, Tools, agent_of
from tests.conversations import result, user


async def soon(call: Any) -> Any:
    return await asyncio.wait_for(call, 30)


async def texts(ledger: Ledger, thread_id: str = "t") -> list[tuple[str, str, str]]:
    history = await ledger.messages.history(thread_id)
    shown = [*history.messages, *([] if history.draft is None else [history.draft])]
    return [(message.role, message.text or "", message.state) for message in shown]


ANSWERED = [
    ("user", "Tokyo?", "complete"),
    ("assistant", "", "complete"),
    ("tool", "sunny in Tokyo", "complete"),
    ("assistant", "It is sunny.", "complete"),
]


async def test_an_answer_is_made_and_stored(ledger: Ledger) -> None:
    tools = Tools()
    async with ledger.answers.serve({"weather": agent_of(Model(), tools)}):
        answer = await ledger.answers.start("t", "Tokyo?", create=True, metadata={"from": "test"})
        assert (answer.question.text, answer.replayed, answer.waiting) == ("Tokyo?", False, {})
        run = await soon(answer.wait())
    assert (run.status, run.agent, run.metadata, run.error) == ("completed", "weather", {"from": "test"}, None)
    assert await texts(ledger) == ANSWERED
    (call,) = tools.calls
    assert (call.call_id, call.name, call.arguments, call.again, call.approved) == (
        "call-0", "weather", {"city": "Tokyo"}, False, False
    )  # fmt: skip
    assert [checked.findings async for checked in ledger.check()] == [[]]


async def test_an_answer_is_followed_to_its_end(ledger: Ledger) -> None:
    async with ledger.answers.serve({"weather": agent_of(Model())}):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        async with asyncio.timeout(30), aclosing(answer.follow(deltas=False)) as changes:
            assert [change.seq async for change in changes if change.kind == "appended"] == [2, 3, 4]
    again = await ledger.answers.get(answer.run.run_id)
    assert again.replayed
    assert again.question == answer.question
    async with asyncio.timeout(30), aclosing(again.follow(deltas=False)) as changes:
        assert [change.seq async for change in changes if change.kind == "appended"] == [2, 3, 4]


async def test_a_follower_is_told_once_how_an_answer_ended(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread tells the end before the look at the run finds it."""
    told_end, wait_for = asyncio.Event(), calls.wait_for

    async def wait_later(scope: Scope, run_id: str) -> Run:
        await told_end.wait()
        return await wait_for(scope, run_id)

    monkeypatch.setattr(calls, "wait_for", wait_later)
    statuses = []
    async with ledger.answers.serve({"weather": agent_of(Model())}):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        async with asyncio.timeout(30), aclosing(answer.follow()) as changes:
            async for change in changes:
                if change.kind == "run":
                    statuses.append(change.status)
                    if change.status == "completed":
                        told_end.set()
    assert statuses.count("completed") == 1


async def test_a_follower_is_told_at_its_end_which_calls_still_wait(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision about one of two calls leaves the status as it was told."""
    decided, wait_for = asyncio.Event(), calls.wait_for

    async def wait_later(scope: Scope, run_id: str) -> Run:
        await decided.wait()
        return await wait_for(scope, run_id)

    def ask(call: Call) -> str:
        raise Pending(call.call_id)

    monkeypatch.setattr(calls, "wait_for", wait_later)
    waiting = []
    async with ledger.answers.serve({"weather": agent_of(Model(calls=2), Tools(ask))}):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        async with asyncio.timeout(30), aclosing(answer.follow()) as changes:
            async for change in changes:
                if change.status == "paused":
                    waiting.append(list(change.waiting or ()))
                    await ledger.answers.resume(answer.run.run_id, approve=["call-0"])
                    decided.set()
    assert waiting == [["call-0", "call-1"], ["call-1"]]


async def test_a_follower_of_an_answer_that_ended_without_a_word_is_told_its_end(ledger: Ledger) -> None:
    answer = await ledger.answers.start("t", "Tokyo?", agent="weather", create=True)
    await ledger.answers.stop(answer.run.run_id)
    async with asyncio.timeout(30):
        told = [(change.kind, change.run_id, change.status) async for change in answer.follow()]
    assert told == [("run", answer.run.run_id, "cancelled")]


async def test_a_follower_that_is_cancelled_again_and_again_leaves_no_task(ledger: Ledger) -> None:
    answer = await ledger.answers.start("t", "Tokyo?", agent="weather", create=True)
    before = asyncio.all_tasks()

    async def follow() -> None:
        async for _ in answer.follow():
            pass

    following = asyncio.create_task(follow())
    await asyncio.sleep(0.1)
    while not following.done():  # as the cancel scope of a web server
        following.cancel()
        await asyncio.sleep(0)
    for _ in range(100):
        if asyncio.all_tasks() <= before:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(asyncio.all_tasks() - before)


async def test_the_same_key_is_the_same_answer(ledger: Ledger) -> None:
    model = Model()
    async with ledger.answers.serve({"weather": agent_of(model), "other": agent_of(model)}):
        ask = ledger.answers.start
        first = await ask("t", "Tokyo?", agent="weather", idempotency_key="k", create=True)
        again = await ask("t", "Tokyo?", agent="weather", idempotency_key="k", create=True)
        assert (again.run.run_id, again.replayed, again.question) == (first.run.run_id, True, first.question)
        await soon(first.wait())
        ended = await ask("t", "Tokyo?", agent="weather", idempotency_key="k")
        assert (ended.run.status, ended.replayed) == ("completed", True)
        with pytest.raises(IdConflict, match="'k'"):
            await ask("t", "Lima?", agent="weather", idempotency_key="k")
        with pytest.raises(IdConflict, match="another agent"):
            await ask("t", "Tokyo?", agent="other", idempotency_key="k")
        elsewhere = await ask("u", "Tokyo?", agent="weather", idempotency_key="k", create=True)
        assert elsewhere.run.run_id != first.run.run_id
        await soon(elsewhere.wait())
    assert await texts(ledger) == ANSWERED
    assert model.asked == 4


async def test_a_process_without_agents_starts_what_another_serves(database: Any, ledger: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="serves no agents"):
        await ledger.answers.start("t", "Tokyo?", create=True)
    answer = await ledger.answers.start("t", "Tokyo?", agent="weather", create=True)
    async with database.open() as other, other.answers.serve({"weather": agent_of(Model())}, lease=0.5):
        assert (await soon(answer.wait())).status == "completed"
    assert await texts(ledger) == ANSWERED


# --- One answer at a time ---------------------------------------------------------------------------------------------


async def test_another_answer_waits_or_stops_the_first(ledger: Ledger) -> None:
    gate = asyncio.Event()
    model = Model(calls=0, gate=gate)
    async with ledger.answers.serve({"weather": agent_of(model)}):
        first = await ledger.answers.start("t", "Tokyo?", create=True)
        await _until_text(ledger, "It ")
        with pytest.raises(RunLive) as live:
            await ledger.answers.start("t", "And Lima?")
        assert live.value.run_id == first.run.run_id
        assert live.value.until is not None
        assert live.value.retry_after is not None
        second = await ledger.answers.start("t", "And Lima?", when_live="stop")
        gate.set()
        assert (await soon(first.wait())).status == "cancelled"
        assert (await soon(second.wait())).status == "completed"
    assert await texts(ledger) == [
        ("user", "Tokyo?", "complete"),
        ("assistant", "It ", "interrupted"),
        ("user", "And Lima?", "complete"),
        ("assistant", "It is sunny.", "complete"),
    ]


async def _until_text(ledger: Ledger, text: str) -> None:
    async with asyncio.timeout(30):
        while not any(shown[1] == text for shown in await texts(ledger)):  # noqa: ASYNC110 - no call waits for a text
            await asyncio.sleep(0.01)


async def test_an_edit_and_another_answer_are_branches(ledger: Ledger) -> None:
    async with ledger.answers.serve({"weather": agent_of(Model(calls=0))}):
        first = await ledger.answers.start("t", "Tokyo?", create=True)
        await soon(first.wait())
        edited = await ledger.answers.start("t", "Lima?", alternative_to=first.question)
        await soon(edited.wait())
        again = await ledger.answers.start("t", reply_to=edited.question, idempotency_key="again")
        await soon(again.wait())
        replayed = await ledger.answers.start("t", reply_to=edited.question, idempotency_key="again")
        assert replayed.replayed
        with pytest.raises(IdConflict):
            await ledger.answers.start("t", reply_to=first.question, idempotency_key="again")
    assert len(await ledger.branches.list("t")) == 3
    assert await texts(ledger) == [("user", "Lima?", "complete"), ("assistant", "It is sunny.", "complete")]
    alternatives = await ledger.messages.alternatives("t", edited.question)
    assert [one.message.text for one in alternatives] == ["Tokyo?", "Lima?"]


async def test_the_conversation_goes_on_without_the_answer(ledger: Ledger) -> None:
    """Somebody appends between two steps: the run ends, and hides nothing."""

    async def look(call: Call) -> str:
        await ledger.messages.append("t", [result("call-0"), user("Never mind.")])
        return "sunny"

    async with ledger.answers.serve({"weather": agent_of(Model(), Tools(look))}):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        run = await soon(answer.wait())
    assert (run.status, run.error) == ("cancelled", "the conversation went on")
    assert [text for _, text, _ in await texts(ledger)][-1] == "Never mind."


async def test_a_question_that_interrupts_the_draft_ends_the_answer(ledger: Ledger) -> None:
    gate = asyncio.Event()
    async with ledger.answers.serve({"weather": agent_of(Model(calls=0, gate=gate))}, lease=0.4):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        await _until_text(ledger, "It ")
        await ledger.messages.append("t", [user("Never mind.")], on_open_calls="interrupt")
        gate.set()
        run = await soon(answer.wait())
    assert (run.status, run.error) == ("cancelled", "the conversation went on")
    assert [text for _, text, _ in await texts(ledger)] == ["Tokyo?", "It ", "Never mind."]


# --- Stopping ---------------------------------------------------------------------------------------------------------


async def test_a_stop_ends_the_draft_and_nothing_is_written_after_it(ledger: Ledger) -> None:
    gate = asyncio.Event()
    async with ledger.answers.serve({"weather": agent_of(Model(calls=0, gate=gate))}):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        await _until_text(ledger, "It ")
        run = await ledger.answers.stop(answer.run.run_id)
        assert (run.status, run.error) == ("cancelled", "stopped")
        stopped = await texts(ledger)
        gate.set()
        await asyncio.sleep(0.1)
        assert await texts(ledger) == stopped == [
            ("user", "Tokyo?", "complete"),
            ("assistant", "It ", "interrupted"),
        ]  # fmt: skip
        assert await ledger.answers.stop(answer.run.run_id) == await ledger.runs.get(answer.run.run_id)
    with pytest.raises(RunNotFound):
        await ledger.answers.stop("nothing")


async def test_a_stop_from_another_process_closes_the_calls(database: Any, ledger: Ledger) -> None:
    running, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> str:
        running.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "late"

    async with database.open() as other, ledger.answers.serve({"weather": agent_of(Model(), Tools(wait))}, lease=0.4):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        await soon(running.wait())
        run = await other.answers.stop(answer.run.run_id)
        assert run.status == "cancelled"
        await soon(cancelled.wait())
    assert await texts(ledger) == [*ANSWERED[:2], ("tool", "stopped", "synthetic")]


# --- The fence --------------------------------------------------------------------------------------------------------


async def test_only_the_attempt_writes_for_its_run(ledger: Ledger) -> None:
    gate = asyncio.Event()
    async with ledger.answers.serve({"weather": agent_of(Model(calls=0, gate=gate))}):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        run_id = answer.run.run_id
        await _until_text(ledger, "It ")
        with pytest.raises(RunLost):
            await ledger.messages.append("t", [user("?")], run_id=run_id)
        with pytest.raises(RunLost):
            await ledger.messages.append("t", [user("?")], run_id=run_id, on_open_calls="interrupt")
        with pytest.raises(RunLost):
            async with ledger.messages.stream("t", run_id=run_id, on_open_calls="interrupt"):
                raise AssertionError("it was opened")
        with pytest.raises(RunLost):
            await ledger.runs.finish(run_id, status="completed")
        with pytest.raises(RunConflict):
            await ledger.runs.delete(run_id)
        gate.set()
        assert (await soon(answer.wait())).status == "completed"
    await ledger.messages.append("t", [user("?")], run_id=run_id)  # it has ended


# --- Failures ---------------------------------------------------------------------------------------------------------


async def test_a_model_that_raises_may_be_asked_again(ledger: Ledger) -> None:
    failures = iter([True, False])

    async def model(prompt: Any) -> AsyncIterator[Any]:
        yield "It "
        if next(failures):
            raise ConnectionError("the key sk-12345")
        yield "is sunny."

    async def agent(turn: Turn) -> None:
        with pytest.raises(ModelFailed, match="ConnectionError"):
            await turn.ask(model)
        await turn.ask(model)

    async with ledger.answers.serve({"weather": agent}):
        run = await soon((await ledger.answers.start("t", "Tokyo?", create=True)).wait())
    assert run.status == "completed"
    assert await texts(ledger) == [
        ANSWERED[0],
        ("assistant", "It ", "interrupted"),
        ("assistant", "It is sunny.", "complete"),
    ]


async def test_an_agent_that_raises_fails(ledger: Ledger) -> None:
    async def agent(turn: Turn) -> None:
        await turn.ask(Model())
        raise LookupError("no such city")

    async with ledger.answers.serve({"weather": agent}):
        run = await soon((await ledger.answers.start("t", "Tokyo?", create=True)).wait())
    assert (run.status, run.error) == ("failed", "LookupError: no such city")
    assert (await texts(ledger))[-1] == ("tool", "the answer ended", "synthetic")


async def test_an_error_of_a_tool_is_its_result(ledger: Ledger) -> None:
    def tool(call: Call) -> str:
        raise LookupError("no such city")

    async def agent(turn: Turn) -> None:
        await turn.ask(Model(calls=2))
        first, second = await turn.call_tools(tool)
        assert first.text == second.text == "LookupError: no such city"
        assert first.is_error
        await turn.ask(Model())

    async with ledger.answers.serve({"weather": agent}):
        run = await soon((await ledger.answers.start("t", "Tokyo?", create=True)).wait())
    assert run.status == "completed"


async def test_a_tool_has_a_time_limit(ledger: Ledger) -> None:
    async def tool(call: Call) -> str:
        await asyncio.sleep(60)
        return "late"

    async def agent(turn: Turn) -> None:
        await turn.ask(Model())
        (result,) = await turn.call_tools(tool, timeout=0.01)
        assert result.text == "The tool took longer than 0.01 seconds."
        await turn.ask(Model())

    async with ledger.answers.serve({"weather": agent}):
        run = await soon((await ledger.answers.start("t", "Tokyo?", create=True)).wait())
    assert run.status == "completed"


async def test_an_answer_ends_with_its_thread(ledger: Ledger) -> None:
    gate = asyncio.Event()
    async with ledger.answers.serve({"weather": agent_of(Model(calls=0, gate=gate))}, lease=0.4):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        await _until_text(ledger, "It ")
        await ledger.threads.delete("t")
        gate.set()
        with pytest.raises(RunNotFound):
            await soon(answer.wait())
        with pytest.raises(ThreadNotFound):
            await ledger.messages.history("t")


# --- Views ------------------------------------------------------------------------------------------------------------


async def test_a_user_has_her_own_answers(ledger: Ledger) -> None:
    owners = []

    async def agent(turn: Turn) -> None:
        owners.append([thread.thread_id for thread in await turn.ledger.threads.list()])
        await turn.ask(Model(calls=0))

    ada, bob = ledger.user("ada"), ledger.user("bob")
    await ledger.threads.create("nobody's")
    with pytest.raises(TenantOnly):
        ada.answers.serve({"weather": agent})
    async with ledger.answers.serve({"weather": agent}, lease=0.4):
        answer = await ada.answers.start("hers", "Tokyo?", create=True)
        await soon(answer.wait())
        for call in (bob.answers.get, bob.answers.stop, bob.answers.resume):
            with pytest.raises(RunNotFound):
                await call(answer.run.run_id)
        with pytest.raises(ThreadNotFound):
            await bob.answers.start("hers", "Tokyo?", create=True)
        assert (await ada.answers.get(answer.run.run_id)).run.status == "completed"
        again = await ledger.answers.start("hers", "And Lima?")  # the agent sees what the owner sees, whoever asked
        await soon(again.wait())
    assert owners == [["hers"], ["hers"]]


async def test_a_transaction_starts_and_runs_nothing(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        answer = await tx.answers.start("t", "Tokyo?", agent="weather", create=True)
        with pytest.raises(StorageError, match="runs no agents"):
            tx.answers.serve({"weather": agent_of(Model())})
    async with ledger.answers.serve({"weather": agent_of(Model())}, lease=0.4):
        run: Run = await soon((await ledger.answers.get(answer.run.run_id)).wait())
    assert run.status == "completed"


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"agents": []}, "agents"),
        ({"agents": {"a": None}}, "agents"),
        ({"agents": {}, "lease": 0}, "lease"),
        ({"agents": {}, "most": 0}, "most"),
        ({"agents": {}, "attempts": 0}, "attempts"),
        ({"agents": {}, "longest_pause": 3}, "longest_pause"),
        ({"agents": {}, "all_tenants": 1}, "all_tenants"),
    ],
)
async def test_serve_refuses_what_it_cannot_use(ledger: Ledger, arguments: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidArgument, match=place):
        ledger.answers.serve(**arguments)


async def test_start_refuses_what_it_cannot_use(ledger: Ledger) -> None:
    start = ledger.answers.start
    for arguments, place in (
        ({"question": 3}, "question"),
        ({"question": "?", "reply_to": "a", "alternative_to": "b"}, "alternative_to"),
        ({}, "question"),
        ({"question": "?", "when_live": "wait"}, "when_live"),
        ({"question": "?", "metadata": 3}, "metadata"),
    ):
        with pytest.raises(InvalidArgument, match=place):
            await start("t", agent="weather", create=True, **arguments)
    with pytest.raises(ThreadNotFound):
        await start("t", "?", agent="weather")


async def _streamed(prompt: Any) -> AsyncIterator[Any]:
    yield TextDelta(text="?")


async def test_pending_is_an_exception_with_a_reason() -> None:
    assert (Pending("costs 3 EUR").reason, Pending().reason) == ("costs 3 EUR", None)
