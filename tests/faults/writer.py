"""A writer, for tests that run many of them: it appends turns and says which were acknowledged.

python -m tests.faults.writer URL NAME TASKS TURNS     one line on stdout for each acknowledged turn; TURNS 0: no end
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import chatledger
from chatledger import ChatMessage, Ledger
from tests.conversations import turn

THREAD = "t"
TURN = len(turn())

Acknowledged = tuple[str, int, int]
"""The name of a turn, its first and its last seq."""


async def append_turns(ledger: Ledger, name: str, turns: int, acknowledge: Callable[[Acknowledged], object]) -> None:
    number = 0
    while turns == 0 or number < turns:
        stored = await ledger.messages.append(THREAD, turn(ids=f"{name}.{number}/"), run_id=f"run of {name}")
        acknowledge((f"{name}.{number}", stored.messages[0].seq or 0, stored.last_seq))
        number += 1


async def work(url: str, name: str, tasks: int, turns: int, acknowledge: Callable[[Acknowledged], object]) -> None:
    """Open a separate ledger and append from that many tasks at once."""
    async with Ledger.open(url) as ledger:
        writers = (append_turns(ledger, f"{name}-{task}", turns, acknowledge) for task in range(tasks))
        await asyncio.gather(*writers)


def start_process(url: str, name: str, *, tasks: int, turns: int) -> subprocess.Popen[str]:
    """A writer in a process of its own, acknowledging over a pipe."""
    here, source = Path(__file__).parents[2], Path(chatledger.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.writer", url, name, str(tasks), str(turns)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=here,
        env=os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{here}"},
    )


def read_line(line: str) -> Acknowledged:
    name, first, last = line.split()
    return name, int(first), int(last)


def assert_whole(messages: list[ChatMessage], acknowledged: Iterable[Acknowledged]) -> None:
    """Dense; each turn contiguous and whole; each acknowledged one once, where its writer was told."""
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    seqs: dict[str, list[int]] = defaultdict(list)
    for index in range(0, len(messages), TURN):
        batch = messages[index : index + TURN]
        name = (batch[0].message_id or "").rpartition("/")[0]
        assert [message.message_id for message in batch] == [message.message_id for message in turn(ids=f"{name}/")]
        seqs[name].append(index + 1)
    assert {len(found) for found in seqs.values()} <= {1}
    assert [(name, seqs.get(name), last) for name, _, last in acknowledged] == [
        (name, [first], first + TURN - 1) for name, first, _ in acknowledged
    ]


def main() -> None:
    url, name, tasks, turns = sys.argv[1:]

    def say(acknowledged: Acknowledged) -> None:
        print(*acknowledged, flush=True)

    asyncio.run(work(url, name, int(tasks), int(turns), say))


if __name__ == "__main__":
    main()
