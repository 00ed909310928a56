"""Translates drivers' errors into errors of the ledger. The driver's error stays as the cause.

A `Failure` holds the facts: the kind of failure and, for a key or a foreign key, its columns. Columns are the same on
both databases and on partitions; the names of constraints are not. A distributed PostgreSQL may relay a violation that
another of its servers found as an internal error. Only the words of that error then name the constraint of the shard.
If it loses another server at COMMIT, only the words say so too.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn, TypeVar

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.util import greenlet_spawn

from chatledger.errors import ChatLedgerError, RunConflict, StorageError
from chatledger.storage.schema.copy_triggers import REFUSAL
from chatledger.storage.schema.text import decode_text


class NoPlace(Exception):
    """All connections of the ledger's own pool were in use for as long as the call may wait."""

    def __init__(self, places: float, seconds: float) -> None:
        super().__init__(f"all {places:,} were in use for {seconds:g} seconds; PostgreSQL(pool_size=…) makes more")


class NoSecondPlace(NoPlace):
    """The call was made inside an open transaction, which holds a connection."""

    def __init__(self, places: float, seconds: float) -> None:
        Exception.__init__(
            self,
            f"all {places:,} are in use, and a transaction that is open here (`async with ledger.begin() as tx`) holds "
            "one while this call waits for another; until it ends, call tx and not the ledger",
        )


class Kind(Enum):
    """The kinds of failure, each with the words that begin its error text."""

    UNIQUE = "a unique key is violated"
    FOREIGN_KEY = "a foreign key is violated"
    AGAIN = "another transaction conflicts"  # serialization failure, deadlock, lock not available, moved values
    LOST = "the connection failed"
    BUSY = "another connection holds the lock"
    POOL = "no connection of the pool is free"
    FULL = "the database has no space"
    READ_ONLY = "the database is read-only"
    SCHEMA = "a table or column is missing"
    OTHER = "the database failed"


@dataclass(frozen=True, slots=True)
class Failure:
    kind: Kind
    detail: str
    columns: tuple[str, ...] = ()


_AGAIN = {"40001", "40P01", "55P03", "22012"}  # our statements divide by zero only where a value of kv has moved
_LOST = {
    "57P01",
    "57P02",
    "57P03",
    "53300",
    "25P03",
    "57P05",
}  # shutdown, crash, start, connection limit, idle time-outs
_FULL = {"53100", "53200"}  # no disk space, no memory: the statement was undone, and there may be space later
_READ_ONLY = "25006"
_UNDEFINED = {"42P01", "42703", "3F000"}
_NO_ANSWER = "no answer within the time limit, which Ledger.open(timeout=…) sets"
_VIOLATIONS = {"23505": Kind.UNIQUE, "23503": Kind.FOREIGN_KEY}
_INTERNAL = "XX000"
_RELAYED = re.compile(r'violates (unique|foreign key) constraint "([^"]*)"')
_RELAYED_STATES = {"unique": "23505", "foreign key": "23503"}
_SHARD_AT_COMMIT = re.compile(r"could not commit transaction for shard \d+ on (?:at least one|any) active node")
_KEY_COLUMNS = re.compile(r"\(([^()]*)\)=\(")
_SHARD = r"\d*(?:_\d+)?$"  # the number that a partition adds to a constraint's name, and that of a shard
_LAST_COLUMN = re.compile(rf"_(message_id|run_id)(?:_thread_id)?_(?:fkey|key|idx){_SHARD}")
BRANCHES_KEY = ("tenant_id", "thread_id", "branch")
"""The columns of the key that fires if two callers make the branch of one number."""
_BRANCHES_PKEY = re.compile(rf"(?:^|_)branches(?:_\w*)?_pkey{_SHARD}")
_SQLITE_UNIQUE = re.compile(r"UNIQUE constraint failed: (.*)")


