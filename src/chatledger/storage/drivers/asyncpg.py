"""A connection of the pool as asyncpg itself: what SQLAlchemy adds to a statement costs a third of an append.

SQLAlchemy still owns the pool and the connection, in autocommit; transactions are begun and ended here.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from sqlalchemy import Engine, PoolProxiedConnection, QueuePool
from sqlalchemy.util import await_only, greenlet_spawn

from chatledger.storage.append.tip_cache import TipMemory
from chatledger.storage.drivers.errors import Kind, read_failure
from chatledger.storage.drivers.sql import Row, Sql, numbered
from chatledger.storage.drivers.urls import MAX_OVERFLOW, POOL_SIZE

T = TypeVar("T")

SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class AsyncpgDriver:
    """asyncpg, called from inside a greenlet."""

    __slots__ = ("_connection", "_copies", "_deadline")

    def __init__(self, connection: Any, patience: float | None = None, *, copies: bool = True) -> None:
        """`patience`: seconds from now, after which a statement raises TimeoutError."""
        self._connection = connection
        self._copies = copies
        self._deadline = None if patience is None else time.monotonic() + patience

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


class Lent:
    """A connection out of the pool, as an asynchronous context manager; discarded if nobody knows its state."""

    __slots__ = ("_give_back", "_lent", "_schema")

    def __init__(
        self,
        lent: PoolProxiedConnection,
        schema: str | None,
        give_back: Callable[[PoolProxiedConnection], Awaitable[None] | None],
    ) -> None:
        self._lent = lent
        self._schema = schema
        self._give_back = give_back

    async def fetch(self, template: str, parameters: Mapping[str, Any], patience: float | None = None) -> Sequence[Row]:
        """Raises TimeoutError after `patience` seconds."""
        text, values = numbered(template, self._schema, parameters)
        driver: Any = self._lent.driver_connection
        rows: Sequence[Row] = await driver.fetch(text, *values, timeout=patience)
        return rows

    async def run(self, text: str, patience: float) -> None:
        """Statements without parameters, in one round trip. Raises TimeoutError after that many seconds."""
        driver: Any = self._lent.driver_connection
        await driver.execute(text, timeout=patience)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None and is_spoilt(error):
            driver: Any = self._lent.driver_connection
            driver.terminate()
            self._lent.invalidate()
        giving_back = self._give_back(self._lent)
        if giving_back is not None:
            await giving_back


class AsyncpgConnections:
    """The connections of an engine's pool, lent one at a time: inside a greenlet, or to be awaited on.

    Of a pool of our own, those that are awaited on stay at hand for the next such statement: to go through the pool, in
    the greenlet in which it may have to wait, costs a quarter of all else that the process does for an append.
    """

    def __init__(
        self, engine: Engine, schema: str | None, tips: TipMemory, *, owned: bool, secured: bool = False
    ) -> None:
        """`owned`: made by us, so that nothing happens when a connection leaves or enters the pool. `secured`: by
        row-level security, which COPY does not go together with.
        """
        self.secured = secured
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._schema = schema
        self._tips = tips
        self._owned = owned
        self._closed = False
        self._at_hand: list[PoolProxiedConnection] = []

    @property
    def idle(self) -> int:
        """Connections that nobody uses, each of which may be found to be dead."""
        return len(self._at_hand) + self._idle_in_pool

    @property
    def busy(self) -> int:
        pool: Any = self._engine.pool
        return int(pool.checkedout()) - len(self._at_hand)

    @property
    def _idle_in_pool(self) -> int:
        pool = self._engine.pool
        return pool.checkedin() if isinstance(pool, QueuePool) else 0

    async def lend(self) -> Lent:
        """A connection for one statement, without SQLAlchemy's own around it. Not to be called inside a greenlet."""
        if self._at_hand:
            return Lent(self._at_hand.pop(), self._schema, self._keep)
        lent = await greenlet_spawn(self._engine.pool.connect)  # which may have to wait, or to connect
        return Lent(lent, self._schema, self._keep if self._owned else self._return)

    def _keep(self, lent: PoolProxiedConnection) -> Awaitable[None] | None:
        """At hand for the next statement, unless the pool has no other and somebody may be waiting for it."""
        pool: Any = self._engine.pool
        if self._closed:  # while it was lent: nobody will ever ask for it again
            lent.invalidate()
        elif lent.is_valid and pool.overflow() < MAX_OVERFLOW and self.idle < POOL_SIZE:
            self._at_hand.append(lent)
            return None
        elif self._idle_in_pool >= POOL_SIZE:
            return self._return(lent)  # there is no room for it, so the pool closes it, which takes a greenlet
        lent.close()
        return None

    @staticmethod
    def _return(lent: PoolProxiedConnection) -> Awaitable[None]:
        return greenlet_spawn(lent.close)

    def make_room(self) -> None:
        """Before somebody else takes a connection of the pool, which knows nothing of those at hand: it would open
        another, or wait for one while they lie idle.
        """
        if self._at_hand and not self._idle_in_pool:
            self._at_hand.pop().close()

    async def close(self) -> None:
        """Give the pool back what is its own, before it is disposed of."""
        self._closed = True
        while self._at_hand:
            await self._return(self._at_hand.pop())

    @contextmanager
    def autocommit(self, patience: float | None = None) -> Iterator[Sql]:
        """For single statements. A connection that was lost or cancelled is discarded: nobody knows what is still on
        its way to the server.
        """
        with self._lent(patience) as (sql, _):
            yield sql

    @contextmanager
    def _lent(self, patience: float | None) -> Iterator[tuple[Sql, AsyncpgDriver]]:
        self.make_room()
        with self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            ours = AsyncpgDriver(driver, patience, copies=not self.secured)
            try:
                yield Sql(connection, self._schema, ours, tips=self._tips), ours
            except BaseException as error:
                if is_spoilt(error):
                    driver.terminate()
                    connection.invalidate()
                raise

    @contextmanager
    def transaction(
        self, begin: str = "BEGIN", *, patience: float | None = None, first: Callable[[Sql], None] | None = None
    ) -> Iterator[Sql]:
        """Commits on exit, rolls back on an exception. `first` uses the connection before the transaction begins."""
        with self._lent(patience) as (sql, driver):
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
