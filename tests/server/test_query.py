"""What a request gets for a parameter that its route does not have, and how much of a wrong value comes back."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from chatledger import Ledger
from chatledger.server import create_app
from tests.server.conftest import by_header, client_of, json_of

DESCRIBED = create_app(Ledger.open("never-opened.db"), authenticate=by_header).openapi()["paths"]
ROUTES = [(method, path) for path, methods in DESCRIBED.items() for method in methods if path.startswith("/v1/")]


async def test_a_parameter_that_a_route_does_not_have_is_refused(app: FastAPI) -> None:
    async with client_of(app) as client:
        for method, path in ROUTES:
            url = path.replace("{branch}", "0").replace("{", "").replace("}", "")
            refused = json_of(await client.request(method, url, params={"limitt": "1"}), 400)
            if "conversations" in path:
                assert (refused["error"]["param"], refused["error"]["code"]) == ("limitt", "unknown_parameter")
                continue
            assert refused["type"] == "urn:chatledger:InvalidRequest"
            assert refused["detail"] == "query.limitt: is no parameter of this request"
            assert [one["path"] for one in refused["errors"]] == ["query.limitt"]


async def test_the_description_has_no_parameters(client: httpx.AsyncClient) -> None:
    refused = json_of(await client.get("/v1/openapi.json?version=1"), 400)
    assert refused["detail"] == "query.version: is no parameter of this request"
    assert (await client.get("/healthz?from=balancer")).status_code == 200


LISTS = {"sum_usage": "by", "search_messages": "role", "list_items": "include[]", "retrieve_item": "include[]"}
"""Parameters that a request may repeat."""


def single() -> list[tuple[str, str]]:
    """Each path that is read, with each parameter that has one value."""
    return [
        (path, parameter["name"])
        for path, methods in DESCRIBED.items()
        for parameter in methods.get("get", {}).get("parameters", ())
        if parameter["in"] == "query" and LISTS.get(methods["get"]["operationId"]) != parameter["name"]
    ]


async def test_a_parameter_that_is_there_twice_is_refused(app: FastAPI) -> None:
    assert len(single()) > 60
    async with client_of(app) as client:
        for path, name in single():
            refused = await client.get(path.replace("{", "").replace("}", ""), params={name: ["1", "1"]})
            said = f"{name}: is there 2 times, and has one value"
            if "conversations" in path:
                assert json_of(refused, 400)["error"]["param"] == name
                assert json_of(refused, 400)["error"]["message"] == said
            else:
                assert f"query.{said}" in json_of(refused, 400)["detail"]


async def test_a_list_may_be_repeated(client: httpx.AsyncClient) -> None:
    json_of(await client.get("/v1/usage", params={"by": ["user", "model"]}))
    json_of(await client.get("/v1/search/messages", params={"q": "a", "role": ["user", "tool"]}))
    conversation = json_of(await client.post("/v1/conversations", json={}))["id"]
    included = {"include[]": ["reasoning.encrypted_content", "message.output_text.logprobs"]}
    json_of(await client.get(f"/v1/conversations/{conversation}/items", params=included))


@pytest.mark.parametrize(
    ("path", "place", "detail"),
    [
        ("/v1/threads?archived=1", "query.archived", "must be true or false"),
        ("/v1/threads?newest_first=yes", "query.newest_first", "must be true or false"),
        ("/v1/threads?limit=1.0", "query.limit", "must be a whole number"),
        ("/v1/threads?limit=1_0", "query.limit", "must be a whole number"),
        ("/v1/threads?since=0.5", "query.since", "must be a time such as 2026-01-31T08:00:00Z, and not a number"),
        ("/v1/threads/t/messages?branch=false", "query.branch", "must be a whole number"),
        ("/v1/threads/t/messages?branch=%200", "query.branch", "must be a whole number"),
    ],
)
async def test_a_text_that_is_only_like_a_value_is_refused(
    client: httpx.AsyncClient, path: str, place: str, detail: str
) -> None:
    refused = json_of(await client.get(path), 400)
    assert [(one["path"], one["detail"]) for one in refused["errors"]] == [(place, detail)]


async def test_a_number_in_a_path_is_one_too(client: httpx.AsyncClient) -> None:
    refused = json_of(await client.post("/v1/threads/t/branches/1.0/activate"), 400)
    assert refused["errors"][0]["path"] == "path.branch"


@pytest.mark.parametrize("path", ["/", "/usage", "/threads/t", "/login", "/threads/t/messages/m/json"])
async def test_the_page_refuses_them_in_words(client: httpx.AsyncClient, path: str) -> None:
    for query, said in (("limitt=1", "query.limitt: is no parameter"), ("b=1&a=2", "query.a: is no parameter")):
        refused = await client.get(f"{path}?{query}")
        assert (refused.status_code, refused.headers["Content-Type"]) == (400, "text/html; charset=utf-8")
        assert said in refused.text
    if path != "/threads/t/messages/m/json":
        name = {"/": "archived", "/usage": "days", "/threads/t": "branch", "/login": "next"}[path]
        assert "is there 2 times" in (await client.get(f"{path}?{name}=1&{name}=1")).text


@pytest.mark.parametrize("path", ["/v1/threads", "/v1/runs", "/v1/search/messages?q=a"])
async def test_a_long_wrong_cursor_does_not_come_back_whole(client: httpx.AsyncClient, path: str) -> None:
    params = {**dict(httpx.URL(path).params), "cursor": "WyJh" * 10_000}
    refused = await client.get(httpx.URL(path).path, params=params)
    assert json_of(refused, 400)["type"] == "urn:chatledger:InvalidCursor"
    assert len(refused.content) < 5_000
    assert json_of(refused, 400)["cursor"].startswith("WyJhWyJh")


async def test_a_user_that_the_token_does_not_see_is_named_in_words_of_the_api(app: FastAPI) -> None:
    async with client_of(app, "eve") as eve:
        refused = json_of(await eve.get("/v1/threads", params={"user_id": "ada"}), 400)
        assert refused["detail"] == "user_id is another user than the one whose threads are seen here; leave it out"
        assert json_of(await eve.get("/v1/feedback", params={"user_id": "ada"}))["items"] == []