def read_failure(error: BaseException) -> Failure | None:
    """The facts of a driver's error, however SQLAlchemy wrapped it; None for an error that is not the database's, and
    for one that is already translated.
    """
    if isinstance(error, ChatLedgerError):
        return None
    if isinstance(error, (PoolTimeout, NoPlace)):
        return Failure(Kind.POOL, str(error))
    driver_error = _driver_error(error)
    sqlstate = getattr(driver_error, "sqlstate", None)
    if isinstance(driver_error, sqlite3.Error):
        return _read_sqlite(driver_error)
    if isinstance(sqlstate, str):
        return _read_postgresql(driver_error, sqlstate)
    if isinstance(driver_error, (ConnectionError, TimeoutError, OSError)) or _is_lost(error, driver_error):
        nameless = _NO_ANSWER if isinstance(driver_error, TimeoutError) else type(driver_error).__name__
        return Failure(Kind.LOST, str(driver_error) or nameless)
    if type(driver_error).__module__.startswith("asyncpg"):
        return Failure(Kind.OTHER, str(driver_error))
    return Failure(Kind.OTHER, str(driver_error)) if isinstance(error, SQLAlchemyError) else None


def _driver_error(error: BaseException) -> BaseException:
    """The driver's own error. SQLAlchemy wraps the error of its adapter, and the adapter wraps that of the driver."""
    inner = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    cause = inner.__cause__
    return cause if cause is not None and type(cause).__module__.startswith("asyncpg") else inner


def _is_lost(error: BaseException, driver_error: BaseException) -> bool:
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    names = {kind.__name__ for kind in type(driver_error).__mro__}
    if "InternalClientError" in names:  # asyncpg raises it if the server closed the connection between two statements
        return True
    closed = "connection is closed" in str(driver_error) or "connection was closed" in str(driver_error)
    return "PostgresConnectionError" in names or ("InterfaceError" in names and closed)


def _read_postgresql(error: BaseException, sqlstate: str) -> Failure:
    detail = str(getattr(error, "detail", None) or "")
    constraint = str(getattr(error, "constraint_name", None) or "")
    relayed = _RELAYED.search(str(error)) if sqlstate == _INTERNAL else None
    if relayed is not None:
        sqlstate, constraint = _RELAYED_STATES[relayed[1]], relayed[2]
    if sqlstate == _INTERNAL and _SHARD_AT_COMMIT.search(str(error)):  # the server of the rows may have committed
        return Failure(Kind.LOST, f"another server of the database was lost at COMMIT: {error}")
    if sqlstate in _VIOLATIONS:
        text = f"{error}: {detail}" if detail else str(error)
        return Failure(_VIOLATIONS[sqlstate], text, _columns(constraint, detail))
    if sqlstate in _AGAIN:
        return Failure(Kind.AGAIN, str(error))
    if sqlstate in _LOST or sqlstate.startswith("08"):
        return Failure(Kind.LOST, str(error))
    if sqlstate in _FULL:
        return Failure(Kind.FULL, str(error))
    if sqlstate == _READ_ONLY:
        return Failure(Kind.READ_ONLY, str(error))
    return Failure(Kind.SCHEMA if sqlstate in _UNDEFINED else Kind.OTHER, str(error))


def _columns(constraint: str, detail: str) -> tuple[str, ...]:
    """The columns of the violated key, or only its last one. Under row-level security PostgreSQL withholds the detail,
    because it holds values. Then only the constraint's name is left, which ends with the last column, in partitions
    and shards too.
    """
    columns = _KEY_COLUMNS.search(detail)
    if columns:
        return tuple(name.strip() for name in columns[1].split(","))
    if _BRANCHES_PKEY.search(constraint):
        return BRANCHES_KEY
    last = _LAST_COLUMN.search(constraint)
    return (last[1],) if last else ()


def _read_sqlite(error: sqlite3.Error) -> Failure:
    text = str(error)
    unique = _SQLITE_UNIQUE.search(text)
    if unique:
        return Failure(Kind.UNIQUE, text, tuple(name.strip().split(".")[-1] for name in unique[1].split(",")))
    if "FOREIGN KEY constraint failed" in text:
        return Failure(Kind.FOREIGN_KEY, text)
    if "locked" in text or "busy" in text:
        return Failure(Kind.BUSY, text)
    if "readonly database" in text or text.startswith(REFUSAL):
        return Failure(Kind.READ_ONLY, text)
    if "disk is full" in text:
        return Failure(Kind.FULL, text)
    return Failure(Kind.SCHEMA if "no such table" in text or "no such column" in text else Kind.OTHER, text)


