"""The database of a framework's store, opened read-only and read with plain SELECTs, a page of rows at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, ColumnElement, Connection, Row, Select, cast, column, inspect, select, text, tuple_
from sqlalchemy import table as named_table
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.types import Text, TypeEngine

from chatledger.errors import StorageError
from chatledger.storage.drivers.errors import raise_translated
from chatledger.storage.drivers.urls import (
    MEMORY,
    Address,
    create_postgresql_engine,
    read_url,
    sqlite_path,
    without_password,
)

PAGE = 1_000
"""Rows that one statement reads."""
_SHOWN = 8
"""The number of tables that an error names."""

T = TypeVar("T")


class SourceDatabase:
    """A connection for reading. Each statement is its own transaction, so that an import never blocks a writer.

    Columns have no SQLAlchemy types here. A value is what the driver returns, and compares equal to its column.
    """

    def __init__(self, connection: AsyncConnection, name: str) -> None:
        self._connection = connection
        self.name = name
        """The file, or the URL without its password."""

    @property
    def is_sqlite(self) -> bool:
        return self._connection.dialect.name == "sqlite"

    def json(self, name: str) -> ColumnElement[Any]:
        """A JSON column as text. The drivers would decode it in different ways."""
        json: ColumnElement[Any] = column(name)
        return json if self.is_sqlite else cast(json, Text)

    async def columns(self, table: str) -> Mapping[str, TypeEngine[Any]] | None:
        """The types of a table's columns by name. None if the table does not exist."""

        def read(connection: Connection) -> Mapping[str, TypeEngine[Any]] | None:
            try:
                return {described["name"]: described["type"] for described in inspect(connection).get_columns(table)}
            except NoSuchTableError:
                return None

        return await _translated(self._connection.run_sync(read))

    async def require(self, table: str, needed: Sequence[str], *, hint: str) -> Mapping[str, TypeEngine[Any]]:
        """The columns of a table. Raises StorageError, ending with the hint, for a missing table or column."""
        columns = await self.columns(table)
        if columns is None:
            tables = await _translated(
                self._connection.run_sync(lambda connection: inspect(connection).get_table_names())
            )
            has = ", ".join(sorted(tables)[:_SHOWN]) or "none"
            raise StorageError(f"{self.name} has no table {table!r} (its tables: {has}); {hint}")
        if missing := [name for name in needed if name not in columns]:
            raise StorageError(f"table {table!r} of {self.name} has no column {missing[0]!r}; {hint}")
        return columns

    async def all(self, statement: Select[Any]) -> Sequence[Row[Any]]:
        rows: Sequence[Row[Any]] = (await _translated(self._connection.execute(statement))).all()
        return rows

    async def number(self, statement: Select[Any]) -> int:
        """The single number that a statement returns."""
        number: int = (await self.all(statement))[0][0]
        return number

    async def rows(
        self,
        table: str,
        order: Sequence[str],
        wanted: Sequence[str | ColumnElement[Any]],
        *conditions: ColumnElement[bool],
        size: int = PAGE,
    ) -> AsyncIterator[Sequence[Row[Any]]]:
        """The rows in pages, sorted by the columns of `order`, which together must be unique and never null. Each row
        begins with the values of those columns.
        """
        keys: list[ColumnElement[Any]] = [column(name) for name in order]
        # Labels keep the order unambiguous: an expression over a column would otherwise have the column's name.
        columns = (column(name) if isinstance(name, str) else name for name in wanted)
        others = [labelled.label(f"wanted_{number}") for number, labelled in enumerate(columns)]
        statement = select(*keys, *others).select_from(named_table(table)).where(*conditions)
        statement = statement.order_by(*keys).limit(size)
        page = await self.all(statement)
        while page:
            yield page
            if len(page) < size:
                return
            page = await self.all(statement.where(tuple_(*keys) > tuple_(*page[-1][: len(keys)])))


@asynccontextmanager
async def open_source(url: Address) -> AsyncIterator[SourceDatabase]:
    """Open the database at a path, `sqlite:///…` or `postgresql://…`. A driver in the URL is ignored.

    Raises StorageError if the database does not exist or cannot be reached.
    """
    address = read_url(url)
    engine, name = _open_sqlite(address) if address.get_backend_name() == "sqlite" else _open_postgresql(address)
    try:
        connection = await _translated(engine.connect())
        try:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            if address.get_backend_name() != "sqlite":
                await _translated(connection.execute(text("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")))
            yield SourceDatabase(connection, name)
        finally:
            await connection.close()
    finally:
        await engine.dispose()


def _open_sqlite(address: URL) -> tuple[AsyncEngine, str]:
    path = sqlite_path(address)
    if path == MEMORY:
        raise StorageError("the URL names no file to import from; give a path, or sqlite:///PATH with three slashes")
    if Path(path).is_dir():
        raise StorageError(f"{path} is a folder; give the database in it to import from")
    if not Path(path).is_file():
        raise StorageError(f"there is no database {path} to import from")
    file = f"file:{quote(str(Path(path).absolute()))}"
    url = URL.create("sqlite+aiosqlite", database=file, query={"mode": "ro", "uri": "true"})
    return create_async_engine(url, poolclass=NullPool, hide_parameters=True), path


def _open_postgresql(address: URL) -> tuple[AsyncEngine, str]:
    return create_postgresql_engine(address), without_password(address)


async def _translated(work: Awaitable[T]) -> T:
    """Raises StorageError for an error of the driver."""
    try:
        return await work
    except Exception as error:
        raise_translated(error)
