"""A connection of the pool as asyncpg itself: what SQLAlchemy adds to a statement costs a third of an append.

SQLAlchemy still owns the pool and the connection, in autocommit; transactions are begun and ended here.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from sqlalchemy import Engine, PoolProxiedConnection, QueuePool
from sqlalchemy.util import await_only, greenlet_spawn

from chatledger.storage.drivers.errors import Kind, read_failure
from chatledger.storage.drivers.sql import Row, Sql, prepare
from chatledger.storage.drivers.urls import MAX_OVERFLOW, POOL_SIZE

T = TypeVar("T")

SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class AsyncpgDriver:
    """asyncpg, called from inside a greenlet."""

    __slots__ = ("_connection", "_copies", "_deadline")

    def __init__(self, connection: Any, timeout: float | None = None, *, copies: bool = True) -> None:
        """`timeout`: seconds from now, after which a statement raises TimeoutError."""
        self._connection = connection
        self._copies = copies
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def fetch(self, text: str, values: Any) -> Sequence[Row]:
        return await_only(self._connection.fetch(text, *values, timeout=self._left()))

    def run(self, text: str) -> None:
        """Statements without parameters, in one round trip however many they are and whether or not they are kept
        prepared.
        """
        await_only(self._connection.execute(text, timeout=self._left()))

    def _left(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.001)

    def insert(self, text: str, rows: Sequence[Any]) -> None:
        await_only(self._connection.executemany(text, rows))

    def copy(self, table: str, schema: str | None, columns: Sequence[str], rows: Sequence[Row]) -> bool:
        if not self._copies:
            return False
        copying = self._connection.copy_records_to_table(table, schema_name=schema, columns=columns, records=rows)
        await_only(copying)
        return True


class Checkout:
    """A connection out of the pool, as an asynchronous context manager; discarded if nobody knows its state."""

    __slots__ = ("_connection", "_give_back", "_schema")

    def __init__(
        self,
        connection: PoolProxiedConnection,
        schema: str | None,
        give_back: Callable[[PoolProxiedConnection], Awaitable[None] | None],
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._give_back = give_back

    def fetch(
        self, template: str, parameters: Mapping[str, Any], timeout: float | None = None
    ) -> Coroutine[Any, Any, Sequence[Row]]:
        """The rows of one statement, to be awaited: asyncpg's own coroutine. Raises TimeoutError after `timeout`
        seconds.
        """
        text, names = prepare(template, "postgresql", self._schema)
        driver: Any = self._connection.driver_connection
        return driver.fetch(text, *[parameters[name] for name in names or ()], timeout=timeout)  # type: ignore[no-any-return]

    async def run(self, text: str, timeout: float) -> None:
        """Statements without parameters, in one round trip. Raises TimeoutError after that many seconds."""
        driver: Any = self._connection.driver_connection
        await driver.execute(text, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None and is_spoilt(error):
            driver: Any = self._connection.driver_connection
            driver.terminate()
            self._connection.invalidate()
        giving_back = self._give_back(self._connection)
        if giving_back is not None:
            await giving_back


class AsyncpgConnections:
    """The connections of an engine's pool, checked out one at a time: inside a greenlet, or to be awaited on.

    Connections of our own pool that are awaited on stay idle here for the next such statement. Taking one from the pool
    needs a greenlet, because it may have to wait; that costs a quarter of all else that the process does for an append.
    """

    def __init__(self, engine: Engine, schema: str | None, *, owned: bool, secured: bool = False) -> None:
        """`owned`: made by us, so that nothing happens when a connection leaves or enters the pool. `secured`: by
        row-level security, which COPY does not go together with.
        """
        self.secured = secured
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._schema = schema
        self._owned = owned
        self._closed = False
        self._idle: list[PoolProxiedConnection] = []

    @property
    def unused(self) -> int:
        """Connections that nobody uses now, each of which may turn out to be dead."""
        return len(self._idle) + self._unused_in_pool

    @property
    def _unused_in_pool(self) -> int:
        pool = self._engine.pool
        return pool.checkedin() if isinstance(pool, QueuePool) else 0

    async def checkout(self) -> Checkout:
        """A connection for one statement, without SQLAlchemy's own around it. Not to be called inside a greenlet."""
        if self._idle:
            return Checkout(self._idle.pop(), self._schema, self._keep)
        connection = await greenlet_spawn(self._engine.pool.connect)  # which may have to wait, or to connect
        return Checkout(connection, self._schema, self._keep if self._owned else self._return)

    def _keep(self, connection: PoolProxiedConnection) -> Awaitable[None] | None:
        """Keep it idle for the next statement, unless the pool has no other and somebody may be waiting for it."""
        pool: Any = self._engine.pool
        if self._closed:  # while it was checked out: nobody will ever ask for it again
            connection.invalidate()
        elif connection.is_valid and pool.overflow() < MAX_OVERFLOW and self.unused < POOL_SIZE:
            self._idle.append(connection)
            return None
        elif self._unused_in_pool >= POOL_SIZE:
            return self._return(connection)  # there is no room for it, so the pool closes it, which takes a greenlet
        connection.close()
        return None

    @staticmethod
    def _return(connection: PoolProxiedConnection) -> Awaitable[None]:
        return greenlet_spawn(connection.close)

    def make_room(self) -> None:
        """Give one idle connection back before somebody else asks the pool, which does not know of them: the pool would
        open another, or wait for one while they lie idle.
        """
        if self._idle and not self._unused_in_pool:
            self._idle.pop().close()

    async def close(self) -> None:
        """Give the idle connections back to the pool, before it is disposed of."""
        self._closed = True
        while self._idle:
            await self._return(self._idle.pop())

    @contextmanager
    def autocommit(self, timeout: float | None = None) -> Iterator[Sql]:
        """For single statements. A connection that was lost or cancelled is discarded: nobody knows what is still on
        its way to the server.
        """
        with self._checked_out(timeout) as (sql, _):
            yield sql

    @contextmanager
    def _checked_out(self, timeout: float | None) -> Iterator[tuple[Sql, AsyncpgDriver]]:
        self.make_room()
        with self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            ours = AsyncpgDriver(driver, timeout, copies=not self.secured)
            try:
                yield Sql(connection, self._schema, ours), ours
            except BaseException as error:
                if is_spoilt(error):
                    driver.terminate()
                    connection.invalidate()
                raise

    @contextmanager
    def transaction(
        self, begin: str = "BEGIN", *, timeout: float | None = None, first: Callable[[Sql], None] | None = None
    ) -> Iterator[Sql]:
        """Commits on exit, rolls back on an exception. `first` uses the connection before the transaction begins."""
        with self._checked_out(timeout) as (sql, driver):
            if first is not None:
                first(sql)
            driver.run(begin)
            try:
                yield sql
            except Exception as error:
                if not is_spoilt(error):
                    driver.run("ROLLBACK")
                raise
            driver.run("COMMIT")


def is_spoilt(error: BaseException) -> bool:
    """Whether nobody knows any more what the connection is doing: it was lost, or cancelled in the middle."""
    failure = read_failure(error)
    return not isinstance(error, Exception) or (failure is not None and failure.kind is Kind.LOST)
