"""URLs and engines: the drivers, and the settings that their transactions need."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import urlencode

from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import ArgumentError

from chatledger.arguments import Kind, is_of
from chatledger.errors import InvalidArgument, StorageError
from chatledger.models.secrets import is_secret_name
from chatledger.storage.drivers.hang_up import hang_up

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine
    from typing_extensions import TypeIs

DEFAULT_URL = "chatledger.db"
URL_VARIABLE = "CHATLEDGER_URL"
MEMORY = ":memory:"
TIMEOUT = 10.0
"""The time limit of a read or a write in seconds, unless `Ledger.open` is given another."""
BUSY_TIMEOUT = TIMEOUT
"""Seconds that a migration, a copy or an application's engine waits for another process's lock on a SQLite file."""


class PoolLimits(NamedTuple):
    """The size of a pool of connections to PostgreSQL. The defaults are 20 in all: four processes then fit into the 97
    that PostgreSQL leaves to ordinary roles by default, and 17 remain for others.
    """

    size: int = 20
    """Connections that are kept open."""
    overflow: int = 0
    """Maximum number of further connections while all of those are busy. They cost a login each time."""


POOL = PoolLimits()

READ_ONLY = "chatledger_read_only"
"""Execution option of a connection that only reads. On SQLite its transactions then do not take the write lock."""


Address: TypeAlias = str | os.PathLike[str] | URL | None
"""A path or a URL of a database. None is the environment variable CHATLEDGER_URL or, without it, the file
./chatledger.db.
"""
ADDRESS = Kind("a str, a path or None", str, os.PathLike, URL, NoneType)
ENGINE = "sqlalchemy.ext.asyncio:AsyncEngine"
ADDRESS_OR_ENGINE = Kind("a str, a path, an AsyncEngine or None", str, os.PathLike, URL, NoneType, later=ENGINE)


def read_url(url: Address) -> URL:
    """The URL of a path, `sqlite:///…`, `postgresql://…` or `postgres://…`, with the asynchronous driver filled in."""
    text = os.environ.get(URL_VARIABLE, DEFAULT_URL) if url is None else url
    if not isinstance(text, URL):
        if not isinstance(text, (str, os.PathLike)):
            raise InvalidArgument("url", f"must be a str or a path, not {type(text).__name__}")
        text = os.fspath(text)
        if not isinstance(text, str) or _UNUSABLE.search(text):
            raise InvalidArgument("url", "must be text without NUL and without half of a surrogate pair")
        if not text:  # as a path it would be a database in memory, which loses all that is written to it
            raise StorageError(f"the database URL is empty; leave it (and {URL_VARIABLE}) out for ./{DEFAULT_URL}")
        if _ALMOST_A_URL.match(text):  # taken as a path, errors would quote it with the password in it
            raise StorageError(f"not a database URL: {_scheme(text)}; a path that begins so is written ./…")
        if "://" not in text:
            return URL.create("sqlite+aiosqlite", database=text)
        text = _made(text)
    backend = text.get_backend_name().replace("postgres", "postgresql").replace("postgresqlql", "postgresql")
    if backend == "sqlite":
        return text.set(drivername="sqlite+aiosqlite", database=text.database or MEMORY)
    if backend == "postgresql":
        _require_ports(text)
        return text.set(drivername="postgresql+asyncpg")
    raise StorageError(f"{backend} is not supported; use a path, sqlite:///… or postgresql://…")


def _made(text: str) -> URL:
    try:
        return make_url(text)
    except (ArgumentError, ValueError):  # not chained: the cause would quote the text, which may hold a password
        raise StorageError(f"not a database URL: {_scheme(text)}") from None


_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that no name of a file, a host or a parameter can contain."""
_PORT = re.compile(r":(-?\d+)$")


def _require_ports(url: URL) -> None:
    """Raises InvalidArgument for an impossible port, wherever the URL names one."""
    hosts, ports = (",".join(url.normalized_query.get(name, ())).split(",") for name in ("host", "port"))
    named = [match[1] for host in hosts if (match := _PORT.search(host))]
    for port in [*([] if url.port is None else [str(url.port)]), *filter(None, ports), *named]:
        if not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65_535):
            raise InvalidArgument("url", f"must have a port from 1 to 65,535, not {port:.20}")


_ALMOST_A_URL = re.compile(r"(postgres|postgresql|sqlite)(\+\w+)?(:(?!//)|//)", re.IGNORECASE)


def _scheme(url: str) -> str:
    """Enough of a URL to recognise it, without its password."""
    return re.split("[:/]", url, maxsplit=1)[0] + "://…"


def without_password(url: URL) -> str:
    """A URL for display, as a user writes it: without the driver, and with passwords masked wherever they stand."""
    secret = {name: "***" for name in url.query if is_secret_name(name)}
    return url.set(drivername=url.get_backend_name()).update_query_dict(secret).render_as_string()


def sqlite_path(url: URL) -> str:
    database = url.database or MEMORY
    try:
        return database if database == MEMORY else str(Path(database).expanduser())
    except RuntimeError as error:
        raise StorageError(f"cannot open {database}: the folder of that user is not known") from error


