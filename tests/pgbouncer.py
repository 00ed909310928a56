"""A ledger behind the real PgBouncer in transaction mode: 2 processes with 16 tasks each, over 4 server connections.

    python -m tests.pgbouncer

looks for `pgbouncer` on PATH, or at PGBOUNCER, and installs it with apt where it may. If there is none, it fails:
there is nothing to show without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from chatledger import Ledger, Newest, PostgreSQL
from chatledger.admin import migrate
from chatledger.answers.live import list_live
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from tests.answers.agents import Model, agent_of
from tests.checks import findings_of
from tests.conversations import turn
from tests.faults.writer import assert_whole
from tests.postgres import UNPRIVILEGED, free_port, server
from tests.programs import find_or_install

PROCESSES, TASKS, TURNS, ANSWERS, SERVERS = 2, 16, 12, 3, 4
LEASE = 2.0
ANSWERED = ["user", "assistant", "tool", "assistant"]


def main() -> int:
    binary = find_or_install([os.environ.get("PGBOUNCER", "pgbouncer")], ["pgbouncer"])
    if binary is None:
        print("pgbouncer was not found: install it (apt-get install pgbouncer), or set PGBOUNCER", file=sys.stderr)
        return 1
    print(subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0])
    with server() as running, running.database() as direct, in_front(binary, direct) as url:
        migrate(direct)
        started = time.perf_counter()
        processes = [
            subprocess.Popen([sys.executable, "-m", "tests.pgbouncer", "work", url, f"p{n}"]) for n in range(PROCESSES)
        ]
        codes = [process.wait() for process in processes]
        assert codes == [0] * PROCESSES, codes
        asyncio.run(judge(direct, url))
        turns, answers = PROCESSES * TASKS * TURNS, PROCESSES * TASKS * ANSWERS
        took = time.perf_counter() - started
        print(f"{turns} turns and {answers} answers in {took:.1f} s, no error, nothing left in {SERVERS} sessions")
    return 0


@contextlib.contextmanager
def in_front(binary: str, url: str) -> Iterator[str]:
    """PgBouncer on loopback in front of the server of the URL, ended by its process id."""
    address, port = urlsplit(url), free_port()
    with tempfile.TemporaryDirectory(prefix="chatledger-pgbouncer-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        root.chmod(0o755)
        settings = root / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={address.hostname} port={address.port} user={address.username}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = {SERVERS}\nmax_client_conn = 200\nlog_connections = 0\n"
            "log_disconnections = 0\n"
        )
        words = [binary, "-q", *as_another(), str(settings)]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        through = address._replace(netloc=f"{address.username}@127.0.0.1:{port}").geturl()
        try:
            asyncio.run(wait_for(through, process))
            yield through
        finally:
            process.terminate()
            process.wait()


def as_another() -> list[str]:
    """It refuses to run as root, as the server does."""
    accounts = {account.pw_name for account in pwd.getpwall()}
    return ["-u", next(name for name in UNPRIVILEGED if name in accounts)] if os.geteuid() == 0 else []


async def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            await (await asyncpg.connect(url, statement_cache_size=0, timeout=5)).close()
        except (OSError, TimeoutError, asyncpg.PostgresError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)
        else:
            return


async def work(url: str, name: str) -> None:
    """The work of one process: each task writes to its own thread, and to one that all tasks share, and asks an agent
    that both processes run.
    """
    async with (
        Ledger.open(url, postgresql=PostgreSQL(pooler="transaction")) as ledger,
        ledger.answers.serve({"weather": agent_of(Model())}, lease=LEASE),
    ):
        await ledger.threads.create("shared", exist_ok=True)
        names = [f"{name}-{number}" for number in range(TASKS)]
        await asyncio.gather(*map(partial(converse, ledger), names), *map(partial(ask, ledger), names))


async def ask(ledger: Ledger, name: str) -> None:
    for number in range(ANSWERS):
        answer = await ledger.answers.start(
            f"answers {name}", "Tokyo?", agent="weather", idempotency_key=str(number), create=True
        )
        assert (await answer.wait()).status == "completed"


async def converse(ledger: Ledger, name: str) -> None:
    await ledger.threads.create(name)
    for number in range(TURNS):
        for thread in (name, "shared"):
            await ledger.messages.append(thread, turn(ids=f"{name}-{number}/"), run_id=f"{thread} {number}")
        await ledger.messages.history(name, Newest(10))
        assert (await ledger.messages.history(name)).last_seq == 5 * (number + 1)
    async with ledger.begin() as tx:
        await tx.messages.append(name, turn())
        await fork_at(scope_of(tx), name, 5)
    await ledger.threads.list(limit=5)
    await ledger.threads.delete(name)


async def judge(direct: str, url: str) -> None:
    """Every turn is there once and whole, and the sessions behind the pooler hold nothing of those who used them."""
    async with Ledger.open(direct) as ledger:
        history = await ledger.messages.history("shared")
        assert history.last_seq == 5 * PROCESSES * TASKS * TURNS
        assert_whole(history.messages, [])
        assert await findings_of(ledger, "shared") == []
        for thread in [f"answers p{process}-{task}" for process in range(PROCESSES) for task in range(TASKS)]:
            assert [message.role for message in await ledger.messages.history(thread)] == ANSWERED * ANSWERS
        assert not (await list_live(scope_of(ledger), None, 1, None)).items
    sessions = [await asyncpg.connect(url, statement_cache_size=0) for _ in range(SERVERS)]
    for session in sessions:  # each in an open transaction has a server connection to itself
        await session.execute("BEGIN")
    for session in sessions:
        assert await session.fetch(TRACES) == []
    for session in sessions:
        await session.close()


TRACES = """
SELECT name FROM pg_prepared_statements WHERE name <> ''
UNION ALL SELECT locktype FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'
UNION ALL SELECT name FROM pg_settings WHERE source = 'session' AND setting <> reset_val AND name <> 'application_name'
"""


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        asyncio.run(work(*sys.argv[2:]))
    else:
        sys.exit(main())
