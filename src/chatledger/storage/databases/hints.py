"""Hints: notices between processes that a thread changed, so that a follower need not wait for its next poll.

A hint carries no data, and nothing depends on it: if a hint is lost, the poll finds the change. A process sends the
hints of its commits together, on its own connection: at once, and then every 50 ms at most. NOTIFY in the transaction
of a write would hold a lock of the whole server until the commit is durable.

Every role that can connect to a PostgreSQL database can listen there. So a hint names only a bucket, one of 65,536 by a
digest of tenant and thread: enough that few followers wake up in vain, and too few to reveal the thread.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from typing import Any, TypeAlias

from chatledger.storage.databases.states import Followed

DISTANCE = 0.05
"""Minimum seconds between two notifications."""
CHANNEL = "chatledger"
_BUCKET = 4
"""Hexadecimal digits of a bucket."""
_MOST = 1_900
"""Maximum number of buckets in one notification; PostgreSQL accepts 8,000 bytes."""
# A lost hint only delays a follower, so the commit does not wait for the disk. The payload has nothing but hexadecimal
# digits.
_NOTIFY = f"BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}, ':payload'; COMMIT"
_ANSWER_TIMEOUT = 5.0
"""Seconds without an answer after which the connection counts as lost."""
_PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Seconds until the next connection, after one was lost."""


Connect: TypeAlias = Callable[[], Awaitable[Any]]


def bucket_of(followed: Followed) -> str:
    tenant, thread, _ = followed
    parts = b"".join(len(part).to_bytes(2, "big") + part for part in (tenant.key.encode(), thread.encode()))
    return hashlib.blake2b(parts, digest_size=_BUCKET // 2).hexdigest()


class Hints:
    """The hints of one process about one database. `when_changed` is called with the buckets that a hint names, and
    with None if hints may have been lost.
    """

    def __init__(
        self, connect: Connect | None, when_changed: Callable[[set[str] | None], None], *, listens: bool
    ) -> None:
        """`connect` makes an asyncpg connection; None on SQLite, where hints stay inside this process. Without
        `listens`, the process only sends.
        """
        self._connect = connect
        self._when_changed = when_changed
        self._can_listen = listens
        self._listens = False
        self._pending: set[str] = set()
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def send(self, followed: Followed) -> None:
        """Send a hint that the thread changed. Does not wait."""
        bucket = bucket_of(followed)
        self._when_changed({bucket})
        if self._connect is not None:
            self._pending.add(bucket)
            self._wake(self._connect)

    def listen(self) -> None:
        """Start to receive the hints of other processes."""
        if self._connect is not None and self._can_listen and not self._listens:
            self._listens = True
            self._wake(self._connect)

    async def close(self) -> None:
        """End the connection. Drops the hints that are not sent yet."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _wake(self, connect: Connect) -> None:
        loop = asyncio.get_running_loop()
        if self._task is None:
            self._loop = loop
            self._task = loop.create_task(self._run(connect), context=Context())
        if loop is self._loop:
            self._woken.set()
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(self._woken.set)

    async def _run(self, connect: Connect) -> None:
        failures = 0
        while True:
            with suppress(Exception):  # hints may be lost: the poll finds what they were about
                connection = await connect()
                try:
                    failures = 0
                    await self._serve(connection)
                finally:
                    with suppress(Exception):
                        await connection.close(timeout=_ANSWER_TIMEOUT)
            await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
            failures += 1

    async def _serve(self, connection: Any) -> None:
        """Send and receive hints until the connection is lost."""
        connection.add_termination_listener(lambda _: self._woken.set())
        listening = False
        while not connection.is_closed():
            if self._listens and not listening:
                async with asyncio.timeout(_ANSWER_TIMEOUT):
                    await connection.add_listener(CHANNEL, self._hear)
                listening = True
                self._when_changed(None)
            elif self._pending:
                payload = "".join([self._pending.pop() for _ in range(min(_MOST, len(self._pending)))])
                await connection.execute(_NOTIFY.replace(":payload", payload), timeout=_ANSWER_TIMEOUT)
                await asyncio.sleep(DISTANCE)
            else:
                self._woken.clear()
                await self._woken.wait()

    def _hear(self, connection: Any, sender: int, _channel: str, payload: str) -> None:
        if sender != connection.get_server_pid():
            self._when_changed({payload[at : at + _BUCKET] for at in range(0, len(payload), _BUCKET)})
