"""The same 2,000 calls on our session and on the SDK's own stores: every value and every exception is compared.

None differs. The inputs on which the two differ on purpose have a test of their own.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from agents.extensions.memory import SQLAlchemySession
from agents.memory import SQLiteSession
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import ChatLedgerError, Ledger
from chatledger.adapters.openai_agents import ChatLedgerSession
from tests.adapters.openai_agents.scripted import says
from tests.conftest import Database

CALLS = 2_000
SESSIONS = 5
SEED = 1
NAMES = ("weather", "search", "")
TEXTS = ("Tokyo?", "", "Grüße 🌍", 'a "quoted" \\ text', "line\nline", "\x00 and \ud800", "x" * 300)


@dataclass
class Script:
    """Items of all kinds that the SDK stores, and calls, from one seed."""

    random: random.Random
    made: int = 0

    def number(self) -> int:
        self.made += 1
        return self.made

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def items(self) -> list[Any]:
        size = self.random.choice((0, 1, 1, 1, 2, 3, 5, 12))
        return [self.random.choice(self.makers())(self.number()) for _ in range(size)]

    def makers(self) -> list[Callable[[int], Any]]:
        return [
            lambda n: {"role": "user", "content": f"{n} {self.text()}"},
            lambda n: {
                "role": self.random.choice(("user", "system", "developer", "assistant")),
                "content": self.text(),
            },
            lambda n: {"type": "message", "role": "user", "content": [{"type": "input_text", "text": self.text()}]},
            lambda n: {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "high"},
                    {"type": "input_file", "file_id": f"file_{n}"},
                    {"type": "input_text", "text": self.text()},
                ],
            },
            lambda n: {
                "id": f"msg_{n}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {"type": "output_text", "text": self.text(), "annotations": [], "logprobs": []},
                    {"type": "refusal", "refusal": "No."},
                ],
            },
            lambda n: {
                "id": f"rs_{n}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": self.text()}] * self.random.randrange(3),
                **self.random.choice(({}, {"encrypted_content": "gAAA"}, {"content": None, "status": None})),
            },
            lambda n: {
                "arguments": self.random.choice(('{"city": "Tokyo"}', "", "{broken")),
                "call_id": f"call_{self.random.randrange(20)}",
                "name": self.random.choice(NAMES),
                "type": "function_call",
                "id": f"fc_{n}",
                "status": "completed",
            },
            lambda n: {
                "call_id": f"call_{self.random.randrange(20)}",
                "output": self.random.choice(("18", "", [{"type": "input_text", "text": "18"}])),
                "type": "function_call_output",
            },
            lambda n: {"type": "custom_tool_call", "call_id": f"c{n}", "name": "grep", "input": self.text()},
            lambda n: {"type": "custom_tool_call_output", "call_id": f"c{n - 1}", "output": self.text()},
            lambda n: {"id": f"ws_{n}", "type": "web_search_call", "status": "completed", "action": {"type": "search"}},
            lambda n: {"type": "computer_call_output", "call_id": f"p{n}", "output": {"type": "computer_screenshot"}},
            lambda n: {"type": "shell_call", "call_id": f"s{n}", "action": {"commands": ["ls"]}, "status": None},
            lambda n: {
                "type": "mcp_approval_request",
                "id": f"m{n}",
                "name": "x",
                "server_label": "y",
                "arguments": "{}",
            },
            lambda n: {"type": "mcp_approval_response", "approval_request_id": f"m{n - 1}", "approve": True},
            lambda n: {"type": "compaction", "encrypted_content": self.text()},
            lambda n: {"type": "item_reference", "id": f"msg_{n}"},
            lambda n: {"id": f"msg_{n}"},
            lambda n: {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": self.text()},
            lambda n: {"role": "critic", "content": self.text(), "extra": {"deep": [1, 2.5, None, True, {}]}},
            lambda n: {"role": "tool", "tool_call_id": f"t{n}", "content": self.text()},
            lambda n: {"role": "assistant", "content": None, "tool_calls": [{"id": "x"}]},
            lambda n: {"type": "invented", "number": n, "nothing": None},
            lambda n: {},
        ]

    def step(self) -> tuple[str, tuple[Any, ...]]:
        """A call and its arguments."""
        kind = self.random.choices(
            ("add", "bad", "get", "limit", "pop", "clear", "snapshot", "replace"), (30, 3, 8, 20, 26, 2, 5, 6)
        )[0]
        if kind == "add":
            return "add_items", (self.items(),)
        if kind == "bad":
            return "add_items", ([*self.items(), {"role": "user", "content": object()}],)
        if kind == "limit":
            return "get_items", (self.random.choice((0, 1, 2, 3, 5, 8, 50, 2**31 - 1)),)
        if kind == "snapshot":
            return "snapshot", (self.random.randrange(1, 9),)
        if kind == "replace":
            return "replace", (self.random.randrange(4), self.items())
        return {"get": "get_items", "pop": "pop_item", "clear": "clear_session"}[kind], ()


@dataclass
class Store:
    """Sessions of one store, called by the words of the script."""

    sessions: list[Any]
    snapshots: dict[int, Any] = field(default_factory=dict)

    async def call(self, at: int, name: str, arguments: tuple[Any, ...]) -> Any:
        session = self.sessions[at]
        if name == "snapshot":
            found = self.snapshots[at] = await session._get_compaction_snapshot(*arguments)
            return found.items, found.complete
        if name == "replace":
            taken = self.snapshots.pop(at, None)
            return None if taken is None else await taken.replace_suffix(*arguments)
        return await getattr(session, name)(*arguments)


async def outcome_of(call: Awaitable[Any]) -> Any:
    """The value, or the kind of the exception: the texts of theirs are those of their JSON encoder."""
    try:
        return await call
    except TypeError:
        return TypeError
    except Exception as error:  # whatever it is, the other store has to raise the same
        return type(error)


@asynccontextmanager
async def opened(kind: str, database: Database, folder: Path) -> AsyncIterator[tuple[Store, Store]]:
    async with AsyncExitStack() as stack:
        ledger: Ledger = await stack.enter_async_context(database.open())
        ours = Store([ChatLedgerSession(f"s{number}", ledger) for number in range(SESSIONS)])
        if kind == "SQLiteSession":
            theirs = Store([SQLiteSession(f"s{number}", folder / "theirs.db") for number in range(SESSIONS)])
            for session in theirs.sessions:
                stack.callback(session.close)
        else:
            url = database.url.replace("postgresql://", "postgresql+asyncpg://", 1)
            engine = create_async_engine(
                url if database.kind == "postgresql" else f"sqlite+aiosqlite:///{folder / 'theirs.db'}"
            )
            stack.push_async_callback(engine.dispose)
            make = SQLAlchemySession
            theirs = Store([make(f"s{number}", engine=engine, create_tables=True) for number in range(SESSIONS)])
        yield ours, theirs


@pytest.mark.parametrize("kind", ["SQLiteSession", "SQLAlchemySession"])
async def test_two_thousand_calls_have_the_same_outcome(database: Database, kind: str, tmp_path: Path) -> None:
    script = Script(random.Random(SEED))
    seen: dict[str, int] = {}
    async with opened(kind, database, tmp_path) as (ours, theirs):
        for number in range(CALLS):
            at = script.random.randrange(SESSIONS)
            name, arguments = script.step()
            got = await outcome_of(ours.call(at, name, arguments))
            wanted = await outcome_of(theirs.call(at, name, arguments))
            assert got == wanted, (number, at, name, arguments)
            seen[name] = seen.get(name, 0) + 1
        for at in range(SESSIONS):
            ends = [await store.sessions[at].get_items() for store in (ours, theirs)]
            assert ends[0] == ends[1]
            assert [list(item) for item in ends[0]] == [list(item) for item in ends[1]]
    assert seen.keys() == {"add_items", "get_items", "pop_item", "clear_session", "snapshot", "replace"}


OBJECT = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize("item", ["a text", 7, None, [OBJECT], {1: "a key"}, {"type": "message", "parts": (1, 2)}])
async def test_items_that_are_not_json_objects_are_refused(database: Database, tmp_path: Path, item: Any) -> None:
    """Theirs stores any JSON, and coerces keys and tuples; a run that reads a text as an item fails later."""
    async with opened("SQLiteSession", database, tmp_path) as (ours, theirs):
        assert await outcome_of(theirs.call(0, "add_items", ([OBJECT, item],))) is None
        assert await outcome_of(ours.call(0, "add_items", ([OBJECT, item],))) is TypeError
        assert await ours.call(0, "get_items", ()) == []


async def test_objects_of_the_provider_are_stored(database: Database, tmp_path: Path) -> None:
    """Theirs takes dicts alone."""
    async with opened("SQLiteSession", database, tmp_path) as (ours, theirs):
        assert await outcome_of(theirs.call(0, "add_items", ([says("Hi")],))) is TypeError
        await ours.call(0, "add_items", ([says("Hi")],))
        (item,) = await ours.call(0, "get_items", ())
        assert item == says("Hi").model_dump(exclude_unset=True)


async def test_a_negative_limit_gives_all_on_each_database(database: Database, tmp_path: Path) -> None:
    """In theirs, the database decides: SQLite gives all, and PostgreSQL an error."""
    async with opened("SQLAlchemySession", database, tmp_path) as (ours, theirs):
        for store in (ours, theirs):
            await store.call(0, "add_items", ([OBJECT],))
        assert await ours.call(0, "get_items", (-1,)) == [OBJECT]
        wanted = [OBJECT] if database.kind == "sqlite" else DBAPIError
        assert await outcome_of(theirs.call(0, "get_items", (-1,))) == wanted


async def test_an_id_must_be_a_key(database: Database) -> None:
    """Theirs takes any text."""
    async with database.open() as ledger:
        for wrong in ("", "x" * 600):
            with pytest.raises(ChatLedgerError):
                await ChatLedgerSession(wrong, ledger).add_items([OBJECT])
