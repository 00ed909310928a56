"""Clients that write to and follow a thread through several servers, and go to another one when theirs breaks."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import httpx


@dataclass
class Writers:
    """Append turns of two messages, each with a key of its own, and send a turn again until it is acknowledged."""

    urls: list[str]
    """The servers. A test replaces the URL of a server that it starts again."""
    threads: list[str]
    acknowledged: dict[str, str] = field(default_factory=dict)
    """The thread of each acknowledged turn, by its key."""
    ended: bool = False
    resent: int = 0
    """The number of requests that were sent again, because the connection broke before the answer."""

    async def write(self, name: str) -> None:
        async with httpx.AsyncClient(timeout=20) as client:
            for number in itertools.count():
                if self.ended:
                    return
                await self._append(client, f"{name}.{number}", self.threads[number % len(self.threads)])

    async def _append(self, client: httpx.AsyncClient, key: str, thread: str) -> None:
        turn = [{"role": "user", "content": key}, {"role": "assistant", "content": key}]
        for server in itertools.count(len(self.acknowledged)):
            url = f"{self.urls[server % len(self.urls)]}/v1/threads/{thread}/messages"
            try:
                answer = await client.post(url, json={"messages": turn}, headers={"Idempotency-Key": key})
            except httpx.TransportError as error:
                self.resent += not isinstance(error, httpx.ConnectError)
                await asyncio.sleep(0.01)
                continue
            if answer.status_code in {200, 201}:
                self.acknowledged[key] = thread
                return
            assert answer.status_code == 503, answer.text
            await asyncio.sleep(0.05)

    async def reach(self, turns: int, tasks: list[asyncio.Task[None]]) -> None:
        """Wait for so many further acknowledged turns. Raises the error of a task that ended."""
        enough = len(self.acknowledged) + turns
        while len(self.acknowledged) < enough:
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.005)


@dataclass
class Follower:
    """Follows a thread from a mark on, and continues at the next server where its stream ended."""

    urls: list[str]
    thread: str
    mark: str
    first: int
    """The number of the server to begin with."""
    seen: list[tuple[int, str]] = field(default_factory=list)
    """The seq and the content of each message in the order of its events."""
    streams: int = 0
    _last: str | None = None

    async def follow(self) -> None:
        async with httpx.AsyncClient(timeout=httpx.Timeout(5, read=None)) as client:
            for server in itertools.count(self.first):
                try:
                    await self._read(client, self.urls[server % len(self.urls)])
                except httpx.TransportError:
                    await asyncio.sleep(0.02)

    async def _read(self, client: httpx.AsyncClient, url: str) -> None:
        headers = {} if self._last is None else {"Last-Event-ID": self._last}
        url = f"{url}/v1/threads/{self.thread}/events?cursor={self.mark}"
        async with client.stream("GET", url, headers=headers) as response:
            assert response.status_code == 200
            self.streams += 1
            event: dict[str, str] = {}
            async for line in response.aiter_lines():
                name, _, value = line.partition(": ")
                if line:
                    event[name] = value
                else:
                    self._take(event)
                    event = {}

    def _take(self, event: dict[str, str]) -> None:
        """A whole event. One that broke off has no empty line behind it, and is sent again."""
        if "data" in event:
            assert event["event"] == "appended", event
            change: Any = json.loads(event["data"])
            self.seen.append((change["seq"], change["message"]["content"]))
            self._last = event["id"]
