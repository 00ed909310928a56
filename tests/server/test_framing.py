"""How a request comes: in tiny chunks, with two lengths, with a huge head, or after its answer."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from chatledger import Ledger
from chatledger.server import TokenFile, create_app
from chatledger.server.protocol import FREE_PIECES, LARGEST_HEAD, SMALLEST_PIECE, Parser
from tests.server.conftest import by_header, json_of, listening

TINY = b"1\r\n \r\n"
CHUNKED = b"POST %b HTTP/1.1\r\nHost: localhost\r\n%bTransfer-Encoding: chunked\r\n\r\n"
KNOWN = b"X-User: *\r\n"
JSON = {"Content-Type": "application/json"}


class Counted:
    """What the parser of all connections handles."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events = 0
        parse = Parser.next_event

        def counting(parser: Parser) -> Any:
            self.events += 1
            return parse(parser)

        monkeypatch.setattr(Parser, "next_event", counting)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


def send(port: int, *pieces: bytes) -> bytes:
    """Send all, and read until the server ends the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        received = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
        except ConnectionError:
            pass  # the server has ended the connection
        try:
            while piece := connection.recv(1 << 16):
                received += piece
        except ConnectionError:
            pass
        return received


@pytest.mark.parametrize("known", [b"", KNOWN])
@pytest.mark.parametrize("path", [b"/v1/threads/t/messages", b"/login", b"/healthz", b"/v1/none"])
async def test_a_body_in_tiny_chunks_ends_its_connection(
    ledger: Ledger, counted: Counted, path: bytes, known: bytes
) -> None:
    async with listening(create_app(ledger, authenticate=by_header)) as port:
        answer = await asyncio.to_thread(send, port, CHUNKED % (path, known) + TINY * 400_000)
        assert b'"type":"urn:chatledger:BodyTooLarge"' in answer
        assert counted.events < 2 * FREE_PIECES


async def test_tiny_chunks_after_the_answer_end_the_connection(ledger: Ledger, counted: Counted) -> None:
    def refuse(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(CHUNKED % (b"/v1/threads/t/messages", b"") + TINY)
            answer = connection.recv(1 << 16)
            try:
                while True:
                    connection.sendall(TINY * 10_000)
            except ConnectionError:
                return answer

    async with listening(create_app(ledger, authenticate=by_header)) as port:
        assert (await asyncio.to_thread(refuse, port)).startswith(b"HTTP/1.1 401")
        assert counted.events < 2 * FREE_PIECES


async def in_pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@pytest.mark.parametrize(("bytes_of_all", "bytes_of_each"), [(FREE_PIECES, 1), (1_000_000, SMALLEST_PIECE)])
async def test_a_client_may_send_a_body_in_small_pieces(ledger: Ledger, bytes_of_all: int, bytes_of_each: int) -> None:
    await ledger.threads.create("t")
    empty = json.dumps({"messages": [{"role": "user", "content": ""}]}).encode()
    body = empty.replace(b'""', b'"' + b"x" * (bytes_of_all - len(empty)) + b'"')
    async with listening(create_app(ledger, authenticate=by_header)) as port, httpx.AsyncClient(timeout=60) as client:
        url, headers = f"http://127.0.0.1:{port}/v1/threads/t/messages", {"X-User": "*", **JSON}
        json_of(await client.post(url, content=in_pieces(body, bytes_of_each), headers=headers), 201)
    assert (await ledger.threads.get("t")).message_count == 1


STREAMED = """
const [url, body] = process.argv.slice(1);
const bytes = new TextEncoder().encode(body);
const stream = new ReadableStream({
  pull(controller) {
    for (let at = 0; at < bytes.length; at += 7) controller.enqueue(bytes.slice(at, at + 7));
    controller.close();
  },
});
const headers = {"X-User": "*", "Content-Type": "application/json"};
const answer = await fetch(url, {method: "POST", body: stream, duplex: "half", headers});
console.log(answer.status);
"""


@pytest.mark.parametrize("client", ["curl", "fetch"])
async def test_other_clients_stream_a_body(ledger: Ledger, client: str) -> None:
    await ledger.threads.create("t")
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 5_000}]})
    async with listening(create_app(ledger, authenticate=by_header)) as port:
        url = f"http://127.0.0.1:{port}/v1/threads/t/messages"
        said = ["-H", "X-User: *", "-H", "Content-Type: application/json", "-w", "%{http_code}", "-o", "/dev/null"]
        words = {
            "curl": ["curl", "-s", "-X", "POST", "-T", "-", *said, url],
            "fetch": ["node", "--input-type=module", "-e", STREAMED, url, body],
        }[client]
        done = await asyncio.to_thread(
            subprocess.run, words, input=body, capture_output=True, text=True, timeout=60, check=True
        )
    assert done.stdout.strip() == "201", done.stderr


# --- An answer before the end of the body -----------------------------------------------------------------------------


def ask(port: int, path: str, body: bytes, **headers: str) -> tuple[int, str | None]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        response.read()
        return response.status, response.getheader("Connection")
    finally:
        connection.close()


CLOSED = {
    401: ("/v1/threads", {}),
    403: ("/v1/threads", {"X-User": "*", "Origin": "https://evil.example"}),
    404: ("/v1/none", {"X-User": "*"}),
    413: ("/login", {}),
    421: ("/v1/threads", {"Host": "evil.example"}),
}


@pytest.mark.parametrize("status", CLOSED)
async def test_an_answer_before_the_end_of_the_body_ends_the_connection(
    ledger: Ledger, tmp_path: Path, status: int
) -> None:
    path, headers = CLOSED[status]
    app: FastAPI = create_app(ledger, authenticate=by_header, hosts=["127.0.0.1", "localhost"])
    if status == 413:  # the page has its forms only with tokens
        app = create_app(ledger, authenticate=TokenFile.create(tmp_path / "tokens.json"))
    async with listening(app) as port:
        found = await asyncio.to_thread(ask, port, path, b" " * 500_000, **headers)
        assert found == (status, "close")


async def test_a_client_that_sends_on_gets_its_answer(ledger: Ledger) -> None:
    """Closed with unread bytes, the connection would be reset, and the client would not look for an answer."""
    async with listening(create_app(ledger, authenticate=by_header)) as port:
        body = b" " * 8_000_000  # more than the kernel keeps for both ends
        assert await asyncio.to_thread(ask, port, "/v1/threads/t/messages", body) == (401, "close")


async def test_an_answer_after_the_end_of_the_body_keeps_the_connection(ledger: Ledger) -> None:
    async with listening(create_app(ledger, authenticate=by_header)) as port:
        for body, status in (b'{"title": "a"}', 201), (b"{", 400):
            answer = await asyncio.to_thread(ask, port, "/v1/threads", body, **{"X-User": "*", **JSON})
            assert answer == (status, None)
        for path, status in ("/v1/threads", 401), ("/healthz", 200):
            without = await asyncio.to_thread(httpx.get, f"http://127.0.0.1:{port}{path}")
            assert (without.status_code, without.headers.get("connection")) == (status, None)


async def test_the_server_does_not_read_on_for_long_what_it_refused(ledger: Ledger) -> None:
    head = b"POST /v1/threads HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % 10**9
    sent = 0

    def refuse(port: int) -> None:
        nonlocal sent
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(head)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 401")
            try:
                while True:
                    sent += connection.send(b" " * 100_000)
            except ConnectionError:
                pass

    async with listening(create_app(ledger, authenticate=by_header)) as port:
        await asyncio.to_thread(refuse, port)
    assert sent < 50_000_000  # with what the kernel keeps


# --- The head ---------------------------------------------------------------------------------------------------------


async def test_a_body_with_two_lengths_is_refused_with_all_that_follows_it(ledger: Ledger) -> None:
    """A proxy that believes the other length takes the rest for another person's request."""
    smuggled = b"POST /v1/threads HTTP/1.1\r\nHost: localhost\r\nX-User: *\r\nContent-Length: 2\r\n\r\n{}"
    body = b"2\r\n{}\r\n0\r\n\r\n"
    two = b"POST /v1/threads HTTP/1.1\r\nHost: localhost\r\nX-User: *\r\nContent-Length: %d\r\n" % len(body)
    async with listening(create_app(ledger, authenticate=by_header)) as port:
        answer = await asyncio.to_thread(send, port, two + b"Transfer-Encoding: chunked\r\n\r\n" + body + smuggled)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"connection: close" in answer.lower()
        assert answer.count(b"HTTP/1.1") == 1
    assert await ledger.threads.count() == 0


