"""A server that makes the ids of what users' tokens store."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from chatledger import InvalidArgument, Ledger
from chatledger.server import create_app
from tests.server.conftest import by_header, client_of, json_of

QUESTION = {"role": "user", "content": "?"}
IN_FORMATS: list[dict[str, Any]] = [
    {"messages": [QUESTION], "run_id": "free"},
    {"messages": [{**QUESTION, "run_id": "free"}]},
    {"payload": [QUESTION], "format": "openai-chat", "run_id": "free"},
    {"payload": [{"type": "human", "content": "?", "run_id": "free"}], "format": "agent-service"},
    {"payload": [{"type": "human", "content": "?", "run_id": "free"}]},
]


@pytest.fixture
def app(ledger: Ledger) -> FastAPI:
    return create_app(ledger, authenticate=by_header, ids="server")


CHOSEN: dict[str, tuple[str, dict[str, Any]]] = {
    "thread_id": ("/v1/threads", {"thread_id": "free", "exist_ok": True}),
    "thread_id of a copy": ("/v1/threads/t/copy", {"thread_id": "free"}),
    "create": ("/v1/threads/free/messages", {"messages": [QUESTION], "create": True}),
    "run_id": ("/v1/threads/t/runs", {"run_id": "free"}),
    "feedback_id": ("/v1/feedback", {"run_id": "r", "key": "k", "score": 1, "feedback_id": "free"}),
}


@pytest.mark.parametrize("name", CHOSEN)
async def test_a_user_chooses_no_id_and_an_administrator_does(ledger: Ledger, app: FastAPI, name: str) -> None:
    await ledger.user("ada").threads.create("t")
    await ledger.user("ada").runs.start("t", run_id="r")
    path, body = CHOSEN[name]
    async with client_of(app, "ada") as ada, client_of(app) as administrator:
        refused = json_of(await ada.post(path, json=body), 400)
        assert (refused["type"], refused["argument"]) == ("urn:chatledger:InvalidArgument", name.split()[0])
        assert "Idempotency-Key" in refused["detail"]
        json_of(await administrator.post(path, json=body), 201)


@pytest.mark.parametrize("body", IN_FORMATS, ids=str)
async def test_an_append_creates_no_run_of_a_chosen_id(ledger: Ledger, app: FastAPI, body: dict[str, Any]) -> None:
    await ledger.user("ada").threads.create("t")
    async with client_of(app, "ada") as ada:
        refused = json_of(await ada.post("/v1/threads/t/messages", json=body), 404)
        assert refused["type"] == "urn:chatledger:RunNotFound"
        assert list((await ledger.messages.history("t")).messages) == []
        await ledger.user("ada").runs.start("t", run_id="free")
        json_of(await ada.post("/v1/threads/t/messages", json=body), 201)


async def test_a_creation_is_safe_to_repeat_with_a_key(ledger: Ledger, app: FastAPI) -> None:
    async with client_of(app, "ada") as ada, client_of(app, "eve") as eve:
        key = {"Idempotency-Key": "once"}
        made = [json_of(await ada.post("/v1/threads", json={"title": "a"}, headers=key), 201) for _ in range(2)]
        assert made[0] == made[1]
        thread = made[0]["thread_id"]
        other = json_of(await eve.post("/v1/threads", json={"title": "a"}, headers=key), 201)
        assert other["thread_id"] != thread
        runs = [json_of(await ada.post(f"/v1/threads/{thread}/runs", json={}, headers=key), 201) for _ in range(2)]
        assert runs[0]["run_id"] == runs[1]["run_id"]
        assert len((await ledger.user("ada").threads.list()).items) == 1
        assert len((await ledger.runs.list()).items) == 1
        elsewhere = json_of(await eve.post(f"/v1/threads/{other['thread_id']}/runs", json={}, headers=key), 201)
        assert elsewhere["run_id"] != runs[0]["run_id"]


async def test_without_a_key_each_creation_is_a_new_one(app: FastAPI) -> None:
    async with client_of(app, "ada") as ada:
        made = [json_of(await ada.post("/v1/threads", json={}), 201)["thread_id"] for _ in range(2)]
        assert made[0] != made[1]


def test_another_word_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="ids"):
        create_app(Ledger.open(), authenticate=by_header, ids="nobody")  # type: ignore[arg-type]
