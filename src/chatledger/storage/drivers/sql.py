"""A connection as the storage uses it: it runs Core statements and, where speed matters, the driver's own calls.

Storage functions are plain functions with a `ReadSql` or a `WriteSql` as first argument. Their caller decides where
they run: in the writer's thread of a SQLite file, or in a greenlet over an asynchronous driver. So the same code serves
both databases, the ledger's own transactions and a caller's, and a whole operation crosses to the driver once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import lru_cache
from itertools import count
from operator import itemgetter
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, CursorResult, Executable, SelectBase, Table, TextClause
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.visitors import iterate

from chatledger.errors import StorageError
from chatledger.storage.schema.tables import SCHEMA
from chatledger.storage.schema.text import to_microseconds

T = TypeVar("T")

Row = Sequence[Any]

_PARAMETER = re.compile(r"(?<!:):([a-z_][a-z_0-9]*)")


class Driver(Protocol):
    """Runs statement texts in the database driver's own style of parameters."""

    def fetch(self, text: str, values: Any) -> Sequence[Row]: ...

    def each(self, text: str, values: Any) -> Iterable[Row]:
        """The rows one after the other: SQLite makes a row when it is asked for."""
        ...

    def insert(self, text: str, rows: Sequence[Any]) -> None: ...

    def copy(
        self, table: str, schema: str | None, columns: Sequence[str], rows: Sequence[Row], conflict: str = ""
    ) -> bool:
        """Load many rows in the driver's own way. Returns False, with nothing done, if it has none."""
        ...

    def awaiting(self) -> AbstractContextManager[object]:
        """Around a statement that SQLAlchemy sends: raises TimeoutError if its answer takes longer than the limit."""
        ...


class SqlalchemyDriver:
    """Reaches the driver through SQLAlchemy, for transactions that SQLAlchemy or its user began."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def fetch(self, text: str, values: Any) -> Sequence[Row]:
        result = self._connection.exec_driver_sql(text, tuple(values) if isinstance(values, list) else values)
        return result.all() if result.returns_rows else ()

    def each(self, text: str, values: Any) -> Iterable[Row]:
        return self._connection.exec_driver_sql(text, tuple(values) if isinstance(values, list) else values)

    def insert(self, text: str, rows: Sequence[Any]) -> None:
        self._connection.exec_driver_sql(text, list(rows))

    def copy(
        self, table: str, schema: str | None, columns: Sequence[str], rows: Sequence[Row], conflict: str = ""
    ) -> bool:
        return False

    def awaiting(self) -> AbstractContextManager[object]:
        return nullcontext()


class ReadSql:
    """One connection inside one transaction (or in autocommit), and the schema of the ledger's tables there, for work
    that reads. It refuses a statement that writes before it sends it: PostgreSQL would commit it.

    `distributed`: the tables are distributed over several servers.
    """

    __slots__ = ("_driver", "_options", "by_table", "connection", "dialect", "distributed", "is_given_up", "schema")

    def __init__(
        self, connection: Connection, schema: str | None, driver: Driver | None = None, *, distributed: bool = False
    ) -> None:
        self.connection = connection
        self.schema = schema
        self.dialect = connection.dialect.name
        self.distributed = distributed
        self.by_table = distributed or self.dialect != "postgresql"
        """A statement writes one table, and an append is several statements in a transaction. SQLite knows no other
        statements. A distributed PostgreSQL would run a statement that writes several tables in pieces, on each of its
        servers, and commit them in two phases.
        """
        self.is_given_up: Callable[[], bool] | None = None
        """Whether the caller of the work that runs no longer waits for it. Only the writer of a SQLite file asks: on
        PostgreSQL, the statement that runs ends with its caller.
        """
        self._driver = driver or SqlalchemyDriver(connection)
        self._options: Any = {"schema_translate_map": {SCHEMA: schema}}

    def go_on(self) -> None:
        """Long work calls this between its steps. Raises StorageError if nobody waits for it, so that it is undone."""
        if self.is_given_up is not None and self.is_given_up():
            raise StorageError("the caller no longer waits for this call, so it was undone", retryable=True)

    def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """Run a Core statement."""
        refuse_write(statement)
        return self._execute(statement, parameters)

    def fetch(self, template: str, parameters: Mapping[str, Any]) -> Sequence[Row]:
        """Run a statement text and return its rows. It writes parameters as `:name` and tables as `{schema}table`."""
        refuse_writing_text(template)
        return self._fetch(template, parameters)

    def each(self, template: str, parameters: Mapping[str, Any]) -> Iterable[Row]:
        """As `fetch`, but a caller that stops after some rows of SQLite has read no others."""
        refuse_writing_text(template)
        text, pick = prepare(template, self.dialect, self.schema, distributed=self.distributed)
        return self._driver.each(text, parameters if pick is None else [*pick(parameters), *parameters.get(CELLS, ())])

    def moment(self, time: datetime) -> datetime | int:
        """The time as a parameter of a statement text: SQLite stores microseconds."""
        return time if self.dialect == "postgresql" else to_microseconds(time)

    def _execute(self, statement: Executable, parameters: Any) -> CursorResult[Any]:
        with self._driver.awaiting():
            return self.connection.execute(statement, parameters, execution_options=self._options)

    def _fetch(self, template: str, parameters: Mapping[str, Any]) -> Sequence[Row]:
        text, pick = prepare(template, self.dialect, self.schema, distributed=self.distributed)
        return self._driver.fetch(text, parameters if pick is None else [*pick(parameters), *parameters.get(CELLS, ())])


class WriteSql(ReadSql):
    """The same connection for work that writes, inside a transaction of its own or of the caller."""

    __slots__ = ()

    def reading(self) -> ReadSql:
        """The connection for work that only reads."""
        sql = ReadSql(self.connection, self.schema, self._driver, distributed=self.distributed)
        sql.is_given_up = self.is_given_up
        return sql

    def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        return self._execute(statement, parameters)

    def fetch(self, template: str, parameters: Mapping[str, Any]) -> Sequence[Row]:
        return self._fetch(template, parameters)

    def insert(self, template: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement text once for each row, in one call of the driver."""
        text, pick = prepare(template, self.dialect, self.schema, distributed=self.distributed)
        self._driver.insert(text, rows if pick is None else list(map(pick, rows)))

    def load(self, table: str, columns: Sequence[str], rows: Sequence[Row], conflict: str = "") -> None:
        """Insert many rows into one table, in the driver's own way of loading if it has one. `conflict` is the clause
        for rows that are stored already.
        """
        if self._driver.copy(table, self.schema, columns, rows, conflict):
            return
        values = ", ".join(f":{column}" for column in columns)
        template = f"INSERT INTO {{schema}}{table} ({', '.join(columns)}) VALUES ({values}){conflict}"
        self.insert(template, [dict(zip(columns, row, strict=True)) for row in rows])


