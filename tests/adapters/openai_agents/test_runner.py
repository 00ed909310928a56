"""The SDK's own Runner with our session, as its quickstart has it: nothing else of the program changes."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, RunConfig, Runner, function_tool
from agents.memory import Session

from chatledger import Ledger
from chatledger.adapters.openai_agents import ChatLedgerSession
from tests.adapters.openai_agents.scripted import Scripted, calls, says, thinks
from tests.conftest import Database


@function_tool  # type: ignore[untyped-decorator]
def weather(city: str) -> str:
    return f"18 degrees in {city}"


def agent(*outputs: Any) -> Agent[Any]:
    return Agent(name="Assistant", instructions="Reply very concisely.", tools=[weather], model=Scripted(*outputs))


async def test_the_quickstart_stores_into_the_ledger(ledger: Ledger) -> None:
    session = ChatLedgerSession("conversation_123", ledger, user_id="ada")
    assert isinstance(session, Session)

    first = agent([thinks("Tokyo"), calls("weather", '{"city": "Tokyo"}')], [says("18 degrees.")])
    result = await Runner.run(first, "What is the weather in Tokyo?", session=session)
    assert result.final_output == "18 degrees."

    second = agent([says("Yes, mild.", 2)])
    await Runner.run(second, "Is that warm?", session=session)

    asked = second.model.asked[0]
    assert [item.get("type", item.get("role")) for item in asked] == [
        "user", "reasoning", "function_call", "function_call_output", "message", "user",
    ]  # fmt: skip
    assert asked[1]["encrypted_content"] == "gAAA"
    assert await session.get_items() == [*asked, await _last(session)]

    thread = await ledger.threads.get("conversation_123")
    assert (thread.user_id, thread.rules) == ("ada", "lenient")
    stored = (await ledger.messages.history("conversation_123")).messages
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert all(message.violations == [] for message in stored)


async def _last(session: ChatLedgerSession) -> Any:
    (item,) = await session.get_items(1)
    assert item["content"][0]["text"] == "Yes, mild."
    return item


async def test_the_thread_reads_in_other_formats(ledger: Ledger) -> None:
    session = ChatLedgerSession("t", ledger)
    await Runner.run(agent([calls("weather", '{"city": "Rome"}')], [says("18.")]), "Rome?", session=session)
    chat = (await ledger.messages.history("t")).encode("openai-chat").payload
    assert [message["role"] for message in chat] == ["user", "assistant", "tool", "assistant"]
    assert chat[1]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Rome"}'}
    anthropic = (await ledger.messages.prompt("t", "anthropic")).payload
    messages = anthropic["messages"] if isinstance(anthropic, dict) else anthropic
    assert [block["type"] for block in messages[1]["content"]] == ["tool_use"]
    responses = (await ledger.messages.history("t")).encode("openai-responses").payload
    assert responses == await session.get_items()


def test_the_synchronous_runner(tmp_path: Any) -> None:
    """Runner.run_sync has a loop of its own."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        ledger = loop.run_until_complete(_opened(str(tmp_path / "l.db")))
        session = ChatLedgerSession("t", ledger)
        result = Runner.run_sync(agent([says("Hi.")]), "Hello", session=session, run_config=RunConfig())
        assert result.final_output == "Hi."
        assert len(loop.run_until_complete(session.get_items())) == 2
        loop.run_until_complete(ledger.close())
    finally:
        loop.close()
        asyncio.set_event_loop(None)


async def _opened(url: str) -> Ledger:
    return await Ledger.open(url)


async def test_runners_of_other_threads_make_loops_of_their_own(database: Database) -> None:
    """A web server's thread pool runs Runner.run_sync, or asyncio.run for each call, on sessions of one ledger."""
    async with database.open() as ledger:

        def run(number: int) -> int:
            session = ChatLedgerSession("s", ledger)
            asyncio.run(Runner.run(agent([says("Hi.", number)]), f"Hello {number}", session=session))
            return len(asyncio.run(session.get_items()))

        await asyncio.gather(*(asyncio.to_thread(run, number) for number in range(4)))
        assert len(await ChatLedgerSession("s", ledger).get_items()) == 8
        popped = await asyncio.gather(*(asyncio.to_thread(_pop, ledger) for _ in range(8)))
        assert None not in popped
        assert await ChatLedgerSession("s", ledger).get_items() == []


def _pop(ledger: Ledger) -> Any:
    return asyncio.run(ChatLedgerSession("s", ledger).pop_item())
