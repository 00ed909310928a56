"""A scope: a database seen as one tenant or one user of it, with its rules and limits. Repositories are built on it.

The scope of a ledger has a guard. The guard refuses a write through the ledger inside an open transaction of the same
ledger, and every call after `close`. Both would fail silently. On SQLite, such a write would wait for the transaction
forever; on PostgreSQL, it would not be part of the transaction. After `close`, the disposed engine would open new
connections, which nobody closes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, TypeVar

from chatledger.arguments import Kind
from chatledger.errors import ChatLedgerError, Conflict, OutcomeUnknown, StorageError, TenantOnly
from chatledger.models import Appended, Limits, Metrics, RulesLevel
from chatledger.storage.append.gone import SlowDigests, with_digests
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest, Terms
from chatledger.storage.databases.begun import BEGUN, begun, refuse_inside_transaction
from chatledger.storage.databases.database import Database, OpenDatabase
from chatledger.storage.databases.hints import Hints
from chatledger.storage.databases.loops.served import OtherLoops
from chatledger.storage.databases.poller import Poller
from chatledger.storage.databases.postgresql.replica import Replica
from chatledger.storage.databases.states import Followed
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.history.window_request import Section, Window
from chatledger.storage.rows.encrypted import (
    is_marked,
    is_recorded,
    mark,
    refuse_without_keys,
    tenant_encrypted,
)
from chatledger.storage.rows.encryption import EncryptionKeys, Tenant
from chatledger.telemetry.calls import Observer, shown
from chatledger.telemetry.counters import Counters

T = TypeVar("T")

_log = logging.getLogger("chatledger.connections")

DEFAULT_TENANT = "default"
LIMITS_OR_NONE = Kind("Limits or None", Limits, NoneType)


@dataclass(frozen=True, slots=True)
class Scope:
    """`guard` is None inside a transaction."""

    database: Database
    tenant: Tenant
    rules: RulesLevel
    limits: Limits
    guard: LedgerGuard | None = None
    moved: Callable[[Followed], None] | None = None
    """Called with each thread that a write changed, if the ledger sends hints."""
    counters: Counters = field(default_factory=Counters)
    observer: Observer | None = None
    """Notified of each public call; None without an observer."""
    position: str | None = None
    """A standby that has replayed past it may answer histories; None: only the primary answers."""

    @property
    def user_id(self) -> str | None:
        """The user whose threads this scope sees; None if it sees the threads of all users."""
        return self.tenant.user_id

    def of_tenant(self, name: str) -> Scope:
        """The same database as another tenant, without a user's view."""
        assert self.guard is not None
        return self.guard.scope(name, self.rules, self.limits)

    def refuse_view(self, call: str) -> None:
        """Raises TenantOnly if the scope is a user's view, for a call that concerns the whole tenant."""
        if self.user_id is not None:
            raise TenantOnly(call)

    @property
    def terms(self) -> Terms:
        return Terms(self.tenant, self.limits, self.rules)

    @property
    def timeout(self) -> float:
        """The time limit of a call in seconds."""
        return self.database.timeout

    async def append(self, request: AppendRequest) -> Appended:
        with self._writing() as database:
            if (encryption := self.tenant.encryption) is not None and not encryption.marked:
                await self.mark_encrypted()
            try:
                try:
                    appended = await database.append(request)
                except SlowDigests:  # hardly any append runs into it, so none pays for a coroutine more
                    appended = await with_digests(request.digests, lambda: database.append(request))
            except ChatLedgerError as error:
                self._note_failure(error, request.thread_id)
                raise
        if self.moved is not None:
            self.moved(Followed(request.tenant, request.thread))
        self.count(request, appended)
        return appended

    def count(self, request: AppendRequest, appended: Appended) -> None:
        if appended.replayed:
            self.counters.add("replays")
        else:
            counters = self.counters  # every append runs this, so it counts here and enters no other file
            counters.values["appends"] += 1
            counters.values["messages"] += len(request.messages)
            counters.values["bytes"] += request.bytes
            if counters.listener is not None:
                counters.listener("bytes", request.bytes)

    def _note_failure(self, error: ChatLedgerError, thread_id: str | None = None) -> None:
        if isinstance(error, Conflict):
            self.counters.add("conflicts")
        elif isinstance(error, OutcomeUnknown):
            self.counters.add("unknown_outcomes")
            _log.warning("the outcome of an append to thread %s is unknown", shown(thread_id))

    async def history(self, window: Window) -> Section:
        """If the scope has a position, a replica that has replayed past it may answer."""
        position = self.position
        with self._reading() as database:
            replica = None if self.guard is None or database is not self.database else self.guard.replica
            if position is not None and replica is not None:
                history = await replica.history(window, position)
                if history is not None:
                    return history
            return await database.history(window)

    async def read(self, work: Callable[[ReadSql], T], *, snapshot: bool = False) -> T:
        with self._reading() as database:
            return await database.read(self.tenant, work, snapshot=snapshot)

    async def write(
        self, work: Callable[[WriteSql], T], *, moves: str | None = None, single: bool = False, removes: bool = False
    ) -> T:
        """Run the work in a transaction; `single` as in `Database.write`. `moves`: the thread, as stored, whose
        followers are notified.

        With keys, the tenant is first marked as encrypted. Without keys, the transaction raises EncryptionError if the
        tenant is encrypted. Work that only `removes` rows skips both, because it needs no keys. A `single` statement
        without keys skips the check too: it continues a draft, and checks by itself.
        """
        with self._writing() as database:
            if not (removes or (single and self.tenant.encryption is None)):
                await self.mark_encrypted()
                work = self._unless_encrypted(work)
            try:
                done = await database.write(self.tenant, work, single=single)
            except ChatLedgerError as error:
                self._note_failure(error)
                raise
        if moves is not None:
            self.hint(moves)
        return done

    def hint(self, thread: str) -> None:
        """Notify the followers of a thread, as stored, after a write."""
        if self.moved is not None:
            self.moved(Followed(self.tenant, thread))

    async def require_keys(self) -> None:
        """Raises EncryptionError if the database is recorded as encrypted and the ledger has no keys."""
        if self.tenant.encryption is None and await self.read(is_recorded):
            raise tenant_encrypted(self.tenant.name)

    def _reading(self) -> AbstractContextManager[Database]:
        return nullcontext(self.database) if self.guard is None else self.guard.reading()

    def _writing(self) -> AbstractContextManager[Database]:
        return nullcontext(self.database) if self.guard is None else self.guard.writing()

    def here(self) -> Database:
        """The database for the loop that is running."""
        return self.database if self.guard is None else self.guard.here()

    def _unless_encrypted(self, work: Callable[[WriteSql], T]) -> Callable[[WriteSql], T]:
        if self.tenant.encryption is not None:
            return work

        def refused_or_done(sql: WriteSql) -> T:
            refuse_without_keys(sql, self.tenant)
            return work(sql)

        return refused_or_done

    async def mark_encrypted(self) -> None:
        """Mark the tenant as encrypted if the ledger has keys for it. This costs one statement for each process and
        tenant. In a transaction it costs one each time, because a rollback removes the mark. Raises EncryptionError if
        the tenant has no keys and they are required.
        """
        encryption = self.tenant.encryption
        if encryption is None or encryption.marked:
            return
        if encryption.required:
            encryption.ring()
        elif not encryption.can_encrypt():
            return
        database = self.here()
        if not await database.read(self.tenant, lambda sql: is_marked(sql, self.tenant)):
            await database.write(self.tenant, lambda sql: mark(sql, self.tenant))
        if self.guard is not None:
            encryption.remember_marked()

    def learn(self, thread: str, seen: Preflight) -> None:
        """Cache the tip of a thread that was just created; `thread` is the key as stored."""
        self.here().learn(self.tenant, thread, seen)


