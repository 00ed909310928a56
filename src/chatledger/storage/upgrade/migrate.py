"""Migrates a database from one revision to another, by the revisions that Alembic runs.

A lock keeps other migrators out: a session advisory lock on PostgreSQL, the write lock on SQLite. A SQLite file is
first copied with SQLite's own backup to `<file>.<revision>.bak`, and never over another file. Its migrations then run
in one transaction, all or none. On PostgreSQL each revision is a transaction. If it does not get a lock soon, it ends
and is tried again: while it waits for a table's lock, all later statements wait behind it.
"""

from __future__ import annotations

import asyncio
import io
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from alembic import command
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from chatledger.arguments import BOOL, BOOL_OR_NONE, STR, require
from chatledger.errors import ChatLedgerError, InvalidArgument, StorageError
from chatledger.storage.drivers.errors import Kind, read_failure, translate
from chatledger.storage.drivers.new_file import new_file, stands_there
from chatledger.storage.drivers.sqlite import SqliteConnection
from chatledger.storage.drivers.urls import ADDRESS, MEMORY, Address, create_postgresql_engine, read_url, sqlite_path
from chatledger.storage.schema import distribution, row_security
from chatledger.storage.schema.tables import SCHEMA
from chatledger.storage.upgrade.discard import NOTHING, Allowed, comment
from chatledger.storage.upgrade.files import inspect_file
from chatledger.storage.upgrade.intruders import refuse_intruders
from chatledger.storage.upgrade.revisions import (
    LOCK_TIMEOUT,
    alembic_config,
    is_done,
    require_revision,
    require_safe,
    run,
)
from chatledger.storage.upgrade.versions import (
    HEAD,
    SchemaStatus,
    read_status,
    record_encrypted,
    require_schema_name,
)

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

T = TypeVar("T")

_LOCK = 0x63_68_61_74_6C_65_64  # "chatled": one migrator at a time in a PostgreSQL database
RETRY_AFTER = (1, 2, 4, 8, 16)
"""Seconds between the attempts of a revision."""
_ASK_AGAIN = 0.1
"""Seconds between two checks whether another migrator has ended."""
_MOST_COPIES = 100
"""A file that fails to migrate is copied at each attempt."""
WAIT_FOR_MIGRATOR = 600
"""Seconds that a SQLite migrator waits for another one. Migrating a large file takes long."""


def migrate(
    url: Address = None,
    *,
    to: str = "head",
    schema: str = SCHEMA,
    rls: bool | None = None,
    distributed: bool = False,
    encrypted: bool = False,
    discard: bool = False,
    discard_tombstones: bool = False,
) -> SchemaStatus:
    """Migrate a database up or down to revision `to`, and return its status. Blocking: in a running event loop, call it
    with `asyncio.to_thread`.

        status = chatledger.admin.migrate("postgresql://owner@db/chat")
        print(status.found)

    `url` is that of `Ledger.open`. `to` is `head` (the default), `base` or the number of a revision, and `schema` the
    PostgreSQL schema of the tables. `rls` switches row-level security on or off for all tables, on PostgreSQL from
    version 15; None leaves it. `distributed` also distributes the tables that are not distributed yet by tenant over
    the servers of Citus. `encrypted` records that the database is encrypted: from then on a ledger without keys stores
    nothing for any tenant. A database that is one revision newer than this release stays as it is.

    On the way down, `discard=True` discards the rows and values that the older schema has no place for, and
    `discard_tombstones=True` the tombstones of erasures. Without them a migration that would lose some changes nothing,
    and raises StorageError with the counts. Removed and revised messages are always refused.

    A SQLite file is first copied to `<file>.<revision>.bak`, or to `<file>.<revision>.2.bak` if that exists; its
    migration is one transaction. On PostgreSQL each revision is a transaction. Raises StorageError, InvalidArgument for
    an unknown revision, and SchemaMismatch for a database that is more than one revision newer. With `distributed`,
    raises StorageError before anything is changed if a table that is not distributed has rows.
    """
    require(ADDRESS, url=url)
    require(STR, to=to, schema=schema)
    require(BOOL_OR_NONE, rls=rls)
    require(BOOL, distributed=distributed, encrypted=encrypted, discard=discard, discard_tombstones=discard_tombstones)
    allowed = Allowed(discard, discard_tombstones)
    address = read_url(url)
    require_revision(to)
    if encrypted and to != "head":
        raise InvalidArgument("encrypted", "needs the newest revision; leave out to")
    if address.get_backend_name() == "sqlite":
        if rls:
            raise row_security.only_postgresql()
        if distributed:
            raise distribution.only_servers_distribute()
        if sqlite_path(address) == MEMORY:
            raise StorageError("a database in memory is made at the newest revision when it is opened")
        path = sqlite_path(address)
        refuse_intruders(inspect_file(path).intruders, path, address)
        return upgrade_file(path, to=to, allowed=allowed, encrypted=encrypted)
    own, also = require_schema_name(schema), {"distributed": distributed, "encrypted": encrypted}
    work = _migrate_postgresql(address, to, own, rls, allowed, **also)
    return _in_new_loop(work)


