"""The server inside another application, at a path of it."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from chatledger import Ledger
from chatledger.server import create_app
from tests.server.conftest import by_header, client_of, json_of

QUESTION = {"messages": [{"role": "user", "content": "?", "message_id": "m/1"}], "create": True}


@pytest.fixture
def other(ledger: Ledger) -> FastAPI:
    other = FastAPI()

    @other.get("/v1/me")
    async def me() -> str:
        return "the other application"

    for path in ("/conversations", "/a b/ü"):
        other.mount(path, create_app(ledger, authenticate=by_header))
    return other


@pytest.mark.parametrize("prefix", ["/conversations", "/a%20b/%C3%BC"])
@pytest.mark.parametrize("thread_id", ["t", "a/b", "conversations/v1/threads", "日本 %2F?", "a+b"])
async def test_it_serves_ids_of_any_characters(other: FastAPI, prefix: str, thread_id: str) -> None:
    path = f"{prefix}/v1/threads/{quote(thread_id, safe='')}/messages"
    async with client_of(other) as client:
        json_of(await client.post(path, json=QUESTION), 201)
        assert json_of(await client.get(path))["thread_id"] == thread_id
        assert json_of(await client.get(f"{path}/m%2F1"))["message_id"] == "m/1"
        assert json_of(await client.get(f"{prefix}/v1/openapi.json"))["info"]["title"] == "chatledger"


async def test_its_gate_and_its_problems_are_its_own(other: FastAPI) -> None:
    async with client_of(other, None) as nobody:
        assert json_of(await nobody.get("/v1/me")) == "the other application"
        refused = await nobody.get("/conversations/v1/me")
        assert json_of(refused, 401)["type"] == "urn:chatledger:Unauthenticated"
        json_of(await nobody.get("/conversations/healthz"))
    async with client_of(other) as client:
        missing = await client.get("/conversations/v1/threads/none")
        assert json_of(missing, 404)["type"] == "urn:chatledger:ThreadNotFound"
        assert (await client.get("/nowhere")).json() == {"detail": "Not Found"}


async def test_an_application_opens_and_closes_its_own_ledger(tmp_path: object) -> None:
    app = create_app(Ledger.open(f"{tmp_path}/chat.db"), authenticate=by_header)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://x") as client:
        admin = {"X-User": "*"}
        early = await client.get("/v1/threads", headers=admin)
        assert json_of(early, 503)["retryable"] is True
        async with app.router.lifespan_context(app):
            assert json_of(await client.get("/v1/threads", headers=admin))["items"] == []
            json_of(await client.get("/healthz"))
