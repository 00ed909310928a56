"""Uploads: an answer as one long request, in lines and in a provider's events, until its end or until it breaks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request

from chatledger import Ledger, Limits, Payload
from chatledger.server import Caller, ServerLimits, create_app, watch
from chatledger.server.requests import body_limit
from chatledger.server.routes import uploads
from chatledger.server.shares import HeldBodies, HeldBytes
from tests.conftest import Database
from tests.conversations import user
from tests.formats.streams import split_anthropic, split_chat, split_responses
from tests.formats.streams.test_openai_chat import MESSAGE
from tests.server.conftest import by_header, json_of, listening, until

UPLOAD = "/v1/threads/t/drafts/upload"
LINES, EVENTS = "application/x-ndjson", "text/event-stream"
LONG = 300
"""Seconds of a lease that no test waits for."""


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    await ledger.user("ada").messages.append("t", [user("?")], create=True)
    return ledger


@contextlib.asynccontextmanager
async def client_at(app: FastAPI, name: str = "ada") -> AsyncIterator[httpx.AsyncClient]:
    async with (
        listening(app) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"X-User": name}, timeout=60) as client,
    ):
        yield client


@pytest.fixture
async def ada(asked: Ledger) -> AsyncIterator[httpx.AsyncClient]:
    async with client_at(create_app(asked, authenticate=by_header)) as client:
        yield client


async def upload(
    client: httpx.AsyncClient, body: Any, kind: str = LINES, *, key: str = "answer", **query: Any
) -> httpx.Response:
    headers = {"Content-Type": kind, "Idempotency-Key": key}
    return await client.post(UPLOAD, content=body, params=query, headers=headers)


async def answer_before_end(client: httpx.AsyncClient, body: AsyncIterator[bytes], **query: Any) -> httpx.Response:
    """The answer, though the body has no end. httpx reads no answer before it has sent all of a body."""
    request = client.build_request("POST", UPLOAD, params=query)
    reader, writer = await asyncio.open_connection(request.url.host, request.url.port)

    async def send() -> None:
        head = f"POST {request.url.raw_path.decode()} HTTP/1.1\r\nHost: localhost\r\nX-User: ada\r\n"
        more = f"Content-Type: {LINES}\r\nIdempotency-Key: answer\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head.encode() + more.encode())
        async for chunk in body:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()

    sending = asyncio.create_task(send())
    try:
        status, *fields = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(field.split(": ", 1) for field in fields if field)
        content = await reader.readexactly(int(httpx.Headers(headers)["Content-Length"]))
        return httpx.Response(int(status.split()[1]), headers=headers, content=content)
    finally:
        sending.cancel()
        writer.close()


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


async def in_turn(chunks: Iterable[bytes], *, then: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
        await asyncio.sleep(0.001)
    if then is not None:
        await then.wait()


async def stored(ledger: Ledger) -> tuple[str, str]:
    history = await ledger.messages.history("t")
    message = history.draft or history.messages[-1]
    return message.text, message.state


async def until_begun(ledger: Ledger) -> None:
    while await stored(ledger) != ("It ", "partial"):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)


# --- What comes -------------------------------------------------------------------------------------------------------


async def test_a_piece_a_line_is_stored(asked: Ledger, ada: httpx.AsyncClient) -> None:
    call = {"kind": "call", "index": 0, "id": "c", "name": "f", "arguments": "{}"}
    body = lines({"kind": "reasoning", "text": "Hm."}, "It ", "rains ä😀.") + b"\r\n\n" + lines(call).rstrip()
    done = json_of(await upload(ada, in_turn(body[at : at + 7] for at in range(0, len(body), 7)), run_id="r"), 201)
    assert (done["state"], done["messages"][0]["content"], done["losses"]) == ("complete", "It rains ä😀.", [])
    message = (await asked.messages.history("t")).messages[-1]
    assert [call.name for call in message.tool_calls or ()] == ["f"]
    assert (message.run_id, message.text) == ("r", "It rains ä😀.")
    again = json_of(await upload(ada, lines("something else")))
    assert again["messages"] == done["messages"]


async def test_more_lines_than_free_chunks_come_a_word_at_a_time(asked: Ledger, ada: httpx.AsyncClient) -> None:
    words = [f"w{number} " for number in range(1_200)]
    done = json_of(await upload(ada, in_turn(map(lines, words))), 201)
    assert done["messages"][0]["content"] == "".join(words)


def as_events(events: Iterable[Any], end: bytes = b"data: [DONE]\n\n") -> Iterable[bytes]:
    """As a provider sends them, with its names, comments and end."""
    for event in events:
        yield b": ping\r\n\r\n"
        yield b"event: " + str(event.get("type", "chunk")).encode() + b"\r\ndata: " + json.dumps(event).encode()
        yield b"\r\nid: 1\r\n\r\n"
    yield end


CALL = {
    "type": "function_call",
    "id": "fc",
    "call_id": "c",
    "name": "f",
    "arguments": '{"a": 1}',
    "status": "completed",
}
TEXT = {"type": "output_text", "text": "It rains.", "annotations": []}
RESPONSES: dict[str, tuple[Any, Any]] = {
    "anthropic": (
        split_anthropic.split,
        {
            "role": "assistant",
            "type": "message",
            "stop_reason": "tool_use",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "text", "text": "It rains."},
                {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
            ],
        },
    ),
    "openai-chat": (split_chat.split, MESSAGE),
    "openai-responses": (
        split_responses.split,
        [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [TEXT]}, CALL],
    ),
}


@pytest.mark.parametrize("kind", [LINES, EVENTS])
@pytest.mark.parametrize("name", RESPONSES)
async def test_a_providers_stream_is_stored_as_its_whole_response(
    asked: Ledger, ada: httpx.AsyncClient, name: str, kind: str
) -> None:
    split, response = RESPONSES[name]
    body = [lines(event) for event in split(response)] if kind == LINES else as_events(split(response))
    done = json_of(await upload(ada, in_turn(body), kind, format=name), 201)
    await asked.messages.append("whole", [user("?")], create=True)
    payload = response if isinstance(response, list) else [response]
    await asked.messages.append("whole", Payload(payload, name))
    whole, streamed = [(await asked.messages.history(thread)).messages[1:] for thread in ("whole", "t")]
    assert len(done["messages"]) == len(whole) == len(streamed)
    for one, other in zip(streamed, whole, strict=True):
        for field in ("content", "reasoning", "tool_calls", "residual", "format", "state"):
            assert getattr(one, field) == getattr(other, field), field


async def test_a_provider_that_breaks_off_ends_the_message(asked: Ledger, ada: httpx.AsyncClient) -> None:
    events = [{"choices": [{"index": 0, "delta": {"content": "It "}}]}, {"error": {"message": "overloaded"}}]
    done = json_of(await upload(ada, lines(*events), format="openai-chat"), 201)
    assert (done["state"], done["messages"][0]["content"]) == ("interrupted", "It ")
    assert "overloaded" in done["messages"][0]["response_metadata"]["failure"]


@pytest.mark.parametrize("name", RESPONSES)
async def test_a_stream_that_was_cut_ends_the_message_as_interrupted(
    asked: Ledger, ada: httpx.AsyncClient, name: str
) -> None:
    """A pipe whose first program fails sends a whole body."""
    split, response = RESPONSES[name]
    events = split(response)
    done = json_of(await upload(ada, in_turn(as_events(events[: len(events) // 2], b"\n")), EVENTS, format=name), 201)
    assert done["state"] == "interrupted"
    assert done["messages"][-1]["response_metadata"]["failure"] == "the body ended before the provider's response did"
    states = [message.state for message in await asked.messages.history("t") if message.role == "assistant"]
    assert states[-1] == "interrupted"


# --- What is refused --------------------------------------------------------------------------------------------------


async def refused(answer: httpx.Response, status: int, kind: str) -> Any:
    problem = json_of(answer, status)
    assert problem["type"] == f"urn:chatledger:{kind}", problem
    return problem


@pytest.mark.parametrize(
    ("kind", "query", "status"),
    [
        ("application/json", {}, 400),
        ("", {}, 400),
        (LINES, {"format": "none"}, 400),
        (LINES, {"lease": 301}, 400),
        (LINES, {"lease": 0.5}, 400),
        (LINES, {"resume": "maybe"}, 400),
        (LINES, {"token": "0"}, 400),
    ],
)
async def test_nothing_is_stored_of_a_request_that_does_not_fit(
    asked: Ledger, ada: httpx.AsyncClient, kind: str, query: dict[str, Any], status: int
) -> None:
    json_of(await upload(ada, lines("x"), kind, **query), status)
    assert len(await asked.messages.history("t")) == 1


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (b"no", "body.0"),
        (b"\xff", "body"),
        (b"7", "body"),
        (b'{"kind": "unknown"}', "body"),
        (b'{"kind": "call", "index": 0, "more": 1}', "body.call.more"),
        (b"[" * 1_000, "body"),
    ],
)
async def test_a_wrong_line_is_named_and_ends_the_message(
    asked: Ledger, ada: httpx.AsyncClient, line: bytes, path: str
) -> None:
    problem = await refused(await upload(ada, lines("It ") + line + b"\n" + lines("rains.")), 400, "InvalidRequest")
    assert problem["errors"][0]["path"].startswith(path)
    assert (problem["line"], problem["offset"], problem["state"]) == (2, 3, "interrupted")
    assert await stored(asked) == ("It ", "interrupted")


async def test_a_line_that_is_no_event_is_named(asked: Ledger, ada: httpx.AsyncClient) -> None:
    events = [{"choices": [{"index": 0, "delta": {"content": "It "}}]}, 7]
    problem = await refused(await upload(ada, lines(*events), format="openai-chat"), 422, "DecodeError")
    assert (problem["line"], await stored(asked)) == (2, ("It ", "interrupted"))


@pytest.mark.parametrize("kind", [LINES, EVENTS])
async def test_a_line_has_a_mebibyte_at_most(asked: Ledger, ada: httpx.AsyncClient, kind: str) -> None:
    fits = lines("x" * (uploads.LINE - 2)) if kind == LINES else b'data: "x"\n\n'
    json_of(await upload(ada, fits, kind, key="fits"), 201)
    long = lines("x" * uploads.LINE) if kind == LINES else b"data: 1\n" * (uploads.LINE // 6)
    begun = lines("It ") if kind == LINES else b'data: "It "\n\n'
    problem = await refused(await upload(ada, begun + long, kind), 413, "BodyTooLarge")
    assert problem["line"] > 1
    assert (problem["offset"], await stored(asked)) == (3, ("It ", "interrupted"))


async def test_a_body_has_a_limit(asked: Ledger, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "UPLOAD", 100_000)
    rest = b" " * 50_000 + b"\n"

    async def body() -> AsyncIterator[bytes]:
        yield lines("It ")
        await until_begun(asked)
        for _ in range(3):
            yield rest

    problem = await refused(await upload(ada, body()), 413, "BodyTooLarge")
    assert (problem["state"], problem["offset"]) == ("interrupted", 3)
    json_of(await upload(ada, rest * 3, key="announced"), 413)
    assert len(await asked.messages.history("t")) == 2


async def test_an_upload_is_larger_than_another_body(asked: Ledger) -> None:
    app = create_app(asked, authenticate=by_header, limits=ServerLimits(body=10_000))
    async with client_at(app) as client:
        json_of(await upload(client, in_turn([lines("x" * 19_000)] * 2)), 201)
        assert app.state.server.bodies.of.total() == 0


async def test_what_uploads_hold_is_bounded(asked: Ledger) -> None:
    """Four bodies' worth of a caller, as of other requests: here 4,000 characters."""
    app = create_app(asked, authenticate=by_header, limits=ServerLimits(body=1_000))
    done = asyncio.Event()
    async with client_at(app) as client:
        await asked.user("ada").threads.create("other")
        path, body = UPLOAD.replace("/t/", "/other/"), in_turn([lines("x" * 3_000)], then=done)
        other = asyncio.create_task(client.post(path, content=body, headers={"Content-Type": LINES}))
        await until(lambda: app.state.server.bodies.of.total() == 3_000)
        full = await refused(await upload(client, lines("It ", "y" * 2_000)), 503, "Busy")
        assert (full["state"], full["offset"]) == ("partial", 2_003)
        done.set()
        json_of(await other, 201)
        unknown = {"kind": "call", "index": 0, "id": "c", "name": "f", "extras": {"x": "y" * 2_000}}
        again = await upload(client, lines("It ", unknown, "rains."), resume=False)
        json_of(again, 201)
    assert app.state.server.bodies.of.total() == 0


