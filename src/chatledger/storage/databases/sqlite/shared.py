"""An application's own SQLite engine, over aiosqlite."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeVar

from chatledger.storage.databases.database import Database, OpenDatabase
from chatledger.storage.databases.external_connection import begin_transaction
from chatledger.storage.drivers.errors import in_greenlet
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.drivers.urls import READ_ONLY
from chatledger.storage.rows.encryption import Tenant

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

T = TypeVar("T")


class SharedSqliteDatabase(OpenDatabase):
    def __init__(self, engine: AsyncEngine, timeout: float) -> None:
        super().__init__()
        self._engine = engine
        self.timeout = timeout

    async def read(self, tenant: Tenant, work: Callable[[ReadSql], T], *, snapshot: bool = False) -> T:
        return await in_greenlet(self._read, work)

    async def write(self, tenant: Tenant, work: Callable[[WriteSql], T], *, single: bool = False) -> T:
        return await in_greenlet(self._write, work)

    def transaction(self, tenant: Tenant) -> AbstractAsyncContextManager[Database]:
        return begin_transaction(self._engine, None)

    async def close(self) -> None:
        """Does nothing: the application disposes of its engine."""

    def _write(self, work: Callable[[WriteSql], T]) -> T:
        with self._engine.sync_engine.begin() as connection:
            return work(WriteSql(connection, None))

    def _read(self, work: Callable[[ReadSql], T]) -> T:
        with self._engine.sync_engine.connect() as connection:
            connection = connection.execution_options(**{READ_ONLY: True})
            with connection.begin():
                return work(ReadSql(connection, None))
