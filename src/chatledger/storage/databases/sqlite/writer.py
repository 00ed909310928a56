"""The writer of a SQLite file: a thread, a connection, and a queue of jobs.

Jobs that queue up while a commit is being made durable share the next commit. The appends among them are written
together, with one call of the driver for each table, as far as the cached tips let them through. Each other job runs in
a savepoint of its own, so a refused job undoes no other. If the appends cannot be written together, they too run one by
one. The writer acknowledges a group after its commit, not before. An explicit transaction occupies the writer from its
BEGIN to its end.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

from chatledger.errors import StorageError
from chatledger.models import Appended
from chatledger.models.weight import CALLER
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.databases.database import Database
from chatledger.storage.databases.loops.loop_thread import until_ended
from chatledger.storage.drivers.errors import translate
from chatledger.storage.drivers.sql import ReadSql, WriteSql, reading
from chatledger.storage.drivers.sqlite import SqliteConnection
from chatledger.storage.rows.encryption import Tenant

T = TypeVar("T")

GROUP = 64
"""Maximum number of jobs that share a commit."""
MESSAGES = 1_000
"""Messages after which no more appends join a group."""
_MOST_LONG = 1_000
"""Maximum number of callers whose last job is remembered as long."""
LONG = 0.05
"""Seconds of the processor after which a group commits, although it has more jobs. Those go back into the queue, and
those of the caller whose job was long behind the jobs of others. The caller's next job has a commit of its own.
"""
BEGIN = "BEGIN IMMEDIATE"


WriteGroup = Callable[[WriteSql, Sequence[AppendRequest]], Mapping[int, Appended]]
"""Writes as many of the appends as it can, and returns their outcomes by index. It raises if one of them cannot be
written, and all must then be undone.
"""


class RunAgain(Exception):
    """The job wrote what it guessed, and the guess was wrong. The writer undoes the job and runs it again."""


class Job:
    """A command for the writer, and the future that waits for it in the loop of its caller. `request` is that of a
    command that is an append.
    """

    __slots__ = ("caller", "command", "future", "loop", "request")

    def __init__(self, command: Callable[[WriteSql], Any], request: AppendRequest | None = None) -> None:
        self.caller = CALLER.get()
        self.command = command
        self.request = request
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()


@dataclass(slots=True)
class Outcome:
    job: Job
    value: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class End:
    commit: bool
    job: Job | None = None


class WriterTransaction(Database):
    """A transaction that occupies the writer. Its jobs run in order, each in a savepoint, until it ends."""

    def __init__(self) -> None:
        self.begun = Job(lambda sql: None)
        self._jobs: SimpleQueue[Job | End] = SimpleQueue()
        self._ended = False

    async def read(self, tenant: Tenant, work: Callable[[ReadSql], T], *, snapshot: bool = False) -> T:
        return await self.write(tenant, reading(work))

    async def write(self, tenant: Tenant, work: Callable[[WriteSql], T], *, single: bool = False) -> T:
        if self._ended:
            raise StorageError("this transaction has ended")
        job = Job(work)
        self._jobs.put(job)
        result: T = await job.future
        return result

    async def end(self, *, commit: bool) -> None:
        if self._ended:
            if commit:
                raise StorageError("the ledger was closed before this transaction ended, and rolled it back")
            return
        self._ended = True
        job = Job(lambda sql: None)
        self._jobs.put(End(commit, job))
        await job.future

    def abandon(self) -> None:
        """Roll back: the caller no longer waits for this transaction, or the ledger is closing."""
        self._ended = True
        self._jobs.put(End(commit=False))

    def serve(self, connection: SqliteConnection) -> None:
        """Run the transaction in the writer's thread, from BEGIN to its end."""
        try:
            connection.execute(BEGIN)
        except Exception as error:
            _deliver([Outcome(self.begun, error=_ours(error))])
            return
        _deliver([Outcome(self.begun)])
        while isinstance(entry := self._jobs.get(), Job):
            _deliver([_in_savepoint(connection, entry)])
        failure = _finish(connection, commit=entry.commit)
        if entry.job is not None:
            _deliver([Outcome(entry.job, error=failure)])