def reading(work: Callable[[ReadSql], T]) -> Callable[[WriteSql], T]:
    """The work on a connection that refuses what writes."""
    return lambda sql: work(sql.reading())


# --- What a read may send ---------------------------------------------------------------------------------------------

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_READS = re.compile(r"[\s(]*(SELECT|WITH|VALUES)\b", re.IGNORECASE)
_WRITES = re.compile(r"[()]\s*(INSERT|UPDATE|DELETE|MERGE|REPLACE)\s+[^\s(]|;\s*\S", re.IGNORECASE)
"""A statement in brackets or behind a CTE, or a second statement."""
_NO_READ = "a read may not change the database: it sends SELECT, WITH and VALUES only, without INSERT, UPDATE or DELETE"


@lru_cache(maxsize=512)
def refuse_writing_text(template: str) -> None:
    """Raises ValueError for a text that writes: it is a mistake of ours, which no input can make."""
    text = _QUOTED.sub(" ", template)
    if _READS.match(text) is None or _WRITES.search(text) is not None:
        raise ValueError(_NO_READ)


def refuse_write(statement: Executable) -> None:
    """Raises ValueError for a Core statement that writes, also in a CTE."""
    if isinstance(statement, TextClause):
        refuse_writing_text(statement.text)
    elif not isinstance(statement, SelectBase) or any(
        getattr(element, "is_dml", False) for element in iterate(statement)
    ):
        raise ValueError(_NO_READ)


def insert_if_absent(sql: WriteSql, table: Table) -> postgresql.Insert | sqlite.Insert:
    """INSERT … ON CONFLICT DO NOTHING, because a statement that fails would end a PostgreSQL transaction."""
    if sql.dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


OR_RECORDED = " UNION ALL SELECT 1 FROM {schema}chatledger_version WHERE encrypted_at IS NOT NULL"
"""What `{or_recorded}` stands for after a query for the mark of a tenant: the record that the whole database is
encrypted. A distributed database runs a statement on the one server that has the tenant's rows. The record is on the
coordinator, so there a statement of its own reads it (`rows/encrypted.py`).
"""


Pick = Callable[[Mapping[str, Any]], Sequence[Any]]
"""Picks the values of a statement in the order of its numbered parameters. Its cells, if any, come after them."""
CELLS = "cells"
"""The parameter that holds the values of all places `{cell}` of a statement text, in their order."""


@lru_cache(maxsize=512)
def prepare(template: str, dialect: str, schema: str | None, *, distributed: bool = False) -> tuple[str, Pick | None]:
    """The statement text in the driver's style. For PostgreSQL, which numbers parameters, also what picks them."""
    text = template.replace("{or_recorded}", "" if distributed else OR_RECORDED)
    text = text.replace("{schema}", f'"{schema}".' if schema else "")
    if dialect != "postgresql":
        return text, None
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    text = _PARAMETER.sub(number, text)
    cells = count(len(names) + 1)
    text = re.sub(re.escape("{cell}"), lambda _: f"${next(cells)}", text)
    if len(names) < 2:  # an itemgetter of one name returns no tuple
        return text, lambda parameters: [parameters[name] for name in names]
    return text, itemgetter(*names)
