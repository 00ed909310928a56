"""A graph's messages in a ledger, after each step of a real graph."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from chatledger import Ledger, ThreadNotFound
from chatledger.adapters.langgraph import project
from chatledger.errors import DecodeError
from chatledger.formats.langchain import CODEC
from tests.conftest import Database

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def agent(_: Any) -> dict[str, Any]:
    return {
        "messages": [AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}], id="a1")]
    }


def tools(_: Any) -> dict[str, Any]:
    return {"messages": [ToolMessage("4 °C", tool_call_id="c1", id="t1")]}


def made() -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", tools)
    graph.add_edge(START, "agent")
    graph.add_edge("agent", "tools")
    graph.add_edge("tools", END)
    return graph.compile(checkpointer=InMemorySaver())


async def stored(ledger: Ledger, branch: int | None = None) -> list[BaseMessage]:
    history = (await ledger.messages.history("t", branch=branch)).encode("langchain", as_="models")
    found: list[BaseMessage] = history.payload
    return found


async def run(ledger: Ledger, run_id: str = "r1") -> list[BaseMessage]:
    state: Any = {}
    async for state in made().astream({"messages": [HumanMessage("Oslo?", id="h1")]}, CONFIG, stream_mode="values"):
        await project(ledger, "t", state["messages"], run_id=run_id, user_id="ada")
    messages: list[BaseMessage] = state["messages"]
    return messages


async def test_each_step_is_appended(ledger: Ledger) -> None:
    messages = await run(ledger)
    assert await stored(ledger) == messages
    assert [type(message) for message in messages] == [HumanMessage, AIMessage, ToolMessage]
    assert {message.run_id for message in await ledger.messages.history("t")} == {"r1"}
    assert (await project(ledger, "t", messages)).replayed
    assert len(await ledger.branches.list("t")) == 1


async def test_a_removal_and_an_edit_are_branches(ledger: Ledger) -> None:
    messages = await run(ledger)
    graph = made()
    await graph.aupdate_state(CONFIG, {"messages": messages})
    await graph.aupdate_state(CONFIG, {"messages": [RemoveMessage(id="t1")]})
    removed = (await graph.aget_state(CONFIG)).values["messages"]
    await project(ledger, "t", removed)
    assert await stored(ledger) == messages[:2]
    await graph.aupdate_state(CONFIG, {"messages": [HumanMessage("Rome?", id="h1")]})
    edited = (await graph.aget_state(CONFIG)).values["messages"]
    await project(ledger, "t", edited)
    assert await stored(ledger) == edited
    assert [message.content for message in edited] == ["Rome?", ""]
    assert await stored(ledger, branch=0) == messages


async def test_users_are_kept_apart(ledger: Ledger) -> None:
    messages = await run(ledger)
    with pytest.raises(ThreadNotFound):
        await project(ledger, "t", messages, user_id="bob")
    assert (await ledger.threads.get("t")).user_id == "ada"


async def test_a_live_object_is_refused_and_nothing_is_stored(ledger: Ledger) -> None:
    with pytest.raises(DecodeError) as caught:
        await project(ledger, "t", [HumanMessage("a", additional_kwargs={"live": object()})])
    assert caught.value.path == "messages[0].data.additional_kwargs.live"
    assert await ledger.threads.find("t") is None


async def test_steps_sent_twice_at_once_are_stored_once(database: Database) -> None:
    messages = CODEC.as_models([{"type": "human", "data": {"content": str(n), "type": "human"}} for n in range(5)])
    async with database.open() as one, database.open() as other:
        await asyncio.gather(*(project([one, other][n % 2], "t", messages) for n in range(16)))
        assert await stored(one) == messages
        assert len(await one.branches.list("t")) == 1
