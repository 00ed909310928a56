"""A process that serves an agent, for tests that kill it: `python -m tests.answers.service URL LEASE [WORD]`.

It prints a line for each piece and each tool, so that its parent knows where it is. Its first text stops at the WORD,
so that it does not end before a slow parent acts.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

from chatledger import Ledger, TextDelta
from chatledger.answers import Agent, Call, Turn
from tests.answers.agents import call_delta

WORDS = [f"word {number}, " for number in range(40)]
stops: set[int] = set()


def say(word: str) -> None:
    print(word, flush=True)


async def stream(prompt: Any) -> AsyncIterator[Any]:
    """Forty words, from where the stored text ends."""
    if prompt.payload[-1]["role"] == "user" and "tool" in str(prompt.payload[-1]["content"]):
        yield call_delta(0)
        return
    begun = "" if prompt.history.draft is None else prompt.history.draft.text or ""
    for number, word in enumerate(WORDS):
        if "".join(WORDS[: number + 1]) in begun:
            continue
        yield TextDelta(text=word)
        say(f"word {number} of {os.getpid()}")
        if number in stops:
            stops.clear()
            await asyncio.sleep(60)
        await asyncio.sleep(0.05)


async def run_tool(call: Call) -> str:
    say(f"tool {call.idempotency_key} again={call.again}")
    await asyncio.sleep(60 if not call.again else 0)
    return "done"


def agent(*, again: bool, resume: bool) -> Agent:
    async def answer(turn: Turn) -> None:
        for _ in range(4):
            message = await turn.ask(stream, resume=resume)
            if not message.tool_calls:
                return
            await turn.call_tools(run_tool, again=again)

    return answer


AGENTS = {
    "anew": agent(again=True, resume=False),
    "resuming": agent(again=True, resume=True),
    "once": agent(again=False, resume=True),
}


async def main(url: str, lease: float) -> None:
    async with Ledger.open(url) as ledger, ledger.answers.serve(AGENTS, lease=lease):
        say("ready")
        await asyncio.sleep(120)


if __name__ == "__main__":
    stops.update(map(int, sys.argv[3:]))
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
