"""A transaction on one asynchronous connection: one that the ledger began, or a caller's own.

Who began it commits it. Each write is a savepoint in it, so that what is refused leaves the transaction usable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection

from chatledger.errors import StorageError
from chatledger.models import Appended
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.drivers.errors import in_greenlet
from chatledger.storage.drivers.sql import OneStatement, Sql
from chatledger.storage.schema.row_security import SET_TENANT

T = TypeVar("T")


class ConnectionWork:
    def __init__(
        self, connection: AsyncConnection, schema: str | None, *, check: bool = False, tenant: str | None = None
    ) -> None:
        """`tenant`: whom row-level security is told of before each call; others may work on the same connection."""
        self._connection = connection
        self._tenant = tenant
        self._schema = schema
        self._check = check  # a caller's connection shows on its first use whether it is fit for this
        self._turn = asyncio.Lock()  # tasks that share a transaction take turns: a connection does one thing at a time

    async def read(self, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        return await self._do(query)

    async def fetch(self, statement: OneStatement[T]) -> T:
        return await self.read(statement.over)

    async def write(self, command: Callable[[Sql], T], *, single: bool = False) -> T:
        return await self._do(lambda sql: _in_savepoint(sql, command))

    async def append(self, request: AppendRequest) -> Appended:
        return await self.write(lambda sql: attempt_locked(sql, request))

    async def _do(self, function: Callable[[Sql], T]) -> T:
        async with self._turn:
            return await in_greenlet(self._run, function)

    def _run(self, function: Callable[[Sql], T]) -> T:
        connection = self._connection.sync_connection
        if connection is None or connection.closed:
            raise StorageError("this transaction has ended: its connection is closed")
        if self._check:
            _require_transaction(connection)
            self._check = False
        if self._tenant is not None:
            connection.exec_driver_sql(SET_TENANT, (self._tenant,))
        return function(Sql(connection, self._schema))


def _in_savepoint(sql: Sql, command: Callable[[Sql], T]) -> T:
    with sql.connection.begin_nested():
        return command(sql)


def _require_transaction(connection: Connection) -> None:
    """Raises StorageError with the line to add, where a caller's connection could not keep our promises."""
    if not connection.in_transaction():
        raise StorageError("begin a transaction first: async with engine.begin() as connection: …")
    if connection.dialect.name != "sqlite":
        return
    if not connection.exec_driver_sql("PRAGMA foreign_keys").scalar():
        raise StorageError("SQLite does not enforce foreign keys here; add chatledger.configure_sqlite(engine)")
    driver: Any = connection.connection.driver_connection
    if not driver.in_transaction:
        raise StorageError("the driver has begun no transaction here; add chatledger.configure_sqlite(engine)")
