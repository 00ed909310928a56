"""A read replica: asked for a history only by who says how new it must be, and only once it has come that far.

A position is a place in PostgreSQL's write-ahead log, as text. What was committed before the position was asked for is
visible on a standby that has replayed up to there; the standby is asked so on the connection that is then read from,
before the read's snapshot is taken. Whatever else the replica says (behind, no standby, gone, silent, a conflict with
its recovery), the primary is read instead: a replica never makes a read fail.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from chatledger.errors import InvalidCursor, StorageError
from chatledger.storage.drivers.asyncpg import SNAPSHOT
from chatledger.storage.drivers.errors import in_greenlet
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.schema.row_security import begin_as

if TYPE_CHECKING:
    from chatledger.storage.databases.postgresql import PostgresqlDatabase

T = TypeVar("T")

START = "0/0"
"""Where every database is at least, and a SQLite file always: it has no replica to wait for."""
CURRENT = """
SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END)::text
"""
_CAUGHT_UP = "SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= :position::text::pg_lsn"
_POSITION = re.compile(r"[0-9A-F]{1,8}/[0-9A-F]{1,8}")
REST = 10.0
"""Seconds in which a replica that failed is not asked again: finding out takes longer than a read of the primary."""


def require_position(position: str) -> None:
    """Raises InvalidCursor."""
    if not isinstance(position, str) or _POSITION.fullmatch(position) is None:
        raise InvalidCursor(position, "not a position that a ledger gave")


class _Behind(Exception):
    """The replica has not come to the position."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    value: T


class Replica:
    """One standby. It is not asked for anything when a ledger is opened, so it may come later, and go."""

    def __init__(self, database: PostgresqlDatabase) -> None:
        self.database = database
        self._rests_until = 0.0

    async def read(self, position: str, query: Callable[[Sql], T], begin: str | None) -> Found[T] | None:
        """None where the primary is to be read. `begin`: what begins the transaction, where there is to be one."""
        if time.monotonic() < self._rests_until:
            return None

        def caught_up(sql: Sql) -> None:
            if not sql.fetch(_CAUGHT_UP, {"position": position})[0][0]:
                raise _Behind

        try:
            return Found(await in_greenlet(self.database.read_once, caught_up, begin, query))
        except _Behind:
            return None
        except StorageError:
            self._rests_until = time.monotonic() + REST
            return None


@dataclass(frozen=True, slots=True)
class TenantReplica:
    """A replica read on behalf of one tenant."""

    replica: Replica
    refuse: Callable[[], None]
    """Raises where the ledger may not be read any more."""
    secured_tenant: str | None
    """The tenant as it is stored, where row-level security is to be told of it."""

    async def read(self, position: str, query: Callable[[Sql], T], *, snapshot: bool) -> Found[T] | None:
        self.refuse()
        begin = SNAPSHOT if snapshot else None
        if self.secured_tenant is not None:
            begin = begin_as(begin or "BEGIN READ ONLY", self.secured_tenant)
        return await self.replica.read(position, query, begin)
