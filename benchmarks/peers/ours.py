"""chatledger, and the bare driver that all are compared with.

Both take what an application sends: an id of its own for each message, and a run of its own for each turn. The calls of
the other stores carry their ids as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

from benchmarks.bare_postgres import OneStatement
from benchmarks.bare_sqlite import Aiosqlite
from benchmarks.cases import SERVICE
from benchmarks.rows import BRANCH, LINEAGE, TENANT
from benchmarks.turns import Turn, with_own_ids
from chatledger import ChatMessage, Ledger, Newest
from chatledger.ids import new_id, new_stamp
from chatledger.storage.schema.text import to_microseconds


class Ours:
    name: ClassVar[str] = f"chatledger, {SERVICE}"
    items: ClassVar[int] = 5
    loads_last: ClassVar[bool] = True

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls(await Ledger.open(url, migrate=True))

    async def new_thread(self) -> str:
        return (await self._ledger.threads.create()).thread_id

    async def ready(self, thread: str, turn: Turn) -> tuple[list[ChatMessage], str]:
        return list(with_own_ids(turn).models), new_id()

    async def append(self, thread: str, ready: tuple[list[ChatMessage], str]) -> None:
        messages, run = ready
        await self._ledger.messages.append(thread, messages, run_id=run)

    async def load(self, thread: str) -> Sequence[Any]:
        return (await self._ledger.messages.history(thread)).messages

    async def last(self, thread: str, count: int) -> Sequence[Any]:
        return (await self._ledger.messages.history(thread, Newest(count))).messages

    async def close(self) -> None:
        await self._ledger.close()


class _Bare:
    """A store written by hand on our tables."""

    items: ClassVar[int] = 5
    loads_last: ClassVar[bool] = True
    store: Any

    async def ready(self, thread: str, turn: Turn) -> tuple[Turn, str]:
        return with_own_ids(turn), new_id()

    async def append(self, thread: str, ready: tuple[Turn, str]) -> None:
        await self.store.append(thread, *ready)

    async def load(self, thread: str) -> Sequence[Any]:
        found: Sequence[Any] = await self.store.load(thread)
        return found

    async def last(self, thread: str, count: int) -> Sequence[Any]:
        found: Sequence[Any] = await self.store.last(thread, count)
        return found

    async def close(self) -> None:
        await self.store.close()


class BarePostgres(_Bare):
    name: ClassVar[str] = f"{OneStatement.name}, {SERVICE}"

    @classmethod
    async def open(cls, url: str) -> Self:
        async with Ledger.open(url, migrate=True):
            pass
        bare = cls()
        bare.store = await OneStatement.open(url)
        return bare

    async def new_thread(self) -> str:
        thread, now = new_id(), datetime.now(UTC)
        await self.store.connection.execute(
            "INSERT INTO chatledger.threads (tenant_id, thread_id, active_branch, created_at, active_at)"
            " VALUES ($1, $2, $3, $4, $4)",
            *(TENANT, thread, BRANCH, now),
        )
        await self.store.connection.execute(
            "INSERT INTO chatledger.branches (tenant_id, thread_id, branch, lineage, last_seq, stamp, created_at)"
            " VALUES ($1, $2, $3, $4, 0, $5, $6)",
            *(TENANT, thread, BRANCH, LINEAGE, new_stamp(), now),
        )
        return thread


class BareSqlite(_Bare):
    name: ClassVar[str] = f"{Aiosqlite.name}, {SERVICE}"

    @classmethod
    async def open(cls, url: str) -> Self:
        async with Ledger.open(Path(url)):
            pass
        bare = cls()
        bare.store = await Aiosqlite.open(url)
        return bare

    async def new_thread(self) -> str:
        thread, now = new_id(), to_microseconds(datetime.now(UTC))
        await self.store.connection.execute(
            "INSERT INTO threads (tenant_id, thread_id, active_branch, created_at, active_at) VALUES (?, ?, ?, ?, ?)",
            (TENANT, thread, BRANCH, now, now),
        )
        await self.store.connection.execute(
            "INSERT INTO branches (tenant_id, thread_id, branch, lineage, last_seq, stamp, created_at)"
            " VALUES (?, ?, ?, ?, 0, ?, ?)",
            (TENANT, thread, BRANCH, LINEAGE, new_stamp(), now),
        )
        return thread