class SqliteWriter:
    def __init__(self, path: str, timeout: float, write_group: WriteGroup) -> None:
        """`timeout`: the seconds to wait for another process's lock."""
        self._path = path
        self._group = write_group
        self._timeout = timeout
        self._queue: deque[Job | WriterTransaction] = deque()
        self._changed = threading.Condition()
        self._serving: WriterTransaction | None = None
        self._long: set[Hashable] = set()
        """The callers whose last job was long."""
        self._closed = False
        # A daemon, so that a process that forgot to close its ledger can still end. Acknowledged writes are on disk.
        self._thread = threading.Thread(target=self._run, name="chatledger-writer", daemon=True)
        self._thread.start()

    @property
    def length(self) -> int:
        """The number of entries that wait."""
        return len(self._queue)

    async def submit(self, command: Callable[[WriteSql], T], request: AppendRequest | None = None) -> T:
        """Run the command in a transaction and return after the commit. Cancelling the call undoes it only if it is
        long work, which asks (`Sql.go_on`). An append passes its request too.
        """
        job = Job(command, request)
        self._add(job)
        result: T = await job.future
        return result

    async def begin(self) -> WriterTransaction:
        """A transaction. It begins after all entries before it in the queue are done."""
        transaction = WriterTransaction()
        self._add(transaction)
        try:
            await transaction.begun.future
        except asyncio.CancelledError:
            transaction.abandon()
            raise
        return transaction

    async def close(self) -> None:
        """Roll back the transactions that are open, finish the other entries in the queue, then end the thread."""
        with self._changed:
            self._closed = True
            for entry in (self._serving, *self._queue):
                if isinstance(entry, WriterTransaction):
                    entry.abandon()
            self._changed.notify()
        await until_ended(self._thread.join)

    def _add(self, entry: Job | WriterTransaction) -> None:
        with self._changed:
            if self._closed:
                raise StorageError("this ledger is closed")
            self._queue.append(entry)
            self._changed.notify()

    def _next(self) -> list[Job] | WriterTransaction | None:
        """The next transaction, or a group of the jobs before it. None once the writer is closed and has none left."""
        with self._changed:
            self._serving = None
            while not self._queue:
                if self._closed:
                    return None
                self._changed.wait()
            group: list[Job] = []
            messages = 0
            while self._queue and len(group) < GROUP and messages < MESSAGES:
                entry = self._queue[0]
                if isinstance(entry, WriterTransaction) or (group and entry.caller in self._long):
                    break
                group.append(entry)
                self._queue.popleft()
                if entry.caller in self._long:
                    break
                messages += _messages_of(entry)
            if group:
                return group
            self._serving = self._queue.popleft()  # type: ignore[assignment]
            return self._serving

    def _run(self) -> None:
        try:
            connection = SqliteConnection(self._path, timeout=self._timeout)
        except Exception as error:
            self._refuse_all(_ours(error))
            return
        try:
            while (entry := self._next()) is not None:
                if isinstance(entry, WriterTransaction):
                    entry.serve(connection)
                else:
                    _deliver(self._commit(connection, [job for job in entry if not job.future.cancelled()]))
        finally:
            connection.close()

    def _commit(self, connection: SqliteConnection, jobs: Sequence[Job]) -> list[Outcome]:
        """Run all jobs in one transaction. A job that fails is undone alone. If the commit fails, all have failed."""
        if not jobs:
            return []
        alone, began = len(jobs) == 1, time.thread_time()
        try:
            connection.execute(BEGIN)
            done = [] if alone else self._write_group(connection, jobs)
        except Exception as error:
            return [Outcome(job, error=_ours(error)) for job in jobs]
        written = {outcome.job for outcome in done}
        rest = [job for job in jobs if job not in written]
        if done and time.thread_time() - began > LONG:
            self._put_back(rest, max(done, key=_messages_of).job.caller)
            rest = []
        outcomes = done + self._run_each(connection, rest, alone=alone)
        if alone and isinstance(outcomes[0].error, RunAgain):
            connection.rollback()
            return self._commit(connection, jobs)
        failure = _finish(connection, commit=not (alone and outcomes[0].error))
        if failure is not None:
            return [Outcome(outcome.job, error=outcome.error or failure) for outcome in outcomes]
        return outcomes

    def _run_each(self, connection: SqliteConnection, jobs: Sequence[Job], *, alone: bool) -> list[Outcome]:
        """The outcomes of the first jobs; the others go back into the queue."""
        outcomes: list[Outcome] = []
        for at, job in enumerate(jobs, 1):
            began = time.thread_time()
            outcomes.append(_run(connection, job) if alone else _in_savepoint(connection, job))
            if time.thread_time() - began > LONG:
                self._put_back(jobs[at:], job.caller)
                break
            self._long.discard(job.caller)
        return outcomes

    def _put_back(self, jobs: Sequence[Job], caller: Hashable) -> None:
        """Put the jobs back, and those of this caller behind the entries of others. Each caller's stay in order."""
        with self._changed:
            if len(self._long) >= _MOST_LONG:  # most of them never came again
                self._long.clear()
            self._long.add(caller)
            entries = [*jobs, *self._queue]
            own = [entry for entry in entries if _caller_of(entry) == caller]
            self._queue = deque([*(entry for entry in entries if _caller_of(entry) != caller), *own])

    def _write_group(self, connection: SqliteConnection, jobs: Sequence[Job]) -> list[Outcome]:
        """The outcomes of the appends that are written. None if one of them fails, in a new transaction."""
        appends = [(job, job.request) for job in jobs if job.request is not None]
        if len(appends) < 2:
            return []
        try:
            done = self._group(connection.sql, [request for _, request in appends])
        except Exception:  # each append then finds its own error
            connection.rollback()
            connection.execute(BEGIN)
            return []
        return [Outcome(appends[index][0], value) for index, value in done.items()]

    def _refuse_all(self, error: BaseException) -> None:
        while (entry := self._next()) is not None:
            jobs = [entry.begun] if isinstance(entry, WriterTransaction) else entry
            _deliver([Outcome(job, error=error) for job in jobs])


