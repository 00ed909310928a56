"""PostgreSQL: a pool of connections. Single statements are awaited on asyncpg itself.

A small history and nearly every append are one statement. Everything else is plain code inside one greenlet.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy.util import greenlet_spawn

from chatledger.models import Appended
from chatledger.models.weight import in_thread
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.tip_cache import TipCache
from chatledger.storage.databases.begun import is_inside_transaction
from chatledger.storage.databases.database import PING, Database, OpenDatabase
from chatledger.storage.databases.external_connection import begin_transaction
from chatledger.storage.databases.postgresql.append import ATTEMPTS, PostgresqlAppend
from chatledger.storage.databases.postgresql.append_queue import AppendQueues
from chatledger.storage.databases.postgresql.group import PostgresqlGroups
from chatledger.storage.databases.retries import Retries, note_retry
from chatledger.storage.databases.states import Followed, FollowedKey, State, States, read_states_of
from chatledger.storage.drivers.asyncpg import SNAPSHOT, AsyncpgConnections, is_long
from chatledger.storage.drivers.errors import (
    commit_outcome_unknown,
    in_greenlet,
    is_away,
    is_bad_json,
    is_ended_for_another,
    is_locked,
    raise_translated,
)
from chatledger.storage.drivers.sql import ReadSql, WriteSql, reading
from chatledger.storage.drivers.urls import POOL, TIMEOUT, PoolLimits
from chatledger.storage.history.turns import load_history, load_page, load_small, page_statement, read_page
from chatledger.storage.history.union_rows import LONG_OF
from chatledger.storage.history.window_request import Section, Window
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.row_security import begin_as
from chatledger.telemetry.counters import Counters

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

T = TypeVar("T")

MOST_OF_COPY = 4
"""Maximum number of connections of the copy for other event loops."""

CURRENT = """
SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END)::text
"""


class PostgresqlDatabase(OpenDatabase):
    is_server = True

    def __init__(
        self,
        engine: AsyncEngine,
        schema: str,
        *,
        owned: bool,
        secured: bool = False,
        distributed: bool = False,
        timeout: float = TIMEOUT,
        pool: PoolLimits = POOL,
        make_engine: Callable[[PoolLimits], AsyncEngine] | None = None,
    ) -> None:
        """`owned`: the ledger created the engine and disposes of it. `secured`: every transaction sets the tenant for
        row-level security. `distributed`: the tables are distributed by tenant, so every write is a transaction whose
        statements write one table each. `timeout`: the time limit of a call in seconds. `pool`: the limits of the
        engine's pool, if it is owned. `make_engine` makes another engine, for the copy for other event loops.
        """
        self._make_engine = make_engine
        self._pool = pool
        self.one_loop = owned
        self.timeout = timeout
        self.secured = secured
        self.distributed = distributed
        self._engine = engine
        self._schema = schema
        self._owned = owned
        self._tips = TipCache()
        self._connections = AsyncpgConnections(
            engine.sync_engine,
            schema,
            owned=owned,
            secured=secured,
            distributed=distributed,
            timeout=timeout,
            limits=pool,
            holds=is_inside_transaction,
        )
        self.counters: Counters = self._connections.counters
        self._append = PostgresqlAppend(self._connections, self._tips)
        self._queues = AppendQueues(PostgresqlGroups(self._append, self._connections, self._tips))
        self.connect: Callable[[], Awaitable[Any]] = self._connections.connect_alone

    async def append(self, request: AppendRequest) -> Appended:
        """Writers of one thread in this process take turns. Writers that had to wait may share a statement."""
        try:
            async with self._queues.slot(request) as slot:
                if slot.appended is not None:  # the statement of a group did it
                    return slot.appended
                return await self._append.until_known(request, unanswered=slot.unanswered, since=slot.since)
        except Exception as error:
            raise_translated(error)

    async def history(self, window: Window) -> Section:
        if self.secured:
            return await self.read(window.tenant, lambda sql: load_history(sql, window), snapshot=True)
        page = await self._retry_until_answered(lambda: self._one_statement(window)) if window.is_small else None
        if page is not None:
            return page
        return await self.read(window.tenant, lambda sql: load_page(sql, window), snapshot=True)

    async def read(self, tenant: Tenant, work: Callable[[ReadSql], T], *, snapshot: bool = False) -> T:
        begin = self._begin_read(tenant, snapshot=snapshot)
        return await self._retry_until_answered(lambda: greenlet_spawn(self._once, begin, reading(work), self.timeout))

    async def write(self, tenant: Tenant, work: Callable[[WriteSql], T], *, single: bool = False) -> T:
        begin = begin_as("BEGIN", tenant.key) if self.secured else "BEGIN"
        if not single:
            return await self._retry_until_answered(lambda: greenlet_spawn(self._in_transaction, begin, work))
        alone = not (self.secured or self.distributed)
        once = partial(self._once, None if alone else begin, work, self._connections.response_timeout)
        return await self._until_free(lambda: greenlet_spawn(once))

    def learn(self, tenant: Tenant, thread: str, seen: Preflight) -> None:
        self._tips.learn(tenant, thread, seen)

    async def position(self) -> str:
        position: str = await self._retry_until_answered(
            lambda: greenlet_spawn(self._once, None, lambda sql: sql.fetch(CURRENT, {})[0][0], self.timeout)
        )
        return position

    async def ping(self, tenant: Tenant) -> None:
        await self._retry_until_answered(
            lambda: greenlet_spawn(self._once, None, lambda sql: sql.fetch(PING, {}), self.timeout)
        )

    async def states(self, followed: Sequence[Followed]) -> States:
        """Under row-level security a statement sees the rows of one tenant, and if the tables are distributed, one
        server has them. So each tenant takes a statement.
        """
        if not (self.secured or self.distributed):
            return await super().states(followed)
        states: dict[FollowedKey, State] = {}
        for tenant in {asked.tenant.key: asked.tenant for asked in followed}.values():
            own = [asked for asked in followed if asked.tenant.key == tenant.key]
            states |= await self.read(tenant, partial(read_states_of, tenant=tenant, followed=own))
        return states

    async def history_if(self, condition: Callable[[WriteSql], None], window: Window) -> Section:
        """The history, unless `condition` raises. The condition runs on the same connection before the read begins. The
        read is tried once.
        """
        if window.is_small:
            begin = self._begin_read(window.tenant)
            page: Section | None = await in_greenlet(self._read_if, condition, begin, window, load_small)
            if page is not None:
                return page
        begin = self._begin_read(window.tenant, snapshot=True)
        history: Section = await in_greenlet(self._read_if, condition, begin, window, load_page)
        return history

    @asynccontextmanager
    async def transaction(self, tenant: Tenant) -> AsyncIterator[Database]:
        secured = tenant if self.secured else None
        lock_timeout = self.timeout if self._owned else 0.0
        own = begin_transaction(
            self._engine, self._schema, secured=secured, distributed=self.distributed, lock_timeout=lock_timeout
        )
        async with self._connections.place() as waiting, own as connection:
            waiting.end()
            yield connection

    def copy_for_other_loops(self) -> OpenDatabase:
        """The copy uses the counters of this database."""
        assert self._make_engine is not None
        pool = PoolLimits(min(MOST_OF_COPY, self._pool.size), 0)
        copy = PostgresqlDatabase(
            self._make_engine(pool),
            self._schema,
            owned=True,
            secured=self.secured,
            distributed=self.distributed,
            timeout=self.timeout,
            pool=pool,
        )
        copy.counters = copy._connections.counters = self.counters
        return copy

    @property
    def attributes(self) -> Mapping[str, str | int]:
        url = self._engine.url
        address = {"db.namespace": url.database, "server.address": url.host, "server.port": url.port}
        return {"db.system.name": "postgresql", **{name: value for name, value in address.items() if value is not None}}

    @property
    def queue_length(self) -> int:
        return self._queues.length

    async def close(self) -> None:
        await self._connections.close()
        if self._owned:
            await self._engine.dispose()

    async def _until_free(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of the attempt, which waits for locks until the time limit. Raises the driver's errors
        translated.
        """
        retries = Retries(self.timeout)
        while True:
            try:
                return await attempt()
            except Exception as error:
                if not is_locked(error) or not await retries.next():
                    raise_translated(error)
                note_retry(self.counters, error)

    async def _retry_until_answered(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of a read, or of a write whose COMMIT was not sent. While the database is away, the attempt is
        repeated until the time limit, and while another transaction holds a lock. A transaction that the server ended
        because of another one, as in a deadlock, is begun again, up to ATTEMPTS times. Raises the driver's errors
        translated.

        When the server restarts, connections die in the pool, and only their use shows it. Each unused connection may
        be dead, so the next attempt does not wait while there are any.
        """
        since, retries, number = time.monotonic(), None, 1
        while True:
            try:
                return await attempt()
            except Exception as error:
                if is_ended_for_another(error) and not is_locked(error) and number < ATTEMPTS:
                    number += 1
                    note_retry(self.counters, error)
                    continue
                if not (is_away(error) or is_locked(error)):
                    raise_translated(error)
                retries = retries or Retries(self.timeout, since=since)
                unused = 0 if is_locked(error) else self._connections.unused
                if self._connections.closed or not await retries.next(unused=unused):
                    raise_translated(error)
                note_retry(self.counters, error)

    # --- Reads

    def _begin_read(self, tenant: Tenant, *, snapshot: bool = False) -> str | None:
        """The statement that begins the transaction of a read; None if the read needs no transaction."""
        if self.secured:
            return begin_as(SNAPSHOT if snapshot else "BEGIN READ ONLY", tenant.key)
        return SNAPSHOT if snapshot else None

    def _read_if(
        self,
        condition: Callable[[WriteSql], None],
        begin: str | None,
        window: Window,
        load: Callable[[ReadSql, Window], T],
    ) -> T:
        if begin is None:
            with self._connections.autocommit(self._connections.response_timeout) as sql:
                condition(sql)
                return load(sql.reading(), window)
        with self._connections.transaction(begin, timeout=self._connections.response_timeout, first=condition) as sql:
            return load(sql.reading(), window)

    async def _one_statement(self, window: Window) -> Section | None:
        """The page by one statement, awaited on asyncpg itself: a greenlet costs as much as reading fifty messages."""
        template, parameters = page_statement(window)
        try:
            async with await self._connections.checkout() as connection:
                rows = await connection.fetch(template, parameters, self._connections.response_timeout)
        except Exception as error:
            if is_bad_json(error):  # the lineage: several statements say of which branch
                return None
            raise
        if is_long(*(map(column, rows) for column in LONG_OF)):
            return await in_thread(lambda: read_page(window, rows))
        return read_page(window, rows)

    # --- Work on one connection, inside a greenlet

    def _once(self, begin: str | None, work: Callable[[WriteSql], T], timeout: float) -> T:
        """The work in a transaction that `begin` begins, or in none. If the connection is lost, also at COMMIT, the
        caller may run the work again.
        """
        connections = self._connections
        with connections.transaction(begin, timeout=timeout) if begin else connections.autocommit(timeout) as sql:
            return work(sql)

    def _in_transaction(self, begin: str, work: Callable[[WriteSql], T]) -> T:
        """Raises an error of its own if the connection was lost at COMMIT, which may have happened."""
        done = False
        try:
            with self._connections.transaction(begin, patient=True) as sql:
                result = work(sql)
                done = True
        except Exception as error:
            unanswered = commit_outcome_unknown(error) if done else None
            if unanswered is None:
                raise
            raise unanswered from error
        return result
