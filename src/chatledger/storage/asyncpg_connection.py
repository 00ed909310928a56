"""A connection of the pool as asyncpg itself: what SQLAlchemy adds to a statement costs a third of an append.

SQLAlchemy still owns the pool and the connection, in autocommit; transactions are begun and ended here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.util import await_only

from chatledger.storage.constraints import Kind, read_failure
from chatledger.storage.sql import Row, Sql

SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class AsyncpgDriver:
    """asyncpg, called from inside a greenlet."""

    __slots__ = ("_connection", "_deadline")

    def __init__(self, connection: Any, patience: float | None = None) -> None:
        """`patience`: seconds from now, after which a statement raises TimeoutError."""
        self._connection = connection
        self._deadline = None if patience is None else time.monotonic() + patience

    def fetch(self, text: str, values: Any) -> Sequence[Row]:
        timeout = None if self._deadline is None else max(self._deadline - time.monotonic(), 0.001)
        return await_only(self._connection.fetch(text, *values, timeout=timeout))

    def insert(self, text: str, rows: Sequence[Any]) -> None:
        await_only(self._connection.executemany(text, rows))

    def copy(self, table: str, schema: str | None, columns: Sequence[str], rows: Sequence[Row]) -> bool:
        copying = self._connection.copy_records_to_table(table, schema_name=schema, columns=columns, records=rows)
        await_only(copying)
        return True


class AsyncpgConnections:
    """The connections of an engine's pool, lent one at a time inside a greenlet."""

    def __init__(self, engine: Engine, schema: str | None) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._schema = schema

    @contextmanager
    def statements(self, patience: float) -> Iterator[Sql]:
        """As `autocommit`, without SQLAlchemy's connection around it, for the one statement of an append."""
        lent = self._engine.pool.connect()
        driver: Any = lent.driver_connection
        try:
            yield Sql(None, self._schema, AsyncpgDriver(driver, patience), dialect="postgresql")
        except BaseException as error:
            if _is_spoilt(error):
                driver.terminate()
                lent.invalidate()
            raise
        finally:
            lent.close()

    @contextmanager
    def autocommit(self, patience: float | None = None) -> Iterator[Sql]:
        """For single statements. A connection that was lost or cancelled is discarded: nobody knows what is still on
        its way to the server.
        """
        with self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            try:
                yield Sql(connection, self._schema, AsyncpgDriver(driver, patience))
            except BaseException as error:
                if _is_spoilt(error):
                    driver.terminate()
                    connection.invalidate()
                raise

    @contextmanager
    def transaction(self, begin: str = "BEGIN", *, patience: float | None = None) -> Iterator[Sql]:
        """Commits on exit, rolls back on an exception."""
        with self.autocommit(patience) as sql:
            sql.fetch(begin, {})
            try:
                yield sql
            except Exception as error:
                if not _is_spoilt(error):
                    sql.fetch("ROLLBACK", {})
                raise
            sql.fetch("COMMIT", {})


def _is_spoilt(error: BaseException) -> bool:
    """Whether nobody knows any more what the connection is doing: it was lost, or cancelled in the middle."""
    failure = read_failure(error)
    return not isinstance(error, Exception) or (failure is not None and failure.kind is Kind.LOST)
