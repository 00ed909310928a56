"""The ledger's own connection to a SQLite file: SQLAlchemy's for Core statements, the driver's for the fast paths.

Transactions begin and end on the driver's connection. SQLAlchemy runs in autocommit, where it begins and commits
nothing.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from chatledger.errors import StorageError
from chatledger.storage.drivers.sql import Row, WriteSql
from chatledger.storage.drivers.urls import BUSY_TIMEOUT, MEMORY, sqlite_pragmas

PAGE_SIZE = "PRAGMA page_size = 8192"
"""The page size of a file that this connection creates; an existing file keeps its own. A page of the default 4,096
bytes holds up to three messages and leaves a sixth of itself empty. Commits take equally long with both sizes.
"""
UNTRUSTED = "PRAGMA trusted_schema = OFF"
"""A file may come from somebody else: what its schema calls may not have effects outside of the database."""


class SqliteDriver:
    __slots__ = ("connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection: sqlite3.Connection = connection

    def fetch(self, text: str, values: Any) -> Sequence[Row]:
        return self.connection.execute(text, values).fetchall()

    def each(self, text: str, values: Any) -> Iterable[Row]:
        return self.connection.execute(text, values)

    def insert(self, text: str, rows: Sequence[Any]) -> None:
        self.connection.executemany(text, rows)

    def copy(
        self, table: str, schema: str | None, columns: Sequence[str], rows: Sequence[Row], conflict: str = ""
    ) -> bool:
        marks = ", ".join("?" * len(columns))
        self.connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}){conflict}", rows)
        return True

    def awaiting(self) -> AbstractContextManager[object]:
        return nullcontext()


class SqliteConnection:
    """One connection, used by one thread at a time."""

    def __init__(self, path: str, *, read_only: bool = False, timeout: float = BUSY_TIMEOUT) -> None:
        """`timeout`: the seconds to wait for another process's lock."""
        self._driver = _connect(path, read_only=read_only, timeout=timeout)
        engine = create_engine("sqlite://", creator=lambda: self._driver, poolclass=NullPool, hide_parameters=True)
        self._connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self.sql: WriteSql = WriteSql(self._connection, None, SqliteDriver(self._driver))

    @property
    def in_transaction(self) -> bool:
        return self._driver.in_transaction

    def execute(self, text: str) -> None:
        self._driver.execute(text)

    def data_version(self) -> int:
        """A number that changes when another connection, of this process or another, commits to the file."""
        version: int = self._driver.execute("PRAGMA data_version").fetchone()[0]
        return version

    @contextmanager
    def transaction(self, begin: str = "BEGIN") -> Iterator[WriteSql]:
        """Commits on exit, rolls back on an exception."""
        self.execute(begin)
        try:
            yield self.sql
            self.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise
        finally:
            self._forget()

    def rollback(self) -> None:
        if self._driver.in_transaction:  # after some failures (a full disk) SQLite has rolled back already
            self.execute("ROLLBACK")
        self._forget()

    def commit(self) -> None:
        self.execute("COMMIT")
        self._forget()

    def _forget(self) -> None:
        """End the transaction that SQLAlchemy believes to be in. The database's own has ended already."""
        if self._connection.in_transaction():
            self._connection.rollback()

    def interrupt(self) -> None:
        """Let the statement that runs fail. Any thread may call this."""
        self._driver.interrupt()

    def close(self) -> None:
        self._connection.detach()  # or the pool would set it up for its next user, which fails after an interrupt
        self._connection.close()
        self._driver.close()


def create_private(path: str | Path) -> None:
    """Create an empty file that only its owner can read and write, unless the file exists. SQLite would create it with
    the umask, which lets others read it in most places. SQLite gives the WAL beside a file the mode of the file.
    """
    with suppress(OSError):  # SQLite reports an impossible path
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def file_uri(path: str | Path, mode: str) -> str:
    """The URI of a file for `sqlite3.connect`.

    SQLite reads a file that uses a WAL only if it can create the WAL. On a read-only file system it cannot. There
    SQLite must be told that the file is immutable: that it has no WAL, and that nobody writes to it while it is open.
    """
    return f"file:{quote(str(path))}?mode={mode}" + ("" if _can_have_wal(path) else "&immutable=1")


def _can_have_wal(path: str | Path) -> bool:
    file = os.path.realpath(path)
    return os.path.exists(f"{file}-wal") or os.access(os.path.dirname(file), os.W_OK)


def _refuse_read_only(path: str) -> None:
    """Raises StorageError for a file that can be read only. SQLite would refuse each write, without the file's name."""
    if os.path.exists(path) and not (os.access(path, os.W_OK) and _can_have_wal(path)):
        raise StorageError(f"cannot write to {path}: the file or its folder is read-only")


def _connect(path: str, *, read_only: bool, timeout: float) -> sqlite3.Connection:
    if path != MEMORY and not read_only:
        _refuse_read_only(path)
        create_private(path)
    connection = sqlite3.connect(
        MEMORY if path == MEMORY else file_uri(path, "ro" if read_only else "rwc"),
        uri=path != MEMORY,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,  # one thread may open or use it and another close it, but never at the same time
        cached_statements=256,
    )
    try:
        for pragma in (PAGE_SIZE, UNTRUSTED, *sqlite_pragmas(timeout)):
            if "journal_mode" not in pragma:
                connection.execute(pragma)
            elif not read_only:
                _set_journal(connection, pragma, timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_journal(connection: sqlite3.Connection, pragma: str, timeout: float) -> None:
    """Switch the journal to a WAL. Two processes that create a file at the same time both do so. SQLite does not wait
    for that lock, whatever its timeout, because it could be waiting for itself. So this function waits.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute(pragma)
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
