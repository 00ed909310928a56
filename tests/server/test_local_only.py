"""A server without tokens: only the machine itself is the administrator, also behind a proxy and on a socket."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from chatledger import InvalidArgument, Ledger
from chatledger.server.callers.local_only import LocalOnly
from chatledger.server.uds import listen_at
from tests.cli.commands import chatledger
from tests.server.conftest import json_of, serving

OF_PROXIES = [
    {"Forwarded": "for=192.0.2.1"},
    {"X-Forwarded-For": "127.0.0.1"},
    {"X-Forwarded-Proto": "https"},
    {"x-forwarded-host": "chat.example"},
    {"X-Real-IP": "127.0.0.1"},
    {"Via": "1.1 proxy"},
]


def test_what_a_proxy_passes_on_is_refused_unless_there_are_tokens(tmp_path: Path) -> None:
    path, tokens = str(tmp_path / "chat.db"), str(tmp_path / "tokens.json")
    token = chatledger("token", "--tokens", tokens, "--admin", cwd=tmp_path).out.strip()
    with serving(path, "--migrate") as server:
        for headers in OF_PROXIES:
            for where in ("/v1/threads", "/", "/healthz", "/login"):
                refused = json_of(httpx.get(server.url + where, headers=headers), 421)
                assert refused["type"] == "urn:chatledger:NotLocal"
                assert next(iter(headers)).lower() in refused["detail"]
        assert httpx.get(f"{server.url}/v1/threads").status_code == 200
    with serving(path, "--tokens", tokens) as server:
        for headers in OF_PROXIES:
            sent = {"Authorization": f"Bearer {token}", **headers}
            assert httpx.get(f"{server.url}/v1/threads", headers=sent).status_code == 200


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("headers", OF_PROXIES)
async def test_a_proxy_is_known_by_any_of_its_headers(headers: dict[str, str]) -> None:
    transport = httpx.ASGITransport(app=LocalOnly(_answer))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
        assert (await client.get("/v1/threads", headers=headers)).status_code == 421
        assert (await client.get("/v1/threads")).status_code == 204


@pytest.mark.parametrize(
    ("peer", "status"),
    [
        ("127.0.0.1", 204),
        ("127.8.0.1", 204),
        ("::1", 204),
        ("::ffff:127.0.0.1", 204),
        ("10.0.0.1", 421),
        ("::ffff:10.0.0.1", 421),
        ("2001:db8::1", 421),
        ("testclient", 421),
        ("", 421),
    ],
)
async def test_another_machine_is_refused(peer: str, status: int) -> None:
    transport = httpx.ASGITransport(app=LocalOnly(_answer), client=(peer, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
        assert (await client.get("/v1/threads")).status_code == status


@contextmanager
def serving_at(path: Path, url: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    words = [sys.executable, "-m", "chatledger.cli", "serve", "--url", url, "--uds", str(path), *options]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, umask=0)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None and not _listens(path):
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait(20)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


async def test_a_socket_is_for_its_user_only_and_replaces_what_a_dead_server_left(tmp_path: Path) -> None:
    path, url = tmp_path / "s.sock", str(tmp_path / "chat.db")
    async with Ledger.open(url):
        pass
    for options in ([], ["--workers", "2"]):
        with serving_at(path, url, *options):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            transport = httpx.AsyncHTTPTransport(uds=str(path))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
                json_of(await client.get("/v1/threads"))
                refused = await client.get("/v1/threads", headers={"X-Forwarded-For": "127.0.0.1"})
                assert json_of(refused, 421)["type"] == "urn:chatledger:NotLocal"
            with pytest.raises(InvalidArgument, match="another server listens"):
                listen_at(str(path))
        assert path.exists()  # a killed server leaves it


def test_nothing_but_a_dead_socket_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "chat.db"
    file.write_text("precious")
    link = tmp_path / "link"
    os.symlink(file, link)
    for path in (file, link, tmp_path):
        with pytest.raises(InvalidArgument, match="is no socket"):
            listen_at(str(path))
    assert file.read_text() == "precious"
    for path in (tmp_path / "missing" / "s", tmp_path / ("s" * 200)):
        with pytest.raises(InvalidArgument, match="cannot be made"):
            listen_at(str(path))
