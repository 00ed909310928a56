"""`chatledger serve` as a process."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx

from chatledger import Ledger
from tests.server.conftest import json_of, serving

STOPPED = -signal.SIGTERM
"""Uvicorn finishes its work, and then ends by the signal that it got."""


async def test_it_serves_a_database_and_stops_when_told(tmp_path: Path) -> None:
    path = str(tmp_path / "chat.db")
    async with Ledger.open(path):
        pass
    with serving(path) as server:
        async with httpx.AsyncClient(base_url=server.url) as client:
            body = {"messages": [{"role": "user", "content": "hello"}], "create": True}
            json_of(await client.post("/v1/threads/t/messages", json=body), 201)
            assert json_of(await client.get("/v1/threads"))["items"][0]["thread_id"] == "t"
            refused = await client.get("/v1/threads", headers={"Host": "evil.example"})
            assert refused.json()["type"] == "urn:chatledger:UnknownHost"
        assert server.stop() == STOPPED


async def test_an_open_stream_does_not_keep_the_server_from_stopping(tmp_path: Path) -> None:
    path = str(tmp_path / "chat.db")
    async with Ledger.open(path) as ledger:
        await ledger.threads.create("t")
        with serving(path) as server:
            async with (
                httpx.AsyncClient(base_url=server.url) as client,
                client.stream("GET", "/v1/threads/t/events") as events,
            ):
                lines = events.aiter_lines()
                assert await anext(lines) == ": connected"
                server.process.terminate()
                assert [line async for line in lines if line.startswith("event")] == []
            assert server.process.wait(10) == STOPPED
