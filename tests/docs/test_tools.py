"""The loop of the guide to tools holds what the page promises, in cases that the page does not show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from chatledger import Appended, ChatMessage, Ledger, ToolCall, ToolCallDelta, VersionConflict
from tests.docs.pages import code
from tests.docs.parts import DOCS
from tests.places import at

STUBS, LOOP, _, CLAIM = code(DOCS / "guides" / "tools.md")[:4]


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


# --- One request at a time --------------------------------------------------------------------------------------------


class Paused:
    """A ledger whose call of that number waits for something else, which happens before the call."""

    def __init__(self, ledger: Any, number: int, happens: Callable[[], Awaitable[Any]]) -> None:
        self.ledger, self.left, self.happens = ledger, number, happens

    @property
    def kv(self) -> Any:
        return _Part(self, self.ledger.kv)

    @property
    def messages(self) -> Any:
        return _Part(self, self.ledger.messages)


class _Part:
    def __init__(self, paused: Paused, part: Any) -> None:
        self.paused, self.part = paused, part

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            self.paused.left -= 1
            if self.paused.left == 0:
                await self.paused.happens()
            return await getattr(self.part, name)(*arguments, **options)

        return call


async def calling(ledger: Ledger) -> ChatMessage:
    call = ToolCall(id="c", name="weather", arguments={"city": "Bergen"})
    question, message = ChatMessage(role="user", content="Rain?"), ChatMessage(role="assistant", tool_calls=[call])
    return (await ledger.messages.append("t", [question, message], create=True)).messages[-1]


@pytest.fixture
def claiming(page: dict[str, Any]) -> dict[str, Any]:
    exec(CLAIM.partition("\ncalling = ")[0], page)
    return page


CALLS = 4
"""Of a request that runs the tools: the claim is read, the results are, the claim is written, and the results."""


OVERTAKEN = [(number, 60) for number in range(1, CALLS + 1)] + [(number, 0) for number in range(1, CALLS)]


@pytest.mark.parametrize(("number", "slowest"), OVERTAKEN)
async def test_a_request_that_another_one_overtakes_runs_no_tool_again(
    claiming: dict[str, Any], number: int, slowest: int
) -> None:
    """The other one does everything before a call of the first. Its claim still holds, or is over in the meantime."""
    claiming["SLOWEST"] = slowest
    ledger: Ledger = claiming["ledger"]
    message = await calling(ledger)
    refused = claiming["ToolsRunning"], VersionConflict

    async def run(through: Any) -> Any:
        with suppress(*refused):
            return await claiming["answer_calls"](through, "t", None, message)

    slow = Paused(ledger, number, lambda: run(ledger))
    await run(slow)
    assert slow.left <= 0  # the first got that far
    assert claiming["ran"] == ["weather"]
    assert await texts(ledger) == ["Rain?", "", "raining, asked 1 times"]


async def test_a_retry_after_a_disconnect_need_not_wait(claiming: dict[str, Any]) -> None:
    ledger: Ledger = claiming["ledger"]
    message = await calling(ledger)

    async def disconnected(call: ToolCall) -> Any:
        raise asyncio.CancelledError

    run_tool, claiming["run_tool"] = claiming["run_tool"], disconnected
    with pytest.raises(asyncio.CancelledError):
        await claiming["answer_calls"](ledger, "t", None, message)
    claiming["run_tool"] = run_tool
    await claiming["answer_calls"](ledger, "t", None, message)
    assert claiming["ran"] == ["weather"]


async def test_a_retry_after_a_crash_waits_for_the_end_of_the_claim(claiming: dict[str, Any]) -> None:
    ledger: Ledger = claiming["ledger"]
    message = await calling(ledger)
    held = claiming["claimed"](ledger, "t", message, None)
    await held.__aenter__()  # and the process dies
    with pytest.raises(claiming["ToolsRunning"]):
        await claiming["answer_calls"](ledger, "t", None, message)
    claim = await claiming["claim_of"](ledger, "t", message)
    await ledger.kv.put(("thread", "t", "tools"), claim.key, {"until": 0}, expected=claim.version)  # as if time passed
    await claiming["answer_calls"](ledger, "t", None, message)
    assert claiming["ran"] == ["weather"]
