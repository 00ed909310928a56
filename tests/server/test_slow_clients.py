"""Clients that are slow, or gone: the server answers the others, and gets back what they held."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from fastapi import FastAPI

from chatledger import ChatMessage, Ledger
from chatledger.server import ServerLimits, create_app
from tests.server.conftest import by_header, json_of, listening, until

LIMITS = ServerLimits(streams=20, request_seconds=1)


@pytest.fixture
def limited(ledger: Ledger) -> FastAPI:
    return create_app(ledger, authenticate=by_header, limits=LIMITS)


async def send(port: int, text: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(text.replace("\n", "\r\n").encode())
    return reader, writer


FOLLOW = "GET /v1/threads/t/events HTTP/1.1\nHost: localhost\nX-User: *\n\n"


async def test_a_body_that_does_not_come_ends_in_503_and_keeps_nobody_waiting(limited: FastAPI, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    head = "POST /v1/threads/t/messages HTTP/1.1\nHost: localhost\nX-User: *\nContent-Length: 100\n\n{"
    async with listening(limited) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        slow = [await send(port, head) for _ in range(50)]
        assert json_of(await client.get("/v1/threads", headers={"X-User": "*"}))["items"]
        assert {(await reader.readline()).split()[1] for reader, _ in slow} == {b"503"}
        assert (await ledger.threads.get("t")).message_count == 0
        for _, writer in slow:
            writer.close()


async def test_a_client_that_does_not_read_its_stream_loses_it(limited: FastAPI, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    async with listening(limited) as port:
        _, writer = await send(port, FOLLOW)
        await until(lambda: limited.state.server.streams.total() == 1)
        for _ in range(20):  # more than the kernel keeps for a socket
            await ledger.messages.append("t", [ChatMessage(role="user", content="x" * 900_000)])
        await until(lambda: limited.state.server.streams.total() == 0)
        writer.close()


async def test_streams_that_are_dropped_make_room_for_others(limited: FastAPI, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    async with listening(limited) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        for _ in range(5):
            opened = [await send(port, FOLLOW) for _ in range(LIMITS.streams)]
            await until(lambda: limited.state.server.streams.total() == LIMITS.streams)
            refused = json_of(await client.get("/v1/threads/t/events", headers={"X-User": "*"}), 503)
            assert refused["type"] == "urn:chatledger:Busy"
            for _, writer in opened:
                writer.close()
            await until(lambda: limited.state.server.streams.total() == 0)
