"""What only a PostgreSQL database has: the options of `Ledger.open` and of a Transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Literal

from chatledger.arguments import BOOL_OR_NONE, INT, STR, Kind, require, require_between
from chatledger.errors import InvalidArgument
from chatledger.storage.drivers.urls import ENGINE, POOL, PoolLimits
from chatledger.storage.schema.tables import SCHEMA
from chatledger.storage.upgrade.versions import require_schema_name

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_POOLER = Kind("'session' or 'transaction'", words=("session", "transaction"))
_REPLICA = Kind("a str, an AsyncEngine or None", str, NoneType, later=ENGINE)
_MOST_CONNECTIONS = 10_000


@dataclass(frozen=True, slots=True)
class PostgreSQL:
    """How a ledger uses PostgreSQL. A SQLite file has no standby, no row-level security and no other servers, and
    ignores the rest. Raises InvalidArgument for a value that cannot be.

        options = PostgreSQL(pooler="transaction", replica="postgresql://standby/chat")
        ledger = await Ledger.open("postgresql://localhost:6432/chat", postgresql=options)
    """

    schema: str = SCHEMA
    """The schema of the tables."""
    pooler: Literal["session", "transaction"] = "session"
    """`"transaction"` if a pooler such as PgBouncer gives each transaction another connection."""
    pool_size: int = POOL.size
    """How many connections this process keeps open. The URL of a replica gets a pool of the same size."""
    max_overflow: int = POOL.overflow
    """Maximum number of further connections while all of those are busy."""
    replica: str | AsyncEngine | None = field(default=None, repr=False)  # a URL may have a password
    """The URL or engine of a standby, for the histories of `ledger.replica(position)`."""
    rls: bool | None = None
    """True requires row-level security, and sets the tenant in each transaction. With None the ledger asks the
    database; a Transaction does not ask, and does not set the tenant.
    """
    distributed: bool | None = None
    """True: the tables are distributed by tenant over several servers, so each statement writes one table. With None
    the ledger asks the database for the extension Citus; a Transaction does not ask, and takes it for False.
    """

    def __post_init__(self) -> None:
        require(STR, schema=self.schema)
        require_schema_name(self.schema)
        require(_POOLER, pooler=self.pooler)
        require(INT, pool_size=self.pool_size, max_overflow=self.max_overflow)
        require_between(1, _MOST_CONNECTIONS, pool_size=self.pool_size)
        require_between(0, _MOST_CONNECTIONS, max_overflow=self.max_overflow)
        require(_REPLICA, replica=self.replica)
        require(BOOL_OR_NONE, rls=self.rls, distributed=self.distributed)


DEFAULT = PostgreSQL()
POSTGRESQL_OR_NONE = Kind("a PostgreSQL or None", PostgreSQL, NoneType)


def pool_of(options: PostgreSQL) -> PoolLimits:
    """The size of the pools that the ledger makes."""
    return PoolLimits(options.pool_size, options.max_overflow)


def refuse_on_sqlite(options: PostgreSQL) -> None:
    """Raises InvalidArgument for what a caller relies on and SQLite does not have."""
    for name in ("replica", "rls", "distributed"):
        if getattr(options, name) not in (None, False):
            raise InvalidArgument(name, "needs PostgreSQL, and this database is SQLite; leave it out")


def refuse_pool(options: PostgreSQL) -> None:
    """Raises InvalidArgument for a pool that would not be made, because the application's engine has one."""
    for name in ("pool_size", "max_overflow"):
        if getattr(options, name) != getattr(DEFAULT, name):
            raise InvalidArgument(name, "does not go with an engine, which has a pool already: give it to the engine")
