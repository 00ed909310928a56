"""LangChain's message histories: a list of messages in one call, and the whole thread back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import psycopg
from langchain_community.chat_message_histories import SQLChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, message_to_dict, messages_from_dict
from langchain_postgres import PostgresChatMessageHistory
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from benchmarks.peers.peer import Framework, arguments, sqlalchemy_url
from benchmarks.turns import MESSAGES, BareMessage, Turn
from chatledger import Ledger
from chatledger.adapters.langchain import LedgerChatMessageHistory
from chatledger.ids import new_id

TABLE = "chat_history"


def langchain_message(message: BareMessage) -> Any:
    if message.role == "user":
        return HumanMessage(message.text or "")
    if message.tool_call_id is not None:
        return ToolMessage(message.text or "", tool_call_id=message.tool_call_id)
    calls = [{"id": id_, "name": name, "args": args} for id_, name, args in arguments(message)]
    return AIMessage(message.text or "", tool_calls=calls)


class _History:
    items: ClassVar[int] = 5
    loads_last: ClassVar[bool] = False

    async def ready(self, thread: Any, turn: Turn) -> list[Any]:
        return _calls(turn)[0]

    async def append(self, thread: Any, ready: list[Any]) -> None:
        await thread.aadd_messages(ready)

    async def load(self, thread: Any) -> Sequence[Any]:
        found: Sequence[Any] = await thread.aget_messages()
        return found

    async def last(self, thread: Any, count: int) -> Sequence[Any]:
        raise NotImplementedError


class PostgresHistories(_History):
    name: ClassVar[str] = "LangChain PostgresChatMessageHistory"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> Self:
        connection = await psycopg.AsyncConnection.connect(url)
        await PostgresChatMessageHistory.acreate_tables(connection, TABLE)
        return cls(connection)

    async def new_thread(self) -> Any:
        return PostgresChatMessageHistory(TABLE, str(uuid.uuid4()), async_connection=self._connection)

    async def close(self) -> None:
        await self._connection.close()


class SqlHistories(_History):
    name: ClassVar[str] = "LangChain SQLChatMessageHistory"

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls(create_async_engine(sqlalchemy_url(url)))

    async def new_thread(self) -> Any:
        history = SQLChatMessageHistory(str(uuid.uuid4()), connection=self._engine)
        await history.aget_messages()
        return history

    async def close(self) -> None:
        await self._engine.dispose()


class LedgerHistories(_History):
    name: ClassVar[str] = "LedgerChatMessageHistory"
    loads_last: ClassVar[bool] = True

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls(await Ledger.open(url, migrate=True))

    async def new_thread(self) -> Any:
        return LedgerChatMessageHistory(new_id(), self._ledger)

    async def last(self, thread: Any, count: int) -> Sequence[Any]:
        turns = LedgerChatMessageHistory(thread.session_id, self._ledger, last_turns=count // MESSAGES)
        found: Sequence[Any] = await turns.aget_messages()
        return found

    async def history(self, thread: Any) -> Sequence[Any]:
        return (await self._ledger.messages.history(thread.session_id)).messages

    async def close(self) -> None:
        await self._ledger.close()


def _calls(turn: Turn) -> list[list[Any]]:
    """A chain with a history adds the turn at its end. The messages of a model have the id of its run."""
    messages = [langchain_message(message) for message in turn.bare]
    for message in messages:
        if isinstance(message, AIMessage):
            message.id = f"lc_run--{uuid.uuid4()}-0"
    return [messages]


LANGCHAIN = Framework(
    name="LangChain",
    postgres=[SqlHistories, PostgresHistories],
    sqlite=[SqlHistories],
    ours=LedgerHistories,
    calls=_calls,
    dump=lambda message: json.dumps(message_to_dict(message)),
    parse=lambda texts: messages_from_dict([json.loads(text) for text in texts]),
)
