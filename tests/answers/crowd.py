"""A thousand live answers of one process: its loop is blocked, its database stops, and a transaction holds a lease, and
nobody takes one over, and none is lost.

    python -m tests.answers.crowd

Of the answers 950 wait for their model and 50 stream. Another process looks for what nobody works on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from chatledger import Ledger
from chatledger.admin import migrate
from chatledger.answers import Agent, Turn
from tests.faults.kills import _children
from tests.postgres import Server, own_server

WAITING, STREAMING, LEASE = 950, 50, 5.0
ATTEMPTS = "SELECT attempt > 1, count(*) FROM chatledger.run_leases GROUP BY 1"
BEATS = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'workers'"


def agents(gate: asyncio.Event) -> dict[str, Agent]:
    async def wait(prompt: Any) -> AsyncIterator[str]:
        await gate.wait()
        yield "Here."

    async def stream(prompt: Any) -> AsyncIterator[str]:
        while not gate.is_set():
            yield "word "
            await asyncio.sleep(0.2)

    async def waiting(turn: Turn) -> None:
        await turn.ask(wait)

    async def streaming(turn: Turn) -> None:
        await turn.ask(stream)

    return {"waiting": waiting, "streaming": streaming}


async def look(url: str) -> None:
    """The other process, which has room for all of them."""
    async with Ledger.open(url) as ledger, ledger.answers.serve(agents(asyncio.Event()), lease=LEASE, most=2_000):
        print("ready", flush=True)
        await asyncio.sleep(600)


async def crowd(server: Server) -> int:
    gate = asyncio.Event()
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.answers.crowd", server.url, stdout=asyncio.subprocess.PIPE
    )
    assert other.stdout is not None
    await other.stdout.readline()
    connection = await asyncpg.connect(server.url)
    try:
        async with Ledger.open(server.url) as ledger, ledger.answers.serve(agents(gate), lease=LEASE, most=2_000):
            names = [f"waiting {n}" for n in range(WAITING)] + [f"streaming {n}" for n in range(STREAMING)]
            starting = asyncio.Semaphore(8)

            async def start(name: str) -> Any:
                async with starting:
                    return await ledger.answers.start(name, "?", agent=name.split()[0], create=True)

            began = time.perf_counter()
            answers = await asyncio.gather(*map(start, names))
            print(f"{len(answers):,} answers begun in {time.perf_counter() - began:.1f} s")
            await asyncio.sleep(LEASE)
            time.sleep(1.0)  # noqa: ASYNC251 - an agent that blocks the loop
            await asyncio.sleep(LEASE)
            await _stop_database(server, 2.0)
            await asyncio.sleep(LEASE)
            await _hold_lease(connection, 2 * LEASE)
            attempts = await connection.fetch(ATTEMPTS)
            gate.set()
            runs = await asyncio.gather(*(answer.wait() for answer in answers))
            await asyncio.sleep(1.5)  # PostgreSQL counts what a session did once it is idle for a second
            beats = await connection.fetchrow(BEATS)
    finally:
        other.kill()
        await other.wait()
        await connection.close()
    taken = sum(row[1] for row in attempts if row[0])
    completed = sum(run.status == "completed" for run in runs)
    print(f"{taken} taken over, {completed:,} completed, {beats[1]} of {beats[0]} beats HOT")
    return 0 if (taken, completed) == (0, len(names)) and beats[0] == beats[1] else 1


async def _stop_database(server: Server, seconds: float) -> None:
    assert server.process is not None
    pids = [server.process.pid, *_children(server.process.pid)]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            os.kill(pid, number)
        if number == signal.SIGSTOP:
            await asyncio.sleep(seconds)


async def _hold_lease(connection: Any, seconds: float) -> None:
    """Of an answer that streams, so that its writes wait."""
    async with connection.transaction():
        of_one = "WHERE thread_id = 'streaming 0' FOR UPDATE"
        assert await connection.fetch(f"SELECT 1 FROM chatledger.run_leases {of_one}")
        await asyncio.sleep(seconds)


def main() -> int:
    with own_server() as server:
        migrate(server.url)
        return asyncio.run(crowd(server))


if __name__ == "__main__":
    if sys.argv[1:]:
        asyncio.run(look(sys.argv[1]))
    else:
        sys.exit(main())
