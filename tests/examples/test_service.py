"""The example of a service, driven by HTTP as its clients drive it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from examples.service import model
from examples.service.app import app

from chatledger import Ledger, ToolCallDelta
from tests.conftest import Database
from tests.leases import pass_time


class Client:
    def __init__(self, http: httpx.AsyncClient, ledger: Ledger) -> None:
        self.http = http
        self.ledger = ledger

    async def ask(self, path: str = "messages", **body: str) -> tuple[str, dict[str, Any]]:
        """The words of the answer, and its end."""
        answer = await self.http.post(f"/threads/t/{path}", json=body)
        assert answer.status_code == 200, answer.text
        lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
        *events, end = map(json.loads, lines)
        return "".join(one.get("text", "") for one in events), end

    async def get(self, path: str, **parameters: Any) -> Any:
        return (await self.http.get(path, params=parameters)).raise_for_status().json()

    async def shown(self) -> list[str | None]:
        page = await self.get("/threads/t/messages")
        return [message["content"] for message in page["messages"]]


@pytest.fixture
async def client(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setenv("CHATLEDGER_URL", database.url)
    monkeypatch.setattr(model, "PAUSE", 0)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service", headers={"X-User": "ada"}) as http:
            yield Client(http, app.state.ledger)


WEATHER = ["the weather?", None, "raining in Bergen", "It is raining in Bergen."]


async def test_an_answer_with_a_tool_is_streamed_and_replayed(client: Client) -> None:
    for _ in range(2):
        said, end = await client.ask(text="the weather?", request_id="q1")
        assert (said, end["seq"], end["state"]) == ("It is raining in Bergen.", 4, "complete")
        assert await client.shown() == WEATHER
    run = await client.ledger.runs.get("t/q1")
    assert (run.status, run.usage and run.usage.output_tokens) == ("completed", 8)
    (thread,) = (await client.get("/threads"))["threads"]
    assert thread["preview"] == "It is raining in Bergen."


async def test_other_answers_and_edits_stand_beside_each_other(client: Client) -> None:
    await client.ask(text="hello", request_id="q1")
    (question, _) = (await client.get("/threads/t/messages"))["messages"]
    _, answered = await client.ask("answers", question=question["message_id"], request_id="q2")
    for seq, numbers in ((1, [True]), (2, [False, True])):
        found = await client.get(f"/threads/t/messages/{seq}/alternatives")
        assert [one["current"] for one in found] == numbers
    await client.ask(text="and then", request_id="q3")
    await client.ask(text="or else", request_id="q4", after=answered["message_id"])
    assert await client.shown() == ["hello", "You said: hello", "or else", "You said: or else"]
    (await client.http.put("/threads/t/branch/1")).raise_for_status()
    assert (await client.shown())[2:] == ["and then", "You said: and then"]
    assert len(await client.get("/threads/t/messages/3/alternatives")) == 2


@pytest.mark.parametrize(
    ("question", "pieces"),
    [
        ("hello", ["You said:"]),
        ("hello", []),
        ("the weather?", [ToolCallDelta(index=0, id="call_0", name="weather", arguments='{"ci')]),
    ],
    ids=["words", "nothing", "half a call"],
)
async def test_an_answer_goes_on_after_a_crash(client: Client, question: str, pieces: list[Any]) -> None:
    ada = client.ledger.user("ada")
    whole, _ = await client.ask(text=question, request_id="first")
    (asked, *_) = (await client.get("/threads/t/messages"))["messages"]
    draft = ada.stream(
        "t", run_id="t/q1", idempotency_key="q1/0", after=asked["message_id"], interval=3_600, lease=7_200
    )
    await draft.__aenter__()
    for piece in pieces:
        await draft.feed(piece)
    await draft.flush()
    await draft._stop()
    refused = await client.http.post("/threads/t/answers", json={"request_id": "q1", "question": asked["message_id"]})
    assert (refused.status_code, refused.json()["error"]) == (409, "DraftLive")
    await pass_time(ada, 7_200)
    for _ in range(2):
        said, end = await client.ask("answers", request_id="q1", question=asked["message_id"])
        assert (said, end["state"]) == (whole, "complete")
    assert (await client.shown())[-1] == whole
    assert (await client.ledger.runs.get("t/q1")).status == "completed"
    found = {finding.rule for finding in await client.ledger.threads.check("t")}
    assert found <= {"R9"}  # half of the arguments are no JSON


async def test_a_client_scrolls_back_scores_and_leaves(client: Client) -> None:
    for number in range(30):
        await client.ask(text=f"{number}", request_id=f"q{number}")
    page = await client.get("/threads/t/messages")
    earlier = await client.get("/threads/t/messages", before=page["previous"])
    assert [one["seq"] for one in (*earlier["messages"], *page["messages"])] == [*range(1, 61)]
    (await client.http.put("/threads/t/answers/q3/score", json={"score": 1, "comment": "good"})).raise_for_status()
    eve = {"X-User": "eve"}
    assert (await client.http.get("/threads/t/messages", headers=eve)).status_code == 404
    assert (await client.http.put("/threads/t/answers/q3/score", json={"score": 0}, headers=eve)).status_code == 404
    erased = (await client.http.delete("/me")).raise_for_status().json()
    assert (erased["messages"], erased["feedback"]) == (60, 1)
    assert (await client.get("/threads"))["threads"] == []