def schema_status(url: Address = None, *, schema: str = SCHEMA) -> SchemaStatus:
    """The revision of a database, and the revision that this release needs. Changes nothing. Blocking, like `migrate`.
    Raises StorageError if the database cannot be reached.
    """
    require(ADDRESS, url=url)
    require(STR, schema=schema)
    address = read_url(url)
    if address.get_backend_name() == "sqlite":
        return inspect_file(sqlite_path(address)).status
    return _in_new_loop(_read_postgresql_status(address, require_schema_name(schema)))


def offline_sql(url: Address = None, *, to: str = "head", schema: str = SCHEMA) -> str:
    """The SQL statements that migrate an empty database of this URL's kind to revision `to`, for a person to run. Does
    not connect to the database. If `to` is older than this release, they begin with a comment: the queries that count
    what a newer database would lose on the way down. Raises InvalidArgument for an unknown revision.
    """
    require(ADDRESS, url=url)
    require(STR, to=to, schema=schema)
    address = read_url(url)
    require_revision(to)
    dialect = address.get_backend_name()
    output = io.StringIO()
    name = require_schema_name(schema) if dialect == "postgresql" else None
    config = alembic_config(name)
    config.output_buffer = output
    config.attributes["dialect"] = dialect
    try:
        command.upgrade(config, to, sql=True)
    except CommandError as error:
        raise _ours(error) from error
    return ("" if to == "head" else comment(HEAD, to, name)) + output.getvalue()


def _in_new_loop(work: Coroutine[Any, Any, SchemaStatus]) -> SchemaStatus:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise StorageError(
        "this call blocks; in a running event loop use: await asyncio.to_thread(chatledger.admin.migrate, url)"
    )


# --- SQLite -----------------------------------------------------------------------------------------------------------


def upgrade_file(path: str, *, to: str = "head", allowed: Allowed = NOTHING, encrypted: bool = False) -> SchemaStatus:
    inspect_file(path)
    try:
        connection = SqliteConnection(path)
        try:
            return _upgrade_locked(connection, path, to, allowed, encrypted=encrypted)
        finally:
            connection.close()
    except Exception as error:
        raise _ours(error) from error


def _upgrade_locked(
    connection: SqliteConnection, path: str, to: str, allowed: Allowed, *, encrypted: bool
) -> SchemaStatus:
    # Batch mode creates a new table and drops the old one. With foreign keys on, the rows that point at it would fail.
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA legacy_alter_table = ON")  # the views would fail too: they name the table meanwhile
    connection.execute(f"PRAGMA busy_timeout = {WAIT_FOR_MIGRATOR * 1000}")
    with connection.transaction("BEGIN IMMEDIATE") as sql:
        status = require_safe(sql.connection, None, to, allowed)
        if status.found is not None and not is_done(status, to):
            _copy(path, f"{path}.{status.found}")
        status = run(sql.connection, None, to)
        if encrypted:
            record_encrypted(sql.connection, None)
            status = replace(status, encrypted=True)
        broken = sql.connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            raise StorageError(f"the migration would leave rows that point nowhere: {broken[:3]}")
    return status


def _copy(path: str, beginning: str) -> None:
    """Copy the committed state to one consistent file. The migrator's write lock keeps other writers out meanwhile."""
    names = (Path(f"{beginning}{number}.bak") for number in ("", *(f".{more}" for more in range(2, _MOST_COPIES))))
    target = next((name for name in names if stands_there(name) is None), None)
    if target is None:
        raise StorageError(f"there are {_MOST_COPIES} copies such as {beginning}.bak; delete those of no use")
    with (
        new_file(target) as unfinished,
        closing(sqlite3.connect(path)) as source,
        closing(sqlite3.connect(unfinished)) as copy,
    ):
        source.backup(copy)


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


async def _migrate_postgresql(
    address: Any, to: str, schema: str, rls: bool | None, allowed: Allowed, *, distributed: bool, encrypted: bool
) -> SchemaStatus:
    engine = create_postgresql_engine(address)
    try:
        also = {"distributed": distributed, "encrypted": encrypted}
        return await upgrade_engine(engine, schema, to=to, rls=rls, allowed=allowed, **also)
    finally:
        await engine.dispose()


