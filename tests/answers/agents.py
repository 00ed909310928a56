"""Agents, models and tools for the tests of answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from chatledger import Ledger, TextDelta, ToolCallDelta
from chatledger.answers import Agent, Call, Turn
from tests.conftest import Database
from tests.storage.raw import query

STEPS = 8
QUICK = 0.4
"""Seconds of a lease for tests that wait until it is over."""


def call_delta(number: int, name: str = "weather", arguments: str = '{"city": "Tokyo"}') -> ToolCallDelta:
    return ToolCallDelta(index=number, id=f"call-{number}", name=name, arguments=arguments)


class Model:
    """Asks for `calls` once, and then says `words`."""

    def __init__(self, *words: str, calls: int = 1, gate: asyncio.Event | None = None) -> None:
        self.words = words or ("It ", "is ", "sunny.")
        self.calls, self.gate = calls, gate
        self.asked = 0

    async def __call__(self, prompt: Any) -> AsyncIterator[Any]:
        self.asked += 1
        if prompt.payload[-1]["role"] == "user" and self.calls:
            for number in range(self.calls):
                yield call_delta(number)
            return
        for number, word in enumerate(self.words):
            if self.gate is not None and number == 1:
                await self.gate.wait()
            yield TextDelta(text=word)


class Tools:
    """Counts what it runs, by the name of the tool and the key of the call."""

    def __init__(self, run: Callable[[Call], Any] | None = None) -> None:
        self.calls: list[Call] = []
        self._run = run

    @property
    def runs(self) -> Counter[str]:
        return Counter(call.idempotency_key for call in self.calls)

    async def __call__(self, call: Call) -> str:
        self.calls.append(call)
        if self._run is None:
            return f"sunny in {call.arguments['city']}"
        result = self._run(call)
        return str(await result if asyncio.iscoroutine(result) else result)


def agent_of(model: Model, tools: Tools | None = None, *, again: bool = True, resume: bool = False) -> Agent:
    used = tools or Tools()

    async def agent(turn: Turn) -> None:
        for _ in range(STEPS):
            message = await turn.ask(model, resume=resume)
            if not message.tool_calls:
                return
            await turn.call_tools(used, again=again)

    return agent


async def abandon(ledger: Ledger, database: Database) -> None:
    """End the leases of all workers, as if their processes had slept for that long."""
    await query(database, "UPDATE workers SET lease_until = " + _LONG_AGO[database.kind])


_LONG_AGO = {"sqlite": "0", "postgresql": "to_timestamp(0)"}
