"""A database behind SQLAlchemy's asynchronous engine: PostgreSQL, or an application's own engine of either kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Self, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine

from chatledger.models import Appended
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.tip_cache import TipMemory
from chatledger.storage.databases.append_queue import Lines
from chatledger.storage.databases.external_connection import ConnectionWork
from chatledger.storage.databases.postgresql_append import PATIENCE, PostgresqlAppend
from chatledger.storage.databases.replica import CURRENT, START
from chatledger.storage.drivers.asyncpg import SNAPSHOT, AsyncpgConnections
from chatledger.storage.drivers.errors import Kind, commit_unheard, in_greenlet, read_failure, translate, translated
from chatledger.storage.drivers.sql import OneStatement, Row, Sql
from chatledger.storage.drivers.urls import READ_ONLY
from chatledger.storage.schema.row_security import SET_TENANT, begin_as

T = TypeVar("T")


class PooledDatabase:
    """What both kinds share: an explicit transaction through SQLAlchemy."""

    one_connection = False
    one_loop = False
    is_server = False

    def __init__(self, engine: AsyncEngine, schema: str | None, *, owned: bool, rls: bool = False) -> None:
        self._engine = engine
        self._schema = schema
        self._owned = owned
        self.rls = rls

    @asynccontextmanager
    async def transaction(self, tenant: str) -> AsyncIterator[ConnectionWork]:
        done, own = False, None
        try:
            async with self._engine.connect() as connection, connection.begin():
                if self.rls:
                    await connection.exec_driver_sql(SET_TENANT, (tenant,))
                try:
                    yield ConnectionWork(connection, self._schema)
                    done = True
                except Exception as error:
                    own = error
                    raise
        except Exception as error:
            ours = (commit_unheard(error) if done else None) or translate(error)
            if error is own or ours is None:  # what the caller raises stays as it is, whatever it is
                raise
            raise ours from error

    async def close(self) -> None:
        if self._owned:
            await self._engine.dispose()


class PostgresqlDatabase(PooledDatabase):
    """Transactions of single calls are begun on asyncpg itself, where the tuned paths run."""

    is_server = True

    def __init__(self, engine: AsyncEngine, schema: str, *, owned: bool, rls: bool = False) -> None:
        super().__init__(engine, schema, owned=owned, rls=rls)
        self.one_loop = owned
        tips = TipMemory()
        self._connections = AsyncpgConnections(engine.sync_engine, schema, tips, owned=owned, secured=rls)
        self._append = PostgresqlAppend(self._connections, tips)
        self._lines = Lines(self._append.alone, self._append.together)

    async def position(self) -> str:
        position: str = await self.read(lambda sql: sql.fetch(CURRENT, {})[0][0])
        return position

    def seen_by(self, tenant: str) -> PostgresqlDatabase | SecuredWork:
        return SecuredWork(self, tenant) if self.rls else self

    @asynccontextmanager
    async def transaction(self, tenant: str) -> AsyncIterator[ConnectionWork]:
        self._connections.make_room()
        async with super().transaction(tenant) as work:
            yield work

    async def close(self) -> None:
        await self._connections.close()
        await super().close()

    async def read(self, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        return await self.repeatable(self._in_snapshot if snapshot else self._alone, query)

    async def repeatable(self, read: Callable[[Callable[[Sql], T]], T], query: Callable[[Sql], T]) -> T:
        return await in_greenlet(self._read, read, query)

    async def fetch(self, statement: OneStatement[T]) -> T:
        return await translated(self._fetch(statement))

    async def append(self, request: AppendRequest) -> Appended:
        return await translated(self._lines.append(request))

    async def write(self, command: Callable[[Sql], T], *, single: bool = False) -> T:
        return await in_greenlet(self._by_itself if single else self._in_transaction, command)

    def _by_itself(self, command: Callable[[Sql], T]) -> T:
        with self._connections.autocommit(PATIENCE) as sql:
            return command(sql)

    def _read(self, read: Callable[[Callable[[Sql], T]], T], query: Callable[[Sql], T]) -> T:
        """Again where its connection is lost: a read may be repeated, and one that lay in the pool while the server was
        restarted is found to be dead only when it is used. So may be all others there, and one more is made.
        """
        for _ in range(self._connections.idle + 1):
            try:
                return read(query)
            except Exception as error:
                if not _is_lost(error):
                    raise
        return read(query)

    async def _fetch(self, statement: OneStatement[T]) -> T:
        """As `_read`, awaited on asyncpg itself: a greenlet costs as much as reading fifty messages."""
        for _ in range(self._connections.idle + 1):
            try:
                return statement.read(await self._fetch_once(statement))
            except Exception as error:
                if not _is_lost(error):
                    raise
        return statement.read(await self._fetch_once(statement))

    async def _fetch_once(self, statement: OneStatement[T]) -> Sequence[Row]:
        async with await self._connections.lend() as connection:
            return await connection.fetch(statement.template, statement.parameters)

    def _in_transaction(self, command: Callable[[Sql], T]) -> T:
        return self.committed("BEGIN", command)

    def committed(self, begin: str, command: Callable[[Sql], T], *, patience: float | None = None) -> T:
        """In a transaction. Says so where the connection was lost at its COMMIT."""
        done = False
        try:
            with self._connections.transaction(begin, patience=patience) as sql:
                result = command(sql)
                done = True
        except Exception as error:
            unheard = commit_unheard(error) if done else None
            if unheard is None:
                raise
            raise unheard from error
        return result

    def _alone(self, query: Callable[[Sql], T]) -> T:
        with self._connections.autocommit() as sql:
            return query(sql)

    def _in_snapshot(self, query: Callable[[Sql], T]) -> T:
        return self.in_reading(SNAPSHOT, query)

    def read_once(self, first: Callable[[Sql], None], begin: str | None, query: Callable[[Sql], T]) -> T:
        """On the connection that `first` has used, in a transaction or none, and only once."""
        if begin is None:
            with self._connections.autocommit(PATIENCE) as sql:
                first(sql)
                return query(sql)
        with self._connections.transaction(begin, patience=PATIENCE, first=first) as sql:
            return query(sql)

    def in_reading(self, begin: str, query: Callable[[Sql], T]) -> T:
        with self._connections.transaction(begin) as sql:
            return query(sql)


def _is_lost(error: Exception) -> bool:
    failure = read_failure(error)
    return failure is not None and failure.kind is Kind.LOST


class SecuredWork:
    """A tenant's work under row-level security: every call is a transaction that knows the tenant."""

    def __init__(self, database: PostgresqlDatabase, tenant: str) -> None:
        self._database = database
        self._tenant = tenant

    async def read(self, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        begin = begin_as(SNAPSHOT if snapshot else "BEGIN READ ONLY", self._tenant)
        return await self._database.repeatable(partial(self._database.in_reading, begin), query)

    async def fetch(self, statement: OneStatement[T]) -> T:
        return await self.read(statement.over)

    async def write(self, command: Callable[[Sql], T], *, single: bool = False) -> T:
        patience = PATIENCE if single else None
        begin = begin_as("BEGIN", self._tenant)
        return await in_greenlet(partial(self._database.committed, begin, patience=patience), command)

    async def append(self, request: AppendRequest) -> Appended:
        return await self._database.append(request)


class SharedSqliteDatabase(PooledDatabase):
    """An application's own SQLite engine, over aiosqlite."""

    async def position(self) -> str:
        return START

    def seen_by(self, tenant: str) -> Self:
        return self

    async def read(self, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        return await in_greenlet(self._read, query)

    async def append(self, request: AppendRequest) -> Appended:
        return await self.write(lambda sql: attempt_locked(sql, request))

    async def fetch(self, statement: OneStatement[T]) -> T:
        return await self.read(statement.over)

    async def write(self, command: Callable[[Sql], T], *, single: bool = False) -> T:
        return await in_greenlet(self._in_transaction, command)

    def _in_transaction(self, command: Callable[[Sql], T]) -> T:
        with self._engine.sync_engine.begin() as connection:
            return command(Sql(connection, self._schema))

    def _read(self, query: Callable[[Sql], T]) -> T:
        with self._engine.sync_engine.connect() as connection:
            connection = connection.execution_options(**{READ_ONLY: True})
            with connection.begin():
                return query(Sql(connection, self._schema))
