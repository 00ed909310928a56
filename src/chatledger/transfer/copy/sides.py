"""The two ends of a copy: a connection to SQLite or PostgreSQL, behind the same few calls.

A source is opened for reading only, and read in one transaction: one snapshot, so it may stay in use. Rows come in
batches that are bounded by bytes.
"""

from __future__ import annotations

import asyncio
import marshal
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from itertools import islice
from typing import Any, NoReturn, Protocol, TypeVar, cast

from sqlalchemy import URL, Connection, Table

from chatledger.errors import StorageError
from chatledger.storage.drivers.errors import Kind, raise_translated, read_failure
from chatledger.storage.drivers.sql import prepare
from chatledger.storage.drivers.sqlite import SqliteConnection, file_uri
from chatledger.storage.drivers.urls import create_postgresql_engine, sqlite_path, without_password
from chatledger.storage.schema.copy_triggers import MARKER, SETTING, SQLITE_TRIGGERS
from chatledger.storage.schema.distribution import SEQUENTIAL
from chatledger.storage.schema.row_security import MIGRATING
from chatledger.transfer.copy.cells import Row, columns_of, to_driver
from chatledger.transfer.copy.parts import CELL_BYTES, PAGE_BYTES, Selection

T = TypeVar("T")

Values = Mapping[str, Any]
ENDED = "this copy was ended meanwhile, with --done, so nothing more is written"
_TIMEOUT = 60.0
"""Seconds that a copy waits for another writer of a SQLite file."""


class DuplicateKey(Exception):
    """A row of the target has the key of one that is inserted."""


class NotUtf8(StorageError):
    """A text of a SQLite file is no text. `rows`: the row of it, if it is known, with the bytes."""

    def __init__(self, column: str, rows: Sequence[Row] = ()) -> None:
        super().__init__(f"a SQLite file is damaged: a text in the column {column} is not UTF-8")
        self.column = column
        self.rows = rows


class Side(Protocol):
    """An open database. `name` is its address without passwords."""

    dialect: str
    name: str

    async def fetch(self, template: str, values: Values) -> Sequence[Row]: ...

    def batches(self, selection: Selection, values: Values) -> AsyncIterator[Sequence[Row]]:
        """The rows in pages of PAGE_BYTES. Raises NotUtf8."""
        ...

    async def run(self, template: str, rows: Sequence[Values]) -> None:
        """Run a statement once for each of the rows."""
        ...

    async def execute(self, template: str) -> None:
        """Run a statement without parameters."""
        ...

    async def load(self, table: Table, rows: Sequence[Row]) -> None: ...

    def writing(self, scope: str, source: str) -> AbstractAsyncContextManager[None]:
        """A transaction in which the marker of a copy lets `writer` write."""
        ...

    def changing(self) -> AbstractAsyncContextManager[None]:
        """A transaction that changes the schema."""
        ...

    async def begin(self) -> None:
        """Begin to read one snapshot."""
        ...

    async def end(self) -> None:
        """End the snapshot."""
        ...

    async def close(self) -> None: ...


# --- SQLite -----------------------------------------------------------------------------------------------------------


