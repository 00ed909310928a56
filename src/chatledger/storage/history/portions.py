"""Reads a long path a portion at a time, so that memory stays bounded, and bounds what one call may read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from chatledger.errors import LimitExceeded
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.history.path import Segment
from chatledger.storage.history.row_sizes import fitting, sizes_of
from chatledger.storage.rows.encryption import Tenant

MESSAGES = 1_000
"""The most messages of a portion."""
BYTES = 8 * 1024 * 1024
"""The most bytes of a portion that has several messages."""


class Allowance:
    """The messages and the bytes that one call may still read. A call that holds the branches of a thread, and on
    SQLite the one writer, keeps others waiting, so it may not be endless.
    """

    def __init__(self, work: str, messages: int, megabytes: int, way_out: str) -> None:
        """`work` is the call in the name of the limit, and `way_out` tells what to do instead."""
        self._limits = {"messages": messages, "bytes": megabytes * 1024 * 1024}
        self._work = work
        self._way_out = f"{work} reads at most {messages:,} messages and {megabytes} MiB; {way_out}"
        self._read = {"messages": 0, "bytes": 0}

    def take(self, sizes: Collection[int]) -> None:
        """Raises LimitExceeded."""
        for name, more in (("messages", len(sizes)), ("bytes", sum(sizes))):
            self._read[name] += more
            self._require(name, self._read[name])

    def require(self, messages: int) -> None:
        """Raises LimitExceeded, before anything is read, if there are too many."""
        self._require("messages", messages)

    def _require(self, name: str, count: int) -> None:
        if count > self._limits[name]:
            raise LimitExceeded(f"{name} of {self._work}", count, self._limits[name], detail=self._way_out)


def portions(
    sql: ReadSql, tenant: Tenant, thread: str, segments: Sequence[Segment], allowance: Allowance | None = None
) -> Iterator[Segment]:
    """The segments in parts of up to 1,000 messages and about 8 MiB, as stored. A part has one message at least. It
    reads no text on PostgreSQL. Raises LimitExceeded, and StorageError if nobody waits for the call any more.
    """
    for branch, low, high in segments:
        for first in range(low, high + 1, MESSAGES):
            sql.go_on()
            part = Segment(branch, first, min(first + MESSAGES - 1, high))
            sizes = sizes_of(sql, tenant, thread, part)
            if allowance is not None:
                allowance.take(sizes.values())
            yield from _fitting(part, sizes)


def _fitting(part: Segment, sizes: dict[int, int]) -> Iterator[Segment]:
    while (last := fitting(sorted(sizes.items()), BYTES)) is not None:
        yield part._replace(last=last)
        part = part._replace(first=last + 1)
        sizes = {seq: size for seq, size in sizes.items() if seq > last}
    yield part
