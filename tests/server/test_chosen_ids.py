"""A server that makes the ids of what users' tokens store."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI

from chatledger import InvalidArgument, Ledger
from chatledger.server import create_app
from chatledger.server.callers.chosen_ids import IdsBy
from tests.conversations import assistant, user
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


@pytest.fixture
async def source(ledger: Ledger) -> str:
    await ledger.user("ada").messages.append("t", [user("1", message_id="first"), assistant("2")], create=True)
    return "/v1/threads/t/copy"


KEY = {"Idempotency-Key": "once"}


@pytest.mark.parametrize("ids", ["client", "server"])
@pytest.mark.parametrize("name", ["ada", "*"])
async def test_a_copy_is_made_once_for_a_key(ledger: Ledger, source: str, ids: IdsBy, name: str) -> None:
    app = create_app(ledger, authenticate=by_header, ids=ids)
    async with client_of(app, name) as client:
        made = [json_of(await client.post(source, json={"until": "first"}, headers=KEY), 201) for _ in range(2)]
        assert made[0] == made[1]
        copied = (await ledger.messages.history(made[0]["thread_id"])).messages
        assert [one.text for one in copied] == ["1"]
        others = [
            json_of(await client.post(source, json={}, headers=headers), 201)["thread_id"]
            for headers in ({"Idempotency-Key": "twice"}, {}, {})
        ]
        assert len({made[0]["thread_id"], *others, "t"}) == 5
    assert await ledger.threads.count() == 5


async def test_copies_of_other_sources_and_users_are_others_with_the_same_key(
    ledger: Ledger, app: FastAPI, source: str
) -> None:
    await ledger.user("ada").threads.create("u")
    await ledger.user("eve").threads.create("v")
    made = []
    async with client_of(app, "ada") as ada, client_of(app, "eve") as eve:
        for client, path in ((ada, source), (ada, "/v1/threads/u/copy"), (eve, "/v1/threads/v/copy")):
            made.append(json_of(await client.post(path, json={}, headers=KEY), 201)["thread_id"])
        json_of(await eve.post(source, json={}, headers=KEY), 404)
    assert len(set(made)) == 3


async def test_copies_at_the_same_time_with_one_key_are_one(ledger: Ledger, app: FastAPI, source: str) -> None:
    async with client_of(app, "ada") as ada:
        made = await asyncio.gather(*(ada.post(source, json={}, headers=KEY) for _ in range(5)))
    assert len({json_of(one, 201)["thread_id"] for one in made}) == 1
    assert await ledger.threads.count() == 2


async def test_a_repeated_copy_is_answered_after_its_source_and_its_title_changed(
    ledger: Ledger, app: FastAPI, source: str
) -> None:
    async with client_of(app, "ada") as ada:
        made = json_of(await ada.post(source, json={}, headers=KEY), 201)["thread_id"]
        await ledger.threads.update(made, title="mine")
        await ledger.threads.delete("t")
        again = json_of(await ada.post(source, json={}, headers=KEY), 201)
        assert (again["thread_id"], again["title"]) == (made, "mine")


async def test_without_a_key_each_creation_is_a_new_one(app: FastAPI) -> None:
    async with client_of(app, "ada") as ada:
        made = [json_of(await ada.post("/v1/threads", json={}), 201)["thread_id"] for _ in range(2)]
        assert made[0] != made[1]


def test_another_word_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="ids"):
        create_app(Ledger.open(), authenticate=by_header, ids="nobody")  # type: ignore[arg-type]
