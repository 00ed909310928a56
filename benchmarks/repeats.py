"""Many writers at once, some of whose appends are repeats, break a rule, or name a run of another thread.

Each writer has a thread of its own and gives its messages ids, as services do. An append that must be refused counts as
a call like any other: its error is the answer that the writer waits for.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence

from benchmarks.cases import Extent
from benchmarks.measure import Call, race_crowds
from benchmarks.progress import say
from benchmarks.report import Row, Target, throughput_row
from chatledger import ChatMessage, Ledger, RuleViolation
from chatledger.errors import RunConflict
from chatledger.ids import new_id

WRITERS = 64
REPEATS, REFUSALS = Target(0.8, at_least=True), Target(0.5, at_least=True)
FOREIGN = "a run of another thread"
REFERENCE = "no repeats"


class Writer:
    """Appends a turn to its own thread, or with a chance of `part` what `odd` makes of the last turn."""

    def __init__(self, ledger: Ledger, thread: str, part: float, odd: Odd | None) -> None:
        self._ledger = ledger
        self._thread = thread
        self._part = part
        self._odd = odd
        self._last = _turn()
        self._chance = random.Random(thread)

    async def append(self, _number: int) -> None:
        if self._odd is not None and self._chance.random() < self._part:
            await self._odd(self._ledger, self._thread, self._last)
            return
        turn = _turn()
        await self._ledger.messages.append(self._thread, turn)
        self._last = turn

    async def begin(self) -> None:
        await self._ledger.threads.create(self._thread)
        await self._ledger.messages.append(self._thread, self._last)


def _turn() -> list[ChatMessage]:
    return [
        ChatMessage(role="user", content="How long does the train to Kyoto take?", message_id=new_id()),
        ChatMessage(role="assistant", content="About two hours and a quarter. " * 8, message_id=new_id()),
    ]


async def _repeat(ledger: Ledger, thread: str, last: Sequence[ChatMessage]) -> None:
    if not (await ledger.messages.append(thread, list(last))).replayed:
        raise RuntimeError("a repeat was stored")


async def _refuse(ledger: Ledger, thread: str, _last: Sequence[ChatMessage]) -> None:
    try:
        await ledger.messages.append(thread, [ChatMessage(role="tool", tool_call_id="nobody's", content="?")])
    except RuleViolation:
        return
    raise RuntimeError("an orphan was stored")


async def _conflict(ledger: Ledger, thread: str, _last: Sequence[ChatMessage]) -> None:
    try:
        await ledger.messages.append(thread, _turn(), run_id=FOREIGN)
    except RunConflict:
        return
    raise RuntimeError("a run of another thread was accepted")


Odd = Callable[[Ledger, str, Sequence[ChatMessage]], Awaitable[None]]
_CASES: Sequence[tuple[str, float, Odd | None, Target | None]] = (
    (REFERENCE, 0, None, None),
    ("5 % repeats", 0.05, _repeat, REPEATS),
    ("5 % refused", 0.05, _refuse, REFUSALS),
    ("5 % run conflicts", 0.05, _conflict, REFUSALS),
    ("only repeats", 1, _repeat, None),
)


async def repeat_rows(url: str, extent: Extent, *, judged: bool) -> list[Row]:
    """`judged`: whether the targets count."""
    async with await Ledger.open(url) as ledger:
        await ledger.threads.create("elsewhere")
        await ledger.runs.start("elsewhere", run_id=FOREIGN)
        crowds: dict[str, list[Call]] = {}
        for name, part, odd, _ in _CASES:
            writers = [Writer(ledger, f"{name} {number}", part, odd) for number in range(WRITERS)]
            for writer in writers:
                await writer.begin()
            crowds[name] = [writer.append for writer in writers]
        say(f"{WRITERS} writers, some of whose appends are repeats or refused")
        seen = await race_crowds(crowds, slices=extent.slices, seconds=extent.slice_seconds)
    rows = []
    for name, _, _, target in _CASES:
        ratio = None if name == REFERENCE else seen[name].rate / seen[REFERENCE].rate
        failed = f", {seen[name].failed} FAILED" if seen[name].failed else ""
        case = f"{WRITERS} writers, {name}{failed}"
        rows.append(throughput_row(case, "chatledger", seen[name], ratio, target if judged else None))
    return rows
