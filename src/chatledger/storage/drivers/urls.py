"""URLs and engines: the drivers we use, and the settings without which their transactions are none."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias
from urllib.parse import urlencode

from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from chatledger.arguments import Kind
from chatledger.errors import InvalidArgument, StorageError
from chatledger.models.secrets import is_secret_name

DEFAULT_URL = "chatledger.db"
URL_VARIABLE = "CHATLEDGER_URL"
MEMORY = ":memory:"
BUSY_TIMEOUT = 10.0
"""Seconds that a writer waits for another process's lock on a SQLite file."""
CONNECT_TIMEOUT = 5.0
"""Seconds that a new connection to PostgreSQL may take: an append must learn its outcome within ten."""
POOL_SIZE = 16
"""Connections to PostgreSQL that are kept open."""
MAX_OVERFLOW = 16
"""How many more there may be while all of them are busy."""
POOL_TIMEOUT = 10.0
"""Seconds that a call waits for a connection of the pool to be given back."""

READ_ONLY = "chatledger_read_only"
"""Execution option of a connection that only reads: its transaction does not take the write lock on SQLite."""


Address: TypeAlias = str | os.PathLike[str] | URL | None
"""What names a database; None is what CHATLEDGER_URL says, else a file in the working directory."""
ADDRESS = Kind("a str, a path or None", str, os.PathLike, URL, NoneType)


def read_url(url: Address) -> URL:
    """The URL of a path, `sqlite:///…`, `postgresql://…` or `postgres://…`, with the asynchronous driver put in."""
    text = os.environ.get(URL_VARIABLE, DEFAULT_URL) if url is None else url
    if not isinstance(text, URL):
        if not isinstance(text, (str, os.PathLike)):
            raise InvalidArgument("url", f"must be a str or a path, not {type(text).__name__}")
        text = os.fspath(text)
        if not text:  # as a path it would be a database in memory, and all that is written to it gone
            raise StorageError(f"the database URL is empty; leave it (and {URL_VARIABLE}) out for ./{DEFAULT_URL}")
        if _ALMOST_A_URL.match(text):  # as a path it would be quoted, with the password that is in it
            raise StorageError(f"not a database URL: {_scheme(text)}; a path that begins so is written ./…")
        if "://" not in text:
            return URL.create("sqlite+aiosqlite", database=text)
        text = _made(text)
    backend = text.get_backend_name().replace("postgres", "postgresql").replace("postgresqlql", "postgresql")
    if backend == "sqlite":
        return text.set(drivername="sqlite+aiosqlite", database=text.database or MEMORY)
    if backend == "postgresql":
        return text.set(drivername="postgresql+asyncpg")
    raise StorageError(f"{backend} is not supported; use a path, sqlite:///… or postgresql://…")


def _made(text: str) -> URL:
    try:
        return make_url(text)
    except (ArgumentError, ValueError):  # its cause would quote what it could not read
        raise StorageError(f"not a database URL: {_scheme(text)}") from None


_ALMOST_A_URL = re.compile(r"(postgres|postgresql|sqlite)(\+\w+)?(:(?!//)|//)", re.IGNORECASE)


def _scheme(url: str) -> str:
    """Enough of a URL to recognise it, without its password."""
    return re.split("[:/]", url, maxsplit=1)[0] + "://…"


def without_password(url: URL) -> str:
    """A URL to show, as its user writes it: without our driver, and the password is masked wherever it may stand."""
    secret = {name: "***" for name in url.query if is_secret_name(name)}
    return url.set(drivername=url.get_backend_name()).update_query_dict(secret).render_as_string()


def sqlite_path(url: URL) -> str:
    database = url.database or MEMORY
    return database if database == MEMORY else str(Path(database).expanduser())


