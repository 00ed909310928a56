"""Runs one SQL statement of a person, which cannot change anything: for analysts, beside the calls of the ledger.

On PostgreSQL it runs in a READ ONLY transaction. A SQLite file is opened with `mode=ro` and `PRAGMA query_only`, and an
authorizer refuses all that is no read, such as ATTACH or VACUUM INTO, which would write another file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import URL

from chatledger.errors import StorageError
from chatledger.storage.drivers.errors import translate
from chatledger.storage.drivers.sqlite import file_uri
from chatledger.storage.drivers.urls import MEMORY, create_postgresql_engine, sqlite_path
from chatledger.storage.schema.row_security import begin_as
from chatledger.storage.upgrade.versions import require_schema_name

Take = Callable[[Sequence[str], Sequence[Any]], bool]
"""Takes a row with the names of its columns. Returns False if it wants no more."""

_BATCH = 500
_READS = frozenset(
    [sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE],
)
_PRAGMAS = frozenset(
    ["table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list", "database_list"]
)


def read_sqlite(url: URL, statement: str, take: Take) -> None:
    """Pass the rows of a statement to `take`, one after the other: first a call with the columns and no row."""
    path = sqlite_path(url)
    if path == MEMORY:
        raise StorageError("a database in memory belongs to one process: give the path of a file")
    try:
        with closing(sqlite3.connect(file_uri(path, "ro"), uri=True, isolation_level=None)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT count(*) FROM sqlite_master")  # for a file that is no database
            connection.set_authorizer(_authorize)
            connection.set_progress_handler(lambda: 0, 100_000)  # runs Python, and so Ctrl-C is noticed
            rows = connection.execute(statement)
            columns = _columns([column[0] for column in rows.description or ()])
            _pass_on(columns, rows, take)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _failed(error) from error


def _pass_on(columns: Sequence[str], rows: sqlite3.Cursor, take: Take) -> None:
    if take(columns, ()):
        for row in rows:
            if not take(columns, row):
                return


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    allowed = action in _READS or (action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS)
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _failed(error: Exception) -> StorageError:
    if "not authorized" in str(error) or "readonly database" in str(error):
        return StorageError(f"only statements that read are allowed: {error}")
    return StorageError(f"the statement failed: {error}")


async def read_postgresql(url: URL, schema: str, tenant: str, statement: str, take: Take) -> None:
    """The same on PostgreSQL. `schema` leads the search path. With row-level security, the tenant's rows are read."""
    from asyncpg import InterfaceError, PostgresError

    engine = create_postgresql_engine(url)
    try:
        async with engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            await driver.execute(begin_as("BEGIN READ ONLY", tenant))
            await driver.execute(f'SET LOCAL search_path TO "{require_schema_name(schema)}", public')
            try:
                await _stream(driver, statement, take)
            except (PostgresError, InterfaceError) as error:
                raise _refused(error) from error
            finally:
                if not driver.is_closed():
                    await driver.execute("ROLLBACK")
    except StorageError:
        raise
    except Exception as error:
        ours = translate(error)
        if ours is None:
            raise
        raise ours from error
    finally:
        await engine.dispose()


async def _stream(driver: Any, statement: str, take: Take) -> None:
    prepared = await driver.prepare(statement)  # refuses several statements, the second of which could be a COMMIT
    columns = _columns([attribute.name for attribute in prepared.get_attributes()])
    if take(columns, ()):
        cursor = await prepared.cursor()
        while rows := await cursor.fetch(_BATCH):
            for row in rows:
                if not take(columns, tuple(row)):
                    return


def _columns(names: Sequence[str]) -> list[str]:
    """The names, each once: a second `count` is `count_2`. Raises StorageError for a statement that returns no rows."""
    if not names:
        raise StorageError("the statement returns no rows: give one SELECT")
    columns: list[str] = []
    for name in names:
        number, other = 2, name
        while other in columns:
            other, number = f"{name}_{number}", number + 1
        columns.append(other)
    return columns


def _refused(error: Exception) -> StorageError:
    if getattr(error, "sqlstate", None) == "25006":  # read_only_sql_transaction
        return StorageError(f"only statements that read are allowed: {error}")
    hint = getattr(error, "hint", None)
    return StorageError(f"the statement failed: {error}" + (f" ({hint})" if hint else ""))
