"""The same 2,000 calls on our service and on two of ADK's own: every value and every exception is compared.

None differs but for this: the service in a database rounds the time of the last update to microseconds, and ours keeps
it as the one in memory does. So the rounded time is compared.

ADK's two do not agree with each other on some calls, which have tests in `test_service.py`: the one in memory strips
the ids of sessions and accepts a repeated event, and so do we; the one in a database refuses a session that is stale,
and so do we, but it tells by the time of the last event, and we by the state of the thread.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.adk.events import Event, EventActions
from google.adk.sessions import BaseSessionService, DatabaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

from chatledger.adapters.google_adk import ChatLedgerSessionService
from tests.adapters.google_adk.events import EVENTS
from tests.conftest import Database

CALLS = 2_000
SEED = 16
APPS = ("demo", "other/app")
USERS = ("ada", "eve@example.com", "a/b")
SESSIONS = ("s", "t", "s/t", "ü %2F")
KEYS = ("a", "user:a", "app:a", "temp:a", "long key", "user:", "app:")
VALUES: tuple[Any, ...] = (1, None, "text", {"deep": [1, 2.5, {}]}, [], True, "Grüße 🌍")


@dataclass
class Script:
    """Calls from one seed. An event gets a later time than the one before, since a database of ADK's sorts by it."""

    random: random.Random
    clock: float = 1_790_000_000.0
    made: int = 0
    events: list[Any] = field(default_factory=lambda: [event for events in EVENTS.values() for event in events])

    def where(self) -> dict[str, str]:
        return {
            "app_name": self.random.choice(APPS),
            "user_id": self.random.choice(USERS),
            "session_id": self.random.choice(SESSIONS),
        }

    def state(self) -> dict[str, Any]:
        return {self.random.choice(KEYS): self.random.choice(VALUES) for _ in range(self.random.randrange(4))}

    def event(self) -> Any:
        self.made += 1
        self.clock += self.random.choice((0.001, 0.25, 7.0))
        given = {"id": f"event-{self.made}", "timestamp": self.clock, "invocation_id": f"e-{self.made // 5}"}
        if self.random.random() < 0.6:
            event = self.random.choice(self.events).model_copy(deep=True, update=given)
            event.actions.state_delta |= self.state()
            return event
        text = self.random.choice(("Oslo?", "", 'a "quoted" \\ text', "line\nline", "x" * 300))
        content = types.Content(role=self.random.choice(("user", "model")), parts=[types.Part(text=text)])
        actions = EventActions(state_delta=self.state())
        return Event(
            author=self.random.choice(("user", "helper")),
            content=content,
            actions=actions,
            partial=self.random.choice((None, None, None, True, False)),
            **given,
        )

    def step(self) -> tuple[str, dict[str, Any]]:
        name = self.random.choices(
            ("create", "append", "append unknown", "get", "list", "delete", "user state"), (10, 45, 3, 25, 8, 5, 4)
        )[0]
        where = self.where()
        if name == "create":
            return name, {**where, "state": self.random.choice((None, self.state()))}
        if name.startswith("append"):
            return name, {**where, "event": self.event()}
        if name == "get":
            count = self.random.choice((None, None, 0, 1, 3, 50))
            after = self.random.choice((None, None, self.clock, self.clock - 5, self.clock + 5))
            return name, {**where, "config": (count, after)}
        if name == "list":
            return name, {"app_name": where["app_name"], "user_id": self.random.choice((None, where["user_id"]))}
        if name == "user state":
            del where["session_id"]
        return name, where


@dataclass
class Store:
    """One service, called by the words of the script. Times of creation are each store's own, so they are left out."""

    service: BaseSessionService
    touched: set[tuple[str, str, str]] = field(default_factory=set)

    async def call(self, name: str, given: dict[str, Any]) -> Any:
        try:
            return await self._call(name, given)
        except Exception as error:  # whatever it is, the other store has to raise the same
            return type(error).__name__

    async def _call(self, name: str, given: dict[str, Any]) -> Any:
        service = self.service
        key = (given.get("app_name"), given.get("user_id"), given.get("session_id"))
        if name == "create":
            made = await service.create_session(**given)
            self.touched.discard(key)
            return self.told(made)
        if name == "append":
            event = given.pop("event").model_copy(deep=True)
            session = await service.get_session(**given)
            if session is None:
                return None
            appended = await service.append_event(session, event)
            if not event.partial:
                self.touched.add(key)  # type: ignore[arg-type]
            return appended.model_dump(), self.told(session)
        if name == "append unknown":
            event = given.pop("event").model_copy(deep=True)
            given["id"] = "none-" + given.pop("session_id")
            appended = await service.append_event(Session(**given), event)
            return appended.model_dump()
        if name == "get":
            count, after = given.pop("config")
            config = GetSessionConfig(num_recent_events=count, after_timestamp=after)
            session = await service.get_session(**given, config=config)
            return None if session is None else self.told(session)
        if name == "list":
            sessions = (await service.list_sessions(**given)).sessions
            return sorted((self.told(session) for session in sessions), key=repr)
        if name == "delete":
            return await service.delete_session(**given)
        return await service.get_user_state(**given)

    def told(self, session: Session) -> dict[str, Any]:
        told: dict[str, Any] = session.model_dump()
        if (session.app_name, session.user_id, session.id) not in self.touched:
            del told["last_update_time"]
        else:
            told["last_update_time"] = round(told["last_update_time"], 6)
        return told


@asynccontextmanager
async def _reference(kind: str, tmp_path: Path) -> AsyncIterator[BaseSessionService]:
    if kind == "in memory":
        yield InMemorySessionService()
        return
    async with DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path / 'theirs.db'}") as service:
        yield service


@pytest.mark.parametrize("kind", ["in memory", "in a database"])
async def test_the_same_calls_have_the_same_results(database: Database, kind: str, tmp_path: Path) -> None:
    script = Script(random.Random(SEED))
    named: dict[str, int] = {}
    async with database.open() as ledger, _reference(kind, tmp_path) as reference:
        ours, theirs = Store(ChatLedgerSessionService(ledger)), Store(reference)
        for number in range(CALLS):
            name, given = script.step()
            expected = await theirs.call(name, dict(given))
            got = await ours.call(name, dict(given))
            assert got == expected, (number, name, given)
            named[f"{name}: {expected if isinstance(expected, str) else type(expected).__name__}"] = number
    assert {"create: AlreadyExistsError", "append unknown: SessionNotFoundError", "append: tuple"} <= named.keys()
