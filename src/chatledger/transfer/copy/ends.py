"""Opens the two ends of a copy: the source for reading only, the target at this release's schema."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shlex
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection

from chatledger.errors import SchemaMismatch, StorageError
from chatledger.storage.databases.open import prepare_file
from chatledger.storage.drivers.errors import raise_translated
from chatledger.storage.drivers.new_file import stands_there
from chatledger.storage.drivers.sqlite import file_uri
from chatledger.storage.drivers.urls import (
    BUSY_TIMEOUT,
    MEMORY,
    create_postgresql_engine,
    load_driver,
    sqlite_path,
    without_password,
)
from chatledger.storage.schema.copy_triggers import MARKER
from chatledger.storage.schema.row_security import agreed, require_all_rows
from chatledger.storage.upgrade.discard import ADDED
from chatledger.storage.upgrade.files import file_error, require_folder
from chatledger.storage.upgrade.intruders import find_intruders, refuse_intruders
from chatledger.storage.upgrade.migrate import upgrade_engine
from chatledger.storage.upgrade.versions import (
    HEAD,
    VERSION_TABLE,
    SchemaStatus,
    read_status,
    require_usable,
    status_of,
)
from chatledger.transfer.copy.sides import PostgresqlSide, Side, SqliteSide

OLDEST = "0006"
"""The revision of the oldest source that is read as it is."""


@dataclass(frozen=True)
class CopySource:
    """The database that is read. `identity` tells it from another one; `address` did before its migration to 0007.
    `lacking`: the tables and columns that its revision does not have yet.
    """

    side: Side
    identity: str
    address: str
    lacking: frozenset[str]


def is_file(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def command(url: URL) -> str:
    return f"chatledger migrate --url {shlex.quote(sqlite_path(url) if is_file(url) else without_password(url))}"


# --- The source -------------------------------------------------------------------------------------------------------


async def open_source(url: URL, schema: str) -> CopySource:
    """Raises StorageError for a missing database, and SchemaMismatch for one of a revision that cannot be read."""
    if is_file(url):
        version = await asyncio.to_thread(_read_file, url)
        side: Side = await SqliteSide.open(url, read_only=True)
        await side.begin()
    else:
        await asyncio.to_thread(load_driver)
        postgresql = await PostgresqlSide.open(url, schema)
        side = postgresql
        try:
            version = await postgresql.sync(lambda connection: _read_version(connection, schema))
            await side.begin()
        except BaseException:
            await side.close()
            raise
    try:
        _require_readable(version, url)
    except BaseException:
        await side.close()
        raise
    revision = version["version_num"]
    lacking = {name for added_by, names in ADDED.items() if added_by > revision for name in names}
    address = _address(url, schema)
    return CopySource(side, version.get("database_id") or address, address, frozenset(lacking))


def _read_file(url: URL) -> Mapping[str, Any]:
    path = sqlite_path(url)
    if path == MEMORY:
        raise StorageError("a database in memory belongs to one process: give the path of a file")
    if not os.path.isfile(path):
        raise StorageError(f"there is no database {path}; check --from")
    try:
        with closing(sqlite3.connect(file_uri(path, "ro"), uri=True, timeout=BUSY_TIMEOUT)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [VERSION_TABLE]).fetchall():
                return {}
            rows = connection.execute(f"SELECT * FROM {VERSION_TABLE}")
            row = dict(zip([column[0] for column in rows.description], rows.fetchone() or (), strict=False))
            refuse_intruders(find_intruders(connection, row.get("version_num")), path, url)
            return row
    except sqlite3.Error as error:
        raise file_error(path, f"cannot open {path}", error) from error


def _read_version(connection: Connection, schema: str) -> Mapping[str, Any]:
    status = read_status(connection, schema)
    if status.found is None:
        return {}
    require_all_rows(connection, schema)
    row = connection.exec_driver_sql(f'SELECT * FROM "{schema}".{VERSION_TABLE}').mappings().one()
    return dict(row)


def _require_readable(version: Mapping[str, Any], url: URL) -> None:
    revision = version.get("version_num")
    if revision is None:
        raise SchemaMismatch(None, HEAD, command(url), f"{_name(url)} has no tables of chatledger; check --from")
    if not OLDEST <= revision <= HEAD:
        require_usable(status_of(revision), command(url))
        detail = f"{_name(url)} is at schema {revision}, newer than this release can copy ({HEAD})"
        raise SchemaMismatch(revision, HEAD, "pip install -U chatledger", detail)


def _name(url: URL) -> str:
    return sqlite_path(url) if is_file(url) else without_password(url)


def _address(url: URL, schema: str) -> str:
    """The identity of a source that has none of its own yet."""
    place = os.path.realpath(sqlite_path(url)) if is_file(url) else f"{url.host}:{url.port}/{url.database}/{schema}"
    return f"at-{hashlib.sha256(place.encode()).hexdigest()[:32]}"


# --- The target -------------------------------------------------------------------------------------------------------


async def open_target(url: URL, schema: str, *, create: bool, read_only: bool) -> Side:
    """A database at this release's schema. With `create`, a missing or an empty one gets the tables, and an older
    one without rows is migrated.
    """
    if is_file(url):
        await asyncio.to_thread(_prepare_file, url, create=create)
        return await SqliteSide.open(url, read_only=read_only)
    await asyncio.to_thread(load_driver)
    if create:
        await _prepare_postgresql(url, schema)
    postgresql = await PostgresqlSide.open(url, schema)
    try:
        postgresql.secured = await postgresql.sync(lambda connection: _require_target(connection, schema, url))
    except BaseException:
        await postgresql.close()
        raise
    return postgresql


def _prepare_file(url: URL, *, create: bool) -> None:
    path = sqlite_path(url)
    if path == MEMORY:
        raise StorageError("a database in memory belongs to one process: give the path of a file")
    require_folder(path)
    if not create and not os.path.exists(path):
        raise StorageError(f"there is no database {path}; check --to")
    if create and not os.path.lexists(path):
        beside = stands_there(Path(path))
        if beside is not None:
            raise StorageError(f"{beside} stands beside {path}, which is missing; move it away, or choose another name")
        _make_private(path)
    _require_empty_if_old(path)
    prepare_file(path, migrate=create, url=url)


def _make_private(path: str) -> None:
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    try:
        os.close(os.open(path, flags, 0o600))
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def _require_empty_if_old(path: str) -> None:
    """Raises SchemaMismatch for an older file with rows: no copy made it, and no copy migrates what others use."""
    with closing(sqlite3.connect(file_uri(path, "rw"), uri=True, timeout=BUSY_TIMEOUT)) as connection:
        try:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            rows = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}") if VERSION_TABLE in names else ()
            status = status_of(next((row[0] for row in rows), None))
            if status.older and any(
                connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchall() for name in names & _FIRST
            ):
                raise _old_with_rows(path, status, begun=MARKER in names)
        except sqlite3.Error as error:
            raise file_error(path, f"cannot open {path}", error) from error


_FIRST = {"threads", "kv"}
"""The tables of the oldest and of later revisions that have rows if any has."""


def _old_with_rows(name: str, status: SchemaStatus, *, begun: bool) -> StorageError:
    if begun:
        there = f"a copy into {name} was begun by an older release, at schema {status.found}; end it there with --done"
        return StorageError(f"{there}, or copy into a new or an empty database")
    return StorageError(
        f"{name} has rows already, at the older schema {status.found}, and no copy put them there; copy into a new or "
        "an empty database"
    )


async def _prepare_postgresql(url: URL, schema: str) -> None:
    engine = create_postgresql_engine(url)
    try:
        async with engine.connect() as connection:
            status = await connection.run_sync(read_status, schema)
            if status.older and await connection.run_sync(_has_rows, schema):
                raise await connection.run_sync(_old_postgresql, schema, url, status)
        if status.found is None or status.older:
            await upgrade_engine(engine, schema)
    except Exception as error:
        raise_translated(error)
    finally:
        await engine.dispose()


def _old_postgresql(connection: Connection, schema: str, url: URL, status: SchemaStatus) -> StorageError:
    return _old_with_rows(without_password(url), status, begun=_has_table(connection, schema, MARKER))


def _has_rows(connection: Connection, schema: str) -> bool:
    require_all_rows(connection, schema)
    connection.exec_driver_sql("SET LOCAL chatledger.migrating = 'on'")
    return any(
        connection.exec_driver_sql(f'SELECT 1 FROM "{schema}".{name} LIMIT 1').first() is not None
        for name in _FIRST
        if _has_table(connection, schema, name)
    )


def _has_table(connection: Connection, schema: str, name: str) -> bool:
    return connection.exec_driver_sql(f"SELECT to_regclass('\"{schema}\".{name}')").scalar() is not None


def _require_target(connection: Connection, schema: str, url: URL) -> bool:
    """Whether row-level security holds for the role."""
    status = read_status(connection, schema)
    if status.older and _has_table(connection, schema, MARKER):
        raise _old_postgresql(connection, schema, url, status)
    require_usable(status, command(url))
    require_all_rows(connection, schema)
    return agreed(connection, schema, None, command(url))


# --- Both -------------------------------------------------------------------------------------------------------------


def require_two(source: URL, target: URL) -> None:
    """Raises StorageError if both are one database."""
    if is_file(source) and is_file(target):
        paths = [os.path.realpath(sqlite_path(url)) for url in (source, target)]
        same = paths[0] == paths[1] or (all(map(os.path.exists, paths)) and os.path.samefile(*paths))
    else:
        places = [(url.host, url.port or 5432, url.database, url.get_backend_name()) for url in (source, target)]
        same = places[0] == places[1] and not is_file(source)
    if same:
        raise StorageError("--from and --to are the same database")
