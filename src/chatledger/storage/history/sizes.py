"""The stored bytes of the messages of a window, so that a caller can end a page before it reads too much."""

from __future__ import annotations

from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.history.path import find_path
from chatledger.storage.history.row_sizes import sizes_between
from chatledger.storage.history.turns import earliest_call, interval_of
from chatledger.storage.history.window_request import Window


def stored_sizes(sql: ReadSql, window: Window) -> dict[int, int]:
    """About the bytes of each message of the window, by seq and in order, and of those before it that `newest` would
    add. The statement reads no text on PostgreSQL. In a snapshot. Raises ThreadNotFound and BranchNotFound.
    """
    path = find_path(sql, window)
    (first, last), _ = interval_of(sql, window, path)
    while window.newest is not None and first > 1:
        start = earliest_call(sql, window, path, first, last)
        if start is None:
            break
        first = start
    return sizes_between(sql, window, path, first, min(last, path.last_seq))
