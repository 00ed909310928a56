"""Answers in gzip, for clients that accept it."""

from __future__ import annotations

import gzip
import threading
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from chatledger import ChatMessage, Ledger
from chatledger.server import ServerLimits, create_app
from tests.server.conftest import by_header, client_of, json_of, listening

GZIP = {"Accept-Encoding": "gzip"}


@pytest.fixture
async def thread(ledger: Ledger) -> str:
    long = [ChatMessage(role="user", content=f"{number} is a number " * 100) for number in range(50)]
    await ledger.messages.append("t", long, create=True)
    return "/v1/threads/t/messages"


async def test_an_answer_is_compressed_for_who_accepts_it(ledger: Ledger, thread: str) -> None:
    app = create_app(ledger, authenticate=by_header)
    async with listening(app) as port, httpx.AsyncClient(headers={"X-User": "*"}) as client:
        url = f"http://127.0.0.1:{port}{thread}"
        plain = await client.get(url, headers={"Accept-Encoding": "identity"})
        short = await client.get(url, headers=GZIP)
        assert "Content-Encoding" not in plain.headers
        assert short.headers["Content-Encoding"] == "gzip"
        assert int(short.headers["Content-Length"]) < len(plain.content) // 5
        assert short.content == plain.content
        assert short.headers["ETag"] == f"W/{plain.headers['ETag']}"
        assert all("Accept-Encoding" in one.headers["Vary"] for one in (plain, short))
        for known in (plain, short):
            headers = {**GZIP, "If-None-Match": known.headers["ETag"]}
            assert (await client.get(url, headers=headers)).status_code == 304
        body = {"messages": [{"role": "user", "content": "?"}]}
        json_of(await client.post(url, json=body, headers={"If-Match": short.headers["ETag"]}), 201)


@pytest.mark.parametrize(
    ("headers", "is_compressed"),
    [
        ({"Accept-Encoding": "br, gzip;q=0.5"}, True),
        ({"Accept-Encoding": "*"}, True),
        ({"Accept-Encoding": "GZIP"}, True),
        ({"Accept-Encoding": "gzip;q=0"}, False),
        ({"Accept-Encoding": "*, gzip;q=0.0"}, False),
        ({"Accept-Encoding": "br"}, False),
        ({**GZIP, "Sec-Fetch-Site": "same-origin"}, True),
        ({**GZIP, "Sec-Fetch-Site": "cross-site"}, False),
    ],
)
async def test_who_accepts_it(
    client: httpx.AsyncClient, thread: str, headers: dict[str, str], is_compressed: bool
) -> None:
    for path in (thread, "/threads/t", "/static/page.css"):
        answer = await client.get(path, headers=headers)
        assert (answer.headers.get("Content-Encoding") == "gzip") == is_compressed, path


async def test_an_answer_without_a_body_varies_as_the_one_with_it(client: httpx.AsyncClient, thread: str) -> None:
    for headers in ({}, GZIP):
        whole = await client.get(thread, headers=headers)
        known = await client.get(thread, headers={**headers, "If-None-Match": whole.headers["ETag"]})
        assert (known.status_code, known.headers["Vary"]) == (304, whole.headers["Vary"])


async def test_a_short_answer_and_a_stream_are_as_they_are(ledger: Ledger, thread: str) -> None:
    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(stream_seconds=0.1))
    async with client_of(app) as client:
        for path in ("/v1/me", "/v1/threads/t/events"):
            answer = await client.get(path, headers=GZIP)
            assert "Content-Encoding" not in answer.headers
            assert answer.status_code == 200


async def test_a_large_answer_is_compressed_in_a_thread(
    client: httpx.AsyncClient, ledger: Ledger, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    zip_, where = gzip.compress, []

    def noting(body: bytes, *rest: Any, **more: Any) -> bytes:
        where.append((len(body) > 64 * 1024, threading.current_thread() is threading.main_thread()))
        return zip_(body, *rest, **more)

    monkeypatch.setattr(gzip, "compress", noting)
    json_of(await client.get(thread, headers=GZIP))
    json_of(await client.get(thread, params={"limit": 1}, headers=GZIP))
    assert where == [(True, False), (False, True)]


@pytest.mark.parametrize("path", ["/v1/threads", "/v1/conversations", "/login"])
async def test_a_body_with_an_encoding_is_refused(app: FastAPI, path: str) -> None:
    async with client_of(app) as client:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        refused = await client.post(path, content=gzip.compress(b"{}"), headers=headers)
        assert (refused.status_code, refused.headers["Accept-Encoding"]) == (415, "identity")
        assert "Content-Encoding gzip" in refused.text
        for encoding in ("identity", "Identity", ""):
            json_of(await client.post("/v1/threads", json={}, headers={"Content-Encoding": encoding}), 201)
