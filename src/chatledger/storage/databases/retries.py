"""The further attempts of a call while the database is away: until its time limit, with growing pauses."""

from __future__ import annotations

import asyncio
import logging
import time

from chatledger.storage.drivers.errors import Kind, read_failure
from chatledger.telemetry.counters import Counters

_log = logging.getLogger("chatledger.connections")

_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4)


class Retries:
    def __init__(self, timeout: float, *, since: float | None = None, least: float = 0.0) -> None:
        """`timeout`: the seconds after `since` (None: now, by `time.monotonic`) in which an attempt may begin. At least
        the seconds `least` from now on are left, however long ago `since` was.
        """
        now = time.monotonic()
        self._until = max((now if since is None else since) + timeout, now + least)
        self._pauses = 0
        self._at_once: int | None = None

    async def next(self, *, unused: int = 0) -> bool:
        """Wait until the next attempt may begin. False if the time limit has passed.

        `unused` is the number of unused connections. Each may be dead, so as many attempts do not wait. A pool also
        counts a connection that it cannot open again, so each attempt lowers the number.
        """
        if time.monotonic() > self._until:
            return False
        self._at_once = unused if self._at_once is None else min(self._at_once - 1, unused)
        if self._at_once <= 0:
            await asyncio.sleep(_PAUSES[min(self._pauses, len(_PAUSES) - 1)])
            self._pauses += 1
        return True


def note_retry(counters: Counters, error: Exception | None) -> None:
    """Count and log a further attempt after this error; None: another writer was faster. The log names only the kind of
    the error, because a driver's text may quote values.
    """
    failure = None if error is None else read_failure(error)
    counters.add("retries")
    if failure is not None and failure.kind is Kind.LOST:
        counters.add("lost_connections")
        _log.warning("trying again: the connection failed (%s)", type(error).__name__)
    else:
        kind = (
            "another writer was faster"
            if error is None
            else type(error).__name__
            if failure is None
            else failure.kind.value
        )
        _log.info("trying again: %s", kind)
