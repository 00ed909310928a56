"""A fake model: an async generator of the events that a provider of chat completions would stream.

It calls a tool for a question about the weather, answers with the tool's result, and continues an answer that has
begun.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

PAUSE = 0.02
"""Seconds between two pieces."""


async def ask(prompt: list[dict[str, Any]], begun: str = "") -> AsyncIterator[dict[str, Any]]:
    last = prompt[-1]
    if last["role"] == "user" and "weather" in last["content"]:
        yield _chunk(tool_calls=[{"index": 0, "id": "call_0", "function": {"name": "weather", "arguments": ""}}])
        for piece in ('{"city": ', '"Bergen"}'):
            yield _chunk(tool_calls=[{"index": 0, "function": {"arguments": piece}}])
    else:
        whole = f"It is {last['content']}." if last["role"] == "tool" else f"You said: {last['content']}"
        for word in re.findall(r"\s*\S+", whole.removeprefix(begun)):
            await asyncio.sleep(PAUSE)
            yield _chunk(content=word)
    yield {"choices": [], "usage": {"prompt_tokens": len(prompt), "completion_tokens": 4}}


async def weather(city: str) -> str:
    return f"raining in {city}"


def _chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}
