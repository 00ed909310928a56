"""`chatledger serve` as a process."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from chatledger import Ledger
from tests.cli.commands import chatledger
from tests.formats.packages import make_package
from tests.formats.test_write_a_format import EXAMPLE
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


async def test_the_format_of_another_package_is_loaded_only_by_its_name(tmp_path: Path) -> None:
    """Code of each installed package ran in the server when a payload was recognised."""
    path, mark = str(tmp_path / "chat.db"), tmp_path / "loaded"
    code = f"{EXAMPLE}\nopen({str(mark)!r}, 'w').close()\nCODEC = Acme()\n"
    home = make_package(tmp_path, "acme", "acme = acme_chat:CODEC", acme_chat=code)
    environment = {"PYTHONPATH": os.pathsep.join([str(home), os.environ.get("PYTHONPATH", "")])}
    unknown = {"payload": [{"who": "human", "says": "Oslo?", "at": 1}], "create": True}
    for options, status, loaded in ([], 400, False), (["--format", "acme"], 201, True):
        with serving(path, "--migrate", *options, **environment) as server:
            async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
                json_of(await client.post("/v1/threads/t/messages", json=unknown), status)
                asked = await client.get("/v1/threads/t/messages", params={"format": "acme"})
                assert (asked.status_code == 200) == loaded
        assert mark.exists() == loaded
    refused = chatledger("serve", "--url", path, "--format", "nowhere", cwd=tmp_path)
    assert "'nowhere' is not a format of an installed package" in refused.err


def test_serve_names_the_command_that_creates_a_missing_file(tmp_path: Path) -> None:
    done = chatledger("serve", url=str(tmp_path / "my chat.db"))
    assert done.code == 3
    assert done.error.endswith(f"check --url, or create it: chatledger serve --url '{tmp_path}/my chat.db' --migrate")


async def test_serve_refuses_a_port_that_is_taken_before_it_names_a_page(tmp_path: Path) -> None:
    path = str(tmp_path / "chat.db")
    with serving(path, "--migrate") as server:
        port = urlsplit(server.url).port
        done = chatledger("serve", "--port", str(port), url=path)
        assert done.code == 2
        assert f"port {port} of 127.0.0.1 is taken; {CHOOSE}" in done.err
        assert "in a browser" not in done.err


CHOOSE = "choose another with --port, or a free one with --port 0"
