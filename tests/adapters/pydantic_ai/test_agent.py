"""An agent of Pydantic AI with our store, as its documentation has it: nothing else of the program changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.models.test import TestModel

from chatledger import Ledger
from chatledger.adapters.pydantic_ai import LedgerConversationStore


def weather(city: str) -> dict[str, Any]:
    """The weather of a city."""
    return {"city": city, "t": 4}


def agent() -> Any:
    return Agent(TestModel(), tools=[weather], instructions="Be brief.")


async def ask(store: Any, text: str, *, conversation_id: str = "c1", scope: str | None = "ada") -> Any:
    conversation = await store.load(conversation_id, scope=scope) or Conversation(conversation_id=conversation_id)
    result = await agent().run(text, conversation=conversation)
    await store.save(result, scope=scope)
    return result


async def test_an_agent_stores_into_the_ledger_and_goes_on(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    first = await ask(store, "Oslo?")
    second = await ask(store, "And Bergen?")
    assert second.all_messages()[: len(first.all_messages())] == first.all_messages()
    loaded = await store.load("c1", scope="ada")
    assert loaded.messages == second.all_messages()
    assert loaded.usage == second.conversation.usage
    assert loaded.usage.requests == 3

    (thread,) = await ledger.user("ada").threads.list(kind="pydantic-ai")
    assert (thread.thread_id, thread.rules) == ("c1", "lenient")
    stored = (await ledger.messages.history("c1")).messages
    assert [one.role for one in stored] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [one.run_id for one in stored] == [first.run_id] * 4 + [second.run_id] * 2
    assert [one.created_at for one in stored] == [one.timestamp for one in second.all_messages()]
    assert all(one.violations == [] for one in stored)
    assert len(await ledger.branches.list("c1")) == 1


async def test_the_thread_reads_in_other_formats(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    result = await ask(store, "Oslo?")
    chat = (await ledger.messages.history("c1")).encode("openai-chat").payload
    assert [message["role"] for message in chat] == ["user", "assistant", "tool", "assistant"]
    assert chat[1]["tool_calls"][0]["function"]["name"] == "weather"
    anthropic = (await ledger.messages.prompt("c1", "anthropic")).payload
    blocks = anthropic["messages"] if isinstance(anthropic, dict) else anthropic
    assert [block["type"] for block in blocks[1]["content"]] == ["tool_use"]
    responses = (await ledger.messages.history("c1")).encode("openai-responses").payload
    assert {"function_call", "function_call_output"} <= {item.get("type") for item in responses}
    objects = (await ledger.messages.history("c1")).encode("pydantic-ai", as_="models").payload
    assert objects == result.all_messages()


async def test_a_stale_conversation_is_refused(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    await ask(store, "Oslo?")
    stale = await store.load("c1")
    await ask(store, "And Bergen?")
    late = await agent().run("Lost?", conversation=stale)
    with pytest.raises(ConversationConflict):
        await store.save(late)
    assert len((await store.load("c1")).messages) == 6


async def test_runs_without_await_have_a_loop_of_their_own(ledger: Ledger) -> None:
    store = LedgerConversationStore(ledger)
    await ask(store, "Oslo?")

    def talk(number: int) -> int:
        asyncio.run(ask(store, f"Question {number}?"))
        conversation = asyncio.run(store.load("c1", scope="ada"))
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        result = agent().run_sync("Without await?", conversation=conversation)
        loop.close()
        return len(asyncio.run(store.save(result, scope="ada")))

    for number in range(2):
        assert await asyncio.wait_for(asyncio.to_thread(talk, number), 60) == 2
    loaded = await store.load("c1", scope="ada")
    assert len(loaded.messages) == 12
