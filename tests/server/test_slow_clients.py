"""Clients that are slow, or gone: the server answers the others, and gets back what they held."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import httpx
import pytest
from fastapi import FastAPI

from chatledger import ChatMessage, Ledger
from chatledger.server import ServerLimits, create_app
from chatledger.server.protocol import Protocol
from tests.server.conftest import by_header, json_of, listening, until

LIMITS = ServerLimits(streams=20, request_seconds=1)


@pytest.fixture
def limited(ledger: Ledger) -> FastAPI:
    return create_app(ledger, authenticate=by_header, limits=LIMITS)


@pytest.fixture
def patient(ledger: Ledger) -> FastAPI:
    """It has time enough to begin a long answer on a busy machine."""
    return create_app(ledger, authenticate=by_header, limits=ServerLimits(request_seconds=8))


async def send(port: int, text: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(text.replace("\n", "\r\n").encode())
    return reader, writer


READ = b"GET /v1/threads/t/messages HTTP/1.1\r\nHost: localhost\r\nX-User: *\r\n\r\n"
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


async def test_a_page_that_nobody_reads_is_not_kept(
    patient: FastAPI, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood in the buffer of its connection, for as long as the client liked."""
    transports: list[asyncio.Transport] = []
    made = Protocol.connection_made

    def noting(protocol: Protocol, transport: asyncio.Transport) -> None:
        transports.append(transport)
        made(protocol, transport)

    monkeypatch.setattr(Protocol, "connection_made", noting)
    for _ in range(2):
        await ledger.messages.append("t", [ChatMessage(role="user", content="x" * 3_900_000)], create=True)
    async with listening(patient) as port:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(socket.socket()) for _ in range(3)]
            for client in clients:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.connect(("127.0.0.1", port))
                client.sendall(READ)
            await until(lambda: len(transports) == 3 and all(one.get_write_buffer_size() > 0 for one in transports))
            assert max(one.get_write_buffer_size() for one in transports) < 300_000
            await until(lambda: all(one.is_closing() for one in transports))


async def test_a_slow_client_gets_its_whole_page(patient: FastAPI, ledger: Ledger) -> None:
    long = ChatMessage(role="user", content="x" * 500_000)
    await ledger.messages.append("t", [long, long], create=True)
    async with listening(patient) as port:
        reader, writer = await send(port, READ.decode().replace("\r\n", "\n"))
        received = b""
        while not received.endswith(b"}"):
            received += await reader.read(20_000)
            await asyncio.sleep(0.01)
        writer.close()
    assert received.count(b"x" * 500_000) == 4  # two messages, each with its words as content and as text


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
