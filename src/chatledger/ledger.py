"""The ledger: an open database, and the calls on it.

Each call on a Ledger is a transaction of its own. `begin()` opens a Transaction, in which several calls share one
commit. Both have the same repositories: threads, messages, runs and so on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from chatledger.arguments import (
    BOOL,
    BOOL_OR_NONE,
    FUNCTION_OR_NONE,
    NUMBER,
    RULES,
    STR,
    Kind,
    require,
    require_between,
)
from chatledger.errors import InvalidArgument, StorageError
from chatledger.models import Limits, Metrics, Progress, RulesLevel
from chatledger.removed import names_removed
from chatledger.repositories import Repositories
from chatledger.storage.changes.reencrypt import reencrypt
from chatledger.storage.databases.open import open_database, open_replica
from chatledger.storage.databases.postgresql.options import POSTGRESQL_OR_NONE, PostgreSQL
from chatledger.storage.databases.postgresql.replica import require_position
from chatledger.storage.databases.scope import DEFAULT_TENANT, LIMITS_OR_NONE, LedgerGuard, Scope
from chatledger.storage.drivers.urls import ADDRESS_OR_ENGINE, TIMEOUT
from chatledger.storage.rows.encryption import EncryptionKeys
from chatledger.storage.rows.keys import ENCRYPTION, Encryption, KeyRing
from chatledger.storage.schema.text import encode_key
from chatledger.telemetry.calls import Observer, Observers, SlowCalls, observed
from chatledger.telemetry.settings import OpenTelemetry
from chatledger.transaction import Transaction

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

__all__ = ["Ledger", "Opening", "Transaction"]

_TELEMETRY = Kind("an OpenTelemetry or None", OpenTelemetry, NoneType)
_LONGEST_TIMEOUT = 86_400
_log = logging.getLogger("chatledger.encryption")


def _require_time(timeout: float) -> None:
    require(NUMBER, timeout=timeout)
    if not 0 < timeout <= _LONGEST_TIMEOUT:  # written so that NaN is refused as well
        raise InvalidArgument("timeout", f"must be more than 0 and at most {_LONGEST_TIMEOUT:,} seconds")


class Ledger(Repositories):
    """A database of conversations, seen as one tenant. `Ledger.open` makes one, and all tasks of a process may share
    it.

    Each call is a transaction of its own; `begin` makes several calls one. The calls on threads, messages and so on are
    those of its repositories: `ledger.threads`, `ledger.messages`.
    """

    def __init__(self, guard: LedgerGuard, scope: Scope, *, owner: bool) -> None:
        super().__init__(scope)
        self._guard = guard
        self._database = guard.database
        self._owner = owner

    @classmethod
    @names_removed("open")
    def open(
        cls,
        url: str | os.PathLike[str] | AsyncEngine | None = None,
        *,
        tenant: str = DEFAULT_TENANT,
        rules: RulesLevel = "strict",
        limits: Limits | None = None,
        migrate: bool | None = None,
        timeout: float = TIMEOUT,
        notify: bool = False,
        encryption: KeyRing | Encryption | None = None,
        postgresql: PostgreSQL | None = None,
        telemetry: OpenTelemetry | None = None,
        slow_call: float | None = None,
    ) -> Opening:
        """Open a ledger: `async with Ledger.open(…) as ledger`, or `ledger = await Ledger.open(…)` and `close()`.

            async with Ledger.open("postgresql://app@db/chat", migrate=True, timeout=5) as ledger:
                thread = await ledger.user("ada").threads.create()

        `url` is a path, `sqlite:///…` or `postgresql://…`. The default is the environment variable CHATLEDGER_URL, and
        without it the file ./chatledger.db. Pass the application's own AsyncEngine instead to share it; the ledger
        never disposes of it.

        `tenant` is the owner of all rows that the ledger reads and writes, `"default"` by default. `rules` is the level
        for threads without their own, and `limits` bounds appends and open answers.

        Opening creates a SQLite file that does not exist, and migrates one of an older schema after making a copy. On
        PostgreSQL it changes the schema only with `migrate=True`. `open(engine)` never creates or migrates tables.
        Only its owner can read a file that is created. A file that cannot be written is opened to read; each write then
        raises StorageError.

        `postgresql` is a PostgreSQL: the schema of the tables, the size of the pool, a transaction pooler, a standby,
        row-level security, and tables that are distributed by tenant. Calls that find no free connection wait in line,
        up to the time limit. Keep the sum of the pools of all processes below PostgreSQL's `max_connections`, which is
        100 by default. An engine has its own pool, and a SQLite file always has one connection that writes and up to
        four that read.

        `encryption` encrypts the content of conversations before it leaves this process. It is a KeyRing, or an
        Encryption of a function that returns the KeyRing of a tenant, or None once the tenant has no keys. The ledger
        calls the function for each encryption and decryption, from any thread. A read then raises EncryptionError for a
        cell that was not encrypted for its place. `Encryption(keys, plaintext=True)` also reads cells that were stored
        before there were keys. `Encryption(keys, required=True)` records that the whole database is encrypted, and
        refuses all plain text. The logger `chatledger.encryption` says whether encryption is on.

        `timeout` is the time limit of each read and write in seconds, 10 by default. While PostgreSQL is away, a call
        outside of a transaction tries again until the limit, and then raises StorageError or OutcomeUnknown. The limit
        also ends a read that PostgreSQL does not answer, and the wait for another process's lock on a SQLite file. It
        does not end a write that PostgreSQL is working on: the time of a deletion grows with its thread.

        `notify=True` wakes followers (`messages.follow`) when a thread changes: those of this process and, on
        PostgreSQL, those of every other process with `notify=True`. It takes one more connection, and sends a
        notification after commits, at most every 50 ms. A notification names one of 65,536 groups of threads, and no
        thread. Through a transaction pooler a process can send notifications and cannot receive them.

        Any event loop may call the ledger. On PostgreSQL, calls from another loop than the one that opened it use up to
        four more connections, and run in a thread of their own. Close the ledger in the loop that opened it.

        With `slow_call`, the logger `chatledger.calls` gets a warning for each call that takes that many seconds or
        more. `telemetry` records a span for each public call, and metrics.

        Raises SchemaMismatch with the command to run, StorageError if the database cannot be reached, and
        InvalidArgument.
        """
        require(ADDRESS_OR_ENGINE, url=url)
        require(STR, tenant=tenant)
        require(RULES, rules=rules)
        require(LIMITS_OR_NONE, limits=limits)
        require(BOOL_OR_NONE, migrate=migrate)
        _require_time(timeout)
        require(BOOL, notify=notify)
        require(ENCRYPTION, encryption=encryption)
        require(POSTGRESQL_OR_NONE, postgresql=postgresql)
        require(_TELEMETRY, telemetry=telemetry)
        if slow_call is not None:
            require(NUMBER, slow_call=slow_call)
            require_between(0, _LONGEST_TIMEOUT, slow_call=slow_call)
        options, keys = postgresql or PostgreSQL(), EncryptionKeys(encryption)

        async def opened() -> Ledger:
            database = await open_database(url, options, migrate=migrate, timeout=timeout)
            standby = None if options.replica is None else await open_replica(options.replica, database, options)
            observers: list[Observer] = [] if slow_call is None else [SlowCalls(slow_call)]
            if telemetry is not None:
                attributes, queue_length = database.attributes, lambda: database.queue_length
                observers.append(telemetry.observe(database.counters, attributes, queue_length))
            observer = Observers(observers) if len(observers) > 1 else next(iter(observers), None)
            listens = options.pooler == "session"
            _log.info("encryption: %s", "on" if keys.are_there else "off")
            guard = LedgerGuard(database, standby, keys, observer, notify=notify, listens=listens)
            return observed(cls, "", observer)(guard, guard.scope(tenant, rules, limits or Limits()), owner=True)

        return Opening(opened)

    def tenant(self, name: str) -> Ledger:
        """The same database seen as another tenant. It costs no round trip. Closing the returned ledger does nothing,
        because this one owns the connections. Raises TenantOnly on a user's ledger.
        """
        require(STR, name=name)
        self._scope.refuse_view("tenant")
        scope = self._guard.scope(name, self._scope.rules, self._scope.limits)
        return self._view(replace(scope, position=self._scope.position))

    def user(self, user_id: str) -> Ledger:
        """The same tenant as one user sees it: the threads with this `user_id`, and their messages, branches, runs,
        feedback, drafts and values. It costs no round trip, so a service makes one for each request.

            mine = ledger.user("ada")
            thread = await mine.threads.create(title="Trip")
            page = await mine.threads.list()

        Other threads, and threads without a user, are not found, as if they did not exist. The threads that this ledger
        creates belong to the user. A transaction from its `begin()` is limited to the user too.

        Lists and summaries count only the user's own rows. `erasures.erase` erases this user only. Calls that concern
        all users raise TenantOnly: `tenant`, `reencrypt`, `check` without a thread,
        `threads.delete_inactive`, `erasures.erase` of the tenant, `erasures.find` of a thread, `erasures.list`, and
        `feedback.remove` of a score that is not the user's. Closing the returned ledger does nothing, because this one
        owns the connections. Raises LimitExceeded for an id that is not 1 to 512 bytes.
        """
        require(STR, user_id=user_id)
        encode_key(user_id, "user_id")
        return self._view(replace(self._scope, tenant=self._scope.tenant.seen_by(user_id)))

    def replica(self, position: str) -> Ledger:
        """The same tenant or user, whose histories a standby may answer that has replayed past `position`, which
        `position` returned. So a read never lacks what was committed before that. It costs no round trip.

            position = await ledger.position()
            history = await ledger.replica(position).messages.history(thread_id)

        If the standby is behind or away, the primary answers, as it does for every other call, in transactions, and if
        the ledger was opened without a standby (`PostgreSQL(replica=…)`). Closing the returned ledger does nothing,
        because this one owns the connections. Raises InvalidCursor for a text that is no position.
        """
        require(STR, position=position)
        require_position(position)
        return self._view(replace(self._scope, position=position))

    def _view(self, scope: Scope) -> Ledger:
        return ledger_of(scope)

    def metrics(self) -> Metrics:
        """The counters since the ledger was opened, over all its tenants, users and transactions. It costs no round
        trip, and works on a closed ledger too.
        """
        return self._guard.metrics()

    async def position(self) -> str:
        """The present position of the database's write-ahead log, after every commit up to now, for `ledger.replica`.
        One round trip. On SQLite the position is always the same.
        """
        with self._guard.reading() as database:
            return await database.position()

    async def ping(self, *, timeout: float = 2.0) -> float:
        """Check that the database answers, for a health check. Returns the seconds that the answer took.

        One round trip. A connection that was lost is replaced. Raises StorageError if there is no answer within
        `timeout` seconds, which includes the wait for a free connection, and if the ledger's tables do not exist.
        """
        _require_time(timeout)
        with self._guard.reading() as database:
            began = time.monotonic()
            try:
                async with asyncio.timeout(timeout):
                    await database.ping(self._scope.tenant)
            except TimeoutError:
                raise StorageError(f"the database gave no answer within {timeout:g} seconds", retryable=True) from None
            return time.monotonic() - began

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Transaction]:
        """Make several calls one transaction, which commits on exit and rolls back on an exception.

            async with ledger.begin() as tx:
                thread = await tx.threads.create(title="Trip")
                await tx.messages.append(thread.thread_id, messages)

        Write through the transaction, not through the ledger: inside the block, a write of the ledger raises
        StorageError. Each call is a savepoint, so a refused call does not end the transaction. On SQLite the
        transaction holds the file's only write lock until it ends.
        """
        async with self._guard.begin(self._scope) as scope:
            yield Transaction.over(scope)

    async def reencrypt(self, *, progress: Progress | None = None) -> Mapping[str, int]:
        """Encrypt with the tenant's current key the cells that another key encrypted and, with
        `Encryption(…, plaintext=True)`, the plain ones. Returns the number of rows by table.

        Reads every row of the tenant. Each transaction encrypts up to 1,000 rows of one thread and locks that thread.
        After an interruption, call it again to continue. `progress` receives the number of threads done and the number
        of all threads.

        It returns once a pass over all threads finds nothing to do. You can then drop the older keys and open the
        ledger without `plaintext`. Raises EncryptionError without keys, and for a cell that cannot be decrypted, and
        TenantOnly on a user's ledger.
        """
        require(FUNCTION_OR_NONE, progress=progress)
        self._scope.refuse_view("reencrypt")
        return await reencrypt(self._scope, progress)

    @property
    def has_server(self) -> bool:
        """Whether the database is a server, which works while this process does something else: True for PostgreSQL."""
        return self._database.is_server

    async def close(self, *, timeout: float | None = None) -> None:
        """Close the ledger: refuse every later call with StorageError, wait for the running calls and transactions, and
        close the connections, except those of an application's own engine.

        It waits up to `timeout` seconds; None is the ledger's own time limit. Calls that still run then fail with
        StorageError or OutcomeUnknown, and transactions are rolled back. It does not wait for drafts: the next write of
        a draft is refused, and its message counts as abandoned once the lease is over. So leave drafts first.
        """
        if timeout is not None:
            require(NUMBER, timeout=timeout)
            require_between(0, _LONGEST_TIMEOUT, timeout=timeout)
        if self._owner:
            await self._guard.close(self._database.timeout if timeout is None else timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


def ledger_of(scope: Scope) -> Ledger:
    """The ledger of a scope, which another one opened and closes."""
    assert scope.guard is not None
    return observed(Ledger, "", scope.observer)(scope.guard, scope, owner=False)


class Opening:
    """A ledger that is about to be opened, from `Ledger.open`. Await it, or enter it with `async with`. Nothing is
    opened before that.
    """

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._opened = opened
        self._ledger: Ledger | None = None

    if not TYPE_CHECKING:  # a type checker that saw it would accept every attribute

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
