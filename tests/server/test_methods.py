"""HEAD is GET without the body at every route, and what is created says where it is."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from chatledger import Feedback, Ledger
from chatledger.ids import derived_id
from chatledger.server import ServerLimits, create_app
from chatledger.server.page import conversation, login, media, scores, static, threads, usage
from chatledger.storage.append.request import ANSWER
from tests.server.conftest import by_header, client_of, json_of, listening
from tests.server.owned import REQUESTS, send, store_owned
from tests.server.test_walk import operations
from tests.server.visits import AGENTS, OF_LINES, SERVICE, as_sent

_CHANGING = {"content-length"}
"""Headers of the routes that say how long something took."""


async def test_each_route_that_is_read_answers_head_with_the_headers_of_get(ledger: Ledger) -> None:
    await store_owned(ledger)
    app = create_app(ledger, authenticate=by_header, limits=ServerLimits(stream_seconds=0.1), service=SERVICE)
    gets = [route for route in REQUESTS if route.startswith("GET ")]
    assert len(gets) > 25
    async with client_of(app, "bob") as client:
        for route in gets:
            read = await send(client, route, REQUESTS[route])
            head = await send(client, route.replace("GET", "HEAD"), REQUESTS[route])
            varies = _CHANGING if route == "GET /healthz" or "events" in route else set()
            assert head.status_code == read.status_code, route
            assert head.content == b"", route
            assert _headers(head, varies) == _headers(read, varies), route


def _headers(response: httpx.Response, without: set[str]) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name not in without}


async def test_head_of_a_stream_ends_and_holds_no_place(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    app = create_app(ledger, authenticate=by_header)
    async with listening(app) as port, httpx.AsyncClient(headers={"X-User": "*"}) as client:
        url = f"http://127.0.0.1:{port}/v1/threads/t"
        head = await client.head(f"{url}/events")
        assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert "content-length" not in head.headers
        assert app.state.server.streams.total() == 0
        assert (await client.head(url)).headers["content-length"] == str(len((await client.get(url)).content))
        assert (await client.head(f"{url}none")).status_code == 404


async def test_head_needs_a_token_as_get_does(app: FastAPI) -> None:
    async with client_of(app, None) as nobody:
        assert (await nobody.head("/v1/threads")).status_code == 401


async def test_each_path_has_the_methods_of_its_operations(ledger: Ledger) -> None:
    """Also a path that could be an id in another one, such as `/v1/feedback/summary`."""
    app = create_app(ledger, authenticate=by_header, service=SERVICE)
    methods: dict[str, set[str]] = {}
    for method, path in operations(app).values():
        methods.setdefault(path, set()).update({"GET", "HEAD"} if method == "GET" else {method})
    async with client_of(app) as client:
        for path, own in methods.items():
            for method in {"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"} - own:
                refused = await client.request(method, path.replace("{", "").replace("}", ""))
                assert (refused.status_code, refused.headers["Allow"]) == (405, ", ".join(sorted(own))), (method, path)


def test_no_path_of_the_page_is_an_id_in_another_one() -> None:
    routes = [route for module in (threads, conversation, media, scores, usage, login, static) for route in _of(module)]
    assert len(routes) > 8
    for route in routes:
        for path in {other.path_format for other in routes} - {route.path_format}:
            assert not route.path_regex.match(path), (path, route.path)


def _of(module: Any) -> list[APIRoute]:
    return list(module.router.routes)


@pytest.mark.parametrize("feedback_id", ["summary", "compare"])
async def test_a_score_with_the_name_of_a_path_can_be_removed(
    client: httpx.AsyncClient, ledger: Ledger, feedback_id: str
) -> None:
    await ledger.threads.create("t")
    await ledger.runs.start("t", run_id="r")
    await ledger.feedback.record(Feedback(run_id="r", key="thumb", score=1, feedback_id=feedback_id))
    escaped = f"%{ord(feedback_id[0]):x}{feedback_id[1:]}"
    removed = json_of(await client.delete(f"/v1/feedback/{escaped}"))
    assert (removed["feedback_id"], removed["retracted_at"] is None) == (feedback_id, False)


async def test_what_is_created_is_where_its_location_says(ledger: Ledger) -> None:
    app, outer = create_app(ledger, authenticate=by_header, answers=AGENTS), FastAPI()
    outer.mount("/chat", app)
    message = {"role": "user", "content": "?", "message_id": "m"}
    created = [
        ("/threads", {"thread_id": "a/ü"}, "/threads/a%2F%C3%BC"),
        ("/threads/a%2F%C3%BC/messages", {"messages": [message]}, "/threads/a%2F%C3%BC/messages?branch=0"),
        ("/threads/a%2F%C3%BC/copy", {"thread_id": "c"}, "/threads/c"),
        ("/threads/a%2F%C3%BC/drafts", {"message_id": "d"}, "/threads/a%2F%C3%BC/messages/d"),
        ("/threads/c/drafts/upload?message_id=u", '"x"', "/threads/c/messages/u"),
        ("/threads/c/branches", {"at": None}, "/threads/c/messages?branch=1"),
        ("/threads/c/runs", {"run_id": "r"}, "/runs/r"),
        ("/threads/c/answers", {"question": "?"}, f"/answers/{ANSWER}{derived_id('answer', 'default', 'c', 'once')}"),
    ]
    posts = [operations["post"]["responses"] for operations in app.openapi()["paths"].values() if "post" in operations]
    described = [responses for responses in posts if "Location" in responses.get("201", {}).get("headers", ())]
    assert len(described) == len(created)
    async with client_of(outer) as client:
        for path, body, place in created:
            headers = {"Idempotency-Key": "once"} if path.endswith("/answers") else {}
            headers |= OF_LINES if isinstance(body, str) else {}
            made = await client.post(f"/chat/v1{path}", headers=headers, **as_sent(body))
            assert (made.status_code, made.headers["Location"]) == (201, f"/chat/v1{place}"), made.text
            read = await client.get(made.headers["Location"])
            assert read.status_code == 200
            assert read.headers.get("ETag") == made.headers.get("ETag"), path


async def test_a_client_that_has_the_state_gets_no_body(client: httpx.AsyncClient, ledger: Ledger) -> None:
    body = {"messages": [{"role": "user", "content": "?"}], "create": True}
    mark = (await client.post("/v1/threads/t/messages", json=body)).headers["ETag"]
    for path in ("/v1/threads/t", "/v1/threads/t/messages", "/v1/threads/t/prompt?format=openai-chat"):
        tag = (await client.get(path)).headers["ETag"]
        for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            same = await client.get(path, headers={"If-None-Match": known})
            assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", tag), path
        json_of(await client.get(path, headers={"If-None-Match": '"other"'}))
        assert (await client.head(path, headers={"If-None-Match": tag})).status_code == 304
    tag = (await client.get("/v1/threads/t")).headers["ETag"]
    json_of(await client.post("/v1/threads/t/messages", json=body), 201)
    for path, old in (("/v1/threads/t", tag), ("/v1/threads/t/messages", mark)):
        json_of(await client.get(path, headers={"If-None-Match": old}))
    json_of(await client.patch("/v1/threads/t", json={"title": "T"}, headers={"If-Match": tag}))
    json_of(await client.patch("/v1/threads/t", json={"title": "U"}, headers={"If-Match": tag}), 412)
    for wrong in ("0.zzz", '"1."', f"{tag[:-1]}x", "-1", "1.0"):
        refused = await client.patch("/v1/threads/t", json={"title": "U"}, headers={"If-Match": wrong})
        assert json_of(refused, 400)["argument"] == "If-Match", wrong
    json_of(await client.patch("/v1/threads/t", json={"title": "U"}, headers={"If-Match": '"1"'}))


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/v1/models", "/v1/nothing"])
async def test_a_route_that_is_only_elsewhere_says_so(client: httpx.AsyncClient, path: str) -> None:
    refused = json_of(await client.post(path, json={"model": "m", "input": "?", "conversation": "conv_1"}), 404)
    assert refused["type"] == "urn:chatledger:NoRoute"
    assert refused["error"] == {
        "message": refused["detail"],
        "type": "invalid_request_error",
        "param": None,
        "code": "no_route",
    }
    assert ("runs no model" in refused["detail"]) == (path != "/v1/nothing")