class SqliteSide:
    dialect = "sqlite"

    def __init__(self, connection: SqliteConnection, name: str) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()  # one statement at a time: both ends are read at once, and ask each other
        self.name = name

    @classmethod
    async def open(cls, url: URL, *, read_only: bool) -> SqliteSide:
        path = sqlite_path(url)
        return cls(await _in_thread(lambda: SqliteConnection(path, read_only=read_only, timeout=_TIMEOUT)), path)

    async def begin(self) -> None:
        await self._in_thread(self._begin)

    async def end(self) -> None:
        await self._in_thread(self._connection.rollback)

    def _begin(self) -> None:
        self._connection.execute("BEGIN")
        self._connection.sql.fetch("SELECT 1 FROM sqlite_master LIMIT 1", {})

    async def fetch(self, template: str, values: Values) -> Sequence[Row]:
        rows = await self._in_thread(lambda: self._connection.sql.fetch(template, values))
        return cast(Sequence[Row], rows)

    async def batches(self, selection: Selection, values: Values) -> AsyncIterator[Sequence[Row]]:
        try:
            cursor: Any = await self._in_thread(lambda: self._connection.sql.each(selection.rows, values))
            while rows := await self._in_thread(lambda: _page(cursor)):
                yield rows
        except NotUtf8 as error:
            rows = await asyncio.to_thread(self._rows_that_are_not_utf8, selection.rows, values)
            raise NotUtf8(error.column, rows) from None

    def _rows_that_are_not_utf8(self, template: str, values: Values) -> list[Row]:
        """The first one."""
        with closing(sqlite3.connect(file_uri(self.name, "ro"), uri=True)) as file:
            file.text_factory = _text_or_bytes
            rows = file.execute(template.replace("{schema}", ""), dict(values))
            return list(islice((row for row in rows if any(type(cell) is bytes for cell in row)), 1))

    async def run(self, template: str, rows: Sequence[Values]) -> None:
        await self._in_thread(lambda: self._connection.sql.insert(template, rows))

    async def execute(self, template: str) -> None:
        await self._in_thread(lambda: self._connection.execute(template.replace("{schema}", "")))

    async def load(self, table: Table, rows: Sequence[Row]) -> None:
        await self._in_thread(lambda: self._connection.sql.load(table.name, columns_of(table), rows))

    @asynccontextmanager
    async def writing(self, scope: str, source: str) -> AsyncIterator[None]:
        marker = {"scope": scope, "source": source}
        async with self.changing():
            there = await self.fetch(f"SELECT 1 FROM sqlite_master WHERE name = '{MARKER}'", {})
            if not there or not await self.fetch(_HELD, marker):
                raise StorageError(ENDED)
            await self._in_thread(
                lambda: self._execute_all(f"DROP TRIGGER IF EXISTS {name}" for name in SQLITE_TRIGGERS)
            )
            yield
            await self._in_thread(lambda: self._execute_all(SQLITE_TRIGGERS.values()))

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        await self._in_thread(lambda: self._connection.execute("BEGIN IMMEDIATE"))
        try:
            yield
            await self._in_thread(self._connection.commit)
        except BaseException:
            self._connection.rollback()
            raise

    def _execute_all(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self._connection.execute(statement)

    async def close(self) -> None:
        if self._connection.in_transaction:
            self._connection.rollback()
        await asyncio.to_thread(self._connection.close)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        async with self._turn:
            running = asyncio.ensure_future(_in_thread(work))
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                await asyncio.wait([running])  # nobody uses the connection beside a thread that still does
                raise


def _page(cursor: Iterator[Row]) -> list[Row]:
    rows, size = [], 0
    for row in cursor:
        rows.append(row)
        size += CELL_BYTES * len(row) + len(marshal.dumps(row, 2))  # a third of the cost of a size for each cell
        if size >= PAGE_BYTES:
            break
    return rows


def _text_or_bytes(stored: bytes) -> str | bytes:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except Exception as error:
        _raise(error)


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


class PostgresqlSide:
    dialect = "postgresql"

    def __init__(self, engine: Any, connection: Any, schema: str, name: str) -> None:
        self._engine = engine
        self._connection = connection
        self._driver: Any = None
        self._turn = asyncio.Lock()  # one statement at a time
        self._snapshot: Any = None
        self._schema = schema
        self.secured = False
        """Row-level security holds for the role, so rows are not sent by COPY."""
        self.name = name

    @classmethod
    async def open(cls, url: URL, schema: str) -> PostgresqlSide:
        engine = create_postgresql_engine(url)
        try:
            connection = await engine.connect()
            side = cls(engine, connection, schema, without_password(url))
            side._driver = (await connection.get_raw_connection()).driver_connection
            await side._driver.execute(_UNHURRIED)
        except BaseException as error:
            await engine.dispose()
            if not isinstance(error, Exception):
                raise
            _raise(error)
        return side

    async def sync(self, work: Callable[[Connection], T]) -> T:
        """Work on SQLAlchemy's connection, outside of the transactions of a copy."""
        try:
            return cast(T, await self._connection.run_sync(work))
        except Exception as error:
            _raise(error)
        finally:
            await self._connection.rollback()

    async def begin(self) -> None:
        # By the driver's own call: asyncpg 0.30 opens no cursor in a transaction that a statement began.
        self._snapshot = self._driver.transaction(isolation="repeatable_read", readonly=True)
        await self._snapshot.start()

    async def end(self) -> None:
        await self._snapshot.rollback()

    async def fetch(self, template: str, values: Values) -> Sequence[Row]:
        text, pick = self._prepared(template)
        try:
            async with self._turn:
                return [tuple(row) for row in await self._driver.fetch(text, *pick(values))]
        except Exception as error:
            _raise(error)

    async def batches(self, selection: Selection, values: Values) -> AsyncIterator[Sequence[Row]]:
        pages = await self.fetch(selection.pages, values)
        if not pages:
            return
        text, pick = self._prepared(selection.rows)
        try:
            async with self._turn:
                cursor = await self._driver.cursor(text, *pick(values))
            for (count,) in pages:
                async with self._turn:
                    rows = [tuple(record) for record in await cursor.fetch(count)]
                yield rows
        except Exception as error:
            _raise(error)

    async def run(self, template: str, rows: Sequence[Values]) -> None:
        text, pick = self._prepared(template)
        try:
            await self._driver.executemany(text, [pick(row) for row in rows])
        except Exception as error:
            _raise(error)

    async def execute(self, template: str) -> None:
        try:
            await self._driver.execute(template.replace("{schema}", f'"{self._schema}".'))
        except Exception as error:
            _raise(error)

    async def load(self, table: Table, rows: Sequence[Row]) -> None:
        columns, cells = columns_of(table), to_driver(table, rows)
        try:
            if not self.secured:
                await self._driver.copy_records_to_table(
                    table.name, schema_name=self._schema, columns=columns, records=cells
                )
                return
            places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
            text = f'INSERT INTO "{self._schema}".{table.name} ({", ".join(columns)}) VALUES ({places})'
            await self._driver.executemany(text, cells)
        except Exception as error:
            _raise(error)

    @asynccontextmanager
    async def writing(self, scope: str, source: str) -> AsyncIterator[None]:
        marker = {"scope": scope, "source": source}
        async with self._transaction(f"{_TO_ALL_SERVERS}; SET LOCAL {SETTING} = '{source}'"):
            ((there,),) = await self.fetch(f"SELECT to_regclass('{{schema}}{MARKER}') IS NOT NULL", {})
            if not there or not await self.fetch(f"{_HELD} FOR SHARE", marker):
                raise StorageError(ENDED)
            yield

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        async with self._transaction(_CHANGING):
            yield

    @asynccontextmanager
    async def _transaction(self, setting: str) -> AsyncIterator[None]:
        try:
            await self._driver.execute(f"BEGIN; {setting}")
            yield
            await self._driver.execute("COMMIT")
        except BaseException as error:
            if not self._driver.is_closed() and self._driver.is_in_transaction():
                await asyncio.shield(self._driver.execute("ROLLBACK"))
            if not isinstance(error, Exception):
                raise
            _raise(error)

    async def close(self) -> None:
        await self._connection.close()
        await self._engine.dispose()

    def _prepared(self, template: str) -> tuple[str, Callable[[Values], Sequence[Any]]]:
        text, pick = prepare(template, "postgresql", self._schema)
        assert pick is not None
        return text, pick


_UNHURRIED = f"SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET {MIGRATING} = 'on'"
"""A copy takes as long as it takes. The owner of the tables sees every tenant's rows, as in a migration."""


_HELD = f"SELECT 1 FROM {{schema}}{MARKER} WHERE scope = :scope AND source = :source"
_TO_ALL_SERVERS = "SET LOCAL citus.propagate_set_commands = 'local'"
_CHANGING = f"SET LOCAL lock_timeout = '30s'; SET LOCAL citus.enable_unsafe_triggers = on; {SEQUENTIAL}"
"""Citus asks for these. A plain PostgreSQL accepts the settings too, and does not use them."""


_UNDECODED = re.compile("Could not decode to UTF-8 column '([^']*)'")


def _raise(error: Exception) -> NoReturn:
    failure = read_failure(error)
    undecoded = _UNDECODED.match(failure.detail) if failure is not None else None
    if undecoded is not None:  # the rest of the driver's words is the text
        raise NotUtf8(undecoded[1]) from None
    if failure is not None and failure.kind is Kind.UNIQUE:
        raise DuplicateKey(failure.detail) from error
    if type(error).__module__.startswith("asyncpg") and "DataError" in {kind.__name__ for kind in type(error).__mro__}:
        raise StorageError(f"a cell of the source has a value that PostgreSQL cannot store: {error}") from error
    raise_translated(error)
