"""A proxy in front of PostgreSQL that counts round trips and cuts connections where it is told to.

It reads what the client sends as the protocol has it: a Sync, a Flush, a simple Query or the end of a
COPY is what the client then waits on, so each of them is a round trip.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal
from urllib.parse import urlsplit

TRIPS = b"SHQc"  # Sync, Flush, Query, and the end of the rows of a COPY
READY = b"Z\x00\x00\x00\x05"  # the end of an answer: what was sent is committed (a Flush is answered without it)
STARTUP = 196_608  # protocol 3.0; anything else in its place is a question (SSL?) that the server answers first

Cut = Literal["before", "after", "hang"]
"""before: the server never hears of the statement. after: it has answered, and the client never hears of that.
hang: it never hears of it, and the connection stays open.
"""


class Proxy:
    def __init__(self, host: str, port: int) -> None:
        self.url = ""
        self.round_trips = 0
        self.connections = 0
        self.refused = 0
        self.down = False
        self.lost = b""
        """What the client sent in the round trip that was cut."""
        self._server = (host, port)
        self._cut: tuple[Cut, int] | None = None
        self._pairs: set[asyncio.Task[None]] = set()

    def cut(self, where: Cut, trip: int) -> None:
        """Cut the connection of the next round trips but `trip` - 1: 1 is the next one. Once."""
        self._cut = (where, self.round_trips + trip)

    def spare(self) -> bool:
        """Cut nothing any more; whether the last cut was made."""
        made, self._cut = self._cut is None, None
        return made

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pairs.add(task)
        try:
            if self.down:
                self.refused += 1
            else:
                await self._join(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # asyncio's server logs a task that ends otherwise
        finally:
            self._pairs.discard(task)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        server_reader, server_writer = await asyncio.open_connection(*self._server)
        pair = _Pair(self, reader, writer, server_reader, server_writer)
        back = asyncio.create_task(pair.backward())
        try:
            await pair.forward()
        finally:
            back.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await back
            server_writer.transport.abort()

    def count(self) -> Cut | None:
        """One more round trip: whether it is the one to cut."""
        self.round_trips += 1
        if self._cut is None or self._cut[1] != self.round_trips:
            return None
        where, self._cut = self._cut[0], None
        return where

    async def close(self) -> None:
        for task in list(self._pairs):
            task.cancel()
        await asyncio.gather(*self._pairs, return_exceptions=True)


class _Pair:
    """One client and its server connection."""

    def __init__(
        self,
        proxy: Proxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._client = reader, writer
        self._server = server_reader, server_writer
        self._swallow: asyncio.Event | None = None  # set once the answer that nobody gets to hear is complete
        self._ready = READY

    async def forward(self) -> None:
        await self._startup()
        reader, writer = self._client[0], self._server[1]
        pending = b""
        while True:
            kind, message = await _message(reader)
            pending += message
            if kind not in TRIPS and kind != b"X":
                continue
            cut = self._proxy.count() if kind in TRIPS else None
            if cut is not None:
                self._proxy.lost = pending
            if cut == "hang":
                await asyncio.Event().wait()
            if cut == "before":
                return
            if cut == "after":
                self._swallow, self._ready = asyncio.Event(), b"" if kind == b"H" else READY
            writer.write(pending)
            pending = b""
            await writer.drain()
            if self._swallow is not None:
                await self._swallow.wait()
                return

    async def _startup(self) -> None:
        while True:
            head = await self._client[0].readexactly(4)
            body = await self._client[0].readexactly(int.from_bytes(head, "big") - 4)
            self._server[1].write(head + body)
            if int.from_bytes(body[:4], "big") == STARTUP:
                return

    async def backward(self) -> None:
        reader, writer = self._server[0], self._client[1]
        while chunk := await reader.read(65_536):
            if self._swallow is not None:
                if self._ready in chunk:
                    self._swallow.set()
                continue
            writer.write(chunk)
            await writer.drain()
        writer.transport.abort()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[Proxy]:
    """A proxy on loopback in front of the server of the URL; its own `url` leads through it."""
    address = urlsplit(url)
    proxy = Proxy(address.hostname or "127.0.0.1", address.port or 5432)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    user = f"{address.username}@" if address.username else ""
    proxy.url = address._replace(netloc=f"{user}127.0.0.1:{port}").geturl()
    try:
        yield proxy
    finally:
        listener.close()
        await proxy.close()
