"""What a request gets for a parameter that its route does not have, and how much of a wrong value comes back."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from chatledger import Ledger
from chatledger.server import create_app
from tests.server.conftest import by_header, client_of, json_of

ROUTES = [
    (method, path)
    for path, methods in create_app(Ledger.open("never-opened.db"), authenticate=by_header).openapi()["paths"].items()
    for method in methods
    if path.startswith("/v1/") and not path.startswith("/v1/conversations")
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_a_parameter_that_a_route_does_not_have_is_refused(app: FastAPI, method: str, path: str) -> None:
    async with client_of(app) as client:
        url = path.replace("{", "").replace("}", "")
        refused = json_of(await client.request(method, url, params={"limitt": "1"}), 400)
        assert refused["type"] == "urn:chatledger:InvalidRequest"
        assert refused["detail"] == "query.limitt: is no parameter of this request"
        assert [one["path"] for one in refused["errors"]] == ["query.limitt"]


async def test_the_paths_of_openai_take_what_a_newer_client_sends(client: httpx.AsyncClient) -> None:
    json_of(await client.get("/v1/conversations", params={"newer": "1"}))


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
