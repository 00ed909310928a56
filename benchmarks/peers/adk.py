"""Google's ADK: a session takes one event a call. A turn is four events: both results stand in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

from benchmarks.peers.peer import arguments, sqlalchemy_url
from benchmarks.turns import BareMessage, Turn

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
        user, asks, *results, answer = turn.bare
        return [
            _event("user", "user", [Part(text=user.text)]),
            _event("agent", "model", [_call(*call) for call in arguments(asks)]),
            _event("agent", "user", [_response(one) for one in results]),
            _event("agent", "model", [Part(text=answer.text)]),
        ]

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


def _event(author: str, role: str, parts: list[Any]) -> Any:
    return Event(author=author, invocation_id="turn", content=Content(role=role, parts=parts))


def _call(id_: str, name: str, args: dict[str, Any]) -> Any:
    return Part(function_call=FunctionCall(id=id_, name=name, args=args))


def _response(message: BareMessage) -> Any:
    response = FunctionResponse(id=message.tool_call_id, name="search_documents", response={"result": message.text})
    return Part(function_response=response)
