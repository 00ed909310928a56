"""Many event streams of a thread: what they cost, and what one holds that its client does not read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from chatledger import ChatMessage, Ledger
from chatledger.server import create_app
from chatledger.server.answers import event_stream
from chatledger.server.protocol import Protocol
from chatledger.server.routes import events
from chatledger.storage.follow import follower
from tests.server.conftest import by_header, client_of, listening, until

LONG = ChatMessage(role="user", content="x" * 3_900_000)
FOLLOW = b"GET /v1/threads/t/events HTTP/1.1\r\nHost: localhost\r\nX-User: *\r\n\r\n"


@pytest.fixture
async def app(ledger: Ledger) -> FastAPI:
    await ledger.threads.create("t")
    return create_app(ledger, authenticate=by_header)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often changes were read and encoded."""
    counted = {"reads": 0, "encodes": 0}

    def counting(module: Any, function: str, name: str) -> None:
        done = getattr(module, function)

        def count(*given: Any, **fields: Any) -> Any:
            counted[name] += 1
            return done(*given, **fields)

        monkeypatch.setattr(module, function, count)

    counting(follower, "read_changes", "reads")
    counting(event_stream, "to_json", "encodes")
    return counted


@contextlib.contextmanager
def connected(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Clients of the stream that keep as little as possible."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(count)]
        for client in clients:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", port))
            client.sendall(FOLLOW)
        yield clients


async def read_event(client: socket.socket) -> dict[str, str]:
    """The next event with data."""
    client.setblocking(False)
    loop, received = asyncio.get_running_loop(), b""
    async with asyncio.timeout(60):
        while b"\ndata: " not in received or not received.endswith(b"\n\n\r\n"):
            received += await loop.sock_recv(client, 1 << 20)
    text = b"".join(line for line in received.split(b"\r\n")[1::1]).decode()
    return dict(line.split(": ", 1) for line in text[text.rindex("event: ") :].strip().splitlines())


@contextlib.asynccontextmanager
async def waiting(app: FastAPI, count: int) -> AsyncIterator[list[socket.socket]]:
    """So many streams that wait for a change."""
    async with listening(app) as port:
        with connected(port, count) as clients:
            await until(lambda: len(app.state.server.waits) == count)
            await asyncio.sleep(0.5)  # each has read where it begins
            yield clients


async def test_a_change_is_read_and_encoded_once_for_all_streams(
    app: FastAPI, ledger: Ledger, counts: dict[str, int]
) -> None:
    async with waiting(app, 20) as clients:
        before = dict(counts)
        await ledger.messages.append("t", [ChatMessage(role="user", content="for all")])
        found = [await read_event(client) for client in clients]
        assert {json.loads(one["data"])["message"]["content"] for one in found} == {"for all"}
        assert len({one["id"] for one in found}) == 1
        assert counts["encodes"] - before["encodes"] == 1
        assert counts["reads"] - before["reads"] <= 3  # and where some read again before the rest did


async def test_a_stream_that_nobody_reads_holds_a_piece_of_an_event(
    app: FastAPI, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, counts: dict[str, int]
) -> None:
    transports: list[asyncio.Transport] = []
    made = Protocol.connection_made

    def noting(protocol: Protocol, transport: asyncio.Transport) -> None:
        transports.append(transport)
        made(protocol, transport)

    monkeypatch.setattr(Protocol, "connection_made", noting)
    async with waiting(app, 3):
        for _ in range(3):  # more than the kernel keeps for a socket
            await ledger.messages.append("t", [LONG])

        def full() -> bool:
            return all(one.get_write_buffer_size() > 0 for one in transports)

        await until(full)
        await asyncio.sleep(0.5)
        assert full()
        assert max(one.get_write_buffer_size() for one in transports) < 300_000
        assert counts["encodes"] <= 3


async def test_a_client_that_goes_while_its_event_is_sent_leaves_nothing(
    app: FastAPI, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """It left a hundred lines in the log, and its reading task."""
    with caplog.at_level(logging.WARNING):
        async with waiting(app, 5):
            for _ in range(3):
                await ledger.messages.append("t", [LONG])
            await asyncio.sleep(0.5)
        await until(lambda: app.state.server.streams.total() == 0)
    assert caplog.records == []
    assert not app.state.server.encoded._sent


async def test_an_idle_stream_sends_comments(app: FastAPI, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PING", 0.05)
    async with client_of(app) as client:
        reading = asyncio.create_task(client.get("/v1/threads/t/events"))
        await until(lambda: bool(app.state.server.waits))
        await asyncio.sleep(0.5)
        await ledger.messages.append("t", [ChatMessage(role="user", content="after a while")])
        await asyncio.sleep(1)
        app.state.server.drain()
        text = (await reading).text
    assert text.count(": ping\n\n") >= 2
    assert text.count("after a while") == 2  # once, as the message's content and as its text
