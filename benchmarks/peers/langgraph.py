"""LangGraph's savers, which store the state of a graph after each of its steps.

A turn is one invocation of a graph of two nodes, a model and its tools, which answer what they are given.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from benchmarks.peers.langchain import langchain_message
from benchmarks.turns import Turn


def _model(state: MessagesState, config: RunnableConfig) -> Any:
    script = config["configurable"]["script"]
    return {"messages": [script[4 if state["messages"][-1].type == "tool" else 1]]}


def _tools(state: MessagesState, config: RunnableConfig) -> Any:
    return {"messages": config["configurable"]["script"][2:4]}


def _route(state: MessagesState) -> str:
    last: Any = state["messages"][-1]
    return "tools" if last.tool_calls else END


def _graph(saver: Any) -> Any:
    builder: Any = StateGraph(MessagesState)
    builder.add_node("model", _model)
    builder.add_node("tools", _tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", _route, ["tools", END])
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=saver)


class _Saver:
    items: ClassVar[int] = 5
    loads_last: ClassVar[bool] = False
    saver: ClassVar[Any]

    def __init__(self, stack: AsyncExitStack, graph: Any) -> None:
        self._stack, self._graph = stack, graph

    @classmethod
    async def open(cls, url: str) -> Self:
        stack = AsyncExitStack()
        saver = await stack.enter_async_context(cls.saver.from_conn_string(url))
        await saver.setup()
        return cls(stack, _graph(saver))

    async def new_thread(self) -> str:
        return str(uuid.uuid4())

    async def ready(self, thread: str, turn: Turn) -> list[Any]:
        return [langchain_message(message) for message in turn.bare]

    async def append(self, thread: str, ready: list[Any]) -> None:
        config = {"configurable": {"thread_id": thread, "script": ready}}
        await self._graph.ainvoke({"messages": ready[:1]}, config)

    async def written(self, given: Sequence[Turn]) -> str:
        """A thread of these turns as one update of its state: turn by turn it would take minutes."""
        thread = await self.new_thread()
        messages = [message for turn in given for message in await self.ready(thread, turn)]
        await self._graph.aupdate_state(
            {"configurable": {"thread_id": thread}}, {"messages": messages}, as_node="model"
        )
        return thread

    async def load(self, thread: str) -> Sequence[Any]:
        state = await self._graph.aget_state({"configurable": {"thread_id": thread}})
        found: Sequence[Any] = state.values.get("messages", [])
        return found

    async def last(self, thread: str, count: int) -> Sequence[Any]:
        raise NotImplementedError

    async def close(self) -> None:
        await self._stack.aclose()


class PostgresSaver(_Saver):
    name: ClassVar[str] = "LangGraph AsyncPostgresSaver"
    saver: ClassVar[Any] = AsyncPostgresSaver


class SqliteSaver(_Saver):
    name: ClassVar[str] = "LangGraph AsyncSqliteSaver"
    saver: ClassVar[Any] = AsyncSqliteSaver
