"""A database behind SQLAlchemy's asynchronous engine: PostgreSQL, or an application's own engine of either kind.

Each unit of work is one greenlet over one pooled connection, so that storage functions read as plain code while the
driver stays asynchronous. A cancelled unit of work gives up its connection instead of returning it: nobody knows what
is still on its way to the server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.util import await_only, greenlet_spawn

from chatledger.errors import ChatLedgerError, OutcomeUnknown, StorageError
from chatledger.models import Appended
from chatledger.storage.append import attempt, attempt_locked
from chatledger.storage.constraints import Kind, read_failure, translate
from chatledger.storage.engine import READ_ONLY
from chatledger.storage.request import AppendRequest
from chatledger.storage.sql import Row, Sql

T = TypeVar("T")

DEADLINE = 10.0
"""Seconds that an append looks for its outcome after the connection was lost."""
ATTEMPTS = 8
"""Attempts of one append. The second holds the branch's lock, so a third is rare: the active branch was switched."""


class PooledDatabase:
    def __init__(self, engine: AsyncEngine, schema: str | None, *, owned: bool) -> None:
        self._engine = engine
        self._schema = schema
        self._owned = owned
        self._postgresql = engine.dialect.name == "postgresql"

    async def read(self, query: Callable[[Sql], T]) -> T:
        return await _run(self._in_snapshot, query)

    async def write(self, command: Callable[[Sql], T]) -> T:
        return await _run(self._in_transaction, command)

    async def append(self, request: AppendRequest) -> Appended:
        return await _run(self._append, request)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[ConnectionWork]:
        async with self._engine.connect() as connection, connection.begin():
            yield ConnectionWork(connection, self._schema)

    async def close(self) -> None:
        if self._owned:
            await self._engine.dispose()

    def _in_snapshot(self, query: Callable[[Sql], T]) -> T:
        options: dict[str, Any] = {READ_ONLY: True}
        if self._postgresql:
            options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._engine.sync_engine.connect() as connection:
            connection = connection.execution_options(**options)
            with connection.begin():
                return query(Sql(connection, self._schema))

    def _in_transaction(self, command: Callable[[Sql], T]) -> T:
        with self._engine.sync_engine.begin() as connection:
            return command(Sql(connection, self._schema))

    def _append(self, request: AppendRequest) -> Appended:
        if not self._postgresql:
            return self._in_transaction(lambda sql: attempt_locked(sql, request))
        return self._append_until_known(request)

    def _append_until_known(self, request: AppendRequest) -> Appended:
        """Rows 7 to 12 of the order of judgement. Every attempt looks first, so what it raises is judged on what is
        stored, and an attempt whose acknowledgement was lost is found by its ids.
        """
        deadline = time.monotonic() + DEADLINE
        lock = lost = False
        last: BaseException | None = None
        for number in range(1_000):
            try:
                outcome = self._attempt(request, lock=lock)
                if outcome is not None:
                    return outcome
            except ChatLedgerError:
                raise
            except Exception as error:
                failure = read_failure(error)
                if failure is None or failure.kind not in (Kind.UNIQUE, Kind.AGAIN, Kind.LOST):
                    raise
                if failure.kind is Kind.UNIQUE and failure.columns[-1:] not in (("message_id",), ()):
                    raise
                lost, last = failure.kind is Kind.LOST, error
            lock = True
            if lost and time.monotonic() > deadline:
                raise OutcomeUnknown([message.message_id or "" for message in request.messages]) from last
            if not lost and number >= ATTEMPTS:
                break
            if lost:
                await_only(asyncio.sleep(min(0.05 * 2**number, 0.5)))
        raise StorageError(f"the branch moved under each of {ATTEMPTS} attempts", retryable=True) from last

    def _attempt(self, request: AppendRequest, *, lock: bool) -> Appended | None:
        if lock:
            return self._in_transaction(lambda sql: attempt(sql, request, lock=True))
        with self._driver() as sql:
            return attempt(sql, request)

    @contextmanager
    def _driver(self) -> Iterator[Sql]:
        """The driver's connection, in autocommit: what SQLAlchemy adds to a statement costs a third of an append."""
        with self._engine.sync_engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            try:
                yield Sql(connection, self._schema, AsyncpgDriver(driver))
            except BaseException as error:
                failure = read_failure(error)
                if not isinstance(error, Exception) or (failure is not None and failure.kind is Kind.LOST):
                    driver.terminate()
                    connection.invalidate()
                raise


class AsyncpgDriver:
    """asyncpg itself, called from inside a greenlet."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def fetch(self, text: str, values: Any) -> Sequence[Row]:
        return await_only(self._connection.fetch(text, *values))

    def insert(self, text: str, rows: Sequence[Any]) -> None:
        await_only(self._connection.executemany(text, rows))


class ConnectionWork:
    """A transaction on one asynchronous connection, ours or the caller's; who began it commits it."""

    def __init__(self, connection: AsyncConnection, schema: str | None, *, check: bool = False) -> None:
        self._connection = connection
        self._schema = schema
        self._check = check  # a caller's connection shows on its first use whether it is fit for this
        self._turn = asyncio.Lock()  # tasks that share a transaction take turns: a connection does one thing at a time

    async def read(self, query: Callable[[Sql], T]) -> T:
        return await self._do(query)

    async def write(self, command: Callable[[Sql], T]) -> T:
        """In a savepoint, so that a refused command leaves the transaction usable."""
        return await self._do(lambda sql: _in_savepoint(sql, command))

    async def append(self, request: AppendRequest) -> Appended:
        return await self.write(lambda sql: attempt_locked(sql, request))

    async def _do(self, function: Callable[[Sql], T]) -> T:
        async with self._turn:
            return await _run(self._in_greenlet, function)

    def _in_greenlet(self, function: Callable[[Sql], T]) -> T:
        connection = self._connection.sync_connection
        if connection is None:
            raise StorageError("the connection of this transaction is closed")
        if self._check:
            _require_transaction(connection)
            self._check = False
        return function(Sql(connection, self._schema))


def _require_transaction(connection: Connection) -> None:
    """Raises StorageError with the line to add, where a caller's connection could not keep our promises."""
    if not connection.in_transaction():
        raise StorageError("begin a transaction first: async with engine.begin() as connection: …")
    if connection.dialect.name != "sqlite":
        return
    if not connection.exec_driver_sql("PRAGMA foreign_keys").scalar():
        raise StorageError("SQLite does not enforce foreign keys here; add chatledger.configure_sqlite(engine)")
    driver: Any = connection.connection.driver_connection
    if not driver.in_transaction:
        raise StorageError("the driver has begun no transaction here; add chatledger.configure_sqlite(engine)")


def _in_savepoint(sql: Sql, command: Callable[[Sql], T]) -> T:
    with sql.connection.begin_nested():
        return command(sql)


async def _run(function: Callable[..., T], *arguments: Any) -> T:
    """A unit of work in a greenlet, with the driver's errors as ours."""
    try:
        return await greenlet_spawn(function, *arguments)
    except Exception as error:
        ours = translate(error)
        if ours is None:
            raise
        raise ours from error
