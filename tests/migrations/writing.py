"""Eight writers in a process of their own, as the code of some revision would have them, while a database is migrated.

    python -m tests.migrations.writing URL REVISION

The newest revision has today's code, and an older one the statements of its time (`older_client.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from chatledger import ChatLedgerError, ChatMessage, Ledger, Newest
from chatledger.admin import migrate
from chatledger.storage.upgrade import versions
from tests.conftest import Database
from tests.migrations.access import fetch, schema_of
from tests.migrations.older_client import Message, OlderClient, older_client

WRITERS = 8
MORE = 5
"""Appends of each writer before the first word, and after the last."""
LIMIT = 20_000
READY = "ready"
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Written:
    """An append: where, what was told of it, and how many seconds it took."""

    thread: str
    texts: list[str]
    first_seq: int
    took: float
    error: str | None = None


@dataclass(slots=True)
class Traffic:
    process: subprocess.Popen[str]
    written: Sequence[Written] = ()

    @property
    def failed(self) -> list[str]:
        return [one.error for one in self.written if one.error is not None]

    @property
    def stall(self) -> float:
        """Seconds of the longest append."""
        return max(one.took for one in self.written)

    def finish(self) -> None:
        """A few more appends of each, and then all that they did."""
        printed, errors = self.process.communicate("stop\n", timeout=120)
        assert self.process.returncode == 0, errors
        self.written = [Written(**row) for row in json.loads(printed.splitlines()[-1])]


@contextmanager
def writers(database: Database, revision: str) -> Iterator[Traffic]:
    """Writers that have begun. Leaving ends them, after they wrote some more."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.migrations.writing", database.url, revision],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])},
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != f"{READY}\n":
            raise AssertionError(process.communicate()[1])
        traffic = Traffic(process)
        yield traffic
        traffic.finish()
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def check_stored(database: Database, all_traffic: Sequence[Traffic]) -> None:
    """Bring the database to the newest revision. Raises AssertionError unless every acknowledged append is there, once,
    whole and in its place, and nothing else.
    """
    migrate(database.url)
    told: dict[str, list[str]] = {}
    for one in (one for traffic in all_traffic for one in traffic.written if one.error is None):
        texts = told.setdefault(one.thread, [])
        assert one.first_seq == len(texts) + 1
        texts += one.texts
    assert asyncio.run(_stored(database, list(told))) == told


async def _stored(database: Database, threads: Sequence[str]) -> dict[str, list[str]]:
    async with Ledger.open(database.url, migrate=False) as ledger:
        return {thread: [message.text async for message in ledger.messages.iterate(thread)] for thread in threads}


def size_of(database: Database) -> str:
    """Messages and bytes, for the line that a test prints."""
    prefix = f"{schema_of(database)}." if schema_of(database) else ""
    [(count,)] = fetch(database, f"SELECT count(*) FROM {prefix}messages")
    if database.kind == "sqlite":
        size = Path(database.url).stat().st_size
    else:
        [(size,)] = fetch(database, "SELECT pg_database_size(current_database())")
    return f"{count:,} messages, {size / 1e6:.1f} MB"


# --- In the process ---------------------------------------------------------------------------------------------------


class TodaysClient:
    """Today's code, which the newest schema belongs to."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def create(self, thread: str) -> None:
        await self._ledger.threads.create(thread)

    async def append(self, thread: str, messages: Sequence[Message], run: str) -> int:
        given = [ChatMessage(role=role, content=text) for role, text in messages]
        return (await self._ledger.messages.append(thread, given, run_id=run)).messages[0].seq or 0

    async def newest(self, thread: str, count: int) -> list[Message]:
        history = await self._ledger.messages.history(thread, Newest(count))
        return [(message.role, message.text) for message in history.messages]


@asynccontextmanager
async def client_of(url: str, revision: str) -> AsyncIterator[TodaysClient | OlderClient]:
    """A client that was released with the revision."""
    if revision == versions.HEAD:
        async with Ledger.open(url, migrate=False) as ledger:
            yield TodaysClient(ledger)
        return
    async with older_client(url) as older:
        yield older


async def _main(url: str, revision: str) -> None:
    stop, ready, written = asyncio.Event(), [0], list[Written]()
    async with client_of(url, revision) as client, asyncio.TaskGroup() as tasks:
        for number in range(WRITERS):
            tasks.create_task(_write(client, f"{revision}-{number}", written, ready, stop))
        asyncio.get_running_loop().add_reader(sys.stdin, stop.set)
    print(json.dumps([{name: getattr(one, name) for name in Written.__slots__} for one in written]))


async def _write(
    client: TodaysClient | OlderClient, thread: str, written: list[Written], ready: list[int], stop: asyncio.Event
) -> None:
    await client.create(thread)
    left = MORE
    for number in range(LIMIT):
        left -= stop.is_set()
        if left < 0:
            return
        written.append(await _append(client, thread, number))
        if number == MORE:
            ready[0] += 1
            if ready[0] == WRITERS:
                print(READY, flush=True)
        await asyncio.sleep(0)


async def _append(client: TodaysClient | OlderClient, thread: str, number: int) -> Written:
    texts = [f"question {number}", f"answer {number}"]
    turn = list(zip(("user", "assistant"), texts, strict=True))
    begun = time.monotonic()
    try:
        first_seq = await client.append(thread, turn, f"{thread}-{number // 10}")
        read = await client.newest(thread, 2)
        assert read == turn, read
    except (ChatLedgerError, AssertionError, asyncpg.PostgresError, sqlite3.Error) as error:
        return Written(thread, texts, 0, time.monotonic() - begun, f"{type(error).__name__}: {error}")
    return Written(thread, texts, first_seq, time.monotonic() - begun)


def main(arguments: Any = None) -> None:
    asyncio.run(_main(*(sys.argv[1:] if arguments is None else arguments)))


if __name__ == "__main__":
    main()