async def test_the_last_event_of_a_provider_ends_the_message(asked: Ledger, ada: httpx.AsyncClient) -> None:
    """Some that speak OpenAI's format give no reason for the end."""
    body = b'data: {"choices": [{"index": 0, "delta": {"content": "It "}}]}\n\ndata: [DONE]\n\n'
    assert json_of(await upload(ada, body, EVENTS, format="openai-chat"), 201)["state"] == "complete"


async def test_the_message_has_the_ledgers_limit(database: Database) -> None:
    async with Ledger.open(database.url, limits=Limits(bytes=1_000)) as ledger:
        await ledger.messages.append("t", [user("?")], create=True)
        async with client_at(create_app(ledger, authenticate=by_header), "*") as client:
            problem = await refused(await upload(client, lines("x" * 900, "y" * 200)), 413, "LimitExceeded")
        assert (problem["line"], problem["offset"]) == (2, 900)
        assert await stored(ledger) == ("x" * 900, "interrupted")


# --- What breaks ------------------------------------------------------------------------------------------------------


async def go_on(client: httpx.AsyncClient, ledger: Ledger) -> None:
    """Send it again, until the draft is left: long before the end of its lease."""
    while (answer := await upload(client, lines("rains."), lease=LONG, resume=True)).status_code == 409:
        assert answer.json()["type"] == "urn:chatledger:DraftLive"
        await asyncio.sleep(0.01)
    json_of(answer, 201)
    assert await stored(ledger) == ("It rains.", "complete")


