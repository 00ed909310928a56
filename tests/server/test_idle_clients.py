"""Connections on which nothing is asked: they keep nobody else from being answered."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import httpx
import pytest
from fastapi import FastAPI

from chatledger import Ledger
from chatledger.server import protocol
from tests.server.conftest import json_of, listening

ASKS = b"GET /v1/threads/t HTTP/1.1\r\nHost: localhost\r\nX-User: *\r\n\r\n"


@asynccontextmanager
async def connected(port: int, sends: bytes = b"") -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sends)
    try:
        yield reader
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(10):
            return await reader.read() == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("sends", [b"", b"GET /v1/me HTTP/1.1\r\nHost: loc"], ids=["nothing", "half a head"])
async def test_a_head_that_does_not_come_ends_the_connection(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, sends: bytes
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    async with listening(app) as port, connected(port, sends) as reader:
        assert await is_closed(reader)


async def test_the_head_of_a_further_request_has_to_come_too(
    app: FastAPI, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ledger.threads.create("t")
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    async with listening(app) as port, connected(port, ASKS + ASKS[:30]) as reader:
        assert (await reader.readline()).split()[1] == b"200"
        async with asyncio.timeout(10):
            await reader.read()  # the rest of the answer, and the end


async def test_a_request_whose_head_came_may_take_longer(
    app: FastAPI, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ledger.threads.create("t")
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    body = b'{"messages": [{"role": "user", "content": "?"}]}'
    head = b"POST /v1/threads/t/messages HTTP/1.1\r\nHost: localhost\r\nX-User: *\r\n"
    head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with listening(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + body[:20])
        await asyncio.sleep(0.5)
        writer.write(body[20:])
        assert (await reader.readline()).split()[1] == b"201"
        writer.close()
        await writer.wait_closed()


async def test_a_new_connection_ends_the_one_that_waits_the_longest(
    app: FastAPI, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They held all places, and everybody else got 503."""
    await ledger.threads.create("t")
    monkeypatch.setattr(protocol, "MOST_CONNECTIONS", 10)
    async with listening(app) as port, AsyncExitStack() as stack:
        followed = await stack.enter_async_context(connected(port, ASKS.replace(b"/t HTTP", b"/t/events HTTP")))
        assert (await followed.readline()).split()[1] == b"200"
        idle = [await stack.enter_async_context(connected(port)) for _ in range(30)]
        for _ in range(3):
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"X-User": "*"}) as client:
                assert json_of(await client.get("/v1/threads/t"))["thread_id"] == "t"
        assert all([await is_closed(reader) for reader in idle[:20]])
        assert not followed.at_eof()


async def test_a_new_connection_ends_one_whose_body_does_not_come(
    app: FastAPI, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It kept its place for 30 seconds. A login needs no token."""
    await ledger.threads.create("t")
    monkeypatch.setattr(protocol, "MOST_CONNECTIONS", 10)
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 60)
    half = b"POST /v1/threads HTTP/1.1\r\nHost: localhost\r\nX-User: *\r\nContent-Type: application/json\r\n"
    half += b"Content-Length: 10\r\n\r\n{"
    async with listening(app) as port, AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(connected(port, half)) for _ in range(10)]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"X-User": "*"}) as client:
            assert json_of(await client.get("/v1/threads/t"))["thread_id"] == "t"
        ends = [asyncio.create_task(is_closed(reader)) for reader in slow]
        ended, others = await asyncio.wait(ends, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result() for task in ended] == [True]
        for task in others:
            task.cancel()


async def test_connections_that_come_in_one_turn_of_the_loop_end_as_many_others(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them ended the same one, which was still listed."""
    monkeypatch.setattr(protocol, "MOST_CONNECTIONS", 10)
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 60)
    async with listening(app) as port, AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(connected(port)) for _ in range(10)]
        sockets = [stack.enter_context(socket.socket()) for _ in range(8)]
        for one in sockets:  # without a turn of the loop, in which the server accepts all of them
            one.connect(("127.0.0.1", port))
        assert all([await is_closed(reader) for reader in idle[:8]])


async def test_a_request_on_its_way_is_answered_when_the_server_is_told_to_stop(
    app: FastAPI, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client cannot know. Its idle connection was closed, and its request got a reset instead of an answer."""
    await ledger.threads.create("t")
    monkeypatch.setattr(protocol, "STOP_SECONDS", 10)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        server = listening(app)
        reader, writer = await asyncio.open_connection("127.0.0.1", port := await server.__aenter__())
        writer.write(ASKS)
        assert (await reader.readuntil(b"\r\n\r\n")).split()[1] == b"200"
        tasks.create_task(server.__aexit__(None, None, None))
        with suppress(ConnectionRefusedError):
            while True:
                async with connected(port):
                    await asyncio.sleep(0.01)
        writer.write(ASKS)
        assert b"HTTP/1.1 200" in await reader.read()  # and the connection ends
        writer.close()
        await writer.wait_closed()


async def test_a_server_that_is_told_to_stop_does_not_wait_for_connections_without_a_request(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "STOP_SECONDS", 0.05)
    async with asyncio.timeout(20), AsyncExitStack() as stack:
        async with listening(app) as port:
            idle = await stack.enter_async_context(connected(port))
            asked = await stack.enter_async_context(connected(port, ASKS))
            assert await asked.readline()
        assert await is_closed(idle)
        await asked.read()
