"""The interface of a database, as a ledger uses it: it runs reads and writes, appends and histories.

PostgreSQL, a SQLite file, an application's own engine and an open transaction implement it. Storage functions are plain
functions of a `Sql`; the database decides in which thread or greenlet they run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from chatledger.models import Appended
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.databases.states import Followed, States, read_states
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.history.turns import load_history
from chatledger.storage.history.window_request import Section, Window
from chatledger.storage.rows.encryption import Tenant
from chatledger.telemetry.counters import Counters

T = TypeVar("T")

START = "0/0"
"""The position that every database has reached. A SQLite file always returns it, since it has no replica."""

PING = "SELECT 1 FROM {schema}tenants WHERE false"
"""It reads no row. Even so it fails without the tables, and on a SQLite file that cannot be read."""


class Database(ABC):
    """Runs each call as one unit of work. An append is an ordinary write and a history an ordinary read, unless a
    database overrides them with a shorter path.
    """

    timeout: float = 0.0
    """The time limit of a call in seconds: how long it tries again while the database is away. Inside a transaction
    nothing is tried again.
    """

    @abstractmethod
    async def read(self, tenant: Tenant, work: Callable[[ReadSql], T], *, snapshot: bool = False) -> T:
        """Run the work. With `snapshot`, it may be several statements, and all of them see the same state."""

    @abstractmethod
    async def write(self, tenant: Tenant, work: Callable[[WriteSql], T], *, single: bool = False) -> T:
        """Run the work in a transaction. With `single`, the work is one statement on a plain PostgreSQL, so no
        transaction is begun for it there, and the caller tries again itself if the connection is lost.
        """

    async def append(self, request: AppendRequest) -> Appended:
        return await self.write(request.tenant, lambda sql: attempt_locked(sql, request))

    async def history(self, window: Window) -> Section:
        return await self.read(window.tenant, lambda sql: load_history(sql, window), snapshot=True)

    def learn(self, tenant: Tenant, thread: str, seen: Preflight) -> None:  # noqa: B027 - nothing to do without a tip cache
        """Cache the tip of a thread that was just created, so that its first append needs no preflight."""


class OpenDatabase(Database):
    """A database that a ledger opens and closes."""

    one_connection: bool = False
    """Whether a read has to wait for an open transaction, because the database has only one connection."""

    one_loop: bool = False
    """Whether only the event loop that opened the database can use it."""

    is_server: bool = False
    """Whether the database runs in a process of its own, so that it works while this process does something else."""

    connect: Callable[[], Awaitable[Any]] | None = None
    """Makes a connection of the driver's own for hints between processes; None if the database has none."""

    def __init__(self) -> None:
        self.counters: Counters = Counters()

    @property
    def attributes(self) -> Mapping[str, str | int]:
        """Which database it is, in the words of OpenTelemetry."""
        return {"db.system.name": "sqlite"}

    @property
    def queue_length(self) -> int:
        """The number of writes that wait in this process for an earlier one."""
        return 0

    async def ping(self, tenant: Tenant) -> None:
        """One round trip. Raises StorageError."""
        await self.read(tenant, lambda sql: sql.fetch(PING, {}))

    async def position(self) -> str:
        """The position in the database's write-ahead log after every commit up to now."""
        return START

    async def states(self, followed: Sequence[Followed]) -> States:
        """The states of these threads, of any tenants, for the poll of the followers."""
        return await self.read(followed[0][0], lambda sql: read_states(sql, followed))

    def copy_for_other_loops(self) -> OpenDatabase:
        """The same database with a small pool of its own, for another event loop. Only a database with `one_loop` has
        one.
        """
        raise NotImplementedError

    @abstractmethod
    def transaction(self, tenant: Tenant) -> AbstractAsyncContextManager[Database]:
        """Several calls, one commit; an exception rolls all of them back."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections. A call that is still running fails soon."""
