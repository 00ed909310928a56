"""A fake model, which streams events of chat completions and continues an answer that has begun, and its tools."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from chatledger import Prompt
from chatledger.answers import Call, Pending

PAUSE = 0.02  # seconds between two pieces


async def ask(prompt: Prompt) -> AsyncIterator[dict[str, Any]]:
    last = next(message for message in reversed(prompt.payload) if message["role"] != "assistant")
    begun = prompt.history.draft
    called = [tool for tool in ("weather", "trip") if last["role"] == "user" and tool in last["content"]]
    for index, tool in enumerate(called):
        function = {"name": tool, "arguments": '{"city": "Bergen"}'}
        yield _chunk(tool_calls=[{"index": index, "id": f"call_{tool}", "function": function}])
    if not called:
        whole = f"It is {last['content']}." if last["role"] == "tool" else f"You said: {last['content']}"
        for word in re.findall(r"\s*\S+", whole.removeprefix((begun and begun.text) or "")):
            await asyncio.sleep(PAUSE)
            yield _chunk(content=word)
    yield {"choices": [], "usage": {"prompt_tokens": len(prompt.payload), "completion_tokens": 4}}


async def run_tool(call: Call) -> str:
    if call.name == "trip" and not call.approved:
        raise Pending("book a trip to Bergen")
    return "raining in Bergen" if call.name == "weather" else f"booked as {call.idempotency_key[:8]}"


def _chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}
