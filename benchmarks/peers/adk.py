"""Google's ADK: a session takes one event a call. A turn is four events: both results stand in one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

from benchmarks.peers.peer import Framework, arguments, sqlalchemy_url
from benchmarks.turns import BareMessage, Turn
from chatledger import Ledger
from chatledger.adapters.google_adk import ChatLedgerSessionService
from chatledger.ids import new_id

PLACE = {"app_name": "benchmark", "user_id": "ada"}


class Adk:
    name: ClassVar[str] = "ADK DatabaseSessionService"
    items: ClassVar[int] = 4
    loads_last: ClassVar[bool] = True

    def __init__(self, service: Any) -> None:
        self._service = service

    @classmethod
    async def open(cls, url: str) -> Self:
        service = DatabaseSessionService(sqlalchemy_url(url))
        await service.prepare_tables()
        return cls(service)

    async def new_thread(self) -> Any:
        return await self._service.create_session(**PLACE)

    async def ready(self, thread: Any, turn: Turn) -> list[Any]:
        return _events(turn)

    async def append(self, thread: Any, ready: list[Any]) -> None:
        for event in ready:
            await self._service.append_event(thread, event)

    async def load(self, thread: Any) -> Sequence[Any]:
        return await self._events(thread, None)

    async def last(self, thread: Any, count: int) -> Sequence[Any]:
        return await self._events(thread, GetSessionConfig(num_recent_events=count))

    async def _events(self, thread: Any, config: Any) -> Sequence[Any]:
        session = await self._service.get_session(**PLACE, session_id=thread.id, config=config)
        events: Sequence[Any] = session.events
        return events

    async def close(self) -> None:
        await self._service.close()


class LedgerAdk(Adk):
    name: ClassVar[str] = "ChatLedgerSessionService"

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ChatLedgerSessionService(ledger))
        self._ledger = ledger

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls(await Ledger.open(url, migrate=True))

    async def history(self, thread: Any) -> Sequence[Any]:
        thread_id = "/".join((thread.app_name, thread.user_id, thread.id))
        return (await self._ledger.messages.history(thread_id)).messages

    async def close(self) -> None:
        await self._ledger.close()


def _events(turn: Turn) -> list[Any]:
    user, asks, *results, answer = turn.bare
    run = f"e-{new_id()}"
    return [
        _event(run, "user", "user", [Part(text=user.text)]),
        _event(run, "agent", "model", [_call(*call) for call in arguments(asks)]),
        _event(run, "agent", "user", [_response(one) for one in results]),
        _event(run, "agent", "model", [Part(text=answer.text)]),
    ]


def _event(run: str, author: str, role: str, parts: list[Any]) -> Any:
    return Event(author=author, invocation_id=run, content=Content(role=role, parts=parts))


def _call(id_: str, name: str, args: dict[str, Any]) -> Any:
    return Part(function_call=FunctionCall(id=id_, name=name, args=args))


def _response(message: BareMessage) -> Any:
    response = FunctionResponse(id=message.tool_call_id, name="search_documents", response={"result": message.text})
    return Part(function_response=response)


ADK = Framework(
    name="Google ADK",
    postgres=[Adk],
    sqlite=[Adk],
    ours=LedgerAdk,
    calls=lambda turn: [[event] for event in _events(turn)],
    dump=lambda event: event.model_dump_json(exclude_none=True),
    parse=lambda texts: [Event.model_validate(json.loads(text)) for text in texts],
    begins=True,
)
