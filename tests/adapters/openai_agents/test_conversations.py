"""The SDK's own session of the OpenAI Conversations API, against the server of a ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, OpenAIConversationsSession, Runner, function_tool
from openai import AsyncOpenAI

from chatledger import Ledger
from chatledger.server import create_app
from tests.adapters.openai_agents.scripted import Scripted, calls, says, thinks
from tests.server.conftest import by_header
from tests.server.conversations.conftest import openai_of


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    async with Ledger.open(tmp_path / "chat.db") as opened:
        yield opened


@pytest.fixture
async def openai(ledger: Ledger) -> AsyncIterator[AsyncOpenAI]:
    async with openai_of(create_app(ledger, authenticate=by_header), "ada") as client:
        yield client


async def test_a_session_adds_reads_pops_and_clears(openai: AsyncOpenAI, ledger: Ledger) -> None:
    session = OpenAIConversationsSession(openai_client=openai)
    items: list[Any] = [{"role": "user", "content": str(number)} for number in range(45)]  # three requests
    await session.add_items(items)
    read: Any = await session.get_items()
    assert [item["content"] for item in read] == [[{"type": "input_text", "text": str(n)}] for n in range(45)]
    assert await session.get_items(limit=30) == read[-30:]
    assert await session.pop_item() == read[-1]
    assert await session.get_items() == read[:-1]
    await session.clear_session()
    assert await ledger.threads.count() == 0


async def test_a_run_continues_in_the_conversation(openai: AsyncOpenAI, ledger: Ledger) -> None:
    @function_tool  # type: ignore[untyped-decorator]  # the type checker's environment does not have the SDK
    def weather(city: str) -> str:
        return f"21 °C in {city}"

    model = Scripted([thinks("Hm."), calls("weather", '{"city": "Tokyo"}')], [says("It is 21 °C.")], [says("Yes.", 2)])
    agent = Agent(name="assistant", model=model, tools=[weather])
    session = OpenAIConversationsSession(openai_client=openai)
    await Runner.run(agent, "What is the weather in Tokyo?", session=session)
    await Runner.run(agent, "Is that warm?", session=session)
    kinds = ["message", "reasoning", "function_call", "function_call_output", "message", "message"]
    assert [item.get("type", "message") for item in model.asked[2]] == kinds
    history = await ledger.user("ada").messages.history(session.session_id)
    roles = ["user", "assistant", "assistant", "tool", "assistant", "user", "assistant"]
    assert [message.role for message in history.messages] == roles
    assert history.messages[-1].text == "Yes."