async def test_a_draft_whose_client_is_gone_is_left_at_once(asked: Ledger, ada: httpx.AsyncClient) -> None:
    never = asyncio.Event()
    broken = asyncio.create_task(upload(ada, in_turn([lines("It ")], then=never), lease=LONG))
    await until_begun(asked)
    broken.cancel()
    async with asyncio.timeout(LONG / 4):
        await go_on(ada, asked)


async def test_a_silent_client_loses_the_draft_with_its_lease(asked: Ledger, ada: httpx.AsyncClient) -> None:
    silent = await answer_before_end(ada, in_turn([lines("It ")], then=asyncio.Event()), lease=1)
    problem = await refused(silent, 408, "SlowBody")
    assert (problem["offset"], problem["state"]) == (3, "partial")
    await go_on(ada, asked)


async def test_a_body_has_its_time(asked: Ledger) -> None:
    async with client_at(create_app(asked, authenticate=by_header, limits=ServerLimits(stream_seconds=0.5))) as client:
        slow = await answer_before_end(client, slowly(lines("It "), b"\n"), lease=LONG)
        assert (await refused(slow, 408, "SlowBody"))["state"] == "partial"
        await go_on(client, asked)


async def slowly(first: bytes, other: bytes) -> AsyncIterator[bytes]:
    yield first
    while True:
        yield other
        await asyncio.sleep(0.02)


