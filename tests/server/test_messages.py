"""Threads and messages over HTTP, on both databases."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest

from chatledger import ChatMessage, Ledger
from tests.server.conftest import json_of

QUESTION = {"role": "user", "content": "What is the weather in Tokyo?"}
ANSWER = {"role": "assistant", "content": "21 °C and sunny."}


async def test_a_thread_is_created_appended_to_and_read_back(client: httpx.AsyncClient) -> None:
    thread = json_of(await client.post("/v1/threads", json={"title": "Weather", "user_id": "ada"}), 201)
    path = f"/v1/threads/{thread['thread_id']}/messages"

    stored = json_of(await client.post(path, json={"messages": [QUESTION, ANSWER]}), 201)
    assert [message["seq"] for message in stored["messages"]] == [1, 2]

    read = json_of(await client.get(path))
    assert [message["content"] for message in read["items"]] == [QUESTION["content"], ANSWER["content"]]
    assert read["mark"] == stored["mark"]
    assert json_of(await client.get("/v1/threads"))["items"][0]["preview"] == ANSWER["content"]


async def test_a_repeat_with_the_same_key_stores_nothing(client: httpx.AsyncClient) -> None:
    body = {"messages": [QUESTION], "create": True}
    first = await client.post("/v1/threads/t/messages", json=body, headers={"Idempotency-Key": '"k1"'})
    again = await client.post("/v1/threads/t/messages", json=body, headers={"Idempotency-Key": "k1"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["replayed"]
    assert again.json()["messages"] == first.json()["messages"]


async def test_a_message_has_its_text_and_can_be_sent_as_it_was_read(client: httpx.AsyncClient, ledger: Ledger) -> None:
    parts = [{"kind": "text", "text": "What "}, {"kind": "text", "text": "is this?"}]
    body = {"messages": [{"role": "user", "content": parts, "message_id": "m"}], "create": True}
    [stored] = json_of(await client.post("/v1/threads/t/messages", json=body), 201)["messages"]
    assert list(stored)[:3] == ["role", "content", "text"]
    read = json_of(await client.get("/v1/threads/t/messages/m"))
    revised = json_of(await client.put("/v1/threads/t/messages/m", json={**read, "content": "This?"}))
    [revision] = json_of(await client.get("/v1/threads/t/messages/m/revisions"))["items"]
    [alternative] = json_of(await client.get("/v1/threads/t/messages/m/alternatives"))["items"]
    [page] = json_of(await client.get("/v1/threads/t/messages"))["items"]
    whole = [stored, read, revision["message"]]
    assert [one["text"] for one in whole] == ["What is this?"] * 3
    assert [one["text"] for one in (revised, alternative["message"], page)] == ["This?"] * 3
    [removed] = json_of(await client.post("/v1/threads/t/rewind", json={"to": None}))["items"]
    assert removed["text"] == "This?"


async def test_a_text_in_place_of_the_content_is_refused(client: httpx.AsyncClient) -> None:
    body = {"messages": [{"role": "user", "text": "Hi"}], "create": True}
    refused = json_of(await client.post("/v1/threads/t/messages", json=body), 400)
    assert "text is made of content; send content" in refused["detail"]
    assert refused["errors"][0]["path"] == "body.messages.0"


async def test_an_append_at_an_old_mark_is_refused(client: httpx.AsyncClient) -> None:
    body = {"messages": [QUESTION], "create": True}
    first = await client.post("/v1/threads/t/messages", json=body)
    mark = first.headers["ETag"]
    json_of(await client.post("/v1/threads/t/messages", json={"messages": [ANSWER]}, headers={"If-Match": mark}), 201)
    refused = await client.post("/v1/threads/t/messages", json=body, headers={"If-Match": mark})
    problem = json_of(refused, 412)
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert problem["type"] == "urn:chatledger:VersionConflict"
    assert (problem["expected"], problem["actual"]) == (1, 2)


async def test_pages_go_both_ways(client: httpx.AsyncClient, ledger: Ledger) -> None:
    messages = [ChatMessage(role="user", content=str(number)) for number in range(1, 131)]
    await ledger.messages.append("t", messages, create=True)
    newest = json_of(await client.get("/v1/threads/t/messages"))
    assert [message["seq"] for message in newest["items"]] == list(range(81, 131))
    before = json_of(await client.get("/v1/threads/t/messages", params={"before": newest["previous_cursor"]}))
    assert [message["seq"] for message in before["items"]] == list(range(31, 81))
    after = json_of(await client.get("/v1/threads/t/messages", params={"after": before["next_cursor"], "limit": 10}))
    assert [message["seq"] for message in after["items"]] == list(range(81, 91))
    by_seq = json_of(await client.get("/v1/threads/t/messages", params={"after": 80, "branch": 0, "limit": 10}))
    assert by_seq["items"] == after["items"]
    since = json_of(await client.get("/v1/threads/t/messages", params={"after": newest["mark"]}))
    assert (since["items"], since["next_cursor"]) == ([], None)
    for place, argument in (("80", "after"), ("", "cursor"), ("x", "cursor")):
        refused = json_of(await client.get("/v1/threads/t/messages", params={"after": place}), 400)
        assert refused["argument"] == argument


@pytest.mark.parametrize("thread_id", ["a/b", "..", "a b?c#d", "search", "%2F", "日本", "a+b", "x" * 512])
async def test_an_id_may_hold_any_character(client: httpx.AsyncClient, thread_id: str) -> None:
    path = f"/v1/threads/{quote(thread_id, safe='') if thread_id != '..' else '%2E%2E'}/messages"
    json_of(await client.post(path, json={"messages": [QUESTION], "create": True}), 201)
    assert json_of(await client.get(path))["thread_id"] == thread_id


async def test_a_payload_of_a_provider_is_stored_and_read(client: httpx.AsyncClient) -> None:
    payload = [QUESTION, ANSWER]
    body = {"payload": payload, "format": "openai-chat", "create": True}
    json_of(await client.post("/v1/threads/t/messages", json=body), 201)
    read = json_of(await client.get("/v1/threads/t/messages", params={"format": "openai-chat"}))
    assert read["payload"] == payload
    model = json_of(await client.get("/v1/threads/t/prompt", params={"format": "anthropic"}))
    assert model["payload"]["messages"][0]["role"] == "user"


async def test_a_message_is_revised_and_retracted(client: httpx.AsyncClient) -> None:
    message = {**QUESTION, "message_id": "m/1"}
    json_of(await client.post("/v1/threads/t/messages", json={"messages": [message], "create": True}), 201)
    revised = await client.put("/v1/threads/t/messages/m%2F1", json={"role": "user", "content": "In Kyoto?"})
    assert json_of(revised)["content"] == "In Kyoto?"
    changes = json_of(await client.get("/v1/threads/t/messages/m%2F1/revisions"))["items"]
    assert [(one["kind"], one["message"]["content"]) for one in changes] == [("revised", QUESTION["content"])]
    assert json_of(await client.delete("/v1/threads/t/messages/m%2F1"))["content"] == "In Kyoto?"
    assert json_of(await client.get("/v1/threads/t/messages"))["items"] == []


async def test_text_that_is_no_unicode_and_numbers_that_are_no_json_are_sent(
    client: httpx.AsyncClient, ledger: Ledger
) -> None:
    message = ChatMessage(role="user", content="half \ud800", custom_data={"n": float("nan"), "big": 10**30})
    await ledger.messages.append("t", [message], create=True)
    [read] = json_of(await client.get("/v1/threads/t/messages"))["items"]
    assert read["content"] == "half \ud800"
    assert read["custom_data"] == {"n": None, "big": 10**30}


async def test_an_unknown_role_is_judged_by_the_rules_of_the_thread(client: httpx.AsyncClient) -> None:
    body = {"messages": [{"role": "narrator", "content": "Once"}], "create": True}
    refused = json_of(await client.post("/v1/threads/t/messages", json=body), 422)
    assert (refused["rule"], refused["index"]) == ("R3", 0)
    stored = json_of(await client.post("/v1/threads/t/messages", json={**body, "rules": "lenient"}), 201)
    assert stored["messages"][0]["role"] == "narrator"
