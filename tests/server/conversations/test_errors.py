"""Errors have the shape of OpenAI, wherever they are raised, and the client raises its own classes for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, get_args

import httpx
import openai as sdk
import pytest
from fastapi import FastAPI
from openai import AsyncOpenAI
from openai.types.responses import ResponseIncludable

from chatledger import Ledger
from chatledger.errors import OutcomeUnknown
from chatledger.repositories.threads import ThreadRepository
from chatledger.server import ServerLimits, create_app
from tests.server.conftest import by_header, client_of
from tests.server.conversations.conftest import openai_of

HELLO: Any = {"role": "user", "content": "hello"}


@pytest.fixture
async def narrow(ledger: Ledger) -> AsyncIterator[AsyncOpenAI]:
    """A client of a server that has one name, and takes little."""
    limits = ServerLimits(body=1_000)
    async with openai_of(create_app(ledger, authenticate=by_header, hosts=["testserver"], limits=limits)) as client:
        yield client


def is_openai(error: sdk.APIStatusError) -> bool:
    return isinstance(error.body, dict) and error.body.keys() == {"message", "type", "param", "code"}


async def test_the_gate_answers_in_the_shape_of_openai(narrow: AsyncOpenAI) -> None:
    for headers, kind, code in (
        ({"X-User": sdk.Omit()}, sdk.AuthenticationError, "invalid_api_key"),
        ({"Origin": "https://evil.example"}, sdk.PermissionDeniedError, "foreign_site"),
        ({"Host": "evil.example"}, sdk.APIStatusError, "unknown_host"),
    ):
        with pytest.raises(kind) as raised:
            await narrow.conversations.create(extra_headers=headers)
        assert is_openai(raised.value)
        assert raised.value.code == code
        if code == "invalid_api_key":
            assert raised.value.response.headers["www-authenticate"] == "Bearer"


async def test_a_body_that_is_too_large_is_refused(narrow: AsyncOpenAI) -> None:
    with pytest.raises(sdk.APIStatusError) as raised:
        await narrow.conversations.create(items=[{"role": "user", "content": "x" * 1_000}])
    assert (raised.value.status_code, raised.value.code) == (413, "body_too_large")
    assert is_openai(raised.value)


async def test_a_body_of_unknown_length_is_refused_when_it_becomes_too_large(app: FastAPI) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"title": "'
        for _ in range(300):
            yield b"x" * 1_000

    async with client_of(app) as client:
        for path, kind in (("/v1/threads", "type"), ("/v1/conversations", "error")):
            refused = await client.post(path, content=pieces(), headers={"Content-Type": "application/json"})
            assert refused.status_code == 413
            assert kind in refused.json()


@pytest.mark.parametrize(
    ("query", "param", "code"),
    [
        ({"limit": 0}, "limit", "integer_below_min_value"),
        ({"limit": 101}, "limit", "integer_above_max_value"),
        ({"limit": "many"}, "limit", "invalid_value"),
        ({"order": "up"}, "order", "invalid_value"),
        ({"include[]": "dreams"}, "include.0", "invalid_value"),
    ],
)
async def test_a_wrong_parameter_is_named(openai: AsyncOpenAI, query: dict[str, Any], param: str, code: str) -> None:
    conversation = await openai.conversations.create()
    with pytest.raises(sdk.BadRequestError) as raised:
        await openai.conversations.items.list(conversation.id, extra_query=query)
    assert is_openai(raised.value)
    assert (raised.value.param, raised.value.code) == (param, code)


async def test_what_may_be_included_is_what_the_client_knows(openai: AsyncOpenAI) -> None:
    conversation = await openai.conversations.create()
    include = list(get_args(ResponseIncludable))
    assert len(include) > 1
    [item] = (await openai.conversations.items.create(conversation.id, items=[HELLO], include=include)).data
    assert (await openai.conversations.items.list(conversation.id, include=include)).data == [item]
    read = await openai.conversations.items.retrieve(str(item.id), conversation_id=conversation.id, include=include)
    assert read == item


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/v1/conversations", "{", 400, "invalid_value"),
        ("POST", "/v1/conversations", "[]", 400, "invalid_value"),
        ("POST", "/v1/conversations", '{"name": "x"}', 400, "unknown_parameter"),
        ("POST", "/v1/conversations/none", "{}", 400, "missing_required_parameter"),
        ("POST", "/v1/conversations/none/items", "{}", 400, "missing_required_parameter"),
        ("PUT", "/v1/conversations", "{}", 405, "no_method"),
        ("GET", "/v1/conversations/a/b/c", "", 404, "no_route"),
        ("GET", "/v1/conversations/%FF", "", 400, "invalid_value"),
    ],
)
async def test_a_request_that_the_client_never_sends_gets_the_same_shape(
    client: httpx.AsyncClient, method: str, path: str, body: str, status: int, code: str
) -> None:
    refused = await client.request(method, path, content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == status
    assert refused.headers["content-type"] == "application/json"
    assert refused.json()["error"].keys() == {"message", "type", "param", "code"}
    assert refused.json()["error"]["code"] == code


async def test_other_paths_keep_their_problems(app: FastAPI) -> None:
    async with client_of(app) as client:
        for path in ("/v1/threads/none", "/v1/conversationsX"):
            refused = await client.get(path)
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.json()["type"].startswith("urn:chatledger:")


@pytest.mark.parametrize(
    ("error", "kind", "retry"),
    [(OutcomeUnknown(["m"]), sdk.InternalServerError, "1"), (ValueError("a bug"), None, None)],
)
async def test_a_failure_of_the_server_is_an_error_of_the_server(
    openai: AsyncOpenAI, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: Any, retry: str | None
) -> None:
    """The database cannot be made to lose an outcome on demand, so the call raises what it would raise."""

    async def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(ThreadRepository, "get", fail)
    with pytest.raises(kind or sdk.InternalServerError) as raised:
        await openai.conversations.retrieve("conv_1")
    assert is_openai(raised.value)
    assert raised.value.type == "server_error"
    assert raised.value.response.headers.get("retry-after") == retry
