"""A read replica, which answers only a history whose caller says how new it must be, once it has replayed that far.

A position is a place in PostgreSQL's write-ahead log, as text. A standby that has replayed past a position shows all
that was committed before the position was asked for. The standby is asked so on the connection that is then read from,
before the snapshot of the read is taken. If the replica says anything else (it is behind, no standby, gone, silent, in
conflict with its recovery), the primary is read instead: a replica never makes a read fail.
"""

from __future__ import annotations

import re
import time

from chatledger.errors import InvalidCursor, StorageError
from chatledger.models import History
from chatledger.storage.databases.postgresql import PostgresqlDatabase
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.window import Window

_CAUGHT_UP = "SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= :position::text::pg_lsn"
_POSITION = re.compile(r"[0-9A-F]{1,8}/[0-9A-F]{1,8}")
RETRY_AFTER = 10.0
"""Seconds in which a replica that failed is not asked again: finding out takes longer than a read of the primary."""


def require_position(position: str) -> None:
    """Raises InvalidCursor."""
    if not isinstance(position, str) or _POSITION.fullmatch(position) is None:
        raise InvalidCursor(position, "not a position that a ledger gave")


class _Behind(Exception):
    """The replica has not replayed up to the position."""


class Replica:
    """One standby. Opening a ledger asks nothing of it, so it may come later, and go."""

    def __init__(self, database: PostgresqlDatabase) -> None:
        self.database = database
        self._failed_until = 0.0

    async def history(self, window: Window, position: str) -> History | None:
        """None where the primary is to be read."""
        if time.monotonic() < self._failed_until:
            return None

        def caught_up(sql: Sql) -> None:
            if not sql.fetch(_CAUGHT_UP, {"position": position})[0][0]:
                raise _Behind

        try:
            return await self.database.history_if(caught_up, window)
        except _Behind:
            return None
        except StorageError:
            self._failed_until = time.monotonic() + RETRY_AFTER
            return None
