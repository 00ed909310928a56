"""A SQLite file of our own: one writer in a thread of its own, readers beside it.

What costs on SQLite is not the database but the crossing from the event loop to a driver's thread, once for each
statement. So a whole call is sent across at once: writes to the one thread that holds the write connection, reads to a
small pool of threads with read-only connections. A database in memory has one connection for everything.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Self, TypeVar

from chatledger.errors import StorageError
from chatledger.models import Appended
from chatledger.storage.append.attempt import attempt, attempt_locked, attempt_on_memory
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.tip_cache import TipMemory
from chatledger.storage.databases.replica import START
from chatledger.storage.databases.sqlite_writer import Writer, WriterTransaction
from chatledger.storage.drivers.errors import translate
from chatledger.storage.drivers.sql import OneStatement, Sql
from chatledger.storage.drivers.sqlite import SqliteConnection
from chatledger.storage.drivers.urls import MEMORY

T = TypeVar("T")

READERS = 4


class SqliteDatabase:
    is_server = False
    one_loop = False

    def __init__(self, path: str) -> None:
        self._path = path
        self.one_connection = path == MEMORY
        self._tips = TipMemory()  # used in the writer's thread alone
        self._writer = Writer(path, self._tips)
        self._readers = None if path == MEMORY else ThreadPoolExecutor(READERS, thread_name_prefix="chatledger-reader")
        self._own = threading.local()
        self._connections: list[SqliteConnection] = []

    async def read(self, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        if self._readers is None:
            return await self._writer.submit(query)
        given: list[T] = []
        await asyncio.get_running_loop().run_in_executor(self._readers, self._read, query, given)
        return given.pop()

    async def fetch(self, statement: OneStatement[T]) -> T:
        return await self.read(statement.over)

    async def write(self, command: Callable[[Sql], T], *, single: bool = False) -> T:
        return await self._writer.submit(command)

    async def append(self, request: AppendRequest) -> Appended:
        return await self._writer.submit(lambda sql: self._append(sql, request))

    async def position(self) -> str:
        return START

    def seen_by(self, tenant: str) -> Self:
        return self

    @asynccontextmanager
    async def transaction(self, tenant: str) -> AsyncIterator[WriterWork]:
        transaction = await self._writer.begin()
        try:
            yield WriterWork(transaction)
        except BaseException:
            await asyncio.shield(transaction.end(commit=False))
            raise
        await asyncio.shield(transaction.end(commit=True))

    async def close(self) -> None:
        """Readers first: the last connection to close puts the WAL into the file, and only the writer's may."""
        if self._readers is not None:
            await asyncio.to_thread(self._readers.shutdown)
        while self._connections:
            self._connections.pop().close()
        await self._writer.close()

    def _append(self, sql: Sql, request: AppendRequest) -> Appended:
        """In the writer's thread. Memory spares the look; where it is stale (another process wrote), the guard says so
        and the second attempt looks.
        """
        remembered = self._tips.recall(request) if request.ids_are_new else None
        done = None if remembered is None else attempt_on_memory(sql, request, remembered)
        done = done or attempt(sql, request)
        if done is None:
            raise StorageError("the branch moved inside a write transaction", retryable=True)
        self._tips.remember(request, done.now)
        return done.appended

    def _read(self, query: Callable[[Sql], T], given: list[T]) -> None:
        """In a reader's thread, on its own connection. What it finds is put into `given` and not returned: the thread
        might hold on to a page that its caller is done with, till it gets to run again.
        """
        try:
            if not hasattr(self._own, "connection"):
                self._own.connection = SqliteConnection(self._path, read_only=True)
                self._connections.append(self._own.connection)
            with self._own.connection.transaction() as sql:
                given.append(query(sql))
        except Exception as error:
            ours = translate(error)
            if ours is None:
                raise
            raise ours from error


class WriterWork:
    """An explicit transaction on the writer."""

    def __init__(self, transaction: WriterTransaction) -> None:
        self._transaction = transaction

    async def read(self, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        return await self._transaction.submit(query)

    async def fetch(self, statement: OneStatement[T]) -> T:
        return await self.read(statement.over)

    async def write(self, command: Callable[[Sql], T], *, single: bool = False) -> T:
        return await self._transaction.submit(command)

    async def append(self, request: AppendRequest) -> Appended:
        return await self._transaction.submit(lambda sql: attempt_locked(sql, request))
