"""Runs statements on asyncpg itself, on a connection of SQLAlchemy's pool: SQLAlchemy's own work for a statement costs
a third of an append.

SQLAlchemy still owns the pool and the connection, which is in autocommit. This module begins and ends transactions.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self, TypeVar
from weakref import WeakSet

from sqlalchemy import Engine, PoolProxiedConnection, QueuePool, event
from sqlalchemy.util import await_only, greenlet_spawn
from sqlalchemy.util.concurrency import in_greenlet

from chatledger.models.weight import in_thread
from chatledger.storage.drivers.errors import Kind, read_failure
from chatledger.storage.drivers.gate import CLOSED, PoolGate
from chatledger.storage.drivers.hang_up import hang_up, until_cancelled
from chatledger.storage.drivers.sql import CELLS, Row, WriteSql, prepare
from chatledger.storage.drivers.urls import POOL, TIMEOUT, PoolLimits, lock_wait
from chatledger.telemetry.counters import Counters

T = TypeVar("T")

SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class AsyncpgDriver:
    """Calls asyncpg from inside a greenlet."""

    __slots__ = ("_connection", "_copies", "_timeout")

    def __init__(self, connection: Any, timeout: float | None = None, *, copies: bool = True) -> None:
        """`timeout`: the seconds without an answer after which a statement raises TimeoutError. None: never."""
        self._connection = connection
        self._copies = copies
        self._timeout = timeout

    def fetch(self, text: str, values: Any) -> Sequence[Row]:
        return await_only(self._connection.fetch(text, *values, timeout=self._timeout))

    def each(self, text: str, values: Any) -> Iterable[Row]:
        return self.fetch(text, values)

    def run(self, text: str, timeout: float | None) -> None:
        """Run statements without parameters, any number in one round trip, with or without a statement cache."""
        await_only(self._connection.execute(text, timeout=timeout))

    @contextmanager
    def awaiting(self) -> Iterator[None]:
        """SQLAlchemy hands no timeout on to asyncpg, so this hangs up on a server that does not answer in time."""
        if self._timeout is None:
            yield
            return
        silent = asyncio.Event()
        timer = asyncio.get_running_loop().call_later(self._timeout, self._hang_up, silent)
        try:
            yield
        except Exception as error:
            if silent.is_set():
                raise TimeoutError from error
            raise
        finally:
            timer.cancel()

    def _hang_up(self, silent: asyncio.Event) -> None:
        silent.set()
        hang_up(self._connection)

    def insert(self, text: str, rows: Sequence[Any]) -> None:
        await_only(self._connection.executemany(text, rows))

    def copy(
        self, table: str, schema: str | None, columns: Sequence[str], rows: Sequence[Row], conflict: str = ""
    ) -> bool:
        if not self._copies or conflict:
            return False
        copying = self._connection.copy_records_to_table(table, schema_name=schema, columns=columns, records=rows)
        await_only(copying)
        return True


class Checkout:
    """A checked-out connection, as an asynchronous context manager. It discards a connection whose state is unknown."""

    __slots__ = ("_connection", "_give_back", "_schema")

    def __init__(
        self,
        connection: PoolProxiedConnection,
        schema: str | None,
        give_back: Callable[[PoolProxiedConnection], Awaitable[None] | None],
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._give_back = give_back

    def fetch(
        self, template: str, parameters: Mapping[str, Any], timeout: float | None = None
    ) -> Coroutine[Any, Any, Sequence[Row]]:
        """asyncpg's own coroutine that returns the rows of one statement. It raises TimeoutError after `timeout`
        seconds.
        """
        text, pick = prepare(template, "postgresql", self._schema)
        assert pick is not None
        driver: Any = self._connection.driver_connection
        return driver.fetch(text, *pick(parameters), *parameters.get(CELLS, ()), timeout=timeout)  # type: ignore[no-any-return]

    async def run(self, text: str, timeout: float) -> None:
        """Run statements without parameters in one round trip. Raises TimeoutError after `timeout` seconds."""
        driver: Any = self._connection.driver_connection
        await driver.execute(text, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None and is_spoilt(error):
            hang_up(self._connection.driver_connection)
            self._connection.invalidate()
        giving_back = self._give_back(self._connection)
        if giving_back is not None:
            await giving_back


class Waiting:
    """The time from asking the pool for a connection to having it. It counts if none was free."""

    __slots__ = ("_began", "_counters", "_free")

    def __init__(self, counters: Counters, *, free: bool) -> None:
        self._counters = counters
        self._free = free
        self._began = time.monotonic()

    def end(self) -> None:
        if not self._free:
            self._counters.add("pool_waits")
            self._counters.measure("pool_wait_seconds", time.monotonic() - self._began)


class AsyncpgConnections:
    """The connections of an engine's pool. A caller uses one inside a greenlet, or checks it out and awaits on it.

    With the ledger's own pool, callers pass a gate first, and a connection that was awaited on stays idle there for the
    next statement. Taking one from the pool needs a greenlet, because the pool may have to connect. The greenlet costs
    a quarter of the rest of the work that the process does for an append.
    """

    def __init__(
        self,
        engine: Engine,
        schema: str | None,
        *,
        owned: bool,
        secured: bool = False,
        distributed: bool = False,
        timeout: float = TIMEOUT,
        limits: PoolLimits = POOL,
        holds: Callable[[], bool] = lambda: False,
    ) -> None:
        """`owned`: the ledger created the engine, so no listener waits when a connection leaves or enters the pool.
        `secured`: the tables have row-level security, which does not allow COPY. `distributed`: they are distributed by
        tenant, so each statement writes one table. `timeout`: the time limit of a call in seconds. `limits` are those
        of the engine's pool; only an engine that is owned needs them. `holds`: whether the running task holds a
        connection by an open transaction.
        """
        self.counters: Counters = Counters()
        self.secured = secured
        self.distributed = distributed
        self.timeout = timeout
        self.response_timeout: float = timeout / 2
        """Seconds without an answer after which a connection counts as lost, if the answer is certain to be small. It
        is half of the limit, so that there is time for a second attempt.
        """
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._schema = schema
        self._owned = owned
        self.closed: bool = False
        """The ledger is closed, so nothing is tried again."""
        self.patient_places: int | None = max(1, sum(limits) // 4) if owned else None
        """The number of connections on which appends may wait for a lock at a time. None: the application decides how
        long a statement of its engine waits.
        """
        self._gate = PoolGate(sum(limits) if owned else math.inf, holds)
        self._open: WeakSet[Any] = WeakSet()
        """The asyncpg connections that left the pool, as long as they exist. Empty for an application's own engine."""
        if owned:
            event.listen(engine, "checkout", lambda connection, *_: self._open.add(connection.driver_connection))

    @property
    def unused(self) -> int:
        """The number of connections that nobody uses now. Each may turn out to be dead."""
        return len(self._gate.idle) + self._unused_in_pool

    @property
    def _unused_in_pool(self) -> int:
        pool = self._engine.pool
        return pool.checkedin() if isinstance(pool, QueuePool) else 0

    @property
    def _in_use(self) -> bool:
        pool = self._engine.pool
        return isinstance(pool, QueuePool) and pool.checkedout() > 0

    # --- To await on

    async def checkout(self) -> Checkout:
        """A connection for one statement, without SQLAlchemy's Connection around it. Do not call it in a greenlet."""
        if self._gate.idle:  # nearly every call, so it enters no other file
            return Checkout(self._gate.idle.pop(), self._schema, self._keep if self._owned else self._return)
        self._refuse_closed()
        waiting = self._waiting()
        connection = None if self._gate.enter() else await self._gate.wait(self.timeout)
        if connection is None:
            connection = await self._connect()
        waiting.end()
        return Checkout(connection, self._schema, self._keep if self._owned else self._return)

    async def _connect(self) -> PoolProxiedConnection:
        """A connection of the pool, for a caller that has a place."""
        try:
            connection = await greenlet_spawn(self._engine.pool.connect)
            if self.closed and self._owned:
                connection.invalidate()  # nobody else would close it
                self._refuse_closed()
        except BaseException:
            self._gate.leave()
            raise
        return connection

    def _keep(self, connection: PoolProxiedConnection) -> Awaitable[None] | None:
        """Give the connection to the first in line, or keep it idle. If the pool has more connections than it keeps
        open, and nobody waits, return it: the pool closes what is too much.
        """
        pool: Any = self._engine.pool
        if self.closed and connection.is_valid:  # the ledger was closed meanwhile: nobody will ask for it again
            connection.invalidate()
        if not connection.is_valid:  # it has left the pool already
            self._gate.leave()
        elif self._gate.line:
            self._gate.leave(connection)
        elif pool.overflow() > 0:
            return self._return(connection)
        else:
            self._gate.idle.append(connection)
        return None

    @property
    def lock_wait(self) -> float:
        """The longest wait of a statement for a lock in seconds."""
        return lock_wait(self.timeout)

    @property
    def _lock_limit(self) -> str:
        return f"; SET LOCAL lock_timeout = {math.ceil(self.timeout * 1000)}"

    async def _return(self, connection: PoolProxiedConnection) -> None:
        try:
            await greenlet_spawn(connection.close)
        finally:
            self._gate.leave()

    # --- Through SQLAlchemy

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Waiting]:
        """Around the use of a connection that the caller takes from the engine. It gives the wait, which ends when the
        caller has the connection.
        """
        waiting = self._waiting()
        connection = None if self._enter() else await self._gate.wait(self.timeout)
        try:
            if connection is not None:
                await greenlet_spawn(connection.close)  # it may be one too many for the pool by now
            self._refuse_closed()
            yield waiting
        finally:
            self._gate.leave()

    def _enter(self) -> bool:
        """Take a place for a connection that SQLAlchemy hands out. If only idle connections are left, one of them goes
        back to the pool, which does not know of them.
        """
        if self._gate.idle and not (self._unused_in_pool and self._gate.free):
            self._gate.idle.pop().close()
            return True
        return self._gate.enter()

    async def connect_alone(self) -> Any:
        """A connection of asyncpg's that the pool does not count. Its caller closes it."""
        async with self.place():
            return await greenlet_spawn(self._detached)

    def _detached(self) -> Any:
        connection = self._engine.raw_connection()
        driver = connection.driver_connection
        connection.detach()
        return driver

    def _waiting(self) -> Waiting:
        """Made before a connection is asked for."""
        return Waiting(self.counters, free=self.unused > 0)

    async def close(self) -> None:
        """Return the idle connections to the pool, so that the engine can dispose of them. Cuts the connection of a
        call that is still running: the call fails and is not repeated.
        """
        self.closed = True
        self._gate.close()
        while self._gate.idle:
            await self._return(self._gate.idle.pop())
        for connection in list(self._open if self._in_use else ()):
            hang_up(connection)
        await until_cancelled()

    def _refuse_closed(self) -> None:
        """Raises an error that counts as a lost connection, so that an append that was sent before ends as
        OutcomeUnknown.
        """
        if self.closed:
            raise ConnectionError(CLOSED)

    @contextmanager
    def autocommit(self, timeout: float | None = None) -> Iterator[WriteSql]:
        """A connection for single statements. After a lost connection or a cancellation it is discarded, because its
        state is unknown.
        """
        with self._checked_out(timeout) as (sql, _):
            yield sql

    @contextmanager
    def _checked_out(self, timeout: float | None) -> Iterator[tuple[WriteSql, AsyncpgDriver]]:
        self._refuse_closed()
        waiting = self._waiting()
        idle = None if self._enter() else await_only(self._gate.wait(self.timeout))
        try:
            if idle is not None:
                idle.close()
            with self._engine.connect() as connection:
                waiting.end()
                driver: Any = connection.connection.driver_connection
                ours = AsyncpgDriver(driver, timeout, copies=not self.secured)
                try:
                    self._refuse_closed()  # the pool may have let it wait
                    yield WriteSql(connection, self._schema, ours, distributed=self.distributed), ours
                except BaseException as error:
                    if is_spoilt(error):
                        hang_up(driver)
                        connection.invalidate()
                    raise
        finally:
            self._gate.leave()

    @contextmanager
    def transaction(
        self,
        begin: str = "BEGIN",
        *,
        timeout: float | None = None,
        first: Callable[[WriteSql], None] | None = None,
        patient: bool = False,
    ) -> Iterator[WriteSql]:
        """Commits on exit, rolls back on an exception. `first` uses the connection before the transaction begins.
        `patient`: a statement may wait for a lock as long as a call may take, since all work would be repeated.
        """
        with self._checked_out(timeout) as (sql, driver):
            if first is not None:
                first(sql)
            driver.run(begin + self._lock_limit if patient and self._owned else begin, self.response_timeout)
            try:
                yield sql
            except Exception as error:
                if not is_spoilt(error):
                    driver.run("ROLLBACK", self.response_timeout)
                raise
            driver.run("COMMIT", timeout)