def _messages_of(entry: Job | Outcome) -> int:
    """The messages of an append; 1 for any other job."""
    request = entry.request if isinstance(entry, Job) else entry.job.request
    return 1 if request is None else len(request.messages)


def _caller_of(entry: Job | WriterTransaction) -> Hashable:
    return entry.caller if isinstance(entry, Job) else entry.begun.caller


def _run(connection: SqliteConnection, job: Job) -> Outcome:
    """Run one job. Its caller gets any error that it raises, even one that is no Exception, such as the panic of an
    extension, because the thread must continue for the other jobs.
    """
    connection.sql.is_given_up = job.future.cancelled
    try:
        return Outcome(job, job.command(connection.sql))
    except BaseException as error:
        return Outcome(job, error=_ours(error))
    finally:
        connection.sql.is_given_up = None


def _in_savepoint(connection: SqliteConnection, job: Job) -> Outcome:
    """Run one job in a savepoint. If the savepoint itself fails, the transaction is rolled back, so that the thread can
    go on with other jobs.
    """
    if not connection.in_transaction:
        return Outcome(job, error=_rolled_back())
    try:
        connection.execute("SAVEPOINT job")
        outcome = _run(connection, job)
        if isinstance(outcome.error, RunAgain) and connection.in_transaction:
            connection.execute("ROLLBACK TO job")
            outcome = _run(connection, job)
        if connection.in_transaction:
            if outcome.error is not None:
                connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
    except Exception as error:
        connection.rollback()
        return Outcome(job, error=_ours(error))
    return outcome


def _finish(connection: SqliteConnection, *, commit: bool) -> BaseException | None:
    """Commit or roll back. Returns the error if the commit failed."""
    if not commit:
        connection.rollback()
        return None
    if not connection.in_transaction:
        connection.rollback()
        return _rolled_back()
    try:
        connection.commit()
    except Exception as error:
        connection.rollback()
        return _ours(error)
    return None


def _rolled_back() -> StorageError:
    return StorageError("SQLite rolled the transaction back; check whether the disk is full", retryable=True)


def _ours(error: BaseException) -> BaseException:
    """The error to raise in place of a driver's error, with the driver's error as its cause."""
    ours = translate(error)
    if ours is None:
        return error
    ours.__cause__ = error
    return ours


def _deliver(outcomes: Sequence[Outcome]) -> None:
    """Hand each outcome to the loop that waits for it, with one call for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_loop[outcome.job.loop].append(outcome)
    for loop, own in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, so nobody waits in it
            loop.call_soon_threadsafe(_settle, own)


def _settle(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.job.future.done():  # cancelled meanwhile
            continue
        if outcome.error is not None:
            outcome.job.future.set_exception(outcome.error)
        else:
            outcome.job.future.set_result(outcome.value)
