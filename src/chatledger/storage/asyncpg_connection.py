"""A connection of the pool as asyncpg itself: what SQLAlchemy adds to a statement costs a third of an append.

SQLAlchemy still owns the pool and the connection, in autocommit; transactions are begun and ended here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from sqlalchemy import Engine, PoolProxiedConnection
from sqlalchemy.util import await_only, greenlet_spawn

from chatledger.storage.constraints import Kind, read_failure
from chatledger.storage.sql import Row, Sql, numbered
from chatledger.storage.tips import TipMemory

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

    __slots__ = ("_close_in_greenlet", "_lent", "_schema")

    def __init__(self, lent: PoolProxiedConnection, schema: str | None, *, close_in_greenlet: bool) -> None:
        self._lent = lent
        self._schema = schema
        self._close_in_greenlet = close_in_greenlet

    async def fetch(self, template: str, parameters: Mapping[str, Any], patience: float) -> Sequence[Row]:
        """Raises TimeoutError after that many seconds."""
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
        if self._close_in_greenlet:
            await greenlet_spawn(self._lent.close)
        else:
            self._lent.close()


class AsyncpgConnections:
    """The connections of an engine's pool, lent one at a time inside a greenlet."""

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

    async def lend(self) -> Lent:
        """A connection for one statement, without SQLAlchemy's own around it. Not to be called inside a greenlet."""
        lent = await greenlet_spawn(self._engine.pool.connect)  # which may have to wait
        return Lent(lent, self._schema, close_in_greenlet=not self._owned)

    @contextmanager
    def autocommit(self, patience: float | None = None) -> Iterator[Sql]:
        """For single statements. A connection that was lost or cancelled is discarded: nobody knows what is still on
        its way to the server.
        """
        with self._lent(patience) as (sql, _):
            yield sql

    @contextmanager
    def _lent(self, patience: float | None) -> Iterator[tuple[Sql, AsyncpgDriver]]:
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