async def upgrade_engine(
    engine: AsyncEngine,
    schema: str,
    *,
    to: str = "head",
    rls: bool | None = None,
    allowed: Allowed = NOTHING,
    distributed: bool = False,
    encrypted: bool = False,
) -> SchemaStatus:
    try:
        async with engine.connect() as lock:
            # A session lock on a connection of its own, because revisions may commit.
            await lock.execution_options(isolation_level="AUTOCOMMIT")
            await _lock(lock)
            try:
                if distributed:
                    await _in_transaction(engine, distribution.require_empty, schema)
                await _until_locked(lambda: _run_once(engine, schema, to, allowed))
                await _until_locked(lambda: _secure_once(engine, schema, rls))
                if encrypted:
                    await _until_locked(lambda: _record_once(engine, schema))
                if distributed:
                    await _distribute(engine, schema)
                return await _in_transaction(engine, _read_status, schema)
            finally:
                await lock.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _LOCK})
    except Exception as error:
        raise _ours(error) from error


async def _lock(connection: AsyncConnection) -> None:
    """Poll for the lock. A statement that waits for it would hold a snapshot, and CREATE INDEX CONCURRENTLY in the
    other migrator would wait for that snapshot.
    """
    question = text("SELECT pg_try_advisory_lock(:key)")
    while not await connection.scalar(question, {"key": _LOCK}):  # noqa: ASYNC110 - the server sends no event for it
        await asyncio.sleep(_ASK_AGAIN)


async def _until_locked(step: Callable[[], Awaitable[T]]) -> T:
    """Repeat the step while it does not get a lock. Finished revisions stay, so each attempt continues after them."""
    for pause in RETRY_AFTER:
        try:
            return await step()
        except DBAPIError as error:
            failure = read_failure(error)
            if failure is None or failure.kind is not Kind.AGAIN:
                raise
        await asyncio.sleep(pause)
    return await step()


async def _run_once(engine: AsyncEngine, schema: str, to: str, allowed: Allowed) -> SchemaStatus:
    async with engine.connect() as connection:
        await connection.exec_driver_sql(f"SELECT set_config('{row_security.MIGRATING}', 'on', false)")
        try:
            await connection.run_sync(require_safe, schema, to, allowed)
            status = await connection.run_sync(run, schema, to)
            await connection.commit()
            await connection.exec_driver_sql(f"RESET {row_security.MIGRATING}")
            await connection.commit()
        except BaseException:
            await connection.invalidate()  # it still has the setting, which no other user of the pool may get
            raise
        return status


async def _secure_once(engine: AsyncEngine, schema: str, rls: bool | None) -> None:
    async with engine.begin() as connection:
        await connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(LOCK_TIMEOUT * 1000)}")
        await connection.exec_driver_sql(distribution.SEQUENTIAL)
        await connection.run_sync(_secure, schema, rls)


async def _record_once(engine: AsyncEngine, schema: str) -> None:
    async with engine.begin() as connection:
        await connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(LOCK_TIMEOUT * 1000)}")
        await connection.exec_driver_sql(f"SET LOCAL {row_security.MIGRATING} = 'on'")
        await connection.run_sync(row_security.require_all_rows, schema)
        await connection.run_sync(record_encrypted, schema)


def _secure(connection: Connection, schema: str, rls: bool | None) -> None:
    if rls is not None and read_status(connection, schema).found is not None:
        (row_security.enable if rls else row_security.disable)(connection, schema)


async def _distribute(engine: AsyncEngine, schema: str) -> None:
    """Each table in a transaction of its own. A second call goes on with those that are left."""
    await _in_transaction(engine, distribution.require_empty, schema)  # a revision may have filled its table
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.run_sync(distribution.distribute, schema)


async def _in_transaction(engine: AsyncEngine, work: Callable[[Connection, str], T], schema: str) -> T:
    async with engine.begin() as connection:
        return await connection.run_sync(work, schema)


def _read_status(connection: Connection, schema: str) -> SchemaStatus:
    local = distribution.local_tables(connection, schema)
    return replace(read_status(connection, schema), local_tables=tuple(local))


async def _read_postgresql_status(address: Any, schema: str) -> SchemaStatus:
    engine = create_postgresql_engine(address)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(_read_status, schema)
    except Exception as error:
        raise _ours(error) from error
    finally:
        await engine.dispose()


def _ours(error: Exception) -> Exception:
    if isinstance(error, CommandError):  # an unknown revision
        return StorageError(str(error))
    return error if isinstance(error, ChatLedgerError) else translate(error) or error
