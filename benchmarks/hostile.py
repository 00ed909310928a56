"""Requests of a hostile user: the time of each, how long other callers wait meanwhile, and the memory of the process.

    python -m benchmarks.hostile

The server runs in this process on a SQLite file, so that its event loop can be watched.
"""

from __future__ import annotations

import asyncio
import json
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from starlette.requests import Request

from benchmarks.progress import say
from chatledger import Ledger
from chatledger.models.limits import MOST_VALUES
from chatledger.server import Caller, create_app
from chatledger.server.answers.pages import LARGEST
from chatledger.server.answers.sizes import LARGEST_MESSAGE

MESSAGES = "/v1/threads/{}/messages"
LONG = "x" * (LARGEST_MESSAGE - 2_000)


def said(role: str, **fields: Any) -> dict[str, Any]:
    return {"create": True, "messages": [{"role": role, **fields}]}


def bodies() -> dict[str, tuple[str, Any]]:
    """Requests that are as dear as they may be, and some that are refused."""
    most = MOST_VALUES - 20
    return {
        "wrong calls": (MESSAGES, said("assistant", tool_calls=[0] * most)),
        "wrong parts": (MESSAGES, said("user", content=[{}] * (most // 2))),
        "text parts": (MESSAGES, said("user", content=[{"kind": "text", "text": "a"}] * (most // 3))),
        "calls": (MESSAGES, said("assistant", tool_calls=[{"name": "a"}] * (most // 2))),
        "empty lists": (MESSAGES, {"create": True, "payload": [[]] * (most // 2)}),
        "keys": ("/v1/threads", {"metadata": {f"k{number}": 1 for number in range(most)}}),
        "prose of 16 MiB": (MESSAGES, {"create": True, "payload": [{"role": "user", "content": LONG}] * 4}),
        "values of 16 MiB": (MESSAGES, {"payload": [0] * 5_000_000}),
    }


async def watch(waits: list[float]) -> None:
    while True:
        begin = time.perf_counter()
        await asyncio.sleep(0.005)
        waits.append(time.perf_counter() - begin)


async def measure(name: str, call: Callable[[], Awaitable[httpx.Response]]) -> None:
    waits: list[float] = []
    watching = asyncio.create_task(watch(waits))
    await asyncio.sleep(0.02)
    begin = time.perf_counter()
    answer = await call()
    seconds = time.perf_counter() - begin
    await asyncio.sleep(0.02)
    watching.cancel()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    size = len(answer.content) / LARGEST * 8
    times = f"{seconds:6.2f} s, others wait {max(waits):5.2f} s"
    say(f"{name:18} {answer.status_code} {times}, {size:5.1f} MiB, RSS {memory} MiB")


async def run(folder: str) -> None:
    async def administrator(request: Request) -> Caller:
        return Caller(admin=True)

    async with Ledger.open(f"{folder}/hostile.db") as ledger:
        transport = httpx.ASGITransport(create_app(ledger, authenticate=administrator))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=120) as client:
            headers = {"Content-Type": "application/json"}
            for number, (name, (path, body)) in enumerate(bodies().items()):
                content = json.dumps(body, separators=(",", ":")).encode()
                address = path.format(number)
                await measure(name, lambda: client.post(address, content=content, headers=headers))  # noqa: B023
            for _ in range(30):
                await client.post(MESSAGES.format("full"), json=said("user", content=LONG))
            for name, path in {
                "a page": MESSAGES.format("full"),
                "HTML": "/threads/full",
                "list": "/v1/threads",
            }.items():
                await measure(name, lambda: client.get(path))  # noqa: B023


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))