def create_postgresql_engine(url: URL, *, pooler: str = "session") -> AsyncEngine:
    """An engine whose pool resets nothing: a reset costs a round trip, and each unit of work of ours ends itself.

    `pooler="transaction"`: behind a pooler that may give each transaction another server connection, no prepared
    statement may be expected to be there again. Each is then parsed anew, unnamed: asyncpg asks for its parameters and
    sends them in a second round trip, with no Sync between the two, so a pooler keeps them on one server connection.
    """
    url, given = connect_arguments(url)
    arguments: dict[str, Any] = {"timeout": CONNECT_TIMEOUT, **given}
    if pooler == "transaction":
        arguments |= {"statement_cache_size": 0, "prepared_statement_cache_size": 0}
    engine = create_async_engine(
        url,
        pool_reset_on_return=None,
        pool_size=POOL_SIZE,
        max_overflow=MAX_OVERFLOW,
        connect_args=arguments,
        pool_timeout=POOL_TIMEOUT,
    )
    event.listen(engine.sync_engine, "invalidate", _hang_up)
    if pooler == "transaction":
        event.listen(engine.sync_engine, "connect", _on_pooled_connect)
    return engine


def _hang_up(dbapi_connection: Any, _record: Any, _error: BaseException | None) -> None:
    """A connection that is given up is left without a word: the driver would wait two seconds for a silent server's
    goodbye, and whoever was cancelled, or whose time is over, would wait with it.
    """
    dbapi_connection.driver_connection.terminate()


_ARRAYS = "SELECT $1::text[], $2::int[], $3::bigint[], $4::boolean[], $5::timestamptz[]"


def _on_pooled_connect(dbapi_connection: Any, _record: Any) -> None:
    """Let asyncpg look up the array types of our parameters at once, in a transaction. It does so when it first meets
    one, with `jit` switched off for the session meanwhile: outside of a transaction a pooler may bring the switch back
    to another server connection, and leave somebody else without.
    """
    dbapi_connection.run_async(_meet_arrays)


async def _meet_arrays(connection: Any) -> None:
    async with connection.transaction():
        await connection.prepare(_ARRAYS)


def configure_sqlite(engine: AsyncEngine | Engine) -> None:
    """Make an engine's SQLite transactions real, for an application that shares its engine with a ledger.

    The driver's own transaction handling lets DDL and released savepoints survive a ROLLBACK; here each transaction
    begins with an explicit BEGIN IMMEDIATE. Foreign keys are enforced, the journal is a WAL and commits are durable.
    Call it once, before the engine's first connection.
    """
    target = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
    event.listen(target, "connect", _on_connect)
    event.listen(target, "begin", _on_begin)


def _on_connect(dbapi_connection: Any, _record: Any) -> None:
    dbapi_connection.isolation_level = None
    cursor = dbapi_connection.cursor()
    for pragma in sqlite_pragmas():
        cursor.execute(pragma)
    cursor.close()


def sqlite_pragmas() -> tuple[str, ...]:
    return (
        f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT * 1000)}",
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA foreign_keys = ON",
    )


def _on_begin(connection: Connection) -> None:
    read_only = connection.get_execution_options().get(READ_ONLY)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


# --- Parameters of a PostgreSQL URL -----------------------------------------------------------------------------------

# asyncpg reads the parameters of libpq itself, in an address: SQLAlchemy would hand it each one as an argument, where
# most have no name. What asyncpg does not know is a setting of the session, which the server refuses by name. These are
# the few parameters that need more than that.

_NUMBERS: dict[str, Callable[[str], float]] = {
    "command_timeout": float,
    "connect_timeout": float,
    "max_cacheable_statement_size": int,
    "max_cached_statement_lifetime": int,
    "prepared_statement_cache_size": int,
    "statement_cache_size": int,
    "timeout": float,
}
"""Arguments of `connect`, and libpq's `connect_timeout`, which is `timeout` there."""
_UNSUPPORTED = {"channel_binding": ("disable", "prefer"), "gssencmode": ("disable", "prefer")}
"""libpq's parameters that asyncpg lacks, with the values that ask for nothing."""
_SQLALCHEMY = frozenset(["host", "port", "user", "password", "database", "ssl", "service", "servicefile"])
_FILES = frozenset(["sslcert", "sslcrl", "sslkey", "sslrootcert"])


def connect_arguments(url: URL) -> tuple[URL, dict[str, Any]]:
    """The URL with only the parameters that SQLAlchemy reads, and the other parameters as arguments of `connect`.
    Raises StorageError with the name of a parameter that cannot be honoured, never with its value.
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
        return _NUMBERS[name](value)
    except ValueError:
        raise StorageError(f"not a PostgreSQL URL: {name} must be a number") from None


def _refuse_unless(fine: bool, detail: str) -> None:
    if not fine:
        raise StorageError(f"not a PostgreSQL URL that can be used: {detail}")
