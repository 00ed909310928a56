"""Inspects the file at a path before the ledger opens it.

The inspection changes nothing: it creates no file and sets no pragma and no journal. So a file that was named by
mistake stays as it is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from chatledger.errors import StorageError
from chatledger.storage.drivers.errors import translate
from chatledger.storage.drivers.sqlite import file_uri
from chatledger.storage.drivers.urls import BUSY_TIMEOUT
from chatledger.storage.upgrade.intruders import find_intruders
from chatledger.storage.upgrade.versions import VERSION_TABLE, SchemaStatus, status_of


@dataclass(frozen=True, slots=True)
class FileState:
    status: SchemaStatus
    foreign: bool
    """The file has tables, but none of chatledger's."""
    intruders: Sequence[str] = ()
    """What of the file would run with the ledger and is not of its schema."""


def inspect_file(path: str) -> FileState:
    """Inspect the file. Raises StorageError if it is no SQLite database, or if its folder does not exist."""
    require_folder(path)
    if os.path.isdir(path):  # unlike Path's, these questions have an answer for a name that is too long
        raise StorageError(f"cannot open {path}: it is a folder; pass the path of a file")
    if not os.path.exists(path):
        return FileState(status_of(None), foreign=False)
    try:
        # Not mode=ro: a read-only connection to a file with a WAL leaves the WAL's files behind.
        with closing(sqlite3.connect(file_uri(path, "rw"), uri=True, timeout=BUSY_TIMEOUT)) as connection:
            return _read_state(connection)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_CANTOPEN" and Path(f"{path}-wal").exists():
            detail = f"its WAL, {path}-wal, cannot be read in a read-only folder; copy both files to another"
            raise StorageError(f"cannot open {path}: {detail}") from error
        raise file_error(path, f"cannot open {path}", error) from error


def require_folder(path: str | Path) -> None:
    """Raises StorageError if the folder of that path does not exist."""
    if not os.path.isdir(Path(path).parent):
        raise StorageError(f"cannot open {path}: the folder {Path(path).parent} does not exist; create it first")


def file_error(path: str | Path, failed: str, error: sqlite3.Error) -> StorageError:
    """SQLite's error as a StorageError, with the file's name and the action that failed."""
    if getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB":
        return StorageError(f"{path} is not a SQLite database")
    ours = translate(error)
    retryable = isinstance(ours, StorageError) and ours.retryable
    return StorageError(f"{failed}: {error}", retryable=retryable)


def _read_state(connection: sqlite3.Connection) -> FileState:
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if VERSION_TABLE not in names:
        return FileState(status_of(None), foreign=bool(names))
    rows = connection.execute(f"SELECT * FROM {VERSION_TABLE}")
    row = dict(zip([column[0] for column in rows.description], rows.fetchone() or (), strict=False))
    status = replace(status_of(row.get("version_num")), encrypted=row.get("encrypted_at") is not None)
    return FileState(status, foreign=False, intruders=find_intruders(connection, status.found))
