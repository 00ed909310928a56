"""Appends over many threads by one process that lives long: what it holds may not grow with them.

python -m tests.faults.growth KIND URL THREADS APPENDS CACHE SEED     a line of JSON for each sample

Half of the work is new threads if there are half as many threads as appends. The process remembers a number for each
thread, in an array of a fixed size, and nothing else. At the end it counts what is stored.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import subprocess
import sys
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import linear_regression

import chatledger
from chatledger import ChatMessage, Ledger, Newest
from chatledger.storage.append.tip_cache import SIZE
from chatledger.storage.drivers.urls import POOL
from tests.conftest import Database
from tests.conversations import assistant, user
from tests.storage.raw import query

WRITERS = 16
SAMPLES = 20
WARM = 0.5
"""The part of the appends before the samples count: caches, pages of SQLite and connections fill up first."""
READS = 0.05
"""Reads for each append."""
TURN = 2
"""Messages of an append."""
PER = 100_000


@dataclass(frozen=True, slots=True)
class Sample:
    """What the process holds after that many appends: bytes of memory, blocks that Python allocated, file descriptors,
    and connections to the database.
    """

    appends: int
    memory: int
    blocks: int
    files: int
    connections: int


@dataclass(frozen=True, slots=True)
class Growth:
    """For 100,000 appends: MiB of memory, blocks, file descriptors and connections."""

    appends: int
    threads: int
    memory: float
    blocks: float
    files: float
    connections: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest growth that is allowed, for 100,000 appends.

    That of memory is loose, because allocators keep the room of the busiest moment: a process with a constant number of
    blocks took 1.6 MiB. A string that is kept for each append takes 5 MiB and 100,000 blocks.
    """

    memory: float
    blocks: float
    files: float
    connections: float


LIMITS = Limits(memory=3, blocks=1_000, files=1, connections=1)


def spread(database: Database, *, threads: int, appends: int, seed: int, cache: int = SIZE) -> Growth:
    """Runs the process. Raises AssertionError if it failed, or found that anything is lost. `cache`: the branches whose
    tips the ledger keeps.
    """
    here, source = Path(__file__).parents[2], Path(chatledger.__file__).parents[1]
    arguments = (database.kind, database.url, threads, appends, cache, seed)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.growth", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=here,
        env=os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{here}"},
    ) as process:
        try:
            said, errors = process.communicate()
        finally:
            process.kill()
    assert process.returncode == 0, errors
    samples = [Sample(**json.loads(line)) for line in said.splitlines()]
    assert samples[-1].appends == appends
    return growth(samples, threads)


def growth(samples: Sequence[Sample], threads: int) -> Growth:
    """The slopes of the lines through the samples after the warm-up."""
    last = samples[-1].appends
    warm = [sample for sample in samples if sample.appends >= WARM * last]
    at = [sample.appends / PER for sample in warm]

    def slope(values: list[float]) -> float:
        return linear_regression(at, values).slope

    return Growth(
        last,
        threads,
        slope([sample.memory / 2**20 for sample in warm]),
        slope([sample.blocks for sample in warm]),
        slope([sample.files for sample in warm]),
        slope([sample.connections for sample in warm]),
    )


def require_bounded(found: Growth, limits: Limits = LIMITS) -> None:
    """Raises AssertionError."""
    over = [name for name, limit in asdict(limits).items() if getattr(found, name) > limit]
    assert not over, f"{' and '.join(over)} grew: {found}, allowed {limits}"


# --- The process ------------------------------------------------------------------------------------------------------


class _Writer:
    """Appends to threads that no other writer appends to, so that it knows how many turns each one has."""

    def __init__(self, ledger: Ledger, turns: array[int], number: int, appends: int, seed: int) -> None:
        self._ledger = ledger
        self._turns = turns
        self._own = range(number, len(turns), WRITERS)
        self._created = 0
        self._left = len(range(number, appends, WRITERS))
        self._seed = seed
        self._chance = random.Random(f"{seed} {number}")

    async def append(self) -> None:
        new = not self._created or self._chance.random() < (len(self._own) - self._created) / self._left
        self._left -= 1
        self._created += new
        number = self._own[self._created - 1] if new else self._any()
        thread = thread_name(self._seed, number)
        messages = turn(thread, self._turns[number])
        stored = await self._ledger.messages.append(thread, messages, run_id=f"run of {thread}", create=new)
        self._turns[number] += 1
        assert stored.last_seq == TURN * self._turns[number], thread
        if self._chance.random() < READS:
            await self._read(self._any())

    def _any(self) -> int:
        return self._own[self._chance.randrange(self._created)]

    async def _read(self, number: int) -> None:
        thread, turns = thread_name(self._seed, number), self._turns[number]
        history = await self._ledger.messages.history(thread, Newest(TURN))
        given = turn(thread, turns - 1)
        assert history.last_seq == TURN * turns, thread
        assert [(one.message_id, one.content) for one in history.messages] == [
            (one.message_id, one.content) for one in given
        ]


