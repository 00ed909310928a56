"""Stores written by hand on asyncpg: one chained statement a turn, and one transaction with a call per table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self

import asyncpg

from benchmarks.loaded import SCANNED, LoadedMessage, assemble
from benchmarks.rows import BRANCH, COLUMNS, KEY, OF_A_RUN, RUN_COLUMNS, TENANT, turn_rows
from benchmarks.turns import Turn
from chatledger.ids import new_stamp

_TYPES = {"seq": "bigint", "idx": "int", "call_count": "int", "created_at": "timestamptz"}
_TYPES |= {"call_branch": "int", "call_seq": "bigint", "call_idx": "int"}
_PLACE = "tenant_id = $1 AND thread_id = $2 AND branch = $3"
_UPDATE = f"UPDATE chatledger.branches SET last_seq = last_seq + $4, stamp = $5, last_role = 'assistant' WHERE {_PLACE}"
_SEQS = {"seq", "call_seq"}


class Postgres:
    """A held connection, and the loads that both kinds of writing share."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls(await asyncpg.connect(url))

    async def close(self) -> None:
        await self.connection.close()

    async def meet(self, threads: Mapping[int, Sequence[str]]) -> None:
        """Nothing is remembered of a thread: the statement finds its tip."""

    async def load(self, thread: str) -> list[LoadedMessage]:
        place = (TENANT, thread, BRANCH)
        return assemble(*[await self.connection.fetch(scan, *place) for scan in _SCANS])

    async def last(self, thread: str, count: int) -> list[LoadedMessage]:
        place = (TENANT, thread, BRANCH)
        messages = await self.connection.fetch(_LAST, *place, count)
        messages.reverse()
        first = messages[0]["seq"]
        rest = [await self.connection.fetch(scan, *place, first) for scan in _SINCE]
        return assemble(messages, *rest)


class OneStatement(Postgres):
    """The tip, then every row from it, in one chained statement. Positions are relative to what the tip says."""

    name = "asyncpg, one statement"

    async def append(self, thread: str, turn: Turn, run: str | None = None) -> None:
        now = datetime.now(UTC)
        rows = turn_rows(turn, 1, now, run)
        arrays = [column for _, table in rows.tables() for column in zip(*table, strict=True)]
        place = (TENANT, thread, BRANCH, len(turn.bare), new_stamp())
        if run is None:
            assert await self.connection.fetchval(_APPEND, *place, *arrays) is not None
        else:
            assert await self.connection.fetchval(_APPEND_WITH_RUN, *place, *arrays, run, now) is not None


class TipFirst(OneStatement):
    """The tip is read, as by whoever checks a turn against it, then the one statement is sent."""

    name = "asyncpg, the tip, then one statement"

    async def append(self, thread: str, turn: Turn, run: str | None = None) -> None:
        assert await self.connection.fetchrow(_TIP, TENANT, thread, BRANCH) is not None
        await super().append(thread, turn, run)


class CallPerTable(Postgres):
    """BEGIN, the tip, one executemany a table, COMMIT."""

    name = "asyncpg, a call per table"

    async def append(self, thread: str, turn: Turn, run: str | None = None) -> None:
        size, now = len(turn.bare), datetime.now(UTC)
        place = (TENANT, thread, BRANCH)
        async with self.connection.transaction():
            last = await self.connection.fetchval(f"{_UPDATE} RETURNING last_seq", *place, size, new_stamp())
            rows = turn_rows(turn, last - size + 1, now, run)
            if run is not None:
                await self.connection.execute(_INSERT_RUN, TENANT, thread, run, "running", now)
            inserts = _INSERTS if run is None else _INSERTS_OF_A_RUN
            for name, table in rows.tables():
                await self.connection.executemany(inserts[name], [(*place, *row) for row in table])


def _scan(table: str, where: str, order: str) -> str:
    columns = ", ".join(SCANNED[table])
    return f"SELECT {columns} FROM chatledger.{table} WHERE {_PLACE}{where} ORDER BY {order}"


def _insert(table: str, columns: Sequence[str]) -> str:
    values = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    return f"INSERT INTO chatledger.{table} ({', '.join(columns)}) VALUES ({values})"


def _append(of: Mapping[str, Sequence[str]]) -> str:
    number = 5
    parts = [f"WITH tip AS ({_UPDATE} RETURNING last_seq - $4 AS base)"]
    for table, columns in of.items():
        arrays = [f"${number + at}::{_TYPES.get(name, 'text')}[]" for at, name in enumerate(columns, 1)]
        number += len(columns)
        values = ", ".join(f"tip.base + u.{name}" if name in _SEQS else f"u.{name}" for name in columns)
        parts.append(
            f"{table} AS (INSERT INTO chatledger.{table} ({', '.join((*KEY, *columns))})"
            f" SELECT $1, $2, $3, {values} FROM tip, unnest({', '.join(arrays)}) AS u({', '.join(columns)}))"
        )
    if of is OF_A_RUN:
        run = f"SELECT $1, $2, ${number + 1}, 'running', ${number + 2} FROM tip ON CONFLICT DO NOTHING"
        parts.append(f"run AS (INSERT INTO chatledger.runs ({', '.join(RUN_COLUMNS)}) {run})")
    return ", ".join(parts) + " SELECT base FROM tip"


_ORDERS = {"messages": "seq", "message_parts": "seq, idx", "tool_calls": "seq, idx"}
_SCANS = [_scan(table, "", order) for table, order in _ORDERS.items()]
_LAST = _scan("messages", "", "seq DESC LIMIT $4")
_SINCE = [_scan(table, " AND seq >= $4", _ORDERS[table]) for table in ("message_parts", "tool_calls")]
_INSERTS = {table: _insert(table, (*KEY, *columns)) for table, columns in COLUMNS.items()}
_INSERTS_OF_A_RUN = {table: _insert(table, (*KEY, *columns)) for table, columns in OF_A_RUN.items()}
_INSERT_RUN = _insert("runs", RUN_COLUMNS) + " ON CONFLICT DO NOTHING"
_TIP = f"SELECT last_seq, last_role, open_calls, stamp FROM chatledger.branches WHERE {_PLACE}"
_APPEND = _append(COLUMNS)
_APPEND_WITH_RUN = _append(OF_A_RUN)
