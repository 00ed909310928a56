"""Branches, runs, feedback, usage and search over HTTP, on both databases."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from chatledger import ChatMessage, Feedback, Ledger, NewThread
from tests.server.conftest import client_of, json_of

QUESTION = {"role": "user", "content": "What is the weather in Tokyo?", "message_id": "q"}
ANSWER = {"role": "assistant", "content": "Sunny.", "message_id": "a"}
OTHER = {"role": "assistant", "content": "Rainy.", "message_id": "b"}


@pytest.fixture
async def thread(client: httpx.AsyncClient) -> str:
    body = {"messages": [QUESTION, ANSWER], "create": True, "run_id": "r"}
    json_of(await client.post("/v1/threads/t/messages?user_id=ada", json=body), 201)
    return "/v1/threads/t"


async def test_me_is_the_caller(app: FastAPI, client: httpx.AsyncClient) -> None:
    may = {"scope": "write"}
    assert json_of(await client.get("/v1/me")) == {"tenant": "default", "user_id": None, "admin": True} | may
    async with client_of(app, "ada") as ada:
        assert json_of(await ada.get("/v1/me")) == {"tenant": "default", "user_id": "ada", "admin": False} | may


async def test_a_branch_is_forked_chosen_and_rewound(client: httpx.AsyncClient, thread: str) -> None:
    fork = json_of(await client.post(f"{thread}/branches", json={"at": "q"}), 201)
    assert (fork["branch"], fork["active"]) == (1, True)
    json_of(await client.post(f"{thread}/messages", json={"messages": [OTHER]}), 201)

    found = json_of(await client.get(f"{thread}/messages/b/alternatives"))["items"]
    assert [(one["message"]["content"], one["current"]) for one in found] == [("Sunny.", False), ("Rainy.", True)]
    json_of(await client.post(f"{thread}/branches/0/activate"))
    assert [one["active"] for one in json_of(await client.get(f"{thread}/branches"))["items"]] == [True, False]

    stale = json_of(await client.get(f"{thread}/messages"))["mark"]
    json_of(await client.post(f"{thread}/messages", json={"messages": [{"role": "user", "content": "Thanks"}]}), 201)
    refused = await client.post(f"{thread}/rewind", json={"to": "q"}, headers={"If-Match": f'"{stale}"'})
    assert json_of(refused, 412)["type"] == "urn:chatledger:VersionConflict"
    removed = json_of(await client.post(f"{thread}/rewind", json={"to": "q"}))["items"]
    assert [message["content"] for message in removed] == ["Sunny.", "Thanks"]


async def test_a_thread_is_copied_and_its_calls_are_closed(client: httpx.AsyncClient, thread: str) -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "c", "name": "weather", "arguments": "{}"}]}
    json_of(await client.post(f"{thread}/messages", json={"messages": [{"role": "user", "content": "?"}, call]}), 201)
    closed = json_of(await client.post(f"{thread}/close-open-calls", json={"reason": "stopped"}))
    assert [(one["role"], one["content"]) for one in closed["messages"]] == [("tool", "stopped")]
    copy = json_of(await client.post(f"{thread}/copy", json={"until": "a", "title": None}), 201)
    assert (copy["user_id"], copy["title"]) == ("ada", None)
    read = json_of(await client.get(f"/v1/threads/{copy['thread_id']}/messages"))
    assert [one["message_id"] for one in read["items"]] == ["q", "a"]


async def test_a_run_is_started_finished_and_listed(client: httpx.AsyncClient, thread: str) -> None:
    body = {"run_id": "r/2", "agent": "support", "model": "small-1", "input": {"api_key": "k"}, "metadata": {"v": 1}}
    run = json_of(await client.post(f"{thread}/runs", json=body), 201)
    assert (run["status"], run["input"]) == ("running", {"api_key": "***"})
    end = {"status": "completed", "usage": {"input_tokens": 5, "output_tokens": 2, "cost": "0.0012"}}
    finished = json_of(await client.post("/v1/runs/r%2F2/finish", json=end))
    assert finished["usage"]["cost"] == "0.0012"
    assert json_of(await client.get("/v1/runs/r%2F2")) == finished
    other = json_of(await client.post("/v1/runs/r%2F2/finish", json={"status": "failed"}), 409)
    assert (other["type"], other["run_id"]) == ("urn:chatledger:RunConflict", "r/2")
    listed = json_of(await client.get("/v1/runs", params={"thread_id": "t", "status": "completed"}))
    assert [one["run_id"] for one in listed["items"]] == ["r/2"]
    pages = json_of(await client.get("/v1/runs", params={"limit": 1}))
    rest = json_of(await client.get("/v1/runs", params={"cursor": pages["next_cursor"]}))
    assert [one["run_id"] for one in pages["items"] + rest["items"]] == ["r", "r/2"]


async def test_a_run_is_deleted_and_its_messages_stay(client: httpx.AsyncClient, thread: str) -> None:
    json_of(await client.post("/v1/feedback", json={"run_id": "r", "key": "thumb", "score": 1}), 201)
    tag = (await client.get(f"{thread}/messages")).headers["ETag"]
    assert json_of(await client.delete("/v1/runs/r"))["rows"] == {
        "feedback": 1,
        "run_decisions": 0,
        "run_leases": 0,
        "runs": 1,
    }
    assert json_of(await client.delete("/v1/runs/r"), 404)["type"] == "urn:chatledger:RunNotFound"
    left = json_of(await client.get(f"{thread}/messages", headers={"If-None-Match": tag}))["items"]
    assert [(one["message_id"], one["run_id"]) for one in left] == [("q", None), ("a", None)]
    assert json_of(await client.get("/v1/feedback", params={"events": True}))["items"] == []


async def test_a_score_is_recorded_once_replaced_and_retracted(client: httpx.AsyncClient, thread: str) -> None:
    score = {"run_id": "r", "key": "thumb", "score": 1, "message_id": "a", "user_id": "ada", "kwargs": {"why": "good"}}
    first = json_of(await client.post("/v1/feedback", json=score, headers={"Idempotency-Key": "k"}), 201)
    again = json_of(await client.post("/v1/feedback", json=score, headers={"Idempotency-Key": '"k"'}), 201)
    assert again == first
    second = json_of(await client.post("/v1/feedback", json={**score, "score": 0}), 201)
    assert len(json_of(await client.get("/v1/feedback", params={"run_id": "r", "events": True}))["items"]) == 2
    current = json_of(await client.get("/v1/feedback", params={"thread_id": "t"}))["items"]
    assert [one["feedback_id"] for one in current] == [second["feedback_id"]]
    [summary] = json_of(await client.get("/v1/feedback/summary", params={"events": True}))["items"]
    assert (summary["count"], summary["mean"]) == (2, 0.5)
    [compared] = json_of(await client.get("/v1/feedback/compare", params={"key": "thumb"}))["items"]
    assert (compared["count"], compared["mean"], compared["method"]) == (1, 0, "wilson")
    assert json_of(await client.delete(f"/v1/feedback/{second['feedback_id']}"))["retracted_at"]
    assert json_of(await client.get("/v1/feedback"))["items"] == []


@pytest.mark.parametrize("wrong", [{"key": ""}, {"score": "x"}, {"score": None}, {"stars": 5}, {"call_index": 0}])
async def test_a_wrong_score_is_refused(client: httpx.AsyncClient, thread: str, wrong: dict[str, object]) -> None:
    refused = await client.post("/v1/feedback", json={"run_id": "r", "key": "k", "score": 1, **wrong})
    assert json_of(refused, 400)["status"] == 400
    assert json_of(await client.get("/v1/feedback"))["items"] == []


async def test_a_user_scores_as_themselves(app: FastAPI, ledger: Ledger, thread: str) -> None:
    theirs = await ledger.feedback.record(Feedback(run_id="r", key="eval", score=0.2))
    async with client_of(app, "ada") as ada:
        score = {"run_id": "r", "key": "thumb", "score": 1}
        assert json_of(await ada.post("/v1/feedback", json=score), 201)["user_id"] == "ada"
        refused = json_of(await ada.post("/v1/feedback", json={**score, "user_id": "bob"}), 400)
        assert refused["argument"] == "user_id"
        denied = json_of(await ada.delete(f"/v1/feedback/{theirs.feedback_id}"), 403)
        assert denied["type"] == "urn:chatledger:TenantOnly"
    assert {one.user_id for one in await ledger.feedback.list(events=True)} == {None, "ada"}


async def test_usage_and_stats_are_summed(client: httpx.AsyncClient, ledger: Ledger, thread: str) -> None:
    await ledger.runs.start("t", run_id="r2", agent="support", model="small-1", metadata={"team": "x"})
    end = {"status": "failed", "usage": {"input_tokens": 7, "cost": "0.10"}}
    json_of(await client.post("/v1/runs/r2/finish", json=end))
    [one] = json_of(await client.get("/v1/usage"))["items"]
    assert (one["runs"], one["failed"], one["input_tokens"], one["cost"]) == (2, 1, 7, "0.10")
    query = {"by": ["user", "model", "metadata.team"], "model": "small-1"}
    [group] = json_of(await client.get("/v1/usage", params=query))["items"]
    assert (group["user_id"], group["model"], group["metadata"]) == ("ada", "small-1", {"team": "x"})
    assert json_of(await client.get("/v1/usage", params={"by": "colour"}), 400)["argument"] == "by"
    counts = json_of(await client.get("/v1/stats", params={"by": "model"}))["items"]
    assert {item["model"]: (item["messages"], item["runs"]) for item in counts} == {None: (2, 1), "small-1": (0, 1)}


async def test_search_finds_words_and_pages(client: httpx.AsyncClient, ledger: Ledger, thread: str) -> None:
    await ledger.messages.append(
        "u", [ChatMessage(role="user", content="tokyo?")], create=NewThread(title="Trip to Tokyo")
    )
    hits = json_of(await client.get("/v1/search/messages", params={"q": "TOKYO"}))["items"]
    assert [(hit["thread_id"], hit["match"]) for hit in hits] == [("u", "tokyo"), ("t", "Tokyo")]
    threads = json_of(await client.get("/v1/search/threads", params={"q": "tokyo", "limit": 1}))
    assert [(hit["thread_id"], hit["field"]) for hit in threads["items"]] == [("u", "title")]
    more = {"q": "tokyo", "cursor": threads["next_cursor"]}
    assert [hit["thread_id"] for hit in json_of(await client.get("/v1/search/threads", params=more))["items"]] == ["t"]
    roles = {"q": "sunny", "role": ["user", "tool"], "thread_id": "t"}
    assert json_of(await client.get("/v1/search/messages", params=roles))["items"] == []
    assert json_of(await client.get("/v1/search/messages", params={"q": " "}), 400)["argument"] == "query"


async def test_a_list_refuses_a_cursor_that_it_did_not_give(client: httpx.AsyncClient) -> None:
    for path in ("/v1/threads", "/v1/runs", "/v1/feedback", "/v1/search/messages"):
        searched = {"q": "x"} if "search" in path else {}
        refused = json_of(await client.get(path, params={"cursor": "nonsense", **searched}), 400)
        assert refused["type"] == "urn:chatledger:InvalidCursor", path


@pytest.mark.parametrize(
    "path", ["/v1/threads", "/v1/usage", "/v1/stats", "/v1/feedback/summary", "/v1/search/messages"]
)
@pytest.mark.parametrize("wrong", ["0.5", "1767225600", "-1", "1e3", "tomorrow"])
async def test_a_time_that_is_no_iso_text_is_refused(client: httpx.AsyncClient, path: str, wrong: str) -> None:
    query = {"q": "x"} if "search" in path else {}
    for name in ("since", "until"):
        refused = await client.get(path, params={name: wrong, **query})
        assert json_of(refused, 400)["errors"][0]["path"] == f"query.{name}"
        json_of(await client.get(path, params={name: "2026-01-31T08:00:00+01:00", **query}))
