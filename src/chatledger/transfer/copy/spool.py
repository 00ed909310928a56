"""Rows of the source that wait on the disk, so that nothing waits for the source while the target is locked.

A SQLite file has one writer: while a copy read a long thread inside its transaction, nobody else could write.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from tempfile import SpooledTemporaryFile, gettempdir
from types import TracebackType
from typing import Any

from sqlalchemy import Table

from chatledger.errors import StorageError
from chatledger.transfer.copy.cells import Row

IN_MEMORY = 8 * 1024 * 1024
"""The bytes that wait in memory. More of them wait in a file without a name, which goes with the process."""
MOST = 256 * 1024 * 1024
"""The bytes of a spool, unless it holds a single unit."""
_LENGTH = 8


class TooLarge(Exception):
    """The rows are more than a spool holds."""


class Spool(AbstractContextManager["Spool"]):
    """`bounded`: it refuses more than MOST bytes."""

    def __init__(self, *, bounded: bool) -> None:
        self._bounded = bounded
        self._file: Any = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - it is closed with the spool
        self._tables: list[Table] = []

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        """Raises TooLarge, and StorageError if the disk is full."""
        packed = marshal.dumps(list(rows))
        if self._bounded and self._file.tell() + len(packed) > MOST:
            raise TooLarge
        try:
            self._file.write(len(packed).to_bytes(_LENGTH, "big"))
            self._file.write(packed)
        except OSError as error:
            raise StorageError(
                f"cannot write a temporary file in {gettempdir()}: {error.strerror}; name another folder in TMPDIR"
            ) from error
        self._tables.append(table)

    def __len__(self) -> int:
        """The number of batches."""
        return len(self._tables)

    def __iter__(self) -> Iterator[tuple[Table, Sequence[Row]]]:
        self._file.seek(0)
        for table in self._tables:
            length = int.from_bytes(self._file.read(_LENGTH), "big")
            yield table, marshal.loads(self._file.read(length))  # noqa: S302 - it wrote the bytes itself