def load_driver() -> None:
    """Import what a PostgreSQL database needs, which takes a tenth of a second: not the event loop's work."""
    import asyncpg  # noqa: F401
    import sqlalchemy.dialects.postgresql.asyncpg
    import sqlalchemy.ext.asyncio  # noqa: F401


def create_postgresql_engine(
    url: URL, *, pooler: str = "session", timeout: float = TIMEOUT, pool: PoolLimits = POOL, bounds_locks: bool = False
) -> AsyncEngine:
    """An engine whose pool does not reset connections: a reset costs a round trip, and each unit of work ends its own
    transaction.

    `pooler="transaction"` is for a pooler that may give each transaction another server connection. A prepared
    statement may then not exist the next time, so each statement is parsed again, unnamed. asyncpg asks for its
    parameter types and sends the values in a second round trip. There is no Sync between the two, so the pooler keeps
    both on one server connection.

    `timeout` is the time limit of a call, and of the wait for a connection of the pool. A new connection may take half
    of the limit, so that there is time for a second one. `bounds_locks` limits each wait for a lock to `lock_wait`: a
    ledger's calls try again, and a migration waits.
    """
    from sqlalchemy.ext.asyncio import create_async_engine

    url, of_url = connect_arguments(url)
    arguments: dict[str, Any] = {"timeout": timeout / 2, "async_creator_fn": connect_to_the_end, **of_url}
    if pooler == "transaction":
        arguments |= {"statement_cache_size": 0, "prepared_statement_cache_size": 0}
    try:
        engine = create_async_engine(
            url,
            hide_parameters=True,  # they hold what people said, and SQLAlchemy's errors would quote them
            pool_reset_on_return=None,
            pool_size=pool.size,
            max_overflow=pool.overflow,
            connect_args=arguments,
            pool_timeout=timeout,
        )
    except ArgumentError as error:
        raise StorageError(f"not a PostgreSQL URL that can be used: {error}") from None
    engine.sync_engine.dialect.do_terminate = _hang_up  # type: ignore[method-assign]
    prepare = (
        _meet_arrays
        if pooler == "transaction"
        else partial(_set_up, lock_wait=lock_wait(timeout) if bounds_locks else None)
    )
    # After SQLAlchemy's own listener, which sets the codecs of JSON: a new codec makes asyncpg forget the types it met.
    event.listen(engine.sync_engine, "connect", lambda connection, _record: connection.run_async(prepare))
    return engine


async def connect_to_the_end(*arguments: Any, **options: Any) -> Any:
    """Call `asyncpg.connect` so that no cancellation reaches it. If asyncpg is cancelled while it connects, it leaves a
    future whose exception is never retrieved, and asyncio prints a complaint on stderr. A connection that no caller
    waits for any more is closed.
    """
    import asyncpg

    connecting = asyncio.ensure_future(asyncpg.connect(*arguments, **options))
    try:
        return await asyncio.shield(connecting)
    except asyncio.CancelledError:
        connecting.add_done_callback(_hang_up_unwanted)
        raise


def _hang_up_unwanted(connecting: asyncio.Future[Any]) -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().terminate()


def _hang_up(dbapi_connection: Any) -> None:
    """Close a discarded connection without a goodbye. SQLAlchemy would wait two seconds for the goodbye of a silent
    server, and the caller, whose call was cancelled or timed out, would wait as well. If it is cancelled again
    meanwhile, SQLAlchemy logs a traceback, or a note since its release 2.1.
    """
    hang_up(dbapi_connection.driver_connection)


LOCK_WAIT = 0.5
"""The longest wait for a lock in seconds. Then PostgreSQL undoes the statement, and the call goes on waiting in this
process, until its time limit. If it waited on the server, it would hold a connection meanwhile.
"""


def lock_wait(timeout: float) -> float:
    """The longest wait for a lock in a session, if a call may take `timeout` seconds."""
    return min(LOCK_WAIT, timeout / 4)


async def _set_up(connection: Any, lock_wait: float | None) -> None:
    """Bound each wait for a lock to `lock_wait` seconds if it is given, unless a shorter time is set for the role or
    the database.

    And switch PostgreSQL's just-in-time compiler off for the session. It compiles what it expects to be expensive, and
    it expects that of a window of a very long thread: it would compile for fifty milliseconds what then runs for two.
    As startup parameters these would cost no round trip, but a pooler refuses startup parameters that it does not know.
    """
    if lock_wait is None:
        await connection.execute("SET jit = off", timeout=TIMEOUT)
        return
    milliseconds = max(1, int(lock_wait * 1000))
    await connection.execute(
        f"SET jit = off; SELECT set_config('lock_timeout', '{milliseconds}', false)"
        f" WHERE current_setting('lock_timeout')::interval NOT BETWEEN '1 ms' AND '{milliseconds} ms'",
        timeout=TIMEOUT,
    )


_ARRAYS = "SELECT $1::text[], $2::int[], $3::bigint[], $4::boolean[], $5::timestamptz[]"


