"""One page of 50 threads of 10,000 messages, over HTTP: its time, and the number of its statements."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx
from sqlalchemy import Engine, event
from starlette.requests import Request
from tests.server.conftest import serving

from benchmarks.http_client import Connection
from benchmarks.measure import Rounds, Sample, race
from benchmarks.progress import say
from benchmarks.report import milliseconds
from chatledger import ChatMessage, Ledger, Thread
from chatledger.repositories import scope_of
from chatledger.server import Caller, create_app
from chatledger.storage.repositories.bulk import load_threads, prepare_thread

THREADS = 50
MESSAGES = 10_000
TENANT = "lists"
ROUNDS = Rounds(count=200, seconds=10, warm_up=5)


def list_lines(url: str) -> list[tuple[str, str]]:
    say(f"{THREADS} threads of {MESSAGES:,} messages")
    asyncio.run(fill(url, MESSAGES))
    statements = asyncio.run(count_statements(url))
    with serving(url, "--tenant", TENANT) as running:
        page = asyncio.run(_race(running.url))
    figures = f"p50 {milliseconds(page.median)}, p99 {milliseconds(page.percentile(99))}, {statements} statement(s)"
    return [(f"{THREADS} threads of {MESSAGES:,}, one client", figures)]


async def fill(url: str, messages: int) -> None:
    """Threads of so many messages."""
    start = datetime.now(UTC) - timedelta(days=1)
    async with Ledger.open(url, tenant=TENANT) as ledger:
        for number in range(THREADS):
            thread = Thread(thread_id=f"long {number}", user_id="ada", created_at=start, active_at=start)
            roles = ("user", "assistant")
            written = [
                ChatMessage(role=roles[seq % 2], content=f"Message {seq}", created_at=start + timedelta(seconds=seq))
                for seq in range(messages)
            ]
            await load_threads(scope_of(ledger), [prepare_thread(scope_of(ledger), thread, written)])


async def count_statements(url: str) -> int:
    """The statements of the page. In this process, since the statements of another one cannot be seen."""

    async def authenticate(request: Request) -> Caller:
        return Caller(admin=True, tenant=TENANT)

    async with Ledger.open(url) as ledger:
        transport = httpx.ASGITransport(create_app(ledger, authenticate=authenticate))
        async with httpx.AsyncClient(transport=transport, base_url="http://local") as client:
            await client.get("/v1/threads")
            with _counted() as statements:
                assert len((await client.get("/v1/threads")).json()["items"]) == THREADS
    return len(statements)


@contextmanager
def _counted() -> Iterator[list[str]]:
    seen: list[str] = []

    def before(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", before)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", before)


async def _race(url: str) -> Sample:
    connection = Connection(url)

    async def page(_number: int) -> None:
        assert len((await connection.get("/v1/threads")).json["items"]) == THREADS

    sample = (await race({"page": page}, ROUNDS))["page"]
    connection.close()
    return sample
