"""One side of `benchmarks.against`: runs the cases on the code of one commit, a few calls whenever it is asked to.

Both sides run this file of the working tree, so it uses only public names that both commits have. What it measures is
the same on both sides for the same reason: thread ids, message ids and texts follow from the number of the call.

    python -m benchmarks.against_worker FILE_DESCRIPTOR URL ROUNDS

The parent process starts it with the PYTHONPATH of one commit, and talks to it through the connection of that number.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any

import chatledger
from benchmarks.turns import MESSAGES, turns
from chatledger import ChatMessage, Feedback, Ledger

# A commit from before administration had a module of its own has `migrate` in the package.
_admin = importlib.import_module("chatledger.admin" if find_spec("chatledger.admin") else "chatledger")
migrate = _admin.migrate

LONG = 1_000
WRITERS = 16
TURNS_EACH = 5
"""Turns that each of the writers appends in one measured call."""

LONG_THREADS = ("pairs", "own ids", "tool calls", "read")
EMPTY_THREADS = ("transactions", "runs", *(f"writers {number}" for number in range(WRITERS)))
RUN = "scored"

Call = Callable[[], Awaitable[object]]
Duration = tuple[float, float]
"""Seconds of one call: by the clock, and of this process's CPU time."""
Block = list[Duration]
"""Calls that one side makes before the other side has its turn."""


@dataclass(frozen=True, slots=True)
class Case:
    """`prepare` makes the inputs of call number n, and gives the call: only the call is measured."""

    name: str
    calls: int
    """Calls in a block."""
    prepare: Callable[[Ledger, int], Call]
    turns: int = 0
    """Turns that one call of several writers appends; 0 for a call of one writer."""


# --- Cases ------------------------------------------------------------------------------------------------------------


def _pair(number: int) -> list[ChatMessage]:
    """A question and its answer; the ledger mints their ids."""
    messages = _turn(number)
    return [messages[0], messages[-1]]


def _turn(number: int) -> list[ChatMessage]:
    stock = turns()
    return list(stock[number % len(stock)].models)


def _append_pair(ledger: Ledger, number: int) -> Call:
    return partial(ledger.messages.append, "pairs", _pair(number))


def _append_own_ids(ledger: Ledger, number: int) -> Call:
    messages = [
        ChatMessage(role=message.role, content=message.content, message_id=f"message {number}.{place}")
        for place, message in enumerate(_pair(number))
    ]
    return partial(ledger.messages.append, "own ids", messages, run_id=f"run {number}")


def _append_first(ledger: Ledger, number: int) -> Call:
    return partial(ledger.messages.append, f"first {number}", _pair(number))


def _append_tool_calls(ledger: Ledger, number: int) -> Call:
    return partial(ledger.messages.append, "tool calls", _turn(number))


def _append_by_writers(threads: int, ledger: Ledger, number: int) -> Call:
    turn = _pair(number)

    async def write(writer: int) -> None:
        for _ in range(TURNS_EACH):
            await ledger.messages.append(f"writers {writer % threads}", turn)

    async def write_all() -> None:
        await asyncio.gather(*map(write, range(WRITERS)))

    return write_all


def _history(last: int | None, ledger: Ledger, _number: int) -> Call:
    if hasattr(chatledger, "Newest"):
        return partial(ledger.messages.history, "read", None if last is None else chatledger.Newest(last))
    old: Any = ledger.messages.history
    return partial(old, "read", newest=last)


def _create_thread(ledger: Ledger, _number: int) -> Call:
    return ledger.threads.create


def _append_in_transaction(ledger: Ledger, number: int) -> Call:
    stock = [_pair(number + place) for place in range(3)]

    async def append_three() -> None:
        async with ledger.begin() as transaction:
            for messages in stock:
                await transaction.messages.append("transactions", messages)

    return append_three


def _search(words: str, ledger: Ledger, number: int) -> Call:
    """Through the whole thread: no message has the words, so that each of them is read and compared."""
    return partial(ledger.messages.search, f"{words} {number}", thread_id="read")


def _start_run(ledger: Ledger, _number: int) -> Call:
    return partial(ledger.runs.start, "runs", agent="travel", model="large")


def _record_feedback(ledger: Ledger, number: int) -> Call:
    return partial(ledger.feedback.record, Feedback(run_id=RUN, key="helpful", score=number % 5))


FIRST = Case("first append to a thread of others", 5, _append_first)
CASES = (
    Case(f"append 2 messages at {LONG:,}", 5, _append_pair),
    Case(f"append 2 with own ids and a run, at {LONG:,}", 5, _append_own_ids),
    FIRST,
    Case(f"append {MESSAGES} with tool calls, at {LONG:,}", 5, _append_tool_calls),
    Case(f"{WRITERS} writers, own threads", 1, partial(_append_by_writers, WRITERS), turns=WRITERS * TURNS_EACH),
    Case(f"{WRITERS} writers, one thread", 1, partial(_append_by_writers, 1), turns=WRITERS * TURNS_EACH),
    Case(f"history of {LONG:,}", 2, partial(_history, None)),
    Case(f"history, last 50 of {LONG:,}", 10, partial(_history, 50)),
    Case(f"history, last 10 of {LONG:,}", 10, partial(_history, 10)),
    Case("threads.create", 5, _create_thread),
    Case("transaction of 3 appends", 5, _append_in_transaction),
    Case(f"search through {LONG:,}", 2, partial(_search, "qqzzqq")),
    Case("runs.start", 5, _start_run),
    Case("feedback.record", 5, _record_feedback),
)


# --- The process ------------------------------------------------------------------------------------------------------


async def fill(url: str, rounds: int) -> None:
    """The threads of all cases. This ledger is closed afterwards: the one that is measured has seen none of them."""
    async with Ledger.open(url) as ledger, ledger.begin() as transaction:
        for name in (*LONG_THREADS, *EMPTY_THREADS):
            await transaction.threads.create(name)
        for name in LONG_THREADS:
            whole = [message for number in range(LONG // MESSAGES) for message in _turn(number)]
            await transaction.messages.append(name, whole)
        for number in range(FIRST.calls * (rounds + 1)):  # and one round to warm up
            await transaction.threads.create(f"first {number}")
        await transaction.runs.start("runs", run_id=RUN)


async def measure(ledger: Ledger, case: Case, first: int) -> Block:
    """One block; `first` is the number of its first call."""
    gc.collect()
    durations = []
    for number in range(first, first + case.calls):
        call = case.prepare(ledger, number)
        start, cpu_start = time.perf_counter(), time.process_time()
        await call()
        durations.append((time.perf_counter() - start, time.process_time() - cpu_start))
    return durations


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it, and then closes the connection
    if hasattr(os, "sched_setaffinity"):
        # Both sides run on the same core. Else one side may share its core with other programs and the other may not.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    url, rounds = sys.argv[2], int(sys.argv[3])
    with Connection(int(sys.argv[1])) as parent, asyncio.Runner() as runner:
        migrate(url)
        runner.run(fill(url, rounds))
        ledger = runner.run(_open(url))
        gc.collect()
        gc.freeze()
        with suppress(EOFError, ConnectionError):  # the parent has closed the connection: this is the end
            parent.send(sys.modules["chatledger"].__file__)
            # The event loop stands still between two blocks, so that this side is silent in the other side's turn.
            while True:
                number, first = parent.recv()
                parent.send(runner.run(measure(ledger, CASES[number], first)))
        runner.run(ledger.close())


async def _open(url: str) -> Ledger:
    return await Ledger.open(url)


if __name__ == "__main__":
    main()
