"""The SDK's own sessions, moved in: its reader and ours then give the same items."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from agents.extensions.memory import SQLAlchemySession
from agents.memory import SQLiteSession
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import Ledger
from chatledger.adapters.openai_agents import ChatLedgerSession
from chatledger.transfer.import_other_store import StoreOptions
from tests.adapters.openai_agents.test_differential import Script, Store
from tests.transfer.other_stores import moved

NAMES = [f"s{number}" for number in range(8)]
OPTIONS = StoreOptions("openai-agents", table="my_messages", user_id="ada")


@asynccontextmanager
async def sqlite_sessions(path: Path) -> AsyncIterator[tuple[str, list[Any]]]:
    async with AsyncExitStack() as stack:
        sessions = []
        for name in NAMES:
            session = SQLiteSession(name, path, messages_table="my_messages")
            stack.callback(session.close)
            sessions.append(session)
        yield str(path), sessions


@asynccontextmanager
async def sqlalchemy_sessions(url: str) -> AsyncIterator[tuple[str, list[Any]]]:
    engine = create_async_engine(url)
    given = {"engine": engine, "create_tables": True, "messages_table": "my_messages"}
    yield url, [SQLAlchemySession(name, **given) for name in NAMES]
    await engine.dispose()


@pytest.fixture(params=["SQLiteSession", "SQLAlchemySession sqlite", "SQLAlchemySession postgresql"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Sessions of the SDK, and the URL of their database."""
    if request.param == "SQLiteSession":
        return sqlite_sessions(tmp_path / "source.db")
    if request.param.endswith("sqlite"):
        return sqlalchemy_sessions(f"sqlite+aiosqlite:///{tmp_path / 'source.db'}")
    return sqlalchemy_sessions(request.getfixturevalue("pg_url").replace("://", "+asyncpg://"))


async def test_the_sdk_s_reader_and_ours_give_the_same(ledger: Ledger, made: Any) -> None:
    async with made as (url, theirs):
        script, store = Script(random.Random(7)), Store(theirs)
        for _ in range(300):
            name, arguments = script.step()
            with suppress(TypeError):  # for an item that is no JSON
                await store.call(script.random.randrange(len(theirs)), name, arguments)
        lists = await compared(ledger, url, theirs)
        assert sum(map(bool, lists)) > 4
        for session in theirs:
            await session.add_items(script.items())
        later = await compared(ledger, url, theirs)
        assert sum(map(len, later)) > sum(map(len, lists))


async def compared(ledger: Ledger, url: str, theirs: list[Any]) -> list[Any]:
    report = await moved(ledger, url, OPTIONS)
    assert not report.failures
    expected = [await session.get_items() for session in theirs]
    ours = [ChatLedgerSession(name, ledger, user_id="ada") for name in NAMES]
    assert [await session.get_items() for session in ours] == expected
    again = await moved(ledger, url, OPTIONS)
    assert (again.unchanged, again.messages) == (again.threads, 0)
    return expected


async def test_an_imported_session_continues_in_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    async with sqlite_sessions(tmp_path / "source.db") as (url, (first, *_)):
        await first.add_items([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}])
        await moved(ledger, url, OPTIONS)
    ours = ChatLedgerSession(NAMES[0], ledger, user_id="ada")
    await ours.add_items([{"role": "user", "content": "Bye"}])
    assert (await ours.pop_item(), await ours.pop_item()) == (
        {"role": "user", "content": "Bye"},
        {"role": "assistant", "content": "Hello."},
    )
