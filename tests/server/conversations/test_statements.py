"""A page of items costs the same in a conversation of any length."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from openai import AsyncOpenAI

from chatledger import ChatMessage, Ledger, Thread
from chatledger.repositories import scope_of
from chatledger.server import create_app
from chatledger.storage.drivers import sqlite
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from tests.conftest import Database
from tests.faults.proxy import proxied
from tests.server.conftest import by_header
from tests.server.conversations.conftest import openai_of

LENGTHS = {"short": 100, "long": 100_000}
_STEPS = 100
"""SQLite counts the steps of its machine in hundreds."""

Call = Callable[[AsyncOpenAI, str, int], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "newest": lambda openai, name, n: openai.conversations.items.list(name),
    "oldest": lambda openai, name, n: openai.conversations.items.list(name, order="asc"),
    "before an item": lambda openai, name, n: openai.conversations.items.list(name, after=f"msg_{LENGTHS[name] - 10}"),
    "after an item": lambda openai, name, n: openai.conversations.items.list(name, after="msg_50", order="asc"),
    "one": lambda openai, name, n: openai.conversations.items.retrieve("msg_50", conversation_id=name),
    "append": lambda openai, name, n: openai.conversations.items.create(
        name, items=[{"role": "user", "content": "more"}]
    ),
    "delete": lambda openai, name, n: openai.conversations.items.delete(f"msg_{60 + n}", conversation_id=name),
}
"""Each call is made several times, with another number."""


async def fill(ledger: Ledger) -> None:
    now = datetime.now(UTC)
    for name, length in LENGTHS.items():
        thread = Thread(thread_id=name, kind="conversation", rules="lenient", created_at=now, active_at=now)
        messages = [
            ChatMessage(role="user", content=str(number), message_id=f"msg_{number}") for number in range(length)
        ]
        await load_threads(scope_of(ledger), [prepare_thread(scope_of(ledger), thread, messages)])


async def test_sqlite_runs_the_same_statements_and_as_many_steps(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    steps: list[None] = []
    connect = sqlite._connect

    def traced(path: str, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.set_trace_callback(lambda statement: statements.append(statement.split()[0]))
        connection.set_progress_handler(lambda: steps.append(None), _STEPS)
        return connection

    monkeypatch.setattr(sqlite, "_connect", traced)
    async with sqlite_database.open() as ledger:
        await fill(ledger)
        async with openai_of(create_app(ledger, authenticate=by_header)) as openai:
            for what, call in CALLS.items():
                ran: dict[str, list[str]] = {}
                took: dict[str, int] = {}
                for n, name in enumerate(3 * [*LENGTHS]):  # first calls open connections and fill the cache of tips
                    statements.clear()
                    steps.clear()
                    await call(openai, name, n)
                    ran[name], took[name] = [one for one in statements if one != "PRAGMA"], len(steps)
                assert ran["long"] == ran["short"], what
                assert took["long"] <= 2 * took["short"] + 10, what


async def test_postgresql_makes_the_same_round_trips(pg_database: Database) -> None:
    async with pg_database.open() as ledger:
        await fill(ledger)
    async with (
        proxied(pg_database.url) as proxy,
        Ledger.open(proxy.url) as ledger,
        openai_of(create_app(ledger, authenticate=by_header)) as openai,
    ):
        await openai.conversations.create(items=[{"role": "user", "content": "hello"}])
        for what, call in CALLS.items():
            trips: dict[str, int] = {}
            for n, name in enumerate(3 * [*LENGTHS]):  # first calls prepare statements and fill the cache of tips
                before = proxy.round_trips
                await call(openai, name, n)
                trips[name] = proxy.round_trips - before
            assert trips["long"] == trips["short"], what
