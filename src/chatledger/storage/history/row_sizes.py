"""The stored bytes of messages by their place, without reading them."""

from __future__ import annotations

from collections.abc import Iterable

from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.history.path import Path, Segment, cut
from chatledger.storage.history.window_request import Window
from chatledger.storage.rows.encryption import Tenant

_TEXTS = {
    "messages": ("text", "residual", "response_metadata", "custom_data", "violations"),
    "message_parts": ("text", "body"),
    "tool_calls": ("call_id", "name", "arguments", "extras"),
}
"""The columns that may be long."""
_OF_ROW = 400
"""About the bytes of the other columns of a row, once they are an object: a page may have many short parts."""


def sizes_between(sql: ReadSql, window: Window, path: Path, first: int, last: int) -> dict[int, int]:
    """About the bytes of each message first … last, in order."""
    sizes: dict[int, int] = {}
    for segment in cut(path.segments, first, last):
        sizes |= sizes_of(sql, window.tenant, window.thread, segment)
    return dict(sorted(sizes.items()))


def fitting(sizes: Iterable[tuple[int, int]], most: int) -> int | None:
    """The seq of the last of these messages that is read with those before it: the first one, and others while they
    have `most` bytes together. None if all are.
    """
    total, last_fitting = 0, None
    for seq, size in sizes:
        total += size
        if last_fitting is not None and total > most:
            return last_fitting
        last_fitting = seq
    return None


def sizes_of(sql: ReadSql, tenant: Tenant, thread: str, segment: Segment) -> dict[int, int]:
    """About the bytes of each message of a segment, in no order. `thread` is the key as stored."""
    place = {"tenant": tenant.key, "thread": thread, "branch": segment.branch}
    parameters = {**place, "first": segment.first, "last": segment.last}
    return {seq: int(size) for seq, size in sql.fetch(_STATEMENTS[sql.dialect], parameters)}


def _statement(bytes_of: str) -> str:
    own = "tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq BETWEEN :first AND :last"
    arms = [
        f"SELECT seq, {_OF_ROW} + {' + '.join(bytes_of.format(name) for name in names)} AS size"
        f" FROM {{schema}}{table} WHERE {own}"
        for table, names in _TEXTS.items()
    ]
    return f"SELECT seq, sum(size) FROM ({' UNION ALL '.join(arms)}) AS x GROUP BY seq"


_STATEMENTS = {
    "postgresql": _statement("coalesce(octet_length({0}), 0)"),
    "sqlite": _statement("coalesce(length(CAST({0} AS BLOB)), 0)"),
}
