"""A request at which the server fails gets 500 with the headers of every response, and keeps its connection."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from chatledger import Ledger
from chatledger.server import Caller, TokenFile, create_app
from tests.server.conftest import client_of, json_of, listening

ALWAYS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}


async def failing(request: Request) -> Caller:
    if "x-fail" in request.headers:
        raise RuntimeError("the application's own mistake")
    return Caller(admin=True)


@pytest.mark.parametrize("path", ["/v1/threads", "/v1/conversations", "/"])
async def test_a_failure_has_the_headers_of_every_response(
    ledger: Ledger, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    origin = "https://app.example"
    app = create_app(ledger, authenticate=failing, cors=[origin])
    async with client_of(app) as client:
        failed = await client.get(path, headers={"X-Fail": "yes", "Origin": origin})
    assert failed.status_code == 500
    assert {name: failed.headers[name] for name in ALWAYS} == ALWAYS
    assert failed.headers["access-control-allow-origin"] == origin
    assert "mistake" not in failed.text
    [record] = [one for one in caplog.records if one.name == "chatledger.server"]
    assert (record.levelno, record.exc_info is not None) == (logging.ERROR, True)
    assert "mistake" in caplog.text


async def test_the_connection_of_a_failure_stays_open(ledger: Ledger) -> None:
    async with listening(create_app(ledger, authenticate=failing)) as port:

        def ask() -> list[int]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.connect()
            opened = connection.sock
            statuses = []
            for headers in ({"X-Fail": "yes"}, {}, {"X-Fail": "yes"}):
                connection.request("GET", "/v1/me", headers=headers)
                response = connection.getresponse()
                assert response.getheader("Connection") != "close"
                response.read()
                statuses.append(response.status)
                assert connection.sock is opened
            connection.close()
            return statuses

        assert await asyncio.to_thread(ask) == [500, 200, 500]


async def test_a_failure_after_the_beginning_of_a_response_cuts_it_off(ledger: Ledger) -> None:
    app = create_app(ledger, authenticate=failing)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"half"
        raise RuntimeError

    @app.get("/v1/half")
    async def half() -> StreamingResponse:
        return StreamingResponse(pieces(), headers={"Content-Length": "8"})

    async with listening(app) as port:

        def ask() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/v1/half")
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                connection.getresponse().read()
            connection.close()

        await asyncio.to_thread(ask)


@pytest.mark.parametrize("broken", ["missing", "wrong form", "open to all"])
async def test_a_file_of_tokens_that_cannot_be_read_is_not_the_databases_fault(
    ledger: Ledger, tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    path = tmp_path / "tokens.json"
    tokens = TokenFile.create(path)
    token = tokens.add(Caller(admin=True))
    if broken == "missing":
        path.unlink()
    elif broken == "wrong form":
        path.write_text(json.dumps({"token": []}))
    else:
        path.chmod(0o644)
    app = create_app(ledger, authenticate=tokens)
    async with client_of(app, None, at="http://localhost", Authorization=f"Bearer {token}") as client:
        answers = [await client.get("/v1/threads"), await client.post("/login", data={"token": token})]
        openai = await client.get("/v1/conversations")
    problem = json_of(answers[0], 503)
    assert (problem["type"], problem["title"]) == (
        "urn:chatledger:TokensUnreadable",
        "The server cannot read its tokens",
    )
    for answer in (*answers, openai):
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert "database" not in answer.text.lower()
        assert str(path) not in answer.text
    assert str(path) in caplog.text
