"""An open event stream is authenticated again, so that a withdrawn token does not read on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import Request

from chatledger import ChatMessage, Ledger
from chatledger.server import Caller, TokenFile, create_app, watch
from chatledger.server.answers import event_stream
from tests.conftest import Database
from tests.server.conftest import client_of, until

AS_SERVED = watch.EVERY
OFTEN = 0.05
"""The seconds between two looks in these tests."""


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "EVERY", OFTEN)


@pytest.fixture
async def thread(ledger: Ledger) -> str:
    await ledger.user("ada").threads.create("t")
    return "/v1/threads/t/events"


def the_problem(response: httpx.Response) -> Any:
    """The data of the stream's last event, which is a problem."""
    lines = response.text.strip().splitlines()
    assert "event: problem" in lines
    return json.loads(next(line for line in reversed(lines) if line.startswith("data: "))[6:])


def test_a_stream_is_authenticated_as_often_as_it_sends_a_comment() -> None:
    assert AS_SERVED == event_stream.PING == 15


async def test_the_stream_of_a_withdrawn_token_ends(ledger: Ledger, thread: str, tmp_path: Path) -> None:
    tokens = TokenFile.create(tmp_path / "tokens.json")
    token = tokens.add(Caller("ada"))
    app = create_app(ledger, authenticate=tokens)
    async with client_of(app, None, Authorization=f"Bearer {token}") as ada, asyncio.timeout(20):
        reading = asyncio.create_task(ada.get(thread))
        await until(lambda: bool(app.state.server.waits))
        caller = tokens.find(token)
        assert caller is not None
        assert caller.token_id is not None
        tokens.revoke(caller.token_id)
        assert the_problem(await reading)["type"] == "urn:chatledger:Unauthenticated"
    assert not app.state.server.streams


async def test_a_stream_ends_too_if_its_thread_never_rests(database: Database) -> None:
    seen = 0

    async def twice(request: Request) -> Caller | None:
        nonlocal seen
        seen += 1
        return Caller("ada") if seen < 3 else None

    async with database.open() as ledger, asyncio.timeout(30):
        await ledger.user("ada").threads.create("t")
        app = create_app(ledger, authenticate=twice)
        async with client_of(app, None) as ada:
            reading = asyncio.create_task(ada.get("/v1/threads/t/events"))
            while not reading.done():
                await ledger.messages.append("t", [ChatMessage(role="user", content="more")])
            assert the_problem(await reading)["type"] == "urn:chatledger:Unauthenticated"
    assert seen == 3


async def test_a_stream_of_another_caller_ends_so_that_its_client_connects_again(ledger: Ledger, thread: str) -> None:
    callers = iter([Caller("ada", scope="write"), Caller("ada", scope="write"), Caller("ada", scope="read")])

    async def changing(request: Request) -> Caller | None:
        return next(callers)

    async with client_of(create_app(ledger, authenticate=changing), None) as ada, asyncio.timeout(20):
        assert "event:" not in (await ada.get(thread)).text
    assert list(callers) == []


async def test_a_stream_ends_if_nobody_can_say_who_reads(
    ledger: Ledger, thread: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[Request] = []

    async def failing(request: Request) -> Caller | None:
        asked.append(request)
        if len(asked) > 1:
            raise RuntimeError("a secret of the database")
        return Caller("ada")

    async def hanging(request: Request) -> Caller | None:
        asked.append(request)
        if len(asked) > 1:
            await asyncio.sleep(60)
        return Caller("ada")

    for authenticate in (failing, hanging):
        asked.clear()
        async with client_of(create_app(ledger, authenticate=authenticate), None) as ada, asyncio.timeout(20):
            response = await ada.get(thread)
        assert the_problem(response)["type"] == "urn:chatledger:ServerError"
        assert "secret" not in response.text
    assert "could not be authenticated again" in caplog.text


async def test_a_broken_file_of_tokens_ends_the_stream_with_its_problem(
    ledger: Ledger, thread: str, tmp_path: Path
) -> None:
    path = tmp_path / "tokens.json"
    tokens = TokenFile.create(path)
    app = create_app(ledger, authenticate=tokens)
    async with client_of(app, None, Authorization=f"Bearer {tokens.add(Caller('ada'))}") as ada, asyncio.timeout(20):
        reading = asyncio.create_task(ada.get(thread))
        await until(lambda: bool(app.state.server.waits))
        path.write_text("{")
        assert the_problem(await reading)["type"] == "urn:chatledger:TokensUnreadable"
