"""What a ledger needs of a database, whichever it is: a place for work, for appends and for histories.

PostgreSQL, a SQLite file, an application's own engine and an open transaction implement it. Storage functions are plain
functions of a `Sql`; the database decides where they run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from chatledger.models import Appended, History
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.preflight import Seen
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.page import load_history
from chatledger.storage.history.window import Window
from chatledger.storage.rows.encryption import Tenant

T = TypeVar("T")

START = "0/0"
"""The position that every database has reached; a SQLite file's always, since it has no replica to wait for."""


class Database(ABC):
    """A place where calls run, each in one visit. An append and a history are ordinary work, unless a database has a
    shorter way for them.
    """

    @abstractmethod
    async def read(self, tenant: Tenant, work: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        """With `snapshot`, the work is more than one statement, and all of them see one state."""

    @abstractmethod
    async def write(self, tenant: Tenant, work: Callable[[Sql], T], *, single: bool = False) -> T:
        """In a transaction: whole or not at all. With `single`, the work is one statement on PostgreSQL and needs no
        transaction around it.
        """

    async def append(self, request: AppendRequest) -> Appended:
        return await self.write(request.tenant, lambda sql: attempt_locked(sql, request))

    async def history(self, window: Window) -> History:
        return await self.read(window.tenant, lambda sql: load_history(sql, window), snapshot=True)

    def learn(self, tenant: Tenant, thread: str, seen: Seen) -> None:  # noqa: B027 - nothing to do without a tip cache
        """Remember the tip of a thread that was just made, so that its first append needs no preflight."""


class OpenDatabase(Database):
    """A database that a ledger opened, and will close."""

    one_connection = False
    """Whether a read has to wait for an open transaction, because there is one connection for everything."""

    one_loop = False
    """Whether only the event loop that opened it can use it."""

    is_server = False
    """Whether it is a process of its own, which works while this one does something else."""

    async def position(self) -> str:
        """A place in the database's history that comes after all that is committed now."""
        return START

    @abstractmethod
    def transaction(self, tenant: Tenant) -> AbstractAsyncContextManager[Database]:
        """Several calls, one commit; an exception rolls all of them back."""

    @abstractmethod
    async def close(self) -> None: ...
