"""A read replica. It answers only a history whose caller gives a position, and only once it has replayed past it.

A position is a place in PostgreSQL's write-ahead log, as text. A standby that has replayed past a position shows every
commit from before the position was read. The check runs on the connection that is then read from, before the read takes
its snapshot. If the replica cannot answer (it is behind, is no standby, is gone, is silent, or cancels the read because
of its recovery), the ledger reads the primary instead. So a replica never makes a read fail.
"""

from __future__ import annotations

import re
import time

from chatledger.errors import InvalidCursor, StorageError
from chatledger.storage.databases.postgresql.database import PostgresqlDatabase
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.window_request import Section, Window

_CAUGHT_UP = "SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= :position::text::pg_lsn"
_POSITION = re.compile(r"[0-9A-F]{1,8}/[0-9A-F]{1,8}")
RETRY_AFTER = 10.0
"""Seconds in which the ledger skips a replica that failed: trying it takes longer than a read of the primary."""


def require_position(position: str) -> None:
    """Raises InvalidCursor for a text that is no position."""
    if _POSITION.fullmatch(position) is None:
        raise InvalidCursor(position, "not a position that ledger.position() returned")


class _Behind(Exception):
    """The replica has not replayed past the position yet."""


class Replica:
    """One standby. Opening a ledger sends it nothing, so it may start later and stop at any time."""

    def __init__(self, database: PostgresqlDatabase) -> None:
        self.database = database
        self._failed_until = 0.0

    async def history(self, window: Window, position: str) -> Section | None:
        """The history; None if the ledger has to read the primary."""
        if time.monotonic() < self._failed_until:
            return None

        def caught_up(sql: WriteSql) -> None:
            if not sql.fetch(_CAUGHT_UP, {"position": position})[0][0]:
                raise _Behind

        try:
            return await self.database.history_if(caught_up, window)
        except _Behind:
            return None
        except StorageError:
            self._failed_until = time.monotonic() + RETRY_AFTER
            return None
