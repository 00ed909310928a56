"""The example of a service, driven by HTTP as its clients drive it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from examples.service import model
from examples.service.app import STEPS, app

from chatledger import Ledger
from chatledger.answers import Call
from examples import service
from tests.checks import findings_of
from tests.conftest import Database

LINES = 230


class Client:
    def __init__(self, http: httpx.AsyncClient, ledger: Ledger) -> None:
        self.http = http
        self.ledger = ledger

    async def start(self, **body: str) -> str:
        """The run of a new answer, or of the one that the same request began."""
        began = await self.post("/threads/t/answers", **body)
        run_id: str = began["run"]["run_id"]
        return run_id

    async def ask(self, **body: str) -> str:
        """Ask, and follow the answer to its end, or until it waits. The status of its run then."""
        return str((await self.events(await self.start(**body)))[-1]["status"])

    async def events(self, run_id: str, last: str | None = None) -> list[dict[str, Any]]:
        headers = {} if last is None else {"Last-Event-ID": last}
        async with asyncio.timeout(60):
            told = (await self.http.get(f"/answers/{run_id}/events", headers=headers)).raise_for_status().text
        return [json.loads(line.removeprefix("data: ")) for line in told.splitlines() if line.startswith("data: ")]

    async def post(self, path: str, **body: Any) -> Any:
        answer = await self.http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

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


class Tool:
    """A tool that says that it began, and ends when the test lets it end."""

    def __init__(self) -> None:
        self.runs = 0
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self, call: Call) -> str:
        self.runs += 1
        self.begun.set()
        await self.may_end.wait()
        return f"weather {self.runs}"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Tool:
    tool = Tool()
    monkeypatch.setattr(model, "run_tool", tool)
    return tool


WEATHER = ["the weather?", None, "raining in Bergen", "It is raining in Bergen."]


def test_the_service_is_short() -> None:
    files = [file for path in service.__path__ for file in Path(path).glob("*.py")]
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= LINES


async def test_an_answer_with_a_tool_is_made_once(client: Client) -> None:
    for _ in range(2):
        assert await client.ask(text="the weather?", request_id="q1") == "completed"
        assert await client.shown() == WEATHER
    run = await client.ledger.runs.get(await client.start(text="the weather?", request_id="q1"))
    assert (run.status, run.usage and run.usage.output_tokens) == ("completed", 8)
    (thread,) = (await client.get("/threads"))["threads"]
    assert thread["preview"] == "It is raining in Bergen."
    other = await client.http.post("/threads/t/answers", json={"text": "else", "request_id": "q1"})
    assert (other.status_code, other.json()["error"]) == (409, "IdConflict")
    assert not await findings_of(client.ledger, "t")


async def test_a_client_reconnects_behind_each_event(client: Client) -> None:
    run_id = await client.start(text="the weather?", request_id="q1")
    told = await client.events(run_id)
    seqs = [change["seq"] for change in told if change["kind"] == "appended"]
    assert seqs == [2, 3, 4]
    for change in told:
        later = await client.events(run_id, change["cursor"])
        assert [one["seq"] for one in later if one["kind"] == "appended"] == [
            seq for seq in seqs if seq > change["seq"]
        ]
        assert (later[-1]["kind"], later[-1]["status"]) == ("run", "completed")


async def test_a_retry_while_a_tool_runs_does_not_run_it_again(client: Client, tool: Tool) -> None:
    run_id = await client.start(text="the weather?", request_id="q1")
    await tool.begun.wait()
    assert await client.start(text="the weather?", request_id="q1") == run_id
    refused = await client.http.post("/threads/t/answers", json={"text": "well?", "request_id": "q2"})
    assert (refused.status_code, refused.json()["error"]) == (409, "RunLive")
    assert 0 < int(refused.headers["Retry-After"]) <= 5
    tool.may_end.set()
    assert await client.ask(text="the weather?", request_id="q1") == "completed"
    assert tool.runs == 1
    assert (await client.shown())[2:] == ["weather 1", "It is weather 1."]


@pytest.mark.parametrize("with_a_question", [False, True], ids=["by a button", "by a question"])
async def test_another_request_stops_an_answer(client: Client, tool: Tool, *, with_a_question: bool) -> None:
    run_id = await client.start(text="the weather?", request_id="q1")
    await tool.begun.wait()
    stranger = await client.http.post(f"/answers/{run_id}/stop", headers={"X-User": "eve"})
    assert stranger.status_code == 404
    if with_a_question:
        assert await client.ask(text="well?", request_id="q2", when_live="stop") == "completed"
    else:
        assert (await client.post(f"/answers/{run_id}/stop"))["status"] == "cancelled"
        assert await client.ask(text="well?", request_id="q2") == "completed"
    tool.may_end.set()
    shown = await client.shown()
    assert [shown[0], shown[1], *shown[3:]] == ["the weather?", None, "well?", "You said: well?"]
    assert (await client.get(f"/answers/{run_id}"))["run"]["status"] == "cancelled"
    assert not await findings_of(client.ledger, "t")


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "refused"])
async def test_a_tool_waits_for_approval(client: Client, *, approved: bool) -> None:
    run_id = await client.start(text="a trip?", request_id="q1")
    assert (await client.events(run_id))[-1]["status"] == "paused"
    assert (await client.get(f"/answers/{run_id}"))["waiting"] == {"call_trip": "book a trip to Bergen"}
    decision = {"approve": ["call_trip"]} if approved else {"refuse": {"call_trip": "too dear"}}
    path = f"/answers/{run_id}/resume"
    stranger = await client.http.post(path, json=decision, headers={"X-User": "eve"})
    assert stranger.status_code == 404
    for _ in range(2):
        assert (await client.post(path, **decision))["waiting"] == {}
        assert await client.ask(text="a trip?", request_id="q1") == "completed"
    other = {"refuse": {"call_trip": None}} if approved else {"approve": ["call_trip"]}
    refused = await client.http.post(path, json=other)
    assert (refused.status_code, refused.json()["error"]) == (409, "RunConflict")
    _, _, result, said = await client.shown()
    assert said == f"It is {result}."
    assert str(result).startswith("booked as " if approved else "The call was refused: too dear")


@pytest.mark.parametrize("failures", [1, STEPS])
async def test_a_model_that_breaks_off_is_asked_again(
    client: Client, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    asked, ask = 0, model.ask

    async def break_off(prompt: Any) -> AsyncIterator[Any]:
        nonlocal asked
        asked += 1
        if asked <= failures:
            yield {"choices": [{"index": 0, "delta": {"content": "You"}}]}
            raise OSError
        async for chunk in ask(prompt):
            yield chunk

    monkeypatch.setattr(model, "ask", break_off)
    status = "completed" if failures < STEPS else "failed"
    for _ in range(2):
        assert await client.ask(text="hello", request_id="q1") == status
    words = ["You"] * failures + (["You said: hello"] if failures < STEPS else [])
    assert await client.shown() == ["hello", *words]


async def alternatives(client: Client, seq: int) -> list[dict[str, Any]]:
    """Of the message that is shown at that seq."""
    [message] = [one for one in (await client.get("/threads/t/messages"))["messages"] if one["seq"] == seq]
    found: list[dict[str, Any]] = await client.get(f"/threads/t/messages/{message['message_id']}/alternatives")
    return found


async def test_other_answers_and_edits_stand_beside_each_other(client: Client) -> None:
    await client.ask(text="hello", request_id="q1")
    (question, _) = (await client.get("/threads/t/messages"))["messages"]
    await client.ask(question=question["message_id"], request_id="q2")
    for seq, numbers in ((1, [True]), (2, [False, True])):
        found = await alternatives(client, seq)
        assert [one["current"] for one in found] == numbers
    await client.ask(text="and then", request_id="q3")
    (*_, then, _) = (await client.get("/threads/t/messages"))["messages"]
    await client.ask(text="or else", request_id="q4", edits=then["message_id"])
    assert await client.shown() == ["hello", "You said: hello", "or else", "You said: or else"]
    (await client.http.put("/threads/t/branch/1")).raise_for_status()
    assert (await client.shown())[2:] == ["and then", "You said: and then"]
    assert len(await alternatives(client, 3)) == 2


async def test_the_first_question_and_one_of_another_branch_are_edited(client: Client) -> None:
    await client.ask(text="one", request_id="q1")
    await client.ask(text="two", request_id="q2")
    first, _, second, _ = (await client.get("/threads/t/messages"))["messages"]
    for _ in range(2):
        await client.ask(text="other", request_id="q3", edits=first["message_id"])
        assert await client.shown() == ["other", "You said: other"]
    await client.ask(text="three", request_id="q4", edits=second["message_id"])
    assert await client.shown() == ["one", "You said: one", "three", "You said: three"]
    assert len(await client.ledger.branches.list("t")) == 3


async def test_a_client_scrolls_back_scores_and_leaves(client: Client) -> None:
    for number in range(30):
        await client.ask(text=f"{number}", request_id=f"q{number}")
    page = await client.get("/threads/t/messages")
    earlier = await client.get("/threads/t/messages", before=page["previous"])
    assert [one["seq"] for one in (*earlier["messages"], *page["messages"])] == [*range(1, 61)]
    path = f"/answers/{page['messages'][-1]['run_id']}/score?value="
    (await client.http.put(f"{path}1")).raise_for_status()
    eve = {"X-User": "eve"}
    assert (await client.http.get("/threads/t/messages", headers=eve)).status_code == 404
    assert (await client.http.put(f"{path}0", headers=eve)).status_code == 404
    erased = (await client.http.delete("/me")).raise_for_status().json()
    assert (erased["messages"], erased["feedback"]) == (60, 1)
    assert (await client.get("/threads"))["threads"] == []
    gone = await client.http.post("/threads/t/answers", json={"text": "again", "request_id": "q"})
    assert (gone.status_code, gone.json()["error"]) == (410, "Erased")


async def test_a_client_scrolls_back_on_one_branch_while_another_is_activated(client: Client) -> None:
    for number in range(30):
        await client.ask(text=f"{number}", request_id=f"q{number}")
    page = await client.get("/threads/t/messages")
    (first, *_) = (await client.get("/threads/t/messages", before=page["previous"]))["messages"]
    await client.ask(text="other", request_id="other", edits=first["message_id"])
    assert (await client.get("/threads/t/messages"))["branch"] != page["branch"]
    earlier = await client.get("/threads/t/messages", before=page["previous"], branch=page["branch"])
    assert earlier["branch"] == page["branch"]
    assert [one["seq"] for one in (*earlier["messages"], *page["messages"])] == [*range(1, 61)]