async def test_renewing_without_pieces_has_an_end(
    asked: Ledger, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "LONGEST_RENEWED", timedelta(seconds=0.3))
    silent = await answer_before_end(ada, slowly(lines("It "), b"\n"), lease=LONG)
    assert (await refused(silent, 409, "DraftSilent"))["state"] == "partial"
    await go_on(ada, asked)


async def test_an_answer_takes_longer_than_another_request(asked: Ledger) -> None:
    async with client_at(create_app(asked, authenticate=by_header, limits=ServerLimits(request_seconds=0.3))) as client:
        words = [f"{number} " for number in range(50)]

        async def body() -> AsyncIterator[bytes]:
            for word in words:
                yield lines(word)
                await asyncio.sleep(0.02)

        json_of(await upload(client, body()), 201)
    assert await stored(asked) == ("".join(words), "complete")


async def test_a_withdrawn_token_writes_no_more(asked: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "EVERY", 0.05)
    known = True

    async def authenticate(request: Request) -> Caller | None:
        return await by_header(request) if known else None

    async with client_at(create_app(asked, authenticate=authenticate)) as client:
        writing = asyncio.create_task(answer_before_end(client, slowly(lines("It "), b"\n"), lease=LONG))
        await until_begun(asked)
        known = False
        assert (await refused(await writing, 401, "Unauthenticated"))["state"] == "partial"
        known = True
        await go_on(client, asked)


