"""A streamer, for tests that kill it: it feeds numbered words and says which were fed and which are written."""

from __future__ import annotations

import asyncio

from chatledger import Ledger, Pace, ToolCallDelta

THREAD = "t"


def word(number: int) -> str:
    return f"{number} "


async def say_words(url: str, run: str, interval: float, size: int, lease: float) -> None:
    """Words and fragments of a call in turn, for ever; a line on stdout after each word and each write."""
    async with Ledger.open(url) as ledger:
        stream = ledger.messages.stream(
            THREAD,
            run_id=run,
            idempotency_key=run,
            on_open_calls="close",
            pace=Pace(interval=interval, size=size, lease=lease),
        )
        async with stream as draft:
            await draft.feed(ToolCallDelta(index=0, id=f"call of {run}", name="f", arguments=""))
            number = 0
            while True:
                await draft.feed(word(number))
                await draft.feed(ToolCallDelta(index=0, arguments=word(number)))
                number += 1
                stored = draft.message.text.count(" ")
                print(number, stored, flush=True)
                await asyncio.sleep(0)