class LedgerGuard:
    """The database that a ledger opened, and its replica if it has one, until the ledger is closed. As a context
    manager it gives the database and counts the running calls, so that `close` can wait for them.
    """

    def __init__(
        self,
        database: OpenDatabase,
        replica: Replica | None,
        keys: EncryptionKeys,
        observer: Observer | None = None,
        *,
        notify: bool = False,
        listens: bool = True,
    ) -> None:
        """`notify`: send hints about writes, and receive those of other processes unless `listens` is False."""
        self.database = database
        self._observer = observer
        self.replica = replica
        self._keys = keys
        self._closed = False
        self._running = 0
        self._none_running = asyncio.Event()
        self._loop = asyncio.get_running_loop() if database.one_loop else None
        self._process = os.getpid()
        self._turn = threading.Lock()
        self._other_loops: OtherLoops | None = None
        self._pollers: dict[asyncio.AbstractEventLoop, Poller] = {}
        self._listens = listens
        self._hints = Hints(database.connect, self._hear, listens=listens) if notify else None
        self.workers: list[Any] = []
        """The workers of this process, which run agents (`answers.serve`)."""

    def scope(self, tenant: str, rules: RulesLevel, limits: Limits) -> Scope:
        """A scope in which each call is a transaction of its own."""
        owner = Tenant.of(tenant, self._keys)
        moved = None if self._hints is None else self._send
        return Scope(self.database, owner, rules, limits, self, moved, self.database.counters, self._observer)

    def metrics(self) -> Metrics:
        database = self.database
        others = self._other_loops
        queue_length = database.queue_length + (0 if others is None else others.database.queue_length)
        running = self._running + (0 if others is None else others.running)
        cells = self._keys.counts.read()
        return Metrics(**database.counters.values, queue_length=queue_length, cells=cells, running=running)

    @asynccontextmanager
    async def begin(self, scope: Scope) -> AsyncIterator[Scope]:
        """The same tenant, user, rules and limits in one transaction. Inside, the guard refuses writes through the
        ledger.
        """
        moved: dict[Followed, None] = {}
        note = None if self._hints is None else moved.setdefault
        with self.writing() as database:
            encryption = scope.tenant.encryption
            if encryption is not None and encryption.can_encrypt():  # without keys a transaction may still delete
                await scope.mark_encrypted()
            async with database.transaction(scope.tenant) as transaction:
                with begun(self.database):
                    yield replace(scope, database=transaction, guard=None, moved=note)
        if self._hints is not None:
            for followed in moved:
                self._send(followed)

    def _send(self, followed: Followed) -> None:
        if self._hints is None or not self._in_other_loop():
            assert self._hints is not None
            self._hints.send(followed)
        else:
            self._open_other_loops().send(followed)

    def poller(self) -> Poller:
        """The poller of this event loop. It receives hints from the first call on, so a follower asks for it before it
        reads. `close` does not wait for followers that wait. Raises as `reading`.
        """
        self.reading()
        if self._hints is not None:
            if self._in_other_loop():
                self._open_other_loops().listen()
            else:
                self._hints.listen()
        loop = asyncio.get_running_loop()
        poller = self._pollers.get(loop)
        if poller is None:
            for closed in [other for other in list(self._pollers) if other.is_closed()]:
                self._pollers.pop(closed, None)  # another loop's thread may have been faster
            poller = self._pollers[loop] = Poller(self.here().states)
        return poller

    def _hear(self, buckets: set[str] | None) -> None:
        for loop, poller in list(self._pollers.items()):
            if loop is asyncio.get_running_loop():
                poller.hint(buckets)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(poller.hint, buckets)

    def reading(self) -> AbstractContextManager[OpenDatabase]:
        """Enter this for the time of a read. Raises StorageError if no read is allowed now."""
        self._refuse_closed()
        if self.database.one_connection:  # a read would wait for the open transaction, as a write does
            refuse_inside_transaction(self.database)
        return self._open_other_loops() if self._in_other_loop() else self

    def writing(self) -> AbstractContextManager[OpenDatabase]:
        """Enter this for the time of a write. Raises StorageError if no write is allowed now."""
        self._refuse_closed()
        if BEGUN.get() is not None:  # asked here, so that an append enters no other file
            refuse_inside_transaction(self.database)
        return self._open_other_loops() if self._in_other_loop() else self

    def here(self) -> OpenDatabase:
        """The database for the loop that is running."""
        return self._open_other_loops().database if self._in_other_loop() else self.database

    def __enter__(self) -> OpenDatabase:
        self._running += 1
        return self.database

    def __exit__(self, *error: object) -> None:
        self._running -= 1
        self._tell_end()

    def _tell_end(self) -> None:
        """Wake `close` if it waits for the last call."""
        if self._closed and not self._running and (self._other_loops is None or not self._other_loops.running):
            with suppress(RuntimeError):  # it does not wait any more, and its loop is closed
                self._closer.call_soon_threadsafe(self._none_running.set)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise _closed()

    def _in_other_loop(self) -> bool:
        """Whether the running loop is not the connections' loop. A call in it would wait for answers that reach only
        the loop that opened the connections.
        """
        return self._loop is not None and self._loop is not asyncio.get_running_loop()

    def _open_other_loops(self) -> OtherLoops:
        if self._process != os.getpid():
            raise StorageError("this process was forked after the ledger was opened; open a ledger in this process")
        with self._turn:
            if self._other_loops is None:
                self._refuse_closed()
                self._other_loops = OtherLoops(
                    self.database.copy_for_other_loops(),
                    self._tell_end,
                    self._hear if self._hints is not None else None,
                    listens=self._listens,
                )
            return self._other_loops

    async def close(self, timeout: float) -> None:
        """Refuse every later call, wait up to `timeout` seconds for the calls that are running, and close the
        connections.
        """
        refuse_inside_transaction(self.database)
        if self._in_other_loop():
            raise StorageError(
                "a ledger's connections belong to the event loop that opened it; close this ledger in that loop"
            )
        self._closer = asyncio.get_running_loop()
        with self._turn:
            self._closed = True
        try:
            for loop, poller in self._pollers.items():
                if loop is asyncio.get_running_loop():
                    await poller.close(_closed())
                elif not loop.is_closed():
                    loop.call_soon_threadsafe(poller.fail, _closed())
            if self.metrics().running:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._none_running.wait(), timeout)
        finally:
            if self._hints is not None:
                await self._hints.close()
            if self._other_loops is not None:
                await self._other_loops.close()
            await self.database.close()
            if self.replica is not None:
                await self.replica.database.close()


def _closed() -> StorageError:
    return StorageError("this ledger is closed")
