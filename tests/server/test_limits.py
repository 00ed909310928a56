"""What one client may take: the size of a body and of a page, open streams, and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, event

from chatledger import ChatMessage, InvalidArgument, Ledger
from chatledger.server import ServerLimits, create_app
from tests.server.conftest import by_header, client_of, json_of, until


async def in_pieces(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 1000):
        yield b" " * 1000


async def test_a_body_beyond_the_limit_is_refused_and_stores_nothing(ledger: Ledger) -> None:
    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(body=10_000))
    async with client_of(app) as client:
        body = {"messages": [{"role": "user", "content": "x" * 10_000}], "create": True}
        refused = await client.post("/v1/threads/t/messages", json=body)
        assert json_of(refused, 413)["type"] == "urn:chatledger:BodyTooLarge"
        chunked = await client.post("/v1/threads/t/messages", content=in_pieces(20_000))
        assert json_of(chunked, 413)["type"] == "urn:chatledger:BodyTooLarge"
        assert await ledger.threads.count() == 0
        json_of(await client.post("/v1/threads", json={"metadata": {"a": "x" * 9_000}}), 201)


@pytest.mark.parametrize("path", ["/v1/threads", "/v1/runs", "/v1/feedback", "/v1/threads/t/messages"])
async def test_a_page_beyond_the_limit_is_refused(ledger: Ledger, path: str) -> None:
    await ledger.threads.create("t")
    async with client_of(create_app(ledger, authenticate=by_header, limits=ServerLimits(page=20))) as client:
        for limit in (21, 0, -1):
            assert json_of(await client.get(path, params={"limit": limit}), 400)["argument"] == "limit"
        json_of(await client.get(path, params={"limit": 20}))


async def test_a_page_has_at_most_50_items_by_default_and_never_more_than_the_limit(ledger: Ledger) -> None:
    for number in range(60):
        await ledger.threads.create(str(number))
    for limits, most in ((ServerLimits(), 50), (ServerLimits(page=20), 20)):
        async with client_of(create_app(ledger, authenticate=by_header, limits=limits)) as client:
            assert len(json_of(await client.get("/v1/threads"))["items"]) == most


async def test_a_page_of_fifty_long_threads_is_one_statement(client: httpx.AsyncClient, ledger: Ledger) -> None:
    for number in range(51):
        words = [ChatMessage(role="user", content=f"{number}/{line}") for line in range(60)]
        await ledger.messages.append(f"t{number}", words, create=True)
    seen: list[str] = []

    def listen(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        page = json_of(await client.get("/v1/threads"))
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    assert [one["preview"] for one in page["items"]] == [f"{number}/59" for number in range(50, 0, -1)]
    assert page["next_cursor"]
    assert len(seen) == 1


async def test_streams_beyond_the_limit_are_refused_until_one_ends(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(streams=2, stream_seconds=0.3))
    async with client_of(app) as client:
        open_ones = [asyncio.create_task(client.get("/v1/threads/t/events")) for _ in range(2)]
        await until(lambda: app.state.server.streams.total() == 2)
        refused = await client.get("/v1/threads/t/events")
        assert json_of(refused, 503)["type"] == "urn:chatledger:Busy"
        assert int(refused.headers["Retry-After"]) > 0
        assert (await client.get("/v1/threads/none/events")).status_code == 404
        await asyncio.gather(*open_ones)
        assert app.state.server.streams.total() == 0
        assert (await client.get("/v1/threads/t/events")).status_code == 200
        assert app.state.server.streams.total() == 0


async def test_one_caller_cannot_take_all_streams(ledger: Ledger) -> None:
    for user in ("ada", "bob"):
        await ledger.user(user).threads.create(user)
    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(caller_streams=2, stream_seconds=0.5))
    async with client_of(app, "ada") as ada, client_of(app, "bob") as bob:
        open_ones = [asyncio.create_task(ada.get("/v1/threads/ada/events")) for _ in range(2)]
        await until(lambda: app.state.server.streams.total() == 2)
        json_of(await ada.get("/v1/threads/ada/events"), 503)
        assert (await bob.get("/v1/threads/bob/events")).status_code == 200
        await asyncio.gather(*open_ones)
    assert app.state.server.streams == {}


async def test_a_body_of_many_mistakes_gets_a_short_answer(client: httpx.AsyncClient) -> None:
    for body in ({"messages": [1] * 20_000}, {f"unknown{number}": 1 for number in range(5_000)}):
        refused = await client.post("/v1/threads/t/messages", json=body)
        assert len(json_of(refused, 400)["errors"]) <= 20


async def test_a_window_by_turns_has_a_limit(client: httpx.AsyncClient, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    assert json_of(await client.get("/v1/threads/t/messages?turns=201"), 400)["argument"] == "turns"
    json_of(await client.get("/v1/threads/t/messages?turns=200"))
    json_of(await client.get("/v1/threads/t/messages?tokens=1000001"), 400)


async def test_a_request_that_takes_too_long_is_answered(ledger: Ledger) -> None:
    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(request_seconds=0.2))

    async def trickle() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    async with client_of(app) as client:
        refused = await client.post("/v1/threads", content=trickle())
        assert json_of(refused, 503)["type"] == "urn:chatledger:Timeout"
        assert refused.headers["Retry-After"] == "1"


async def test_a_stream_outlives_the_time_of_a_request(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    limits = ServerLimits(request_seconds=2, stream_seconds=2.5)
    async with client_of(create_app(ledger, authenticate=by_header, limits=limits)) as client:
        stream = await client.get("/v1/threads/t/events")
    assert stream.status_code == 200
    assert ": connected" in stream.text


WRONG: list[dict[str, Any]] = [
    *({"body": 0}, {"body": 2**31}, {"body": 1.5}, {"body": True}),
    *({"page": 0}, {"page": 1_001}, {"page": None}),
    *({"streams": -1}, {"streams": 100_001}, {"caller_streams": -1}, {"caller_requests": 0}),
    *({"request_seconds": 0}, {"request_seconds": 86_401}, {"request_seconds": "30"}, {"stream_seconds": float("nan")}),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_limit_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        ServerLimits(**wrong)
