"""Names of the API from before 0.1.0 are refused, and the refusal names the new ones."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from chatledger import Ledger
from chatledger.server import create_app
from chatledger.server.requests.renamed import FIELDS, ROUTES
from tests.server.conftest import by_header, json_of

DESCRIBED = create_app(Ledger.open("never-opened.db"), authenticate=by_header).openapi()["paths"]
OPERATIONS = {
    one["operationId"]: (method.upper(), path, one)
    for path, methods in DESCRIBED.items()
    for method, one in methods.items()
}
OLD_FIELDS = [(operation, place, says) for operation, places in FIELDS.items() for place, says in places.items()]


@pytest.mark.parametrize(("operation", "place", "says"), OLD_FIELDS, ids=lambda value: str(value)[:40])
async def test_an_old_parameter_or_field_is_answered_with_the_new_name(
    client: httpx.AsyncClient, operation: str, place: str, says: str
) -> None:
    method, path, _ = OPERATIONS[operation]
    where, _, name = place.partition(".")
    sent: dict[str, Any] = {"params": {name: "1"}} if where == "query" else {"json": {name: 1}}
    refused = json_of(await client.request(method, path.format_map(_Ids()), **sent), 400)
    assert refused["type"] == "urn:chatledger:InvalidRequest"
    assert says in refused["detail"]
    assert {"path": place, "detail": says} in [
        {"path": one["path"], "detail": one["detail"]} for one in refused["errors"]
    ]


@pytest.mark.parametrize(("route", "says"), ROUTES.items())
async def test_an_old_route_is_answered_with_the_new_one(client: httpx.AsyncClient, route: str, says: str) -> None:
    method, path = route.split()
    url = path.replace("{thread_id}", quote("a/b", safe="")).replace("{feedback_id}", "f")
    refused = json_of(await client.request(method, url), 400)
    assert (refused["type"], refused["detail"]) == ("urn:chatledger:InvalidRequest", f"path: {says}")
    json_of(await client.request("DELETE", f"{url}/more"), 404)


async def test_a_long_body_is_answered_with_the_new_name_too(client: httpx.AsyncClient) -> None:
    body = {"at": 1, "title": "x" * 20_000}
    assert "at is now until" in json_of(await client.post("/v1/threads/t/copy", json=body), 400)["detail"]


async def test_a_field_that_is_missing_is_only_missing(client: httpx.AsyncClient) -> None:
    assert json_of(await client.post("/v1/threads/t/rewind", json={}), 400)["detail"] == "body.to: Field required"


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_of_the_table_is_gone(route: str) -> None:
    method, path = route.split()
    assert method.lower() not in DESCRIBED.get(path, {})


async def test_who_has_no_token_learns_no_name(app: FastAPI) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as stranger:
        json_of(await stranger.get("/v1/feedback/current"), 401)


class _Ids(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return key
