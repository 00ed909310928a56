"""Loads of a branch that is three forks deep, beside a thread without forks of as many messages.

The forks stand far apart, or all of them within the last messages, where every part of a window lies on another branch.
A line that was left goes on after its fork: what is not on the path must not be read.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cases import LAST, Extent
from benchmarks.measure import Call, race
from benchmarks.progress import say
from benchmarks.report import Row, Target, sample_rows
from benchmarks.turns import MESSAGES, turns
from chatledger import ChatMessage, Ledger, Newest
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at

LENGTH = 1_000
LEFT_BEHIND = 50
LINEAR = "no fork"
FORKS = {LINEAR: (), "three forks": (250, 500, 750), f"three forks in the last {LAST}": (965, 975, 985)}
TARGET = Target(1.2)


async def fork_rows(url: str, extent: Extent, *, label: str = "") -> list[Row]:
    say(f"{label}loads of forks")
    async with Ledger.open(url) as ledger:
        threads = {name: await write_thread(ledger, forks) for name, forks in FORKS.items()}
        targets = {name: TARGET for name in threads if name != LINEAR and not label}
        rows = []
        for case, last, rounds in ((f"load {LENGTH:,}", None, extent.loads), (f"last {LAST}", LAST, extent.rounds)):
            calls = {name: _load(ledger, thread, last) for name, thread in threads.items()}
            rows += sample_rows(f"{label}{case}, chatledger", await race(calls, rounds), LINEAR, targets)
    return rows


async def write_thread(ledger: Ledger, forks: Sequence[int]) -> str:
    """A thread of LENGTH messages on its active branch, forked at those seqs."""
    thread = (await ledger.threads.create()).thread_id
    written = 0
    for fork in forks:
        await ledger.messages.append(thread, _messages(fork - written))
        await ledger.messages.append(thread, _messages(LEFT_BEHIND))
        await fork_at(scope_of(ledger), thread, fork)
        written = fork
    await ledger.messages.append(thread, _messages(LENGTH - written))
    assert (await ledger.messages.history(thread, Newest(1))).last_seq == LENGTH
    return thread


def _messages(count: int) -> list[ChatMessage]:
    stock = turns()
    return [message for number in range(count // MESSAGES) for message in stock[number % len(stock)].models]


def _load(ledger: Ledger, thread: str, last: int | None) -> Call:
    async def load(_number: int) -> None:
        await ledger.messages.history(thread, None if last is None else Newest(last))

    return load
