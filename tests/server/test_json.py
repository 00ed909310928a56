"""What the ledger stores is always answered, and a body that is no JSON is refused with its place."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import AwareDatetime, BaseModel

from chatledger import ChatMessage, Feedback, Ledger, NewThread, Usage
from chatledger.models.json import _WRAPPED_DEPTH, MAX_DEPTH
from chatledger.server.answers.json_response import to_json
from chatledger.server.routes import _V1
from tests.server.conftest import client_of, json_of


def nested(depth: int) -> Any:
    """An object that is nested so deep, in which lists and objects take turns."""
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 == depth % 2 else {"in": value}
    return value


DEEP = nested(_WRAPPED_DEPTH)
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("user", ["ada", "*"])
async def test_the_deepest_value_that_is_stored_is_read_by_each_list(app: FastAPI, ledger: Ledger, user: str) -> None:
    await ledger.user("ada").threads.create("t", metadata=DEEP)
    async with client_of(app, user) as client:
        run = {"run_id": "r", "input": DEEP, "metadata": DEEP}
        json_of(await client.post("/v1/threads/t/runs", json=run), 201)
        score = {"run_id": "r", "key": "k", "score": 1, "kwargs": DEEP}
        json_of(await client.post("/v1/feedback", json=score), 201)
        message = {"role": "user", "content": "?", "custom_data": DEEP, "message_id": "m"}
        json_of(await client.post("/v1/threads/t/messages", json={"messages": [message]}), 201)

        [thread] = json_of(await client.get("/v1/threads"))["items"]
        assert thread["metadata"] == DEEP
        [run] = json_of(await client.get("/v1/runs"))["items"]
        assert (run["input"], run["metadata"]) == (DEEP, DEEP)
        for path in ("/v1/feedback", "/v1/feedback?events=true"):
            [score] = json_of(await client.get(path))["items"]
            assert score["kwargs"] == DEEP
        [message] = json_of(await client.get("/v1/threads/t/messages"))["items"]
        assert message["custom_data"] == DEEP
        shown = await client.get("/threads/t/messages/m/json")
        assert json.loads(shown.text)["custom_data"] == DEEP


async def test_a_payload_of_full_depth_comes_back(client: httpx.AsyncClient) -> None:
    payload = [{"role": "user", "content": "?", "extra": nested(MAX_DEPTH - 2)}]
    body = {"payload": payload, "format": "openai-chat", "create": True}
    json_of(await client.post("/v1/threads/t/messages", json=body), 201)
    assert json_of(await client.get("/v1/threads/t/messages?format=openai-chat"))["payload"] == payload


@pytest.mark.parametrize("depth", [MAX_DEPTH + 17, MAX_DEPTH + 40, 900, 90_000])
@pytest.mark.parametrize("path", ["/v1/threads", "/v1/conversations"])
async def test_a_deeper_body_is_refused(client: httpx.AsyncClient, depth: int, path: str) -> None:
    text = '{"metadata": {"in": ' + "[" * (depth - 1) + "]" * (depth - 1) + "}}"
    refused = await client.post(path, content=text, headers={**JSON, "Idempotency-Key": "k"})
    assert refused.status_code == 400
    assert "metadata" in refused.text or "nested deeper" in refused.text
    assert json_of(await client.get("/v1/threads"))["items"] == []


async def test_a_surrogate_in_a_key_comes_back(client: httpx.AsyncClient, ledger: Ledger) -> None:
    await ledger.threads.create("t", metadata={"half \ud800": "half \udfff"})
    assert json_of(await client.get("/v1/threads/t"))["metadata"] == {"half \ud800": "half \udfff"}


async def test_a_number_that_json_does_not_have_is_null(client: httpx.AsyncClient, ledger: Ledger) -> None:
    numbers = [float("nan"), float("inf"), -float("inf"), 1e308, -0.0, 10**400]
    await ledger.threads.create("t", metadata={"numbers": numbers})
    [thread] = json_of(await client.get("/v1/threads"))["items"]
    assert thread["metadata"] == {"numbers": [None, None, None, 1e308, -0.0, 10**400]}


WRONG = [
    (b'{"metadata": {"a": [1, NaN]}}', "body.metadata.a.1"),
    (b'{"metadata": {"a": -Infinity, "b": 1}}', "body.metadata.a"),
    (b'{"metadata": {"b": {"c": 1e400}}}', "body.metadata.b.c"),
    (b'{"metadata": {"b": ' + b"9" * 5_000 + b"}}", "body.metadata.b"),
    (b'{"metadata": NaN, "metadata": {}}', "body"),
    (b'{"metadata": [NaN}', "body.17"),
    (b'{"title": "\xff"}', "body"),
    (b'{"title": "\xed\xa0\x80"}', "body"),
    ('{"title": "é"}'.encode("utf-16"), "body"),
    (b'{"title": ', "body.10"),
]


@pytest.mark.parametrize(("text", "path"), WRONG)
async def test_a_body_that_is_no_json_is_refused_with_its_place(
    client: httpx.AsyncClient, text: bytes, path: str
) -> None:
    refused = json_of(await client.post("/v1/threads", content=text, headers=JSON), 400)
    assert (refused["type"], refused["errors"][0]["path"]) == ("urn:chatledger:InvalidRequest", path)
    for route in ("/v1/conversations", "/v1/conversations/c", "/v1/conversations/c/items"):
        error = json_of(await client.post(route, content=text, headers=JSON), 400)["error"]
        assert error.keys() == {"message", "type", "param", "code"}
        assert (error["param"], error["code"]) == (path.removeprefix("body."), "invalid_value")
    assert json_of(await client.get("/v1/threads"))["items"] == []


async def test_models_are_written_as_pydantic_writes_them(client: httpx.AsyncClient, ledger: Ledger) -> None:
    message = ChatMessage(role="user", content="Ünï", custom_data={"n": [1, 2.5, None, True]})
    appended = await ledger.messages.append("t", [message], create=NewThread(title="T"), run_id="r")
    run = await ledger.runs.finish("r", status="completed", usage=Usage(input_tokens=3, cost=Decimal("0.0010")))
    score = await ledger.feedback.record(Feedback(run_id="r", key="k", score=1))
    for model in (*appended.messages, run, score, await ledger.threads.get("t"), *await ledger.runs.usage()):
        text = {"text": model.text} if isinstance(model, ChatMessage) else {}
        assert json.loads(to_json(model)) == {**json.loads(model.model_dump_json()), **text}


def test_every_field_of_an_answer_is_of_a_type_that_is_written() -> None:
    routes = [route for module in _V1 for route in module.router.routes if isinstance(route, APIRoute)]
    assert len(routes) > 30
    leaves = {leaf for route in routes for leaf in _leaves(route.response_model, set())}
    assert leaves <= {str, int, float, bool, None, type(None), Any, datetime, AwareDatetime, date, Decimal}


def _leaves(annotation: Any, seen: set[Any]) -> Iterator[Any]:
    """The types of the values in an annotation, those of the fields of models included."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation not in seen:
            seen.add(annotation)
            for field in annotation.model_fields.values():
                yield from _leaves(field.annotation, seen)
    elif typing.get_origin(annotation) is typing.Literal:
        yield from {type(one) for one in typing.get_args(annotation)}
    elif isinstance(annotation, typing.NewType):
        yield from _leaves(annotation.__supertype__, seen)
    elif typing.get_origin(annotation) is typing.Annotated:
        yield from _leaves(typing.get_args(annotation)[0], seen)
    elif arguments := [one for one in typing.get_args(annotation) if one is not Ellipsis]:
        for one in arguments:
            yield from _leaves(one, seen)
    else:
        yield annotation
