"""How many statements an answer costs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from chatledger import Ledger, TextDelta, ToolCallDelta
from chatledger.answers import Turn
from tests.answers.agents import Model, Tools, agent_of, call_delta
from tests.answers.by_hand import answer_by_hand
from tests.answers.test_answers import soon
from tests.conftest import Database
from tests.storage.sent import Sent, note_asyncpg, note_sqlite, record

FEW, MANY = 2, 7
"""Steps of two answers, whose difference is what a step costs."""


@pytest.mark.plain
@pytest.mark.one_statement
async def test_an_answer_costs_few_statements(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question, a call with its result, and the text, none of which is written on the way."""
    counts = []
    async with (
        Ledger.open(pg_database.url) as ledger,
        ledger.answers.serve({"weather": agent_of(Model(), Tools())}, lease=600),
    ):
        await soon((await ledger.answers.start("warm", "Tokyo?", create=True)).wait())
        sent = record(monkeypatch)

        def count() -> None:
            counts.append(len([text for text in sent if not text.startswith(("BEGIN", "COMMIT"))]))
            sent.clear()

        answer = await ledger.answers.start("t", "Tokyo?", idempotency_key="k", create=True)
        count()
        await soon(answer.wait())
        count()
        again = await ledger.answers.start("t", "Tokyo?", idempotency_key="k", create=True)
        count()
        await ledger.answers.stop(again.run.run_id)
        count()
    start, made, retried, stopped = counts
    assert start <= 10
    assert made <= 30
    assert retried <= 7
    assert stopped <= 3


class Steps:
    """A model that calls `calls` tools in each step before the last."""

    def __init__(self, steps: int, calls: int) -> None:
        self.steps, self.calls, self.asked = steps, calls, 0

    async def __call__(self, prompt: Any) -> AsyncIterator[TextDelta | ToolCallDelta]:
        self.asked += 1
        if self.asked >= self.steps:
            yield TextDelta(text="It is sunny.")
            return
        for number in range(self.calls):
            yield call_delta(number).model_copy(update={"id": f"call-{self.asked}-{number}"})


@pytest.mark.plain
@pytest.mark.one_statement
async def test_a_step_costs_no_more_statements_than_by_hand(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 1.1 of a loop by hand, which stores the results of a step together. A further call costs an append, since
    each result is stored as it comes. A retry of a finished answer costs at most 12, whatever its steps.
    """
    sent: list[str] = []

    def note(_: Any, statement: Sent) -> None:
        if not statement.text.startswith(("BEGIN", "COMMIT", "ROLLBACK")):
            sent.append(statement.text)

    (note_sqlite if database.kind == "sqlite" else note_asyncpg)(monkeypatch, note)

    async def count(made: Awaitable[Any]) -> int:
        sent.clear()
        await soon(made)
        return len(sent)

    model = Steps(FEW, 1)

    async def agent(turn: Turn) -> None:
        while (await turn.ask(model, format="openai-chat")).tool_calls:
            await turn.call_tools(Tools())

    async with Ledger.open(database.url) as ledger, ledger.answers.serve({"weather": agent}, lease=600):

        async def answer(thread_id: str) -> None:
            asked = await ledger.answers.start(thread_id, "Tokyo?", idempotency_key="k", create=True)
            assert (await asked.wait()).status == "completed"

        async def per_step(made: Callable[[str], Awaitable[None]], calls: int) -> float:
            nonlocal model
            counts = []
            for steps in (FEW, MANY):
                model = Steps(steps, calls)
                counts.append(await count(made(f"{made.__name__} {calls} {steps}")))
            return (counts[1] - counts[0]) / (MANY - FEW)

        async def by_hand(thread_id: str) -> None:
            await answer_by_hand(ledger, thread_id, "k", model)

        await answer("warm")
        await by_hand("warm by hand")
        step, two_calls, hand = await per_step(answer, 1), await per_step(answer, 2), await per_step(by_hand, 1)
        retried = await count(answer(f"answer 1 {MANY}"))
        retried_by_hand = await count(by_hand(f"by_hand 1 {MANY}"))
    assert step <= 1.1 * hand
    assert two_calls - step <= {"sqlite": 8, "postgresql": 4}[database.kind]
    assert retried <= 12 < retried_by_hand
