"""OpenAI Agents SDK: a session takes the items of a turn in one call. A turn is six items: each call is one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from agents.extensions.memory import SQLAlchemySession
from agents.memory import SQLiteSession
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from benchmarks.peers.peer import Framework, sqlalchemy_url
from benchmarks.turns import BareMessage, Turn
from chatledger import Ledger
from chatledger.adapters.openai_agents import ChatLedgerSession
from chatledger.ids import new_id


class _Session:
    items: ClassVar[int] = 6
    loads_last: ClassVar[bool] = True

    async def ready(self, thread: Any, turn: Turn) -> list[Any]:
        return [item for added in _calls(turn) for item in added]

    async def append(self, thread: Any, ready: list[Any]) -> None:
        await thread.add_items(ready)

    async def load(self, thread: Any) -> Sequence[Any]:
        found: Sequence[Any] = await thread.get_items()
        return found

    async def last(self, thread: Any, count: int) -> Sequence[Any]:
        found: Sequence[Any] = await thread.get_items(count)
        return found


class SqlalchemySessions(_Session):
    name: ClassVar[str] = "OpenAI Agents SQLAlchemySession"

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls(create_async_engine(sqlalchemy_url(url)))

    async def new_thread(self) -> Any:
        session = SQLAlchemySession(new_id(), engine=self._engine, create_tables=True)
        await session.get_items(1)
        return session

    async def close(self) -> None:
        await self._engine.dispose()


class LedgerSessions(_Session):
    """Ours, called as the SDK calls the two around it: the same items, in the same calls."""

    name: ClassVar[str] = "chatledger, OpenAI Agents session"

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls(await Ledger.open(url, migrate=True))

    async def new_thread(self) -> Any:
        return ChatLedgerSession(new_id(), self._ledger)

    async def history(self, thread: Any) -> Sequence[Any]:
        return (await self._ledger.messages.history(thread.session_id)).messages

    async def close(self) -> None:
        await self._ledger.close()


class SqliteSessions(_Session):
    name: ClassVar[str] = "OpenAI Agents SQLiteSession"

    def __init__(self, path: str) -> None:
        self._path = path
        self._sessions: list[Any] = []

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls(url)

    async def new_thread(self) -> Any:
        session = SQLiteSession(new_id(), self._path)
        self._sessions.append(session)
        await session.get_items(1)
        return session

    async def close(self) -> None:
        for session in self._sessions:
            session.close()


def _items(message: BareMessage) -> list[dict[str, Any]]:
    if message.tool_call_id is not None:
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text}]
    text = [] if message.text is None else [{"role": message.role, "content": message.text}]
    calls = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.calls
    ]
    return [*text, *calls]


def _calls(turn: Turn) -> list[list[Any]]:
    """The runner adds what a run is asked, then what each step of the model led to."""
    user, asks, *results, answer = turn.bare
    text: dict[str, Any] = {"annotations": [], "text": answer.text, "type": "output_text", "logprobs": []}
    said = {
        "id": f"msg_{new_id()}",
        "content": [text],
        "role": "assistant",
        "status": "completed",
        "type": "message",
    }
    called = [{**item, "id": f"fc_{new_id()}"} for item in _items(asks)]
    return [_items(user), [*called, *(item for result in results for item in _items(result))], [said]]


OPENAI_AGENTS = Framework(
    name="OpenAI Agents",
    postgres=[SqlalchemySessions],
    sqlite=[SqliteSessions, SqlalchemySessions],
    ours=LedgerSessions,
    calls=_calls,
    dump=json.dumps,
    parse=lambda texts: [json.loads(text) for text in texts],
)
