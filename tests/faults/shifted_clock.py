"""A process whose clock is hours before or behind: `python -m tests.faults.shifted_clock URL HOURS LEASE`.

For each line of stdin it does what the line says, and prints what came of it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from chatledger import ChatMessage, Ledger, Pace, errors
from chatledger.errors import DraftLive

HOUR = timedelta(hours=1)


class _Kind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


def shift(by: timedelta) -> None:
    """Move the clock that the modules of chatledger see."""

    class Shifted(datetime, metaclass=_Kind):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + by

    for module in [own for name, own in sys.modules.items() if name.startswith("chatledger")]:
        if vars(module).get("datetime") is datetime:
            setattr(module, "datetime", Shifted)  # noqa: B010 - mypy knows no such attribute of a module
    now = time.time_ns
    time.time_ns = lambda: now() + int(by.total_seconds() * 1e9)


async def write(ledger: Ledger, lease: float) -> str:
    """Begin a draft, and go on without its end: the process is killed."""
    draft = ledger.messages.stream("t", idempotency_key="k", pace=Pace(interval=0.25, lease=lease))
    await draft.__aenter__()
    _OPEN.append(draft)
    await draft.feed("Rain. ")
    await draft.flush()
    return "writes"


_OPEN = list[Any]()


async def list_abandoned(ledger: Ledger, lease: float) -> str:
    return f"{len(await ledger.drafts.list(abandoned_for=0))} abandoned"


async def append(ledger: Ledger, lease: float) -> str:
    try:
        await ledger.messages.append("t", [ChatMessage(role="user", content="next")])
    except DraftLive as live:
        left = (live.until - vars(errors)["datetime"].now(UTC)).total_seconds()
        return "waits for its lease" if 0 < left <= lease and 0 < live.retry_after <= lease else f"waits {left} seconds"
    return "appends"


async def remove(ledger: Ledger, lease: float) -> str:
    try:
        await ledger.messages.remove("t", "q")
    except DraftLive:
        return "waits"
    return "removes"


async def take_over(ledger: Ledger, lease: float) -> str:
    try:
        async with ledger.messages.stream("t", idempotency_key="k", resume=True) as draft:
            await draft.feed("Sunny.")
    except DraftLive:
        return "waits"
    return f"{draft.message.text} {draft.message.state}"


async def obey(url: str, hours: str, lease: str) -> None:
    async with Ledger.open(url) as ledger:
        shift(float(hours) * HOUR)
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            print(await globals()[line](ledger, float(lease)), flush=True)


if __name__ == "__main__":
    asyncio.run(obey(*sys.argv[1:]))
