"""A client of the schemas 0001 to 0004, in the statements of the releases that had them. It makes threads, appends
turns under the guard of the branch's stamp, and reads the newest messages.

Today's code reads columns that these schemas lack, so it cannot stand in for those releases.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import asyncpg

from chatledger.ids import new_ids, new_stamp

Message = tuple[str, str]
"""Role and text."""
AGAIN = ("40001", "40P01", "55P03")
ATTEMPTS = 8

_THREAD = (
    "INSERT INTO {threads} (tenant_id, thread_id, active_branch, created_at, active_at) VALUES ($1, $2, 0, $3, $3)"
)
_BRANCH = (
    "INSERT INTO {branches} (tenant_id, thread_id, branch, lineage, last_seq, stamp, created_at)"
    " VALUES ($1, $2, 0, '[[0,1,null]]', 0, $3, $4)"
)
_UPDATE_TIP = (
    "UPDATE {branches} SET last_seq = $4, stamp = $5, last_role = 'assistant', open_calls = NULL, partial_seq = NULL"
    " WHERE tenant_id = $1 AND thread_id = $2 AND branch = 0 AND stamp = $3 RETURNING 1"
)
_TOUCH = "UPDATE {threads} SET active_at = $1 WHERE tenant_id = $2 AND thread_id = $3 AND active_at < $4"
_RUN = (
    "INSERT INTO {runs} (tenant_id, run_id, thread_id, status, started_at) VALUES ($1, $2, $3, 'running', $4)"
    " ON CONFLICT DO NOTHING"
)
_MESSAGE = (
    "INSERT INTO {messages} (tenant_id, thread_id, branch, seq, message_id, role, content_form, text, run_id, state,"
    " created_at) VALUES ($1, $2, 0, $3, $4, $5, 'str', $6, $7, 'complete', $8)"
)
_NEWEST = """
SELECT role, text FROM {messages} WHERE tenant_id = $1 AND thread_id = $2 AND branch = 0 ORDER BY seq DESC LIMIT $3
"""
_APPEND = """
WITH tip AS (
  UPDATE {branches} SET last_seq = $4::bigint, stamp = $5, last_role = 'assistant', open_calls = NULL,
    partial_seq = NULL
  WHERE tenant_id = $1 AND thread_id = $2 AND branch = 0 AND stamp = $3 RETURNING 1
), touched AS (
  UPDATE {threads} SET active_at = $6::timestamptz WHERE tenant_id = $1 AND thread_id = $2
    AND active_at < $6::timestamptz - interval '1 second' AND EXISTS (SELECT FROM tip)
), run AS (
  INSERT INTO {runs} (tenant_id, run_id, thread_id, status, started_at)
  SELECT $1::text, $7::text, $2::text, 'running', $6::timestamptz FROM tip ON CONFLICT DO NOTHING
), messages AS (
  INSERT INTO {messages} (tenant_id, thread_id, branch, seq, message_id, role, content_form, text, run_id, state,
    created_at)
  SELECT $1::text, $2::text, 0, $4::bigint - cardinality($8::text[]) + u.n, u.id, u.role, 'str', u.text, $7::text,
    'complete', $6::timestamptz
  FROM tip, unnest($8::text[], $9::text[], $10::text[]) WITH ORDINALITY AS u (id, role, text, n)
) SELECT count(*) FROM tip
"""


class OlderClient:
    """Remembers the last seq and the stamp of each thread that it made, as those releases remembered tips."""

    def __init__(self) -> None:
        self._tips: dict[str, tuple[int, int]] = {}

    async def create(self, thread: str) -> None:
        stamp, now = new_stamp(), self.moment()
        await self.write([(_THREAD, ("default", thread, now)), (_BRANCH, ("default", thread, stamp, now))])
        self._tips[thread] = (0, stamp)

    async def append(self, thread: str, messages: Sequence[Message], run: str) -> int:
        """The seq of the first message."""
        last, stamp = self._tips[thread]
        following = (last + len(messages), new_stamp())
        ids = new_ids(len(messages))
        if not await self.store(
            thread, stamp, following, run, list(zip(ids, *zip(*messages, strict=True), strict=True))
        ):
            raise AssertionError("somebody else wrote to the branch")
        self._tips[thread] = following
        return last + 1

    def moment(self) -> Any:
        raise NotImplementedError

    async def write(self, statements: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        raise NotImplementedError

    async def store(self, thread: str, stamp: int, following: tuple[int, int], run: str, rows: Sequence[Any]) -> bool:
        raise NotImplementedError

    async def newest(self, thread: str, count: int) -> list[Message]:
        raise NotImplementedError


@asynccontextmanager
async def older_client(url: str) -> AsyncIterator[OlderClient]:
    if url.startswith("postgres"):
        async with asyncpg.create_pool(url, min_size=1, max_size=8) as pool:
            yield _PostgresqlClient(pool)
        return
    connection = await asyncio.to_thread(
        sqlite3.connect, url, timeout=60, isolation_level=None, check_same_thread=False
    )
    await asyncio.to_thread(connection.execute, "PRAGMA foreign_keys = ON")
    yield _SqliteClient(connection)
    connection.close()


class _PostgresqlClient(OlderClient):
    def __init__(self, pool: Any) -> None:
        super().__init__()
        self._pool = pool

    def moment(self) -> datetime:
        return datetime.now(UTC)

    async def write(self, statements: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            for statement, values in statements:
                await connection.execute(_named(statement, "chatledger."), *values)

    async def store(self, thread: str, stamp: int, following: tuple[int, int], run: str, rows: Sequence[Any]) -> bool:
        values = ("default", thread, stamp, *following, self.moment(), run, *map(list, zip(*rows, strict=True)))
        for attempt in range(ATTEMPTS):
            try:
                return bool(await self._pool.fetchval(_named(_APPEND, "chatledger."), *values))
            except asyncpg.PostgresError as error:
                if error.sqlstate not in AGAIN or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    async def newest(self, thread: str, count: int) -> list[Message]:
        rows = await self._pool.fetch(_named(_NEWEST, "chatledger."), "default", thread, count)
        return [tuple(row) for row in rows[::-1]]


class _SqliteClient(OlderClient):
    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection
        self._turn = asyncio.Lock()

    def moment(self) -> int:
        return time.time_ns() // 1_000

    async def write(self, statements: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        async with self._turn:
            await asyncio.to_thread(self._write, statements)

    async def store(self, thread: str, stamp: int, following: tuple[int, int], run: str, rows: Sequence[Any]) -> bool:
        now, first = self.moment(), following[0] - len(rows) + 1
        statements = [
            (_UPDATE_TIP, ("default", thread, stamp, *following)),
            (_TOUCH, (now, "default", thread, now - 1_000_000)),
            (_RUN, ("default", run, thread, now)),
            *[(_MESSAGE, ("default", thread, first + n, *row, run, now)) for n, row in enumerate(rows)],
        ]
        async with self._turn:
            return await asyncio.to_thread(self._write, statements)

    async def newest(self, thread: str, count: int) -> list[Message]:
        async with self._turn:
            rows = await asyncio.to_thread(self._fetch, _NEWEST, ("default", thread, count))
        return rows[::-1]

    def _write(self, statements: Sequence[tuple[str, tuple[Any, ...]]]) -> bool:
        """Whether the first statement, the guard of an append, found its row."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            guarded = [self._fetch(*statement) for statement in statements[:1]]
            moved = statements[0][0] == _UPDATE_TIP and not guarded[0]
            for statement in () if moved else statements[1:]:
                self._fetch(*statement)
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()
        return not moved

    def _fetch(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        return self._connection.execute(_named(statement, "").replace("$", "?"), values).fetchall()


def _named(statement: str, prefix: str) -> str:
    return statement.format(**{name: prefix + name for name in ("threads", "branches", "runs", "messages")})
