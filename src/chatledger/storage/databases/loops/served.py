"""A database for event loops other than its own. Its calls run in the loop of one thread, and are awaited where they
were made.

Connections belong to the loop that opened them, and that loop may be blocked by a synchronous runner that waits for
this very call. So one more loop, in which nothing else runs, has its own small pool. One serves all other loops,
however many come and go.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from chatledger.models import Appended
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.databases.database import Database, OpenDatabase
from chatledger.storage.databases.hints import Hints
from chatledger.storage.databases.loops.loop_thread import LoopThread
from chatledger.storage.databases.states import Followed, States
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.history.window_request import Section, Window
from chatledger.storage.rows.encryption import Tenant
from chatledger.telemetry.counters import Counters

T = TypeVar("T")


class Served(Database):
    def __init__(self, database: Database, thread: LoopThread) -> None:
        self.timeout: float = database.timeout
        self._database = database
        self._thread = thread

    async def read(self, tenant: Tenant, work: Callable[[ReadSql], T], *, snapshot: bool = False) -> T:
        return await self._thread.serve(lambda: self._database.read(tenant, work, snapshot=snapshot))

    async def write(self, tenant: Tenant, work: Callable[[WriteSql], T], *, single: bool = False) -> T:
        return await self._thread.serve(lambda: self._database.write(tenant, work, single=single))

    async def append(self, request: AppendRequest) -> Appended:
        return await self._thread.serve(lambda: self._database.append(request))

    async def history(self, window: Window) -> Section:
        return await self._thread.serve(lambda: self._database.history(window))

    def learn(self, tenant: Tenant, thread: str, seen: Preflight) -> None:
        async def learn() -> None:
            self._database.learn(tenant, thread, seen)

        self._thread.begin(learn)


class ServedDatabase(Served, OpenDatabase):
    def __init__(self, database: OpenDatabase, thread: LoopThread) -> None:
        super().__init__(database, thread)
        self._open = database
        self.counters: Counters = database.counters

    async def ping(self, tenant: Tenant) -> None:
        await self._thread.serve(lambda: self._open.ping(tenant))

    async def position(self) -> str:
        return await self._thread.serve(self._open.position)

    async def states(self, followed: Sequence[Followed]) -> States:
        return await self._thread.serve(lambda: self._open.states(followed))

    @property
    def queue_length(self) -> int:
        return self._open.queue_length

    @asynccontextmanager
    async def transaction(self, tenant: Tenant) -> AsyncIterator[Database]:
        transaction = self._open.transaction(tenant)
        entered: list[Database] = []

        async def enter() -> None:
            entered.append(await transaction.__aenter__())

        try:
            await self._thread.serve(enter)
            yield Served(entered[0], self._thread)
        except BaseException:
            if entered:  # a cancellation may come when it has just begun
                error = sys.exc_info()
                await self._thread.serve(lambda: transaction.__aexit__(*error))
            raise
        await self._thread.serve(lambda: transaction.__aexit__(None, None, None))

    async def close(self) -> None:
        await self._thread.serve(self._open.close)


class OtherLoops:
    """Gives all other event loops access to a database: its copy, in its own loop. As a context manager it gives the
    database and counts the running calls.
    """

    def __init__(
        self,
        copy: OpenDatabase,
        ended: Callable[[], None],
        when_changed: Callable[[set[str] | None], None] | None,
        *,
        listens: bool,
    ) -> None:
        """`ended`: called after each call. `when_changed`: called with the hints; None without any."""
        self._thread = LoopThread("chatledger-loops")
        self.database: ServedDatabase = ServedDatabase(copy, self._thread)
        self.running: int = 0
        self._turn = threading.Lock()
        self._ended = ended
        self._hints = None if when_changed is None else Hints(copy.connect, when_changed, listens=listens)

    def __enter__(self) -> OpenDatabase:
        with self._turn:
            self.running += 1
        return self.database

    def __exit__(self, *error: object) -> None:
        with self._turn:
            self.running -= 1
        self._ended()

    def send(self, followed: Followed) -> None:
        async def send() -> None:
            assert self._hints is not None
            self._hints.send(followed)

        self._thread.begin(send)

    def listen(self) -> None:
        async def listen() -> None:
            assert self._hints is not None
            self._hints.listen()

        self._thread.begin(listen)

    async def close(self) -> None:
        if self._hints is not None:
            await self._thread.serve(self._hints.close)
        await self.database.close()
        await self._thread.end()
