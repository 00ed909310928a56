"""A ledger's database with its guards: it takes no write inside an open transaction of its own, nothing after the end.

Both would go wrong without a word. On SQLite a write beside the ledger's own transaction waits for it for ever; on
PostgreSQL it is not in it. And an engine that was disposed quietly opens connections anew, which nobody closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import TypeVar

from chatledger.errors import StorageError
from chatledger.models import Appended, Limits, RulesLevel
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.databases.database import Database, Work
from chatledger.storage.databases.replica import Replica, TenantReplica
from chatledger.storage.databases.scope import TenantScope
from chatledger.storage.drivers.sql import OneStatement, Sql
from chatledger.storage.rows.encryption import Sealing
from chatledger.storage.schema.text import encode_key, encode_text

T = TypeVar("T")


class GuardedDatabase:
    """A database that a ledger opened, and its replica if it has one."""

    def __init__(self, database: Database, replica: Replica | None, sealing: Sealing) -> None:
        self.database = database
        self._replica = replica
        self._sealing = sealing
        self._closed = False
        self._loop = asyncio.get_running_loop() if database.one_loop else None

    def scope(self, tenant: str, rules: RulesLevel, limits: Limits) -> TenantScope:
        """Each call on it is a transaction of its own."""
        stored = encode_key(tenant, "tenant")
        replica = None
        if self._replica is not None:
            replica = TenantReplica(self._replica, self.refuse_read, stored if self._replica.database.rls else None)
        work = _GuardedWork(self, self.database.seen_by(stored))
        return TenantScope(work, tenant, rules, limits, replica, self._sealing.of(tenant))

    @asynccontextmanager
    async def begin(self, scope: TenantScope) -> AsyncIterator[TenantScope]:
        """The same tenant, rules, limits and keys in one transaction; until it ends, writes beside it are refused."""
        self.refuse_write()
        async with self.database.transaction(encode_text(scope.tenant)) as work:
            with _begun(self.database):
                yield replace(scope, work=work, replica=None)

    def refuse_read(self) -> None:
        self._refuse_closed()
        if self.database.one_connection:  # a read waits for the transaction around it as a write does
            _refuse_inside_transaction(self.database)

    def refuse_write(self) -> None:
        self._refuse_closed()
        _refuse_inside_transaction(self.database)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StorageError("this ledger is closed")
        self._refuse_another_loop()

    def _refuse_another_loop(self) -> None:
        """Its connections would wait for answers that come to the loop they were made in."""
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            raise StorageError(
                "this ledger was opened in another event loop, to which its connections belong: open one in each loop, "
                "and close it there"
            )

    async def close(self) -> None:
        _refuse_inside_transaction(self.database)
        self._refuse_another_loop()
        self._closed = True
        await self.database.close()
        if self._replica is not None:
            await self._replica.database.close()


class _GuardedWork:
    """The ledger's own work for a tenant."""

    def __init__(self, guard: GuardedDatabase, work: Work) -> None:
        self._guard = guard
        self._work = work

    async def read(self, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        self._guard.refuse_read()
        return await self._work.read(query, snapshot=snapshot)

    async def fetch(self, statement: OneStatement[T]) -> T:
        self._guard.refuse_read()
        return await self._work.fetch(statement)

    async def write(self, command: Callable[[Sql], T], *, single: bool = False) -> T:
        self._guard.refuse_write()
        return await self._work.write(command, single=single)

    async def append(self, request: AppendRequest) -> Appended:
        self._guard.refuse_write()
        return await self._work.append(request)


# --- The transactions that are open here ------------------------------------------------------------------------------


class _Begun:
    """A transaction that this task, or one that started it, has open on a database."""

    __slots__ = ("database", "open", "outer")

    def __init__(self, database: Database, *, outer: _Begun | None) -> None:
        self.database = database
        self.open = True
        self.outer = outer


BEGUN: ContextVar[_Begun | None] = ContextVar("chatledger_begun", default=None)


@contextmanager
def _begun(database: Database) -> Iterator[None]:
    begun = _Begun(database, outer=_innermost())
    token = BEGUN.set(begun)
    try:
        yield
    finally:
        begun.open = False
        with suppress(ValueError):  # left in another context than it was entered in, as a test's fixture is
            BEGUN.reset(token)


def _innermost() -> _Begun | None:
    """The transaction that is open here and was begun last; one of another ledger may be open around it."""
    begun = BEGUN.get()
    while begun is not None and not begun.open:
        begun = begun.outer
    return begun


def _refuse_inside_transaction(database: Database) -> None:
    begun = _innermost()
    while begun is not None:
        if begun.open and begun.database is database:
            raise StorageError("inside `async with ledger.begin() as tx` write through tx, not through the ledger")
        begun = begun.outer
