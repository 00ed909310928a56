"""A writer killed with SIGKILL at random moments: nothing that it acknowledged is lost, no turn is stored in half."""

from __future__ import annotations

import random
import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest

from chatledger import Ledger
from tests.conftest import Database
from tests.conversations import turn
from tests.faults.writer import THREAD, Acknowledged, assert_whole, read_line, start_process

KILLS = 10


Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(database: Database) -> Iterator[Start]:
    """Starts writers of the given names, of which none is left running."""
    started: list[subprocess.Popen[str]] = []

    def one(name: str) -> subprocess.Popen[str]:
        started.append(start_process(database.url, name, tasks=4, turns=0))
        return started[-1]

    yield one
    for process in started:
        process.kill()
        process.communicate()


def kill_after(process: subprocess.Popen[str], first_turns: int, seconds: float) -> list[Acknowledged]:
    """What it acknowledged before it was killed: so long after so many turns."""
    assert process.stdout is not None
    told = [read_line(process.stdout.readline()) for _ in range(first_turns)]
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    rest = process.stdout.readlines()  # to the end of the pipe, which is that of the process
    timer.join()
    assert process.wait() == -9
    return told + [read_line(line) for line in rest if line.endswith("\n")]


async def test_a_killed_writer_loses_nothing_acknowledged(ledger: Ledger, start: Start) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    await ledger.threads.create(THREAD)
    acknowledged: list[Acknowledged] = []
    following = start("k0")
    for number in range(1, KILLS + 1):
        process = following
        if number < KILLS:  # starting takes longer than writing: the next one is on its way while this one writes
            following = start(f"k{number}")
        acknowledged += kill_after(process, chance.randrange(1, 5), chance.uniform(0, 0.15))
        history = await ledger.messages.history(THREAD)
        assert_whole(history.messages, acknowledged)
    assert await ledger.threads.check(THREAD) == []
    assert len({name.partition("-")[0] for name, _, _ in acknowledged}) == KILLS
    version = (await ledger.messages.history(THREAD, last=0)).version
    assert (await ledger.messages.append(THREAD, turn())).first_seq == version + 1
