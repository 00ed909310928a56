"""Killing: clients with SIGKILL in the middle of their appends, and PostgreSQL under its writers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import Database
from tests.faults.batches import thread_ids
from tests.faults.checker import Figures, verdict
from tests.faults.client import Client, nursery
from tests.faults.recording import Recorder, Recording
from tests.postgres import Server

TASKS = 4
WRITERS = 16


# --- Clients ----------------------------------------------------------------------------------------------------------


async def kill_clients(database: Database, *, kills: int, seed: int, at_once: int = 1) -> Figures:
    """Runs that many clients, one or some at a time, on the same threads. Each is killed at a random moment of its
    work.
    """
    chance = random.Random(seed)
    threads = thread_ids(seed, 2)
    recording = Recording()
    async with database.open() as ledger:
        for thread in threads:
            await ledger.threads.create(thread)
        with nursery() as clients:
            for first in range(0, kills, at_once):
                numbers = range(first, min(first + at_once, kills))
                started = [
                    clients.append(database.url, f"k{seed}.{number}", tasks=TASKS, threads=threads)
                    for number in numbers
                ]
                moments = [(chance.randrange(1, 8), chance.uniform(0, 0.15)) for _ in started]
                await asyncio.gather(
                    *(
                        asyncio.to_thread(_kill, client, recording, *moment)
                        for client, moment in zip(started, moments, strict=True)
                    )
                )
                recording.faults += len(started)
        for thread in threads:  # whatever was left behind, the next one appends
            await Recorder(ledger, recording).append(f"after {thread}", thread)
        return await verdict(database, ledger, threads, recording, seed=seed)


def _kill(client: Client, recording: Recording, acknowledged: int, seconds: float) -> None:
    """Kills it that long after that many acknowledgements, and records what it reported until then."""
    while acknowledged:
        line = client.said.readline()
        assert line, "it ended before it was killed"
        append = recording.take(line)
        acknowledged -= append is not None and append.outcome == "acknowledged"
    due = time.monotonic() + seconds
    timer = threading.Timer(seconds, client.kill)
    timer.start()
    for line in client.said:  # to the end of the pipe, which is that of the process
        if line.endswith("\n"):
            recording.take(line)
    assert time.monotonic() >= due, "it ended before it was killed"
    timer.join()


# --- The server -------------------------------------------------------------------------------------------------------


@dataclass
class _Writing:
    """Writers that go on until they are told to end."""

    recorder: Recorder
    threads: list[str]
    ended: bool = False

    async def write(self, name: str, chance: random.Random) -> None:
        for number in itertools.count():
            if self.ended:
                return
            thread = chance.choice(self.threads)
            await self.recorder.work(f"{name}.{number}", thread, chance)
            if chance.random() < 0.1:
                await self.recorder.read(thread, last=20)


async def kill_server(server: Server, database: Database, *, kills: int, seed: int) -> Figures:
    """PostgreSQL killed under sixteen writers, whole or a backend of it, and started again."""
    chance = random.Random(seed)
    threads = thread_ids(seed, 4)
    recording = Recording()
    async with database.open() as ledger:
        for thread in threads:
            await ledger.threads.create(thread)
        writing = _Writing(Recorder(ledger, recording), threads)
        writers = [
            asyncio.create_task(writing.write(f"w{seed}-{number}", random.Random(f"{seed}{number}")))
            for number in range(WRITERS)
        ]
        try:
            for number in range(kills):
                await _progress(recording, 4 * WRITERS, writers)
                await asyncio.sleep(chance.uniform(0, 0.1))
                await asyncio.to_thread(_kill_all if number % 2 == 0 else _kill_backend, server, chance)
                recording.faults += 1
            await _progress(recording, 2 * WRITERS, writers)
        finally:
            writing.ended = True
            await asyncio.gather(*writers)
        return await verdict(database, ledger, threads, recording, seed=seed)


async def _progress(recording: Recording, appends: int, writers: list[asyncio.Task[None]]) -> None:
    """Waits for that many further acknowledged appends. If a writer ended, raises its error."""
    enough = recording.acknowledged + appends
    while recording.acknowledged < enough:
        for writer in writers:
            if writer.done():
                writer.result()
        await asyncio.sleep(0.005)


def _kill_all(server: Server, _: random.Random) -> None:
    """Kills every process of the server, so that none writes any more; on its next start the server recovers from its
    log.
    """
    assert server.process is not None
    assert server.start_again is not None
    backends = _children(server.process.pid)
    for pid in (server.process.pid, *backends):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    server.process.wait()
    _until_gone(backends)
    server.process = server.start_again()


def _kill_backend(server: Server, chance: random.Random) -> None:
    """The server ends all its connections and recovers, because what they share may be spoilt."""
    assert server.process is not None
    writers = [pid for pid in _children(server.process.pid) if "chatledger" in _title(pid)]
    os.kill(chance.choice(writers), signal.SIGKILL)


def _until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _title(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode()
