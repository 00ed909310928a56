"""One caller does not take the server from the others, with whatever number of requests."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from chatledger import ChatMessage, Ledger, TextPart
from chatledger.models import weight
from chatledger.server import ServerLimits, create_app, state
from chatledger.server.requests import json_request
from chatledger.server.shares import HeldBodies, HeldBytes, Who
from tests.server.conftest import by_header, client_of, json_of, listening, until


def user_of(port: int, name: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"X-User": name}, limits=limits, timeout=60)


class Gate:
    """Holds the requests of eve that have a place, before they do anything."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = asyncio.Event()
        self.held = 0
        opened = state._opened

        async def holding(request: Request) -> Ledger:
            ledger = await opened(request)
            if request.headers["x-user"] == "eve":
                self.held += 1
                await self.opened.wait()
            return ledger

        monkeypatch.setattr(state, "_opened", holding)


async def test_a_caller_overtakes_the_many_searches_of_another(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("eve", "ada"):
        await ledger.user(name).messages.append(name, [ChatMessage(role="user", content="hello")], create=True)
    app = create_app(ledger, authenticate=by_header)
    gate, places = Gate(monkeypatch), app.state.server.places
    async with listening(app) as port, user_of(port, "eve") as eve, user_of(port, "ada") as ada:
        searches = [asyncio.create_task(eve.get("/v1/search/messages?q=hello")) for _ in range(60)]
        await until(lambda: places.requests.total() == 60)
        json_of(await ada.get("/v1/threads/ada/messages?limit=5"))
        json_of(await ada.post("/v1/threads/ada/messages", json={"messages": [{"role": "user", "content": "x"}]}), 201)
        assert gate.held == 8
        gate.opened.set()
        for answer in await asyncio.gather(*searches):
            assert len(json_of(answer)["items"]) == 1
    assert (places.requests, places.lines) == ({}, {})


async def test_a_caller_overtakes_the_many_long_answers_of_another(ledger: Ledger) -> None:
    """One thread writes all long answers, and the callers take turns."""
    long = [ChatMessage(role="user", content=[TextPart(text="a")] * 2_000)] * 3
    for name in ("eve", "ada"):
        await ledger.user(name).messages.append(name, long, create=True)
    opened, order = threading.Event(), list[str]()

    async def read(client: httpx.AsyncClient, name: str) -> None:
        json_of(await client.get(f"/v1/threads/{name}/messages?format=openai-chat"))
        order.append(name)

    async with listening(create_app(ledger, authenticate=by_header)) as port, user_of(port, "eve") as eve:
        weight._LONG_WORK.submit(opened.wait, 30)
        async with user_of(port, "ada") as ada, asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(read(eve, "eve"))
            await until(lambda: len(weight._LONG_WORK._waiting.get(Who("default", "eve", False), ())) == 8)
            tasks.create_task(read(ada, "ada"))
            await until(lambda: len(weight._LONG_WORK._waiting) == 2)
            opened.set()
    assert "ada" in order[:2]


async def test_bodies_that_wait_for_a_place_are_not_parsed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """540 of 120 kB took 1.3 GB once they were parsed."""
    await ledger.user("eve").threads.create("eve")
    app = create_app(ledger, authenticate=by_header)
    gate, places, parsed = Gate(monkeypatch), app.state.server.places, list[bytes]()
    read_body = json_request.read_body

    def reading(body: bytes) -> Any:
        parsed.append(body)
        return read_body(body)

    monkeypatch.setattr(json_request, "read_body", reading)
    body = {"messages": [{"role": "user", "content": "x"}]}
    async with listening(app) as port, user_of(port, "eve") as eve:
        posts = [asyncio.create_task(eve.post("/v1/threads/eve/messages", json=body)) for _ in range(20)]
        await until(lambda: places.requests.total() == 20 and gate.held == 8)
        assert len(parsed) == 8
        gate.opened.set()
        for answer in await asyncio.gather(*posts):
            assert answer.status_code == 201
    assert len(parsed) == 20
    assert (places.requests, places.lines) == ({}, {})


async def test_requests_of_a_caller_beyond_the_limit_wait_in_order(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tokens of a user have one share, and another user has another one."""
    at_work, most = 0, 0
    order: list[int] = []

    async def working(self: Any, ledger: Ledger) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.01)
        at_work -= 1

    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(caller_requests=2))
    monkeypatch.setattr("chatledger.server.state.State.require_keys", working)
    async with client_of(app, "eve") as eve, client_of(app, "ada") as ada:

        async def ask(number: int) -> None:
            assert (await eve.get("/v1/threads")).status_code == 200
            order.append(number)

        await asyncio.gather(*map(ask, range(10)))
        assert most == 2
        assert sorted(order) == list(range(10))
        await asyncio.gather(*map(ask, range(4)), *(ada.get("/v1/threads") for _ in range(4)))
        assert most == 4


async def test_a_place_is_given_back_however_a_request_ends(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(caller_requests=1, stream_seconds=0.3))
    async with client_of(app) as client:
        for _ in range(3):
            assert (await client.get("/v1/threads/none")).status_code == 404
            assert (await client.get("/v1/threads?limit=0")).status_code == 400
            assert (await client.post("/v1/threads", json={"title": 1})).status_code == 400
        streams = [asyncio.create_task(client.get("/v1/threads/t/events")) for _ in range(3)]
        await until(lambda: app.state.server.streams.total() == 3)
        assert (await client.get("/v1/threads/t")).status_code == 200
        await asyncio.gather(*streams)
    assert app.state.server.places.requests == {}
    assert app.state.server.places.lines == {}


async def test_a_request_whose_time_ends_while_it_waits_leaves_the_line(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = ServerLimits(caller_requests=1, request_seconds=2)
    app = create_app(ledger, authenticate=by_header, limits=limits)
    gate, places = Gate(monkeypatch), app.state.server.places
    async with client_of(app, "eve") as eve:
        for answer in await asyncio.gather(*(eve.get("/v1/threads") for _ in range(4))):
            assert json_of(answer, 503)["type"] == "urn:chatledger:Timeout"
            assert answer.headers["Retry-After"] == "1"
        assert (places.requests, places.lines) == ({}, {})
        gate.opened.set()
        json_of(await eve.get("/v1/threads"))


async def test_only_so_many_answers_of_a_caller_are_made_before_they_are_read(ledger: Ledger) -> None:
    long = ChatMessage(role="user", content="x" * 3_900_000)
    for _ in range(2):
        await ledger.messages.append("t", [long], create=True)
    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(caller_requests=3))
    places = app.state.server.places
    async with listening(app) as port, user_of(port, "ada") as ada:
        with _unread(port, 20):
            await until(lambda: places.requests.total() == 20)
            assert [line._value for line in places.lines.values()] == [0]
            json_of(await ada.get("/v1/threads"))
        await until(lambda: places.requests == {})


@contextlib.contextmanager
def _unread(port: int, count: int) -> Any:
    """Clients that ask for a page of 8 MiB and read nothing."""
    ask = b"GET /v1/threads/t/messages HTTP/1.1\r\nHost: localhost\r\nX-User: *\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", port))
            client.sendall(ask)
        yield


async def test_bodies_that_do_not_end_are_refused_beyond_the_share_of_their_caller(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("eve", "ada"):
        await ledger.user(name).threads.create(name)
    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(body=100_000))
    bodies: HeldBodies = app.state.server.bodies
    held: list[int] = []
    take = HeldBytes.take

    def noting(self: HeldBytes, size: int) -> bool:
        fit = take(self, size)
        held.append(bodies.of[self.who])
        return fit

    monkeypatch.setattr(HeldBytes, "take", noting)
    head = "POST /v1/threads/eve/messages HTTP/1.1\r\nHost: localhost\r\nX-User: eve\r\nContent-Length: 90001\r\n\r\n"
    async with listening(app) as port, user_of(port, "eve") as eve, user_of(port, "ada") as ada:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        for _, writer in opened:
            writer.write(head.encode() + b"x" * 90_000)
        await until(lambda: bodies.of.total() == 360_000)
        reader, refused = await asyncio.open_connection("127.0.0.1", port)
        refused.write(head.encode() + b"x" * 90_000)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert answer.startswith(b"http/1.1 503")
        assert b"retry-after: 1" in answer
        body = {"messages": [{"role": "user", "content": "x" * 80_000}]}
        assert json_of(await eve.post("/v1/threads/eve/messages", json=body), 503)["type"] == "urn:chatledger:Busy"
        json_of(await ada.post("/v1/threads/ada/messages", json=body), 201)
        for _, writer in [*opened, (reader, refused)]:
            writer.close()
        await until(lambda: bodies.of == {})
        json_of(await eve.post("/v1/threads/eve/messages", json=body), 201)
    assert max(held) <= 400_000
    assert bodies.of == {}


def test_all_callers_together_have_a_share_too() -> None:
    bodies = HeldBodies(most=10, most_of_caller=4)
    held = {who: HeldBytes(bodies, who) for who in (None, *(Who("default", name, False) for name in "abc"))}
    *three, c = held.values()
    for one in three:
        assert one.take(3)
        assert not one.take(2)
    assert not c.take(2)
    assert c.take(1)
    three[1].close()
    assert c.take(3)
    for one in (three[0], three[2], c):
        one.close()
    assert bodies.of == {}