async def _meet_arrays(connection: Any) -> None:
    """Let asyncpg look up the array types of the parameters, in a transaction. Otherwise asyncpg does so when it first
    meets one, and switches `jit` off for the session meanwhile. Outside of a transaction the pooler may send the switch
    back to another server connection, and the first one would stay without `jit`.
    """
    async with connection.transaction():
        await connection.prepare(_ARRAYS, timeout=TIMEOUT)


def is_engine(value: object) -> TypeIs[AsyncEngine]:
    return is_of(value, ENGINE)


def configure_sqlite(engine: AsyncEngine | Engine) -> None:
    """Set up an application's own SQLite engine for a ledger (`Ledger.open(engine)`). Call it once, before the
    engine's first connection.

        engine = create_async_engine("sqlite+aiosqlite:///service.db")
        configure_sqlite(engine)

    With the driver's own transaction handling, DDL and released savepoints survive a ROLLBACK. This function makes each
    transaction begin with an explicit BEGIN IMMEDIATE. It also enforces foreign keys, turns on the write-ahead log, and
    makes commits durable.
    """
    target = engine.sync_engine if is_engine(engine) else engine
    event.listen(target, "connect", _on_connect)
    event.listen(target, "begin", _on_begin)


def _on_connect(dbapi_connection: Any, _record: Any) -> None:
    dbapi_connection.isolation_level = None
    cursor = dbapi_connection.cursor()
    for pragma in sqlite_pragmas():
        cursor.execute(pragma)
    cursor.close()


def sqlite_pragmas(timeout: float = BUSY_TIMEOUT) -> tuple[str, ...]:
    """`timeout`: the seconds to wait for another process's lock."""
    return (
        f"PRAGMA busy_timeout = {int(timeout * 1000)}",
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA foreign_keys = ON",
    )


def _on_begin(connection: Connection) -> None:
    read_only = connection.get_execution_options().get(READ_ONLY)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


# --- Parameters of a PostgreSQL URL -----------------------------------------------------------------------------------

# asyncpg reads libpq's parameters from a DSN by itself. SQLAlchemy would pass each one as an argument of `connect`,
# which does not know most of them. asyncpg treats an unknown parameter as a setting of the session, and the server
# refuses an unknown setting by name. The parameters below need more than that.

_NUMBERS: dict[str, Callable[[str], float]] = {
    "command_timeout": float,
    "connect_timeout": float,
    "max_cacheable_statement_size": int,
    "max_cached_statement_lifetime": int,
    "prepared_statement_cache_size": int,
    "statement_cache_size": int,
    "timeout": float,
}
"""Arguments of `connect`, and libpq's `connect_timeout`, which `connect` calls `timeout`."""
_LARGEST = 1_000_000_000
_UNSUPPORTED = {"channel_binding": ("disable", "prefer"), "gssencmode": ("disable", "prefer")}
"""libpq's parameters that asyncpg lacks, with the values that change nothing."""
_SQLALCHEMY = frozenset(["host", "port", "user", "password", "database", "ssl", "service", "servicefile"])
_FILES = frozenset(["sslcert", "sslcrl", "sslkey", "sslrootcert"])


def connect_arguments(url: URL) -> tuple[URL, dict[str, Any]]:
    """The URL with only the parameters that SQLAlchemy reads, and the other parameters as arguments of `connect`.
    Raises StorageError with the name of a parameter that is invalid or unsupported, never with its value.
    """
    arguments: dict[str, Any] = {}
    address: dict[str, str] = {}
    for name, value in url.query.items():
        if name in _SQLALCHEMY:
            continue
        if isinstance(value, tuple):
            raise StorageError(f"not a PostgreSQL URL: it has {name} more than once")
        if name in _NUMBERS:
            arguments["timeout" if name == "connect_timeout" else name] = _number(name, value)
        elif name in _UNSUPPORTED:
            _refuse_unless(value in _UNSUPPORTED[name], f"{name} is not supported by asyncpg; leave it out")
        else:
            _refuse_unless(name not in _FILES or Path(value).exists(), f"there is no such file as its {name}")
            address[name] = value
    address.setdefault("application_name", "chatledger")
    arguments["dsn"] = f"postgresql:///?{urlencode(address)}"
    return url.set(query={name: url.query[name] for name in _SQLALCHEMY & url.query.keys()}), arguments


def _number(name: str, value: str) -> float:
    try:
        number = _NUMBERS[name](value)
    except ValueError:
        raise StorageError(f"not a PostgreSQL URL: {name} must be a number") from None
    least = 0 if _NUMBERS[name] is int else 0.001  # a size of nothing switches a cache off, a time of nothing fails
    if not least <= number <= _LARGEST:
        raise StorageError(f"not a PostgreSQL URL: {name} must be from {least} to {_LARGEST:,}")
    return number


def _refuse_unless(fine: bool, detail: str) -> None:
    if not fine:
        raise StorageError(f"not a PostgreSQL URL that can be used: {detail}")
