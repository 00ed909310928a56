"""A transaction pooler in front of PostgreSQL, at its most unkind: each transaction gets another server connection.

What a client sends up to the server's "ready, idle" is one transaction; the connection that served it goes to the end
of the queue, behind the others. So whatever a client leaves in a session (a prepared statement, a setting, a lock) is
not there for its next transaction, and is there for somebody else's.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from tests.faults.proxy import STARTUP

CANCEL = 80_877_102  # what stands in a start-up message's place to end another connection's statement
READY = b"Z"
IDLE = b"I"


class TransactionPooler:
    def __init__(self, host: str, port: int, size: int) -> None:
        self.url = ""
        self.transactions = 0
        self.moves = 0
        """Transactions that were served by another connection than their client's one before."""
        self._server = (host, port)
        self._size = size
        self._idle: deque[_Backend] = deque()
        self._freed = asyncio.Condition()
        self._greeting: bytes | None = None
        self._clients: dict[int, _Client] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, statement: str) -> list[list[list[str]]]:
        """Run a statement on every server connection, all of which must be idle, and give each one's rows."""
        assert len(self._idle) == self._size, "a client still holds a server connection"
        return [await backend.ask(statement) for backend in self._idle]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # asyncio's server logs a task that ends otherwise
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            startup = await _startup(reader)
            code = int.from_bytes(startup[4:8], "big")
            if code == CANCEL:
                await self._cancel(int.from_bytes(startup[8:12], "big"))
                return
            if code == STARTUP:
                break
            writer.write(b"N")  # no SSL here
        async with self._freed:
            if self._greeting is None:
                await self._fill(startup)
        number = next(self._numbers)
        key = number.to_bytes(4, "big")
        writer.write(b"".join([self._greeting or b"", b"K\x00\x00\x00\x0c", key, key, b"Z\x00\x00\x00\x05I"]))
        client = self._clients[number] = _Client(self, reader, writer)
        try:
            await client.serve()
        finally:
            del self._clients[number]

    async def _fill(self, startup: bytes) -> None:
        """Open the server connections with the first client's start-up message; the others' are the same."""
        for _ in range(self._size):
            backend = await _Backend.open(self._server, startup)
            self._greeting = backend.greeting
            self._idle.append(backend)
        self._startup = startup

    async def take(self, last: _Backend | None) -> _Backend:
        """The connection that has been idle longest, but not the client's last one while there is another."""
        async with self._freed:
            await self._freed.wait_for(lambda: self._idle)
            if self._idle[0] is last and len(self._idle) > 1:
                self._idle.rotate(-1)
            backend = self._idle.popleft()
        self.transactions += 1
        self.moves += last is not None and backend is not last
        return backend

    async def give_back(self, backend: _Backend, *, clean: bool) -> None:
        """One whose client went away in the middle of a transaction is closed, and another opened in its place."""
        if not clean:
            backend.close()
            backend = await _Backend.open(self._server, self._startup)
        async with self._freed:
            self._idle.append(backend)
            self._freed.notify()

    async def _cancel(self, number: int) -> None:
        client = self._clients.get(number)
        if client is None or client.backend is None:
            return
        _, writer = await asyncio.open_connection(*self._server)
        writer.write((16).to_bytes(4, "big") + CANCEL.to_bytes(4, "big") + client.backend.key)
        await writer.drain()
        writer.close()

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for backend in self._idle:
            backend.close()


class _Client:
    """One client, and the server connection that it has while a transaction of its own is open."""

    def __init__(self, pooler: TransactionPooler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.backend: _Backend | None = None
        self._pooler = pooler
        self._reader = reader
        self._writer = writer

    async def serve(self) -> None:
        last: _Backend | None = None
        pending = asyncio.create_task(_message(self._reader))
        try:
            while True:
                kind, message = await pending
                if kind == b"X":
                    return
                self.backend = await self._pooler.take(last)
                last = self.backend
                pending = await self._transaction(self.backend, message)
                await self._pooler.give_back(self.backend, clean=True)
                self.backend = None
        finally:
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)
            if self.backend is not None:
                await asyncio.shield(self._pooler.give_back(self.backend, clean=False))

    async def _transaction(self, backend: _Backend, message: bytes) -> asyncio.Task[tuple[bytes, bytes]]:
        """Carry messages both ways until the server is idle; gives the read that is under way for the next message."""
        backend.writer.write(message)
        upwards = asyncio.create_task(_message(self._reader))
        downwards = asyncio.create_task(_message(backend.reader))
        try:
            while True:
                await asyncio.wait({upwards, downwards}, return_when=asyncio.FIRST_COMPLETED)
                if upwards.done():
                    backend.writer.write(upwards.result()[1])
                    upwards = asyncio.create_task(_message(self._reader))
                if downwards.done():
                    kind, answer = downwards.result()
                    self._writer.write(answer)
                    if kind == READY and answer[5:] == IDLE and not upwards.done():
                        return upwards
                    downwards = asyncio.create_task(_message(backend.reader))
        except BaseException:
            upwards.cancel()
            await asyncio.gather(upwards, return_exceptions=True)
            raise
        finally:
            downwards.cancel()
            await asyncio.gather(downwards, return_exceptions=True)


class _Backend:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, greeting: bytes, key: bytes) -> None:
        self.reader = reader
        self.writer = writer
        self.greeting = greeting
        """The server's greeting to a new client, without the cancellation key and the final "ready"."""
        self.key = key

    @classmethod
    async def open(cls, server: tuple[str, int], startup: bytes) -> _Backend:
        reader, writer = await asyncio.open_connection(*server)
        writer.write(startup)
        greeting, key = b"", b""
        while True:
            kind, message = await _message(reader)
            if kind == b"K":
                key = message[5:]
            elif kind == READY:
                return cls(reader, writer, greeting, key)
            else:
                greeting += message

    async def ask(self, statement: str) -> list[list[str]]:
        text = statement.encode() + b"\0"
        self.writer.write(b"Q" + (len(text) + 4).to_bytes(4, "big") + text)
        rows = []
        while True:
            kind, message = await _message(self.reader)
            assert kind != b"E", message
            if kind == b"D":
                rows.append(list(_fields(message[7:])))
            if kind == READY:
                return rows

    def close(self) -> None:
        self.writer.transport.abort()


def _fields(data: bytes) -> list[str]:
    fields = []
    while data:
        length = int.from_bytes(data[:4], "big")
        fields.append(data[4 : 4 + length].decode())
        data = data[4 + length :]
    return fields


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)


async def _startup(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(4)
    return head + await reader.readexactly(int.from_bytes(head, "big") - 4)


@asynccontextmanager
async def pooled(url: str, *, size: int = 3) -> AsyncIterator[TransactionPooler]:
    """A pooler on loopback with that many connections to the server of the URL; its own `url` leads through it."""
    address = urlsplit(url)
    pooler = TransactionPooler(address.hostname or "127.0.0.1", address.port or 5432, size)
    listener = await asyncio.start_server(pooler.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    user = f"{address.username}@" if address.username else ""
    pooler.url = address._replace(netloc=f"{user}127.0.0.1:{port}").geturl()
    try:
        yield pooler
    finally:
        listener.close()
        await pooler.close()
