"""A server for each test: in process for single requests, and real processes for what crosses the network."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.requests import Request

from chatledger import Ledger
from chatledger.server import Caller, ServerLimits, create_app
from chatledger.server.protocol import Protocol


async def by_header(request: Request) -> Caller | None:
    """`X-User: ada` is user ada, `X-User: *` the administrator; without the header, nobody."""
    user = request.headers.get("x-user")
    tenant = request.headers.get("x-tenant", "default")
    if user is None:
        return None
    return Caller(admin=True, tenant=tenant) if user == "*" else Caller(user, tenant=tenant)


def client_of(
    app: FastAPI, user: str | None = "*", *, at: str = "http://testserver", **headers: str
) -> httpx.AsyncClient:
    given = headers if user is None else {"X-User": user, **headers}
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=at, headers=given)


@pytest.fixture
def app(ledger: Ledger) -> FastAPI:
    return create_app(ledger, authenticate=by_header, limits=ServerLimits(body=200_000))


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """The administrator."""
    async with client_of(app) as client:
        yield client


@dataclass
class Serving:
    """A running `chatledger serve`."""

    process: subprocess.Popen[str]
    url: str

    def stop(self, number: int = signal.SIGTERM, *, timeout: float = 20) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout)


@contextlib.contextmanager
def serving(url: str, *options: str, **environment: str) -> Iterator[Serving]:
    """Start `chatledger serve` on a free port of the loopback, and stop it at the end."""
    words = [sys.executable, "-m", "chatledger.cli", "serve", "--url", url, "--port", "0", *options]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    assert process.stderr is not None
    lines: list[str] = []
    try:
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"running on (http://\S+)", line):
                break
        else:
            raise AssertionError("".join(lines))
        running = Serving(process, found[1])
        _wait_until_healthy(running.url)
        yield running
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(20)
        process.stderr.close()


def _wait_until_healthy(url: str) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/healthz").status_code == 200:
                return
        time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")


async def until(reached: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(20):
        while not reached():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


def json_of(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


@contextlib.asynccontextmanager
async def listening(app: FastAPI) -> AsyncIterator[int]:
    """The application on a port of the loopback, in this process, so that a test can look at its state."""
    server = uvicorn.Server(uvicorn.Config(app, http=Protocol, log_level="critical", timeout_graceful_shutdown=1))
    with socket.create_server(("127.0.0.1", 0)) as bound:
        serving = asyncio.create_task(server.serve([bound]))
        yield bound.getsockname()[1]
        server.should_exit = True
        await serving