def thread_name(seed: int, number: int) -> str:
    return f"{seed}-{number}"


def turn(thread: str, number: int) -> list[ChatMessage]:
    asked = user(f"{thread}: question {number}").model_copy(update={"message_id": f"{thread}/{number}/question"})
    said = assistant(f"{thread}: answer {number}").model_copy(update={"message_id": f"{thread}/{number}/answer"})
    return [asked, said]


async def run(database: Database, threads: int, appends: int, cache: int, seed: int) -> None:
    turns = array("L", bytes(array("L").itemsize * threads))
    async with database.open() as ledger:
        ledger._database._tips._size = cache
        if database.kind == "postgresql":
            await _fill_the_pool(ledger)
        writers = [_Writer(ledger, turns, number, appends, seed) for number in range(WRITERS)]
        done = 0
        for sample in range(1, SAMPLES + 1):
            until = appends * sample // SAMPLES
            await asyncio.gather(*(_append(writers, number, done, until) for number in range(WRITERS)))
            done = until
            print(json.dumps(asdict(await _sample(database, done))), flush=True)
    await check_stored(database, turns, seed)


async def _fill_the_pool(ledger: Ledger) -> None:
    """Open as many connections as the ledger keeps. Otherwise a slow moment later would open another one."""
    all_begun = asyncio.Barrier(POOL.size)

    async def hold() -> None:
        async with ledger.begin():
            await all_begun.wait()

    await asyncio.gather(*(hold() for _ in range(POOL.size)))


async def _append(writers: Sequence[_Writer], number: int, done: int, until: int) -> None:
    for _ in range(done + (number - done) % WRITERS, until, WRITERS):
        await writers[number].append()


async def _sample(database: Database, appends: int) -> Sample:
    """No call is running."""
    gc.collect()
    memory, blocks, opened = _memory(), sys.getallocatedblocks(), _opened()
    if database.kind == "sqlite":
        connections = opened.count(_file(database))
    else:
        others = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ((connections,),) = await query(database, f"SELECT count(*) FROM pg_stat_activity WHERE {others}")
    return Sample(appends, memory, blocks, len(opened), connections)


def _memory() -> int:
    """Resident bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _opened() -> list[str]:
    """What the open file descriptors are of."""
    return [_target(descriptor) for descriptor in os.listdir("/proc/self/fd")]


def _file(database: Database) -> str:
    return os.path.realpath(database.url)


def _target(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:  # that of the listing itself
        return ""


_STORED = """
SELECT b.thread_id, b.last_seq, count(*), min(m.seq), max(m.seq), count(DISTINCT m.text),
       sum(CASE WHEN m.message_id LIKE m.thread_id || '/' || ((m.seq - 1) / 2) || '/%' THEN 0 ELSE 1 END)
FROM branches b JOIN messages m ON m.tenant_id = b.tenant_id AND m.thread_id = b.thread_id
GROUP BY b.thread_id, b.last_seq
"""


async def check_stored(database: Database, turns: Sequence[int], seed: int) -> None:
    """Every thread has the messages of its turns, each at its position, and nothing else. Raises AssertionError."""
    stored = {thread: tuple(numbers) for thread, *numbers in await query(database, _STORED)}
    for number, count in enumerate(turns):
        messages = TURN * count
        found = stored.pop(thread_name(seed, number), None)
        assert found == (messages, messages, 1, messages, messages, 0), f"{number}: {count} turns, stored {found}"
    assert not stored, f"strangers: {sorted(stored)[:5]}"


def main() -> None:
    kind, url, *numbers = sys.argv[1:]
    database = Database("sqlite" if kind == "sqlite" else "postgresql", url)
    asyncio.run(run(database, *map(int, numbers)))


if __name__ == "__main__":
    main()
