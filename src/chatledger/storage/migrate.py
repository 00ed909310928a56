"""Carrying a database from one revision to another, with Alembic, which is loaded here and nowhere else.

One migrator at a time: a session advisory lock on PostgreSQL, the write lock on SQLite. A SQLite file is first copied
with SQLite's own backup to `<file>.<revision>.bak`; its migrations then run in one transaction, all or none.
"""

from __future__ import annotations

import asyncio
import io
import sqlite3
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncEngine

from chatledger.errors import ChatLedgerError, StorageError
from chatledger.storage.constraints import translate
from chatledger.storage.engine import MEMORY, create_postgresql_engine, read_url, sqlite_path
from chatledger.storage.schema import HEAD, SchemaStatus, read_status
from chatledger.storage.sqlite_connection import SqliteConnection
from chatledger.storage.tables import SCHEMA, metadata
from chatledger.storage.views import VIEWS

_LOCK = 0x63_68_61_74_6C_65_64  # "chatled": one migrator at a time in a PostgreSQL database


def migrate(url: Any = None, *, to: str = "head", schema: str = SCHEMA) -> SchemaStatus:
    """Bring a database to revision `to` (up or down) and give its status. Blocking: in a running event loop, call it
    with `asyncio.to_thread`. Raises StorageError.
    """
    address = read_url(url)
    if address.get_backend_name() == "sqlite":
        if sqlite_path(address) == MEMORY:
            raise StorageError("a database in memory is made at the newest revision when it is opened")
        return upgrade_file(sqlite_path(address), to=to)
    return _in_new_loop(_migrate_postgresql(address, to, schema))


def schema_status(url: Any = None, *, schema: str = SCHEMA) -> SchemaStatus:
    """The revision that a database is at and the one that this release needs. Blocking, as `migrate`."""
    address = read_url(url)
    if address.get_backend_name() == "sqlite":
        path = sqlite_path(address)
        if not Path(path).exists():
            return SchemaStatus(None, HEAD)
        connection = SqliteConnection(path, read_only=True)
        try:
            return read_status(connection.sql.connection, None)
        finally:
            connection.close()
    return _in_new_loop(_read_postgresql_status(address, schema))


def offline_sql(url: Any = None, *, to: str = "head", schema: str = SCHEMA) -> str:
    """The statements that would carry a database of this URL's kind from nothing to `to`, for a person to run."""
    address = read_url(url)
    dialect = address.get_backend_name()
    output = io.StringIO()
    config = _config(schema if dialect == "postgresql" else None)
    config.output_buffer = output
    config.attributes["dialect"] = dialect
    command.upgrade(config, to, sql=True)
    return output.getvalue()


def _in_new_loop(work: Coroutine[Any, Any, SchemaStatus]) -> SchemaStatus:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise StorageError(
        "this call blocks; in a running event loop use: await asyncio.to_thread(chatledger.migrate, url)"
    )


# --- Alembic ----------------------------------------------------------------------------------------------------------


def scripts_folder() -> Path:
    """The revisions: in the installed package, or at the root of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parents[1] / "migrations"


def _config(schema: str | None, connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes |= {"schema": schema, "connection": connection}
    return config


def _run(connection: Connection, schema: str | None, to: str) -> SchemaStatus:
    config = _config(schema, connection)
    found = read_status(connection, schema).found
    going_down = to == "base" or (to.isdigit() and found is not None and int(to) < int(found))
    (command.downgrade if going_down else command.upgrade)(config, to)
    return read_status(connection, schema)


def alembic_include_name(name: str | None, type_: str, parent_names: Any) -> bool:
    """For a host project's Alembic (`include_name=`): leaves our schema and our tables to us."""
    if type_ == "schema":
        return name != SCHEMA
    if type_ == "table" and parent_names.get("schema_name") in (None, SCHEMA):
        return name not in _OURS
    return True


_OURS = {table.name for table in metadata.tables.values()} | set(VIEWS) | {"chatledger_version"}


# --- SQLite -----------------------------------------------------------------------------------------------------------


def upgrade_file(path: str, *, to: str = "head") -> SchemaStatus:
    try:
        connection = SqliteConnection(path)
        try:
            return _upgrade_locked(connection, path, to)
        finally:
            connection.close()
    except Exception as error:
        raise _ours(error) from error


def _upgrade_locked(connection: SqliteConnection, path: str, to: str) -> SchemaStatus:
    # Batch mode makes a table anew and drops the old one; with foreign keys on, its children would object.
    connection.execute("PRAGMA foreign_keys = OFF")
    with connection.transaction("BEGIN IMMEDIATE") as sql:
        status = read_status(sql.connection, None)
        if status.found is not None and status.found != to and not (to == "head" and status.found == status.expected):
            _copy(path, f"{path}.{status.found}.bak")
        status = _run(sql.connection, None, to)
        broken = sql.connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            raise StorageError(f"the migration would leave rows that point nowhere: {broken[:3]}")
    return status


def _copy(path: str, target: str) -> None:
    """What is committed, as one consistent file; our own write lock keeps others from adding to it."""
    source = sqlite3.connect(path)
    try:
        copy = sqlite3.connect(target)
        try:
            source.backup(copy)
        finally:
            copy.close()
    finally:
        source.close()


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


async def _migrate_postgresql(address: Any, to: str, schema: str) -> SchemaStatus:
    engine = create_postgresql_engine(address)
    try:
        return await upgrade_engine(engine, schema, to=to)
    finally:
        await engine.dispose()


async def upgrade_engine(engine: AsyncEngine, schema: str, *, to: str = "head") -> SchemaStatus:
    try:
        async with engine.connect() as lock:
            # A session lock on a connection of its own: revisions may commit as they go.
            await lock.execution_options(isolation_level="AUTOCOMMIT")
            await lock.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
            try:
                async with engine.connect() as connection:
                    status = await connection.run_sync(_run, schema, to)
                    await connection.commit()
                    return status
            finally:
                await lock.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _LOCK})
    except Exception as error:
        raise _ours(error) from error


async def _read_postgresql_status(address: Any, schema: str) -> SchemaStatus:
    engine = create_postgresql_engine(address)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(read_status, schema)
    except Exception as error:
        raise _ours(error) from error
    finally:
        await engine.dispose()


def _ours(error: Exception) -> Exception:
    return error if isinstance(error, ChatLedgerError) else translate(error) or error
