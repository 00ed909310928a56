"""Stores written by hand on SQLite: the standard library in place, one thread hop away, and aiosqlite.

What differs is the way to the driver alone; the statements, the settings and the order are the same.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Self

import aiosqlite

from benchmarks.loaded import SCANNED, LoadedMessage, assemble
from benchmarks.rows import BRANCH, COLUMNS, KEY, OF_A_RUN, RUN_COLUMNS, TENANT, turn_rows
from benchmarks.turns import Turn
from chatledger.ids import new_stamp
from chatledger.storage.drivers.urls import sqlite_pragmas
from chatledger.storage.schema.text import to_microseconds

_PLACE = "tenant_id = ? AND thread_id = ? AND branch = ?"
_UPDATE = (
    f"UPDATE branches SET last_seq = last_seq + ?, stamp = ?, last_role = 'assistant' WHERE {_PLACE} RETURNING last_seq"
)


class InPlace:
    """Calls in the event loop's own thread, which waits for the disk: no service could, but nothing is quicker."""

    name = "sqlite3, in place"

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in sqlite_pragmas():
            self.connection.execute(pragma)

    @classmethod
    async def open(cls, path: str) -> Self:
        return cls(path)

    async def meet(self, threads: Mapping[int, Sequence[str]]) -> None:
        """Nothing is remembered of a thread: its row is read."""

    async def append(self, thread: str, turn: Turn, run: str | None = None) -> None:
        self.append_now(thread, turn, run)

    async def load(self, thread: str) -> list[LoadedMessage]:
        return self.load_now(thread)

    async def last(self, thread: str, count: int) -> list[LoadedMessage]:
        return self.last_now(thread, count)

    async def close(self) -> None:
        self.connection.close()

    def append_now(self, thread: str, turn: Turn, run: str | None = None) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        ((last,),) = self.connection.execute(_UPDATE, _tip(thread, turn)).fetchall()
        for insert, rows in _inserts(thread, turn, last, run):
            self.connection.executemany(insert, rows)
        self.connection.execute("COMMIT")

    def load_now(self, thread: str) -> list[LoadedMessage]:
        place = (TENANT, thread, BRANCH)
        return assemble(*[self.connection.execute(scan, place).fetchall() for scan in _SCANS])

    def last_now(self, thread: str, count: int) -> list[LoadedMessage]:
        place = (TENANT, thread, BRANCH)
        messages = self.connection.execute(_LAST, (*place, count)).fetchall()[::-1]
        since = (*place, messages[0][_SEQ])
        return assemble(messages, *[self.connection.execute(scan, since).fetchall() for scan in _SINCE])


class OneHop(InPlace):
    """The same, each call whole in one other thread."""

    name = "sqlite3, one thread hop"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._thread = ThreadPoolExecutor(1)

    async def append(self, thread: str, turn: Turn, run: str | None = None) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self.append_now, thread, turn, run)

    async def load(self, thread: str) -> list[LoadedMessage]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.load_now, thread)

    async def last(self, thread: str, count: int) -> list[LoadedMessage]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.last_now, thread, count)

    async def close(self) -> None:
        self._thread.shutdown()
        await super().close()


class Aiosqlite:
    """A hop for each statement, in the fewest that aiosqlite offers; tasks that share the connection take turns."""

    name = "aiosqlite"

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self.connection = connection
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, path: str) -> Self:
        connection = await aiosqlite.connect(path, isolation_level=None)
        for pragma in sqlite_pragmas():
            await connection.execute(pragma)
        return cls(connection)

    async def meet(self, threads: Mapping[int, Sequence[str]]) -> None:
        """Nothing is remembered of a thread: its row is read."""

    async def append(self, thread: str, turn: Turn, run: str | None = None) -> None:
        async with self._turn:
            await self.connection.execute("BEGIN IMMEDIATE")
            ((last,),) = await self.connection.execute_fetchall(_UPDATE, _tip(thread, turn))
            for insert, rows in _inserts(thread, turn, last, run):
                await self.connection.executemany(insert, rows)
            await self.connection.commit()

    async def load(self, thread: str) -> list[LoadedMessage]:
        place = (TENANT, thread, BRANCH)
        return assemble(*[await self.connection.execute_fetchall(scan, place) for scan in _SCANS])

    async def last(self, thread: str, count: int) -> list[LoadedMessage]:
        place = (TENANT, thread, BRANCH)
        messages = list(await self.connection.execute_fetchall(_LAST, (*place, count)))[::-1]
        since = (*place, messages[0][_SEQ])
        return assemble(messages, *[await self.connection.execute_fetchall(scan, since) for scan in _SINCE])

    async def close(self) -> None:
        await self.connection.close()


def _tip(thread: str, turn: Turn) -> tuple[Any, ...]:
    return len(turn.bare), new_stamp(), TENANT, thread, BRANCH


def _inserts(thread: str, turn: Turn, last: int, run: str | None) -> Iterator[tuple[str, Sequence[tuple[Any, ...]]]]:
    now = to_microseconds(datetime.now(UTC))
    if run is not None:
        yield _INSERT_RUN, [(TENANT, thread, run, "running", now)]
    rows = turn_rows(turn, last - len(turn.bare) + 1, now, run)
    for name, table in rows.tables():
        yield (_INSERTS if run is None else _INSERTS_OF_A_RUN)[name], [(TENANT, thread, BRANCH, *row) for row in table]


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def _scan(table: str, where: str, order: str) -> str:
    return f"SELECT {', '.join(SCANNED[table])} FROM {table} WHERE {_PLACE}{where} ORDER BY {order}"


_SEQ = SCANNED["messages"].index("seq")
_ORDERS = {"messages": "seq", "message_parts": "seq, idx", "tool_calls": "seq, idx"}
_SCANS = [_scan(table, "", order) for table, order in _ORDERS.items()]
_LAST = _scan("messages", "", "seq DESC LIMIT ?")
_SINCE = [_scan(table, " AND seq >= ?", _ORDERS[table]) for table in ("message_parts", "tool_calls")]
_INSERTS = {table: _insert(table, (*KEY, *columns)) for table, columns in COLUMNS.items()}
_INSERTS_OF_A_RUN = {table: _insert(table, (*KEY, *columns)) for table, columns in OF_A_RUN.items()}
_INSERT_RUN = _insert("runs", RUN_COLUMNS) + " ON CONFLICT DO NOTHING"
