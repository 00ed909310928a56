"""The loop of the guide to tools holds what the page promises, in cases that the page does not show."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chatledger import Appended, ChatMessage, Ledger, ToolCall, ToolCallDelta
from tests.docs.pages import code
from tests.docs.parts import DOCS
from tests.places import at

STUBS, LOOP = code(DOCS / "guides" / "tools.md")[:2]


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    """The functions of the page, and a ledger."""
    names: dict[str, Any] = {}
    exec(STUBS, names)
    exec(LOOP.partition("\nledger = ")[0], names)
    async with Ledger.open(tmp_path / "tools.db") as ledger:
        yield {**names, "ledger": ledger}


async def ask(ledger: Ledger, text: str, **options: Any) -> Appended:
    return await ledger.messages.append("t", [ChatMessage(role="user", content=text)], create=True, **options)


async def texts(ledger: Ledger) -> list[str]:
    return [message.text for message in (await ledger.messages.history("t")).messages]


async def test_a_late_retry_hides_no_later_question(page: dict[str, Any]) -> None:
    """The tools of the first answer never ran, and a later question closed their calls."""
    ledger: Ledger = page["ledger"]
    question = (await ask(ledger, "Rain?")).messages[0]
    await ledger.runs.start("t", run_id="t/r1", agent="weather", model="gpt-5")
    async with ledger.messages.stream(
        "t", run_id="t/r1", idempotency_key="r1/0/0", reply_to=question.message_id
    ) as draft:
        await draft.feed(ToolCallDelta(index=0, id="c", name="weather", arguments="{}"))
    await ask(ledger, "Never mind.", on_open_calls="close")
    before = await texts(ledger)
    await page["answer"](ledger, "t", "r1", question)
    assert await texts(ledger) == before
    assert page["ran"] == []


async def test_a_question_on_another_branch_gets_its_answer_there(page: dict[str, Any]) -> None:
    ledger: Ledger = page["ledger"]
    question = (await ask(ledger, "Rain in Oslo?")).messages[0]
    await ledger.messages.append("t", [ChatMessage(role="user", content="Rain in Rome?")], alternative_to=at(1))
    message = await page["answer"](ledger, "t", "r1", question)
    assert message.text == "It is raining, asked 1 times."
    path = await ledger.messages.history("t", branch=message.branch)
    assert [one.role for one in path] == ["user", "assistant", "tool", "assistant"]
    assert path.messages[0].text == "Rain in Oslo?"


async def test_an_answer_that_another_branch_overtakes_stays_on_its_own(page: dict[str, Any]) -> None:
    ledger: Ledger = page["ledger"]
    question = (await ask(ledger, "Rain in Oslo?")).messages[0]
    run_tool = page["run_tool"]

    async def slow_tool(call: ToolCall) -> Any:
        await ledger.messages.append("t", [ChatMessage(role="user", content="Rain in Rome?")], alternative_to=at(1))
        return await run_tool(call)

    page["answer"].__globals__["run_tool"] = slow_tool
    message = await page["answer"](ledger, "t", "r1", question)
    path = await ledger.messages.history("t", branch=message.branch)
    assert [one.text for one in path][::3] == ["Rain in Oslo?", "It is raining, asked 1 times."]
