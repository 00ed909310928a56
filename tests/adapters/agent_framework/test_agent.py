"""The framework's own agent with our history, as its quickstart has it: nothing else of the program changes."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import Agent, Content, tool

from chatledger import Ledger
from chatledger.adapters.agent_framework import LedgerHistoryProvider, LedgerSessionStore
from tests.adapters.agent_framework.scripted import Scripted, calls


@tool  # type: ignore[untyped-decorator]
def weather(city: str) -> str:
    """The weather of a city."""
    return f"18 degrees in {city}"


def agent(history: Any, *replies: Any) -> tuple[Agent, Scripted]:
    client = Scripted(*replies)
    return Agent(client, "Reply very concisely.", tools=[weather], context_providers=[history]), client


async def test_the_quickstart_stores_into_the_ledger(ledger: Ledger) -> None:
    history = LedgerHistoryProvider(ledger, user_id="ada")
    thought = Content.from_text_reasoning(id="rs_1", text="Tokyo", protected_data="gAAA")
    first, _ = agent(history, [thought, calls("weather", '{"city": "Tokyo"}')], ["18 degrees."])
    session = first.create_session(session_id="conversation_123")
    response = await first.run("What is the weather in Tokyo?", session=session)
    assert response.text == "18 degrees."

    second, client = agent(LedgerHistoryProvider(ledger, user_id="ada"), ["Yes, mild."])
    await second.run("Is that warm?", session=second.create_session(session_id="conversation_123"))
    asked = [(message.role, [content.type for content in message.contents]) for message in client.asked[0]]
    assert asked == [
        ("user", ["text"]),
        ("assistant", ["text_reasoning", "function_call"]),
        ("tool", ["function_result"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]
    assert client.asked[0][1].contents[0].protected_data == "gAAA"

    thread = await ledger.threads.get("conversation_123")
    assert (thread.user_id, thread.rules) == ("ada", "lenient")
    stored = (await ledger.messages.history("conversation_123")).messages
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert all(message.violations == [] for message in stored)


async def test_the_thread_reads_in_other_formats(ledger: Ledger) -> None:
    run, _ = agent(LedgerHistoryProvider(ledger), [calls("weather", '{"city": "Rome"}')], ["18."])
    await run.run("Rome?", session=run.create_session(session_id="t"))
    chat = (await ledger.messages.history("t")).encode("openai-chat").payload
    assert [message["role"] for message in chat] == ["user", "assistant", "tool", "assistant"]
    assert chat[1]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Rome"}'}
    anthropic = (await ledger.messages.prompt("t", "anthropic")).payload
    assert [block["type"] for block in anthropic["messages"][1]["content"]] == ["tool_use"]
    responses = (await ledger.messages.history("t")).encode("openai-responses").payload
    assert [item.get("type", item.get("role")) for item in responses] == [
        "user", "function_call", "function_call_output", "assistant",
    ]  # fmt: skip


async def test_a_session_and_its_messages_come_back_in_another_process(ledger: Ledger) -> None:
    history, sessions = LedgerHistoryProvider(ledger, user_id="ada"), LedgerSessionStore(ledger, user_id="ada")
    first, _ = agent(history, ["Hello, Ada."])
    session = first.create_session(session_id="s")
    session.state["mood"] = {"good": True}
    await first.run("I am Ada.", session=session)
    await sessions.set("s", session)

    later = await sessions.get("s")
    second, client = agent(LedgerHistoryProvider(ledger, user_id="ada"), ["Ada."])
    assert later.state["mood"] == {"good": True}
    await second.run("Who am I?", session=later)
    assert [message.text for message in client.asked[0]] == ["I am Ada.", "Hello, Ada.", "Who am I?"]


def test_each_run_has_a_loop_of_its_own(tmp_path: Any) -> None:
    """A synchronous program calls `asyncio.run` for each turn."""

    async def turn(text: str) -> int:
        async with await Ledger.open(str(tmp_path / "l.db")) as ledger:
            run, client = agent(LedgerHistoryProvider(ledger), ["Yes."])
            await run.run(text, session=run.create_session(session_id="s"))
            return len(client.asked[0])

    assert [asyncio.run(turn(text)) for text in ("One?", "Two?", "Three?")] == [1, 3, 5]
