"""The ledger: storage joined to a lifetime.

A Ledger is a database that this process opened; each call on it is a transaction of its own. `begin()` gives a
Transaction, several calls with one commit. Both have the same nouns.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from sqlalchemy.ext.asyncio import AsyncEngine

from chatledger.arguments import BOOL, BOOL_OR_NONE, FUNCTION_OR_NONE, RULES, STR, Kind, require
from chatledger.errors import InvalidArgument
from chatledger.models import Limits, RulesLevel
from chatledger.repositories import Repositories
from chatledger.storage.databases.open import open_database, open_replica
from chatledger.storage.databases.scope import DEFAULT_TENANT, LIMITS_OR_NONE, Guard, Scope
from chatledger.storage.drivers.urls import ADDRESS
from chatledger.storage.repositories.reencrypt import Progress, reencrypt
from chatledger.storage.rows.encryption import EncryptionKeys
from chatledger.storage.rows.keys import KEYS, KeyRing, Keys
from chatledger.storage.schema.tables import SCHEMA
from chatledger.transaction import Transaction

__all__ = ["Ledger", "Opening", "Transaction"]

_ENGINE_OR_NONE = Kind("an AsyncEngine or None", AsyncEngine, NoneType)
_REPLICA = Kind("a str, an AsyncEngine or None", str, AsyncEngine, NoneType)
_POOLER = Kind("'session' or 'transaction'", words=("session", "transaction"))


class Ledger(Repositories):
    """A database of conversations, seen as one tenant. Made by `Ledger.open`; safe to share between tasks."""

    def __init__(self, guard: Guard, scope: Scope, *, owner: bool) -> None:
        super().__init__(scope)
        self._guard = guard
        self._database = guard.database
        self._owner = owner

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str] | None = None,
        *,
        engine: AsyncEngine | None = None,
        tenant: str = DEFAULT_TENANT,
        rules: RulesLevel = "strict",
        schema: str = SCHEMA,
        pooler: Literal["session", "transaction"] = "session",
        limits: Limits | None = None,
        migrate: bool | None = None,
        rls: bool | None = None,
        replica: str | AsyncEngine | None = None,
        keys: KeyRing | Keys | None = None,
        plaintext: bool = False,
    ) -> Opening:
        """A ledger, by `async with Ledger.open(…) as ledger` or `ledger = await Ledger.open(…)` and `close()`.

        `url` is a path, `sqlite:///…` or `postgresql://…`; by default CHATLEDGER_URL, else ./chatledger.db. `engine` is
        the application's own instead, and is never disposed. A SQLite file is made, or brought up to date after a
        copy; on PostgreSQL the schema is left alone unless `migrate` is True. `rls=True` requires
        PostgreSQL's row-level security, which is told of the tenant in every transaction; by default it is if it is on.
        `replica`, the URL or engine of a standby, answers histories that are asked for with a `min_position`.

        `keys` encrypts what people and models say, before it leaves this process: a KeyRing, or what gives a tenant's
        (None where it has none any more); it is asked each time, from any thread. Reading then raises EncryptionError
        for what is not sealed for its place. `plaintext=True` reads what was stored before there were keys as well.

        Raises SchemaMismatch with the command that mends it, and StorageError if the database cannot be reached.
        """
        require(ADDRESS, url=url)
        require(_ENGINE_OR_NONE, engine=engine)
        require(STR, tenant=tenant, schema=schema)
        require(RULES, rules=rules)
        require(_POOLER, pooler=pooler)
        require(LIMITS_OR_NONE, limits=limits)
        require(BOOL_OR_NONE, migrate=migrate, rls=rls)
        require(_REPLICA, replica=replica)
        require(KEYS, keys=keys)
        require(BOOL, plaintext=plaintext)
        if url is not None and engine is not None:
            raise InvalidArgument("engine", "does not go with a url; give one of them")
        encryption_keys = EncryptionKeys(keys, plaintext=plaintext)

        async def opened() -> Ledger:
            database = await open_database(url, engine, schema=schema, pooler=pooler, migrate=migrate, rls=rls)
            standby = None if replica is None else await open_replica(replica, database, schema=schema, pooler=pooler)
            guard = Guard(database, standby, encryption_keys)
            return cls(guard, guard.scope(tenant, rules, limits or Limits()), owner=True)

        return Opening(opened)

    def tenant(self, name: str) -> Ledger:
        """The same database seen as another tenant. Closing it does nothing: the pool is this ledger's."""
        require(STR, name=name)
        scope = self._guard.scope(name, self._scope.rules, self._scope.limits)
        return Ledger(self._guard, scope, owner=False)

    async def position(self) -> str:
        """A place in the database's history that all that is committed by now comes before: give it to a reader as the
        `min_position` of its `history`. One round trip; on SQLite always the same, and always reached.
        """
        self._guard.refuse_read()
        return await self._database.position()

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Transaction]:
        """Several writes, one commit: it commits on exit and rolls back on an exception.

        Write through what it gives, not through the ledger. On SQLite it holds the file's one write lock meanwhile.
        """
        async with self._guard.begin(self._scope) as scope:
            yield Transaction.over(scope)

    async def reencrypt(self, *, progress: Progress | None = None) -> Mapping[str, int]:
        """Seal anew, with the tenant's current key, what another key has sealed or, with `plaintext=True`, what is
        plain: the number of rows by table. In transactions of up to 1,000 rows of a thread, which hold that thread;
        what is interrupted goes on when it is called again. `progress` gets the threads done, and those there are.

        It is over when it has found nothing to do; then the older keys may go, and a ledger be opened without
        `plaintext`. Raises EncryptionError without keys, and for what cannot be opened.
        """
        require(FUNCTION_OR_NONE, progress=progress)
        return await reencrypt(self._scope, progress)

    @property
    def has_server(self) -> bool:
        """Whether the database is a process of its own, which works while this one does something else."""
        return self._database.is_server

    async def close(self) -> None:
        """Give the connections back; an application's own engine keeps its own. The ledger is of no use after that."""
        if self._owner:
            await self._guard.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class Opening:
    """A ledger that is about to be opened: await it, or enter it."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._opened = opened
        self._ledger: Ledger | None = None

    if not TYPE_CHECKING:  # a type checker knows by itself that there is no such attribute

        def __getattr__(self, name):
            raise AttributeError(f"no {name!r} before the ledger is open: `await` this, or enter it with `async with`")

    def __await__(self) -> Generator[Any, None, Ledger]:
        return self._opened().__await__()  # type: ignore[no-any-return]

    async def __aenter__(self) -> Ledger:
        self._ledger = await self
        return self._ledger

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._ledger is not None
        await self._ledger.close()
