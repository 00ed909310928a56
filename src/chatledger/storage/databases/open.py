"""Opens a database: finds out its kind, migrates a file to this release's schema, refuses another program's file."""

from __future__ import annotations

import asyncio
import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import URL, Connection, inspect

from chatledger.errors import ChatLedgerError, SchemaMismatch, StorageError
from chatledger.storage.databases.database import OpenDatabase
from chatledger.storage.databases.postgresql.database import PostgresqlDatabase
from chatledger.storage.databases.postgresql.options import PostgreSQL, pool_of, refuse_on_sqlite, refuse_pool
from chatledger.storage.databases.postgresql.replica import Replica
from chatledger.storage.databases.sqlite.database import SqliteDatabase
from chatledger.storage.databases.sqlite.shared import SharedSqliteDatabase
from chatledger.storage.drivers.errors import translate
from chatledger.storage.drivers.sqlite import SqliteConnection
from chatledger.storage.drivers.urls import (
    MEMORY,
    PoolLimits,
    create_postgresql_engine,
    is_engine,
    load_driver,
    read_url,
    sqlite_path,
    without_password,
)
from chatledger.storage.schema.distribution import has_citus, is_worker
from chatledger.storage.schema.row_security import agreed
from chatledger.storage.upgrade.files import inspect_file
from chatledger.storage.upgrade.intruders import refuse_intruders
from chatledger.storage.upgrade.versions import (
    VERSION_TABLE,
    SchemaStatus,
    create_schema,
    read_status,
    require_usable,
)

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


async def open_database(
    url: str | os.PathLike[str] | AsyncEngine | None, options: PostgreSQL, *, migrate: bool | None, timeout: float
) -> OpenDatabase:
    """With `migrate` None, a file is migrated and PostgreSQL is not. `timeout`: the time limit of a call in seconds."""
    if is_engine(url):
        return await open_engine(url, options, timeout=timeout)
    address = read_url(url)
    if address.get_backend_name() == "sqlite":
        refuse_on_sqlite(options)
        return await open_sqlite(address, migrate=migrate is not False, timeout=timeout)
    await asyncio.to_thread(load_driver)
    return await open_postgresql(address, options, migrate=migrate is True, timeout=timeout)


async def open_sqlite(url: URL, *, migrate: bool, timeout: float) -> OpenDatabase:
    """The database of a file. With `migrate`, a missing file is created and an older one is migrated."""
    path = sqlite_path(url)
    if path == MEMORY:
        database = SqliteDatabase(path, timeout)
        await database.create_schema()
        return database
    await asyncio.to_thread(prepare_file, path, migrate=migrate, url=url)
    return SqliteDatabase(path, timeout)


def prepare_file(path: str, *, migrate: bool, url: URL | None = None) -> None:
    """Two processes may call this at once. One creates or migrates the file under the file's write lock; the other
    waits and finds it done.
    """
    command = f"chatledger migrate --url {shlex.quote(path)}"
    file = inspect_file(path)
    status = file.status
    if file.foreign:
        raise _foreign(status, command)
    refuse_intruders(file.intruders, path, url)
    if migrate and status.found is None:
        status = _create_file(path, command)
    if migrate and status.older:
        from chatledger.storage.upgrade.migrate import upgrade_file

        status = upgrade_file(path)
    require_usable(status, command)


def _create_file(path: str, command: str) -> SchemaStatus:
    try:
        connection = SqliteConnection(path)
        try:
            with connection.transaction("BEGIN IMMEDIATE") as sql:
                return _create_if_empty(sql.connection, command)
        finally:
            connection.close()
    except Exception as error:
        ours = translate(error)
        if ours is None:
            raise
        raise ours from error


def _create_if_empty(connection: Connection, command: str) -> SchemaStatus:
    status = read_status(connection, None)
    if status.found is not None:
        return status  # another process was faster
    if set(inspect(connection).get_table_names()) - {VERSION_TABLE}:
        raise _foreign(status, command)
    create_schema(connection, None)
    return read_status(connection, None)


def _foreign(status: SchemaStatus, command: str) -> SchemaMismatch:
    detail = (
        "the file is the SQLite database of another program: it has tables, but none of chatledger's; "
        f"to add chatledger's tables to it, run: {command}"
    )
    return SchemaMismatch(None, status.expected, command, detail)


async def open_replica(replica: str | AsyncEngine, database: OpenDatabase, options: PostgreSQL) -> Replica:
    """A standby of the database. Nothing is sent to it yet. On an error, the database itself is closed."""
    assert isinstance(database, PostgresqlDatabase)
    try:
        if database.distributed:
            raise StorageError(
                "a database that is distributed by tenant cannot have a replica: a position is the coordinator's, and "
                "the standby of another server may be behind it; leave out replica"
            )
        return _make_replica(replica, database, options)
    except BaseException:
        await database.close()
        raise


