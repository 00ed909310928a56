"""The gate: hosts, pages of other sites, and callers."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from chatledger import InvalidArgument, Ledger
from chatledger.server import Caller, create_app
from tests.server.conftest import by_header, client_of, json_of

SITE = "https://chat.example"


def client_with(ledger: Ledger, user: str | None = "*", **options: Any) -> httpx.AsyncClient:
    return client_of(create_app(ledger, authenticate=by_header, **options), user)


@pytest.mark.parametrize("path", ["/v1/threads", "/v1/openapi.json", "/v1/me", "/v1/nowhere", "/nowhere"])
async def test_a_request_without_a_caller_is_refused(ledger: Ledger, path: str) -> None:
    async with client_with(ledger, None) as nobody:
        for method in ("GET", "POST", "DELETE"):
            refused = await nobody.request(method, path)
            assert json_of(refused, 401)["type"] == "urn:chatledger:Unauthenticated"
            assert refused.headers["WWW-Authenticate"] == "Bearer"
        assert (await nobody.get("/healthz")).status_code == 200


async def test_a_request_to_another_host_is_refused(ledger: Ledger) -> None:
    async with client_with(ledger, hosts=["chat.example", "localhost"]) as client:
        for host in ("evil.example", "evil.example:80", "chat.example.evil.example", "localhost.evil.example:8484", ""):
            refused = await client.get("/healthz", headers={"Host": host})
            assert json_of(refused, 421)["type"] == "urn:chatledger:UnknownHost", host
        for host in ("chat.example", "CHAT.example:8484", "localhost:1"):
            json_of(await client.get("/v1/me", headers={"Host": host}))


FOREIGN: list[dict[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://["},
    {"Origin": "http://testserver.evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_the_page_of_another_site_cannot_write(ledger: Ledger, headers: dict[str, str]) -> None:
    async with client_with(ledger) as client:
        refused = await client.post("/v1/threads", json={"thread_id": "t"}, headers=headers)
        assert json_of(refused, 403)["type"] == "urn:chatledger:ForeignSite"
        assert json_of(await client.get("/v1/threads"))["items"] == []


OWN: list[dict[str, str]] = [{}, {"Origin": "http://testserver"}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": SITE}]


@pytest.mark.parametrize("headers", OWN, ids=str)
async def test_its_own_page_and_a_named_site_can_write(ledger: Ledger, headers: dict[str, str]) -> None:
    async with client_with(ledger, cors=[SITE]) as client:
        json_of(await client.post("/v1/threads", json={}, headers=headers), 201)


async def test_other_sites_may_read_nothing_unless_they_are_named(ledger: Ledger) -> None:
    preflight = {"Origin": SITE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "If-Match"}
    async with client_with(ledger) as client:
        answer = await client.get("/v1/threads", headers={"Origin": SITE})
        assert "Access-Control-Allow-Origin" not in answer.headers
        asked = await client.options("/v1/threads", headers=preflight)
        assert asked.status_code == 400
        assert "Access-Control-Allow-Origin" not in asked.headers
    async with client_with(ledger, cors=[SITE]) as client:
        answer = await client.get("/v1/threads", headers={"Origin": SITE})
        assert answer.headers["Access-Control-Allow-Origin"] == SITE
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert "ETag" in answer.headers["Access-Control-Expose-Headers"]
        assert (await client.options("/v1/threads", headers=preflight)).status_code == 200
        other = await client.get("/v1/threads", headers={"Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in other.headers


WRONG: list[dict[str, Any]] = [
    {},
    {"user_id": "ada", "admin": True},
    {"user_id": None},
    {"user_id": 1},
    {"user_id": "ada", "scope": "all"},
    {"user_id": "ada", "scope": None},
    {"user_id": "ada", "scope": "operator"},
    {"admin": True, "scope": "operator"},
    {"admin": True, "scope": "ask"},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_an_administrator_is_said_to_be_one(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        Caller(**wrong)


async def test_a_caller_without_a_valid_name_reads_nothing(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    async with client_with(ledger, "") as nameless:
        assert (await nameless.get("/v1/threads")).status_code >= 400


@pytest.mark.parametrize("origin", ["*", "https://chat.example/", "chat.example", "https://chat.example/path"])
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(InvalidArgument, match="cors"):
        create_app(Ledger.open(), authenticate=by_header, cors=[origin])


async def test_what_the_api_answers_is_neither_cached_nor_embedded(ledger: Ledger) -> None:
    async with client_with(ledger) as client:
        for path in ("/v1/threads", "/v1/nowhere", "/healthz"):
            headers = (await client.get(path)).headers
            assert headers["Cache-Control"] == "no-store"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert (await client.head("/healthz")).status_code == 200