def is_spoilt(error: BaseException) -> bool:
    """Whether the error leaves the connection in an unknown state: it was lost, or cancelled in the middle."""
    failure = read_failure(error)
    return not isinstance(error, Exception) or (failure is not None and failure.kind is Kind.LOST)


# --- Long work --------------------------------------------------------------------------------------------------------

LONG = 1024 * 1024
"""Characters that are decoded, decrypted or compared in a few milliseconds."""
_CELL = 512
"""Characters that take as long as one more cell does."""
Cells = Iterable[str | None]


def aside(work: Callable[[], T], *columns: Cells) -> T:
    """The result of the work on the texts of these columns. Plain code over an asynchronous driver runs in a greenlet
    of the event loop: from there the work goes to a thread if the texts are long. A thread of SQLite does it itself,
    and measures nothing.
    """
    return apart(work) if in_greenlet() and is_long(*columns) else work()


def apart_from_loop(work: Callable[[], T]) -> T:
    """The result of work that may take long, however short its texts are."""
    return apart(work) if in_greenlet() else work()


def apart(work: Callable[[], T]) -> T:
    """The result of the work in a thread, while the greenlet waits."""
    return await_only(in_thread(work))


def is_long(*columns: Cells) -> bool:
    """Whether the cells of these columns have LONG characters together, or are as much work."""
    try:
        lengths = [size for cells in columns for size in map(len, filter(None, cells))]
        return sum(lengths) + _CELL * len(lengths) >= LONG
    except TypeError:  # SQLite stores a number in a column of text; the work finds such damage
        return False