def _make_replica(replica: str | AsyncEngine, primary: PostgresqlDatabase, options: PostgreSQL) -> Replica:
    schema, pool, rls, timeout = options.schema, pool_of(options), primary.secured, primary.timeout
    if is_engine(replica):
        return Replica(PostgresqlDatabase(replica, schema, owned=False, secured=rls, timeout=timeout))
    engine = create_postgresql_engine(
        read_url(replica), pooler=options.pooler, timeout=timeout, pool=pool, bounds_locks=True
    )
    return Replica(PostgresqlDatabase(engine, schema, owned=True, secured=rls, timeout=timeout, pool=pool))


async def open_postgresql(url: URL, options: PostgreSQL, *, migrate: bool, timeout: float) -> OpenDatabase:
    schema, pool = options.schema, pool_of(options)
    if migrate and options.pooler == "transaction":  # the migrator's lock belongs to a session, which it shares
        raise StorageError(
            "a migration cannot run through a transaction pooler; migrate with the server's own address, then open "
            "without migrate=True"
        )

    def make_engine(limits: PoolLimits) -> AsyncEngine:
        return create_postgresql_engine(url, pooler=options.pooler, timeout=timeout, pool=limits, bounds_locks=True)

    engine = make_engine(pool)
    try:
        if migrate:
            from chatledger.storage.upgrade.migrate import upgrade_engine

            await upgrade_engine(engine, schema)
        command = f"chatledger migrate --url {shlex.quote(without_password(url))}"
        tables = await require_engine(engine, schema, command, rls=options.rls, distributed=options.distributed)
    except BaseException:
        await engine.dispose()
        raise
    return PostgresqlDatabase(
        engine,
        schema,
        owned=True,
        secured=tables.secured,
        distributed=tables.distributed,
        timeout=timeout,
        pool=pool,
        make_engine=make_engine,
    )


async def open_engine(engine: AsyncEngine, options: PostgreSQL, *, timeout: float) -> OpenDatabase:
    """A database on the application's own engine. The application configures the engine and disposes of it."""
    refuse_pool(options)
    if engine.dialect.name not in ("postgresql", "sqlite"):
        raise StorageError(
            f"{engine.dialect.name} is not supported; use PostgreSQL with asyncpg or SQLite with aiosqlite"
        )
    postgresql, schema = engine.dialect.name == "postgresql", options.schema
    if not postgresql:
        refuse_on_sqlite(options)
    command = "chatledger migrate --url <the engine's URL>"
    tables = await require_engine(
        engine, schema if postgresql else None, command, rls=options.rls, distributed=options.distributed
    )
    if not postgresql:
        return SharedSqliteDatabase(engine, timeout)
    return PostgresqlDatabase(
        engine, schema, owned=False, secured=tables.secured, distributed=tables.distributed, timeout=timeout
    )


def _at_worker(schema: str, status: SchemaStatus) -> SchemaMismatch:
    statement = f"SELECT create_reference_table('{schema}.{VERSION_TABLE}')"
    detail = (
        "this server is a worker of Citus: it has chatledger's distributed tables and not the revision of the schema; "
        f"open the ledger at the coordinator, or run once there: {statement}"
    )
    return SchemaMismatch(None, status.expected, statement, detail)


class Tables(NamedTuple):
    """What a ledger has to know of the tables. `secured`: each transaction sets the tenant for row-level security.
    `distributed`: they are distributed by tenant, so each statement writes one table.
    """

    secured: bool
    distributed: bool


async def require_engine(
    engine: AsyncEngine,
    schema: str | None,
    command: str,
    *,
    rls: bool | None = None,
    distributed: bool | None = None,
) -> Tables:
    """Check the schema of an engine. With `rls` or `distributed` None, the database is asked."""
    try:
        async with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                foreign_keys = (await connection.exec_driver_sql("PRAGMA foreign_keys")).scalar()
                if not foreign_keys:
                    raise StorageError(
                        "this engine does not enforce foreign keys; call chatledger.admin.configure_sqlite(engine)"
                    )
            status = await connection.run_sync(read_status, schema)
            if status.found is None and schema is not None and await connection.run_sync(is_worker, schema):
                raise _at_worker(schema, status)
            secured = status.usable and await connection.run_sync(agreed, schema, rls, command)
            if distributed is None:
                distributed = schema is not None and await connection.run_sync(has_citus)
    except Exception as error:
        ours = translate(error)
        if isinstance(error, (ValueError, OverflowError)) and not isinstance(error, ChatLedgerError):
            ours = StorageError(f"the connection failed: its host or a parameter is not valid ({type(error).__name__})")
        if ours is None:
            raise
        retryable = isinstance(ours, StorageError) and ours.retryable
        raise StorageError(f"{ours}, at {without_password(engine.url)}", retryable=retryable) from error
    require_usable(status, command)
    return Tables(secured, distributed)
