"""A proxy in front of PostgreSQL that drops a connection between any two messages of the protocol, in either direction.

Cut while the client speaks, the server has heard the messages before and no other; cut while the server answers, it
has heard and done all, and the client knows of the answers before and no other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

Side = Literal["client", "server"]
_SSL = 80_877_103  # "do you speak TLS?": the server answers with one byte that is no message


@dataclass(frozen=True)
class Boundary:
    """After that number of further messages of that side."""

    side: Side
    after: int


class BoundaryProxy:
    def __init__(self, host: str, port: int) -> None:
        self.url = ""
        self.passed = {"client": 0, "server": 0}
        self.kinds: list[str] = []
        """Which messages passed since `watch`, as "client B", "server 2"."""
        self._server = (host, port)
        self._cut: tuple[Side, int] | None = None
        self._pairs: set[asyncio.Task[None]] = set()

    def watch(self) -> None:
        self.kinds.clear()

    def cut(self, boundary: Boundary) -> None:
        """Once."""
        self._cut = boundary.side, self.passed[boundary.side] + boundary.after

    @property
    def is_cut(self) -> bool:
        return self._cut is None

    def spare(self) -> bool:
        """Cut nothing any more; whether the cut was made."""
        made, self._cut = self._cut is None, None
        return made

    def stop_here(self, side: Side, kind: bytes) -> bool:
        """Whether to cut before this message; it counts as passed otherwise."""
        if self._cut == (side, self.passed[side]):
            self._cut = None
            return True
        self.passed[side] += 1
        self.kinds.append(f"{side} {kind.decode()}")
        return False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pairs.add(task)
        try:
            await self._join(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # asyncio's server logs a task that ends otherwise
        finally:
            self._pairs.discard(task)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self._server)
        asked = asyncio.Event()
        ways = [
            asyncio.create_task(self._forward(reader, server_writer, asked)),
            asyncio.create_task(self._backward(server_reader, writer, asked)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            server_writer.close()  # not aborted, so that it receives what was sent to it

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: asyncio.Event) -> None:
        while True:
            head = await reader.readexactly(4)
            body = await reader.readexactly(int.from_bytes(head, "big") - 4)
            if self.stop_here("client", b"0"):
                return
            writer.write(head + body)
            if int.from_bytes(body[:4], "big") != _SSL:
                break
            asked.set()
        await self._copy("client", reader, writer)

    async def _backward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: asyncio.Event) -> None:
        first = await reader.readexactly(1)
        if asked.is_set():
            if self.stop_here("server", b"N"):
                return
            writer.write(first)
            first = b""
        await self._copy("server", reader, writer, first)

    async def _copy(
        self, side: Side, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes = b""
    ) -> None:
        while True:
            head = first + await reader.readexactly(5 - len(first))
            body = await reader.readexactly(int.from_bytes(head[1:], "big") - 4)
            if self.stop_here(side, head[:1]):
                return
            writer.write(head + body)
            await writer.drain()
            first = b""

    async def close(self) -> None:
        for task in list(self._pairs):
            task.cancel()
        await asyncio.gather(*self._pairs, return_exceptions=True)


@asynccontextmanager
async def bounded(url: str) -> AsyncIterator[BoundaryProxy]:
    """A proxy on loopback in front of the server of the URL; its own `url` leads through it."""
    address = urlsplit(url)
    proxy = BoundaryProxy(address.hostname or "127.0.0.1", address.port or 5432)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    user = f"{address.username}@" if address.username else ""
    proxy.url = address._replace(netloc=f"{user}127.0.0.1:{port}").geturl()
    try:
        yield proxy
    finally:
        listener.close()
        with contextlib.suppress(asyncio.CancelledError):
            await proxy.close()