GET = b"GET /v1/me%b HTTP/1.1\r\nHost: localhost\r\nX-User: *\r\n%b\r\n"
HEADS = {
    "a long header": GET % (b"", b"X-A: " + b"a" * LARGEST_HEAD + b"\r\n"),
    "a long URL": GET % (b"?a=" + b"a" * LARGEST_HEAD, b""),
    "a very long header": GET % (b"", b"X-A: " + b"a" * 1_000_000 + b"\r\n"),
    "many headers": GET % (b"", b"a:b\r\n" * 101),
    "very many headers": GET % (b"", b"a:b\r\n" * 50_000),
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
async def test_a_large_head_is_a_problem(ledger: Ledger, head: bytes) -> None:
    async with listening(create_app(ledger, authenticate=by_header)) as port:
        answer = await asyncio.to_thread(send, port, head)
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"content-type: application/problem+json" in answer
    problem = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert problem["type"] == "urn:chatledger:HeadTooLarge"
    assert f"{LARGEST_HEAD:,} bytes" in problem["detail"]


async def test_a_head_within_the_limits_is_read(ledger: Ledger) -> None:
    async with listening(create_app(ledger, authenticate=by_header)) as port:
        for fields in (b"X-A: " + b"a" * 60_000 + b"\r\n", b"a:b\r\n" * 90):
            answer = await asyncio.to_thread(send, port, GET % (b"", b"Connection: close\r\n" + fields))
            assert answer.startswith(b"HTTP/1.1 200")


async def test_what_is_no_http_is_a_problem(ledger: Ledger) -> None:
    async with listening(create_app(ledger, authenticate=by_header)) as port:
        for nonsense in (b"\x16\x03\x01 no HTTP\r\n\r\n", CHUNKED % (b"/v1/threads", KNOWN) + b"zz\r\n"):
            answer = await asyncio.to_thread(send, port, nonsense)
            assert answer.startswith(b"HTTP/1.1 400")
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["type"] == "urn:chatledger:InvalidRequest"
