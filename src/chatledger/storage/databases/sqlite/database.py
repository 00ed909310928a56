"""A SQLite file that the ledger opened: one writer in a thread of its own, and a few reader threads beside it.

On SQLite the database is cheap. The cost is the crossing from the event loop to a driver's thread, which most drivers
make for each statement. So a whole call crosses once: writes go to the thread that holds the write connection, reads to
a small pool of threads with read-only connections. A database in memory has one connection for everything.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from chatledger.errors import RunConflict, StorageError
from chatledger.models import Appended
from chatledger.models.weight import FairPool
from chatledger.storage.append.attempt import attempt, plan_on_cached_tip, write_plan
from chatledger.storage.append.group_insert import plan_group
from chatledger.storage.append.guarded_write import write_by_table
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.tip_cache import TipCache
from chatledger.storage.append.write import TryAgain, guarded
from chatledger.storage.databases.database import Database, OpenDatabase
from chatledger.storage.databases.loops.loop_thread import until_ended
from chatledger.storage.databases.sqlite.writer import RunAgain, SqliteWriter
from chatledger.storage.databases.states import Followed, States, read_states
from chatledger.storage.drivers.errors import is_key, translate
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.drivers.sqlite import SqliteConnection
from chatledger.storage.drivers.urls import MEMORY
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.upgrade.versions import create_schema

P = ParamSpec("P")
T = TypeVar("T")

READERS = 4


class SqliteDatabase(OpenDatabase):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__()
        self._path = path
        self.timeout = timeout
        self.one_connection: bool = path == MEMORY
        self._tips = TipCache()
        self._writer = SqliteWriter(path, timeout, self._append_group)
        self._readers = None if path == MEMORY else _Readers()
        self._own = threading.local()
        self._connections: list[SqliteConnection] = []
        self._states = _States(path, timeout)
        self._closed = False

    async def read(self, tenant: Tenant, work: Callable[[ReadSql], T], *, snapshot: bool = False) -> T:
        if self._readers is None:
            context = copy_context()
            return await self._writer.submit(lambda sql: context.run(work, sql))
        result: list[T] = []
        await asyncio.wrap_future(self._readers.submit(self._read, work, result))
        return result.pop()

    async def write(self, tenant: Tenant, work: Callable[[WriteSql], T], *, single: bool = False) -> T:
        return await self._writer.submit(work)

    async def append(self, request: AppendRequest) -> Appended:
        return await self._writer.submit(lambda sql: self._append(sql, request), request)

    @property
    def queue_length(self) -> int:
        return self._writer.length

    def learn(self, tenant: Tenant, thread: str, seen: Preflight) -> None:
        self._tips.learn(tenant, thread, seen)

    async def states(self, followed: Sequence[Followed]) -> States:
        if self._readers is None:
            return await super().states(followed)
        return await asyncio.wrap_future(self._readers.submit(self._states.read, followed))

    async def create_schema(self) -> None:
        """Create the tables of a database in memory."""
        await self._writer.submit(lambda sql: create_schema(sql.connection, None))

    @asynccontextmanager
    async def transaction(self, tenant: Tenant) -> AsyncIterator[Database]:
        transaction = await self._writer.begin()
        try:
            yield transaction
        except BaseException:
            await asyncio.shield(transaction.end(commit=False))
            raise
        await asyncio.shield(transaction.end(commit=True))

    async def close(self) -> None:
        """Reads that are still running fail, and open transactions are rolled back; other writes are finished.

        The readers are closed first: the last connection to close moves the WAL into the file, and only the writer's
        connection may write.
        """
        self._closed = True
        for connection in self._connections:
            connection.interrupt()
        if self._readers is not None:
            await until_ended(self._readers.shutdown)
        while self._connections:
            self._connections.pop().close()
        self._states.close()
        await self._writer.close()

    def _append(self, sql: WriteSql, request: AppendRequest) -> Appended:
        """In the writer's thread. A cached tip saves the preflight. If the tip is stale because another process wrote,
        the stamp guard stops the write. If an id is stored already, or a run is that of another thread, a key stops it.
        The append is then done with a preflight.
        """
        cached = self._tips.take(request)
        plan = None if cached is None else plan_on_cached_tip(request, cached)
        if cached is None or plan is None:
            done = attempt(sql, request)
        else:
            try:
                done = write_plan(sql, plan, cached)
            except Exception as error:
                if isinstance(error, RunConflict) or is_key(error):
                    raise RunAgain from error  # the tip is out of the cache by now, so this ends
                raise
            if isinstance(done, TryAgain):
                done = attempt(sql, request)
        if isinstance(done, TryAgain):
            raise StorageError(
                "the branch changed inside a write transaction: another program may write to the tables",
                retryable=True,
            )
        self._tips.remember(request, done.now)
        return done.appended

    def _append_group(self, sql: WriteSql, requests: Sequence[AppendRequest]) -> Mapping[int, Appended]:
        """In the writer's thread. Writes those of the appends that the cached tips let through, and returns their
        outcomes by the index of the request. Raises if one of them cannot be written; the writer then undoes all.
        """
        planned = plan_group(requests, self._tips)
        plans = [plan for branch in planned.branches for plan in branch]
        if plans and write_by_table(sql, *map(guarded, plans)) is None:
            raise RunAgain
        return planned.finish(planned.plans, self._tips)

    def _read(self, work: Callable[[ReadSql], T], result: list[T]) -> None:
        """In a reader's thread, on the thread's own connection. The result goes into `result` and is not returned:
        otherwise the idle thread could keep a page alive after its caller has dropped it.
        """
        try:
            if self._closed:  # the read waited for a thread until then
                raise StorageError("this ledger is closed")
            if not hasattr(self._own, "connection"):
                self._own.connection = SqliteConnection(self._path, read_only=True, timeout=self.timeout)
                self._connections.append(self._own.connection)
            with self._own.connection.transaction() as sql:
                result.append(work(sql.reading()))
        except Exception as error:
            ours = translate(error)
            if ours is None:
                raise
            raise ours from error


class _Readers:
    """The threads that read, each read in the context of its caller. The first one gets each read that finds it free,
    because its connection has pages and statements in the processor's cache. A pool alone would let all threads take
    turns.
    """

    def __init__(self) -> None:
        self._first = ThreadPoolExecutor(1, thread_name_prefix="chatledger-reader")
        self._others = FairPool(READERS - 1, "chatledger-reader", most_of_caller=1)
        self._latest: Future[Any] | None = None

    def submit(self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> Future[T]:
        if self._latest is not None and not self._latest.done():
            return self._others.submit(partial(work, *arguments, **options))
        self._latest = future = self._first.submit(copy_context().run, partial(work, *arguments, **options))
        return future

    def shutdown(self) -> None:
        """Wait for the reads that run."""
        self._first.shutdown()
        self._others.shutdown()


class _States:
    """The states of followed threads, on a connection of its own. While no other connection commits, the file's
    `data_version` stays the same there, and no statement is needed.
    """

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._turn = threading.Lock()  # each event loop has a poller
        self._connection: SqliteConnection | None = None
        self._read: tuple[int, Sequence[Followed]] | None = None
        self._states: States = {}

    def read(self, followed: Sequence[Followed]) -> States:
        """In a reader's thread."""
        with self._turn:
            try:
                if self._connection is None:
                    self._connection = SqliteConnection(self._path, read_only=True, timeout=self._timeout)
                version = self._connection.data_version()
                if (version, followed) != self._read:
                    with self._connection.transaction() as sql:
                        self._states = read_states(sql, followed)
                    self._read = (version, followed)
                return self._states
            except Exception as error:
                ours = translate(error)
                if ours is None:
                    raise
                raise ours from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
