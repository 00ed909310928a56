"""A transaction on an asynchronous connection of SQLAlchemy. The ledger began it, or the caller.

The side that began it commits it. Each write is a savepoint in it, so that a refused call leaves the transaction
usable.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection

from chatledger.errors import StorageError
from chatledger.storage.databases.database import Database
from chatledger.storage.drivers.errors import commit_outcome_unknown, in_greenlet, is_locked, translate
from chatledger.storage.drivers.sql import ReadSql, WriteSql, reading
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.row_security import set_tenant

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

T = TypeVar("T")


class ExternalConnection(Database):
    def __init__(
        self,
        connection: AsyncConnection,
        schema: str | None,
        *,
        check: bool = False,
        secured: bool = False,
        distributed: bool = False,
        lock_timeout: float = 0.0,
    ) -> None:
        """With `check`, the first use checks that a caller's connection is in a real transaction. With `secured`, each
        call first sets its tenant for row-level security, because other tenants may use the same connection. With
        `distributed`, the tables are distributed by tenant, so each statement writes one table. `lock_timeout`: the
        seconds in which a write may wait for locks anew.
        """
        self._lock_timeout = lock_timeout
        self._connection = connection
        self._schema = schema
        self._check = check
        self._secured = secured
        self._distributed = distributed
        self._turn = asyncio.Lock()  # tasks that share a transaction take turns: a connection runs one call at a time

    async def read(self, tenant: Tenant, work: Callable[[ReadSql], T], *, snapshot: bool = False) -> T:
        return await self._alone(tenant, reading(work))

    async def write(self, tenant: Tenant, work: Callable[[WriteSql], T], *, single: bool = False) -> T:
        until = time.monotonic() + self._lock_timeout
        while True:
            try:
                return await self._alone(tenant, lambda sql: _in_savepoint(sql, work))
            except StorageError as error:
                if error.__cause__ is None or not is_locked(error.__cause__) or time.monotonic() >= until:
                    raise

    async def _alone(self, tenant: Tenant, work: Callable[[WriteSql], T]) -> T:
        async with self._turn:
            return await in_greenlet(self._run, tenant, work)

    def _run(self, tenant: Tenant, work: Callable[[WriteSql], T]) -> T:
        connection = self._connection.sync_connection
        if connection is None or connection.closed:
            raise StorageError("this transaction has ended: its connection is closed")
        if self._check:
            _require_transaction(connection)
            self._check = False
        if self._secured:
            connection.exec_driver_sql(set_tenant(tenant.key))
        return work(WriteSql(connection, self._schema, distributed=self._distributed))


def _in_savepoint(sql: WriteSql, work: Callable[[WriteSql], T]) -> T:
    with sql.connection.begin_nested():
        return work(sql)


def _require_transaction(connection: Connection) -> None:
    """Raises StorageError, with the line of code to add, for a caller's connection that is in no real transaction or
    does not enforce foreign keys.
    """
    if not connection.in_transaction():
        raise StorageError(
            "the connection has no open transaction; begin one: async with engine.begin() as connection: …"
        )
    if connection.dialect.name != "sqlite":
        return
    if not connection.exec_driver_sql("PRAGMA foreign_keys").scalar():
        raise StorageError("this engine does not enforce foreign keys; call chatledger.admin.configure_sqlite(engine)")
    driver: Any = connection.connection.driver_connection
    if not driver.in_transaction:
        raise StorageError("the driver did not begin a transaction; call chatledger.admin.configure_sqlite(engine)")


@asynccontextmanager
async def begin_transaction(
    engine: AsyncEngine,
    schema: str | None,
    *,
    secured: Tenant | None = None,
    distributed: bool = False,
    lock_timeout: float = 0.0,
) -> AsyncIterator[ExternalConnection]:
    """A transaction of the ledger's own through SQLAlchemy. With `secured`, row-level security works for that tenant.

    An exception that the caller raises inside comes out unchanged.
    """
    done, own = False, None
    try:
        async with engine.connect() as connection, connection.begin():
            if secured is not None:
                await connection.exec_driver_sql(set_tenant(secured.key))
            try:
                yield ExternalConnection(connection, schema, distributed=distributed, lock_timeout=lock_timeout)
                done = True
            except Exception as error:
                own = error
                raise
    except Exception as error:
        ours = (commit_outcome_unknown(error) if done else None) or translate(error)
        if error is own or ours is None:
            raise
        raise ours from error