def is_bad_json(error: BaseException) -> bool:
    """Whether PostgreSQL could not read a text as JSON, or found a JSON value of another kind."""
    return getattr(_driver_error(error), "sqlstate", None) in ("22P02", "22023")


def translate(error: BaseException) -> ChatLedgerError | None:
    """The ledger's error to raise instead; None for an error that is already the ledger's or is not the database's."""
    failure = read_failure(error)
    if failure is None:
        return None
    retryable = failure.kind in (Kind.AGAIN, Kind.BUSY, Kind.FULL, Kind.LOST, Kind.POOL)
    return StorageError(f"{failure.kind.value}: {failure.detail}", retryable=retryable)


def is_away(error: BaseException) -> bool:
    """Whether the database is out of reach, so that another attempt may help: the connection is lost or silent, or the
    pool of the application had none. A call that found no place in our own pool has waited for as long as it may.
    """
    failure = read_failure(error)
    return failure is not None and failure.kind in (Kind.LOST, Kind.POOL) and not isinstance(error, NoPlace)


def is_ended_for_another(error: BaseException) -> bool:
    """Whether the server ended the transaction because of another one: a deadlock, a conflict, an unavailable lock."""
    failure = read_failure(error)
    return failure is not None and failure.kind is Kind.AGAIN


def is_locked(error: BaseException) -> bool:
    """Whether PostgreSQL gave up waiting for a lock, with the statement undone. Another attempt may wait again."""
    return getattr(_driver_error(error), "sqlstate", None) == "55P03"


def commit_outcome_unknown(error: BaseException) -> StorageError | None:
    """The error to raise if the connection was lost at COMMIT, since nobody knows whether the COMMIT happened. None for
    any other error.
    """
    failure = read_failure(error)
    if failure is None or failure.kind is not Kind.LOST:
        return None
    return StorageError(
        "a connection was lost during COMMIT, so the transaction may be committed or not; read the data before you "
        f"repeat it: {failure.detail}"
    )


def raise_run_conflict(error: BaseException, runs: Sequence[str]) -> None:
    """Raises RunConflict if PostgreSQL says that one of the runs belongs to another thread."""
    foreign = foreign_run(error, runs)
    if foreign is not None:
        raise run_conflict(foreign) from error


def run_conflict(stored_run_id: str) -> RunConflict:
    return RunConflict(decode_text(stored_run_id), "belongs to another thread")


def foreign_run(error: BaseException, runs: Sequence[str]) -> str | None:
    """The run of an insert that belongs to another thread, if that is PostgreSQL's error; else None."""
    failure = read_failure(error)
    if failure is None or failure.kind is not Kind.FOREIGN_KEY or failure.columns[-1:] != ("run_id",):
        return None
    return next((run for run in runs if f", {run}) is not" in failure.detail), runs[0])


def is_key(error: BaseException) -> bool:
    """Whether a unique key or a foreign key refused a write."""
    failure = read_failure(error)
    return failure is not None and failure.kind in (Kind.UNIQUE, Kind.FOREIGN_KEY)


# --- Plain code over an asynchronous driver ---------------------------------------------------------------------------

T = TypeVar("T")


async def in_greenlet(function: Callable[..., T], *arguments: Any) -> T:
    """Run the function in a greenlet, where it may await the driver. Raises the driver's errors translated."""
    try:
        return await greenlet_spawn(function, *arguments)
    except Exception as error:
        raise_translated(error)


def raise_translated(error: Exception) -> NoReturn:
    """Raises a driver's error translated, with the driver's error as its cause. Raises any other error unchanged."""
    ours = translate(error)
    if ours is None:
        raise error
    raise ours from error