async def test_a_server_that_stops_leaves_the_draft(asked: Ledger) -> None:
    app = create_app(asked, authenticate=by_header)
    async with client_at(app) as client:
        body = in_turn([lines("It ")], then=asyncio.Event())
        writing = asyncio.create_task(answer_before_end(client, body, lease=LONG))
        await until_begun(asked)
        app.state.server.drain()
        answer = await writing
        assert (await refused(answer, 503, "Busy"))["state"] == "partial"
        assert answer.headers["Retry-After"] == "1"
    async with client_at(create_app(asked, authenticate=by_header)) as client:
        await go_on(client, asked)


async def test_uploads_count_among_a_callers_streams_and_not_among_its_requests(asked: Ledger) -> None:
    limits = ServerLimits(caller_streams=2, caller_requests=1)
    app, never = create_app(asked, authenticate=by_header, limits=limits), asyncio.Event()
    async with client_at(app) as client:
        for thread in ("a", "b"):
            await asked.user("ada").threads.create(thread)

        async def write(thread: str) -> httpx.Response:
            path = UPLOAD.replace("/t/", f"/{thread}/")
            return await client.post(path, content=in_turn([b"\n"], then=never), headers={"Content-Type": LINES})

        open_uploads = [asyncio.create_task(write(thread)) for thread in ("a", "b")]
        await until(lambda: app.state.server.streams.total() == 2)
        full = await upload(client, lines("It "))
        assert (await refused(full, 503, "Busy"))["detail"].startswith("the server has as many open streams")
        assert (await client.get("/v1/threads/t/messages")).status_code == 200
        never.set()
        for done in open_uploads:
            json_of(await done, 201)
        json_of(await upload(client, lines("It ")), 201)
    assert app.state.server.streams.total() == 0


async def test_an_answer_that_nobody_takes_counts_among_a_callers_requests(asked: Ledger) -> None:
    app = create_app(asked, authenticate=by_header, limits=ServerLimits(caller_requests=1))
    async with client_at(app) as client:
        json_of(await upload(client, lines("x" * 1_000_000) * 16), 201)
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port, limit=1024)
        head = f"POST {UPLOAD} HTTP/1.1\r\nHost: localhost\r\nX-User: ada\r\nContent-Type: {LINES}\r\n"
        writer.write(head.encode() + b"Idempotency-Key: answer\r\nContent-Length: 0\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        state = app.state.server
        assert (state.streams.total(), state.places.requests.total()) == (0, 1)
        waiting = asyncio.create_task(client.get("/v1/threads/t"))
        await until(lambda: state.places.requests.total() == 2)
        writer.transport.abort()
        assert (await waiting).status_code == 200
    assert not state.places.requests


@pytest.mark.parametrize(("kind", "line"), [(LINES, b"\n"), (EVENTS, b"\n"), (EVENTS, b":\n"), (EVENTS, b"data:\n")])
async def test_lines_without_a_text_give_the_others_their_turn(asked: Ledger, kind: str, line: bytes) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield line * 10_000

    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    draft = asked.messages.stream("t")
    counting = asyncio.create_task(count())
    held = HeldBytes(HeldBodies(most=0, most_of_caller=0), None)
    await uploads._Upload(draft, uploads._Lines.of(kind), chunks(), held, of_provider=False)._feed(draft)
    counting.cancel()
    assert turns > 50
