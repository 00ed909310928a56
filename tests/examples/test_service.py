"""The example of a service, driven by HTTP as its clients drive it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from examples.service import model, tools
from examples.service.app import app

import chatledger
from chatledger import ChatMessage, Ledger, Pace, ToolCallDelta, VersionConflict
from tests.checks import findings_of
from tests.conftest import Database
from tests.leases import pass_time
from tests.reasons import about


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


class Tool:
    """A tool with another result each time. It ends when the test lets it end."""

    def __init__(self) -> None:
        self.runs = 0
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self, city: str) -> str:
        self.runs += 1
        result = f"weather {self.runs}"
        self.begun.set()
        await self.may_end.wait()
        return result


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


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Tool:
    tool = Tool()
    monkeypatch.setattr(model, "weather", tool)
    return tool


async def test_a_retry_does_not_run_a_tool_again_whose_result_is_stored(client: Client, tool: Tool) -> None:
    for _ in range(2):
        said, end = await client.ask(text="the weather?", request_id="q1")
        assert (said, end["state"]) == ("It is weather 1.", "complete")
    assert tool.runs == 1


async def test_tools_that_run_are_not_run_by_a_retry_nor_closed_by_a_question(client: Client, tool: Tool) -> None:
    tool.may_end.clear()
    first = asyncio.create_task(client.ask(text="the weather?", request_id="q1"))
    await tool.begun.wait()
    _, error = await client.ask(text="the weather?", request_id="q1")
    assert error["error"] == "ToolsRunning"
    refused = await client.http.post("/threads/t/messages", json={"text": "well?", "request_id": "q2"})
    assert (refused.status_code, refused.json()["error"]) == (409, "ToolsRunning")
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    tool.may_end.set()
    assert await first == await client.ask(text="the weather?", request_id="q1")
    assert tool.runs == 1
    assert (await client.shown())[2] == "weather 1"


async def test_only_one_of_two_requests_claims_the_tools(client: Client, tool: Tool) -> None:
    await client.ledger.user("ada").messages.append("t", [ChatMessage(role="user", content="?")], create=True)
    ada, message = client.ledger.user("ada"), ChatMessage(role="assistant", message_id="m")
    async with tools.claimed(ada, "t", message, None):
        with pytest.raises(VersionConflict, check=about("value")):
            async with tools.claimed(ada, "t", message, None):
                raise AssertionError


@pytest.mark.parametrize("retried", [True, False], ids=["a retry", "a question"])
async def test_the_claim_of_a_dead_process_ends(
    client: Client, tool: Tool, monkeypatch: pytest.MonkeyPatch, *, retried: bool
) -> None:
    async def die(*_: Any, **__: Any) -> None:
        raise chatledger.StorageError("the process died")

    with monkeypatch.context() as patch:
        patch.setattr(model, "weather", die)
        await client.ask(text="the weather?", request_id="q1")
    called = (await client.get("/threads/t/messages"))["messages"][-1]
    claim = (("thread", "t", "tools"), called["message_id"])
    now = datetime.now(UTC)
    await client.ledger.kv.put(*claim, {"until": (now + tools.CLAIM).isoformat()})
    assert (await client.ask(text="the weather?", request_id="q1"))[1]["error"] == "ToolsRunning"
    await client.ledger.kv.put(*claim, {"until": now.isoformat()})
    if retried:
        assert (await client.ask(text="the weather?", request_id="q1"))[0] == "It is weather 1."
        return
    await client.ask(text="well?", request_id="q2")
    shown = ["the weather?", None, "interrupted", "well?", "You said: well?"]
    assert await client.shown() == shown
    said, end = await client.ask(text="the weather?", request_id="q1")
    assert (said, end["state"]) == ("", "synthetic")
    assert (await client.shown(), tool.runs) == (shown, 0)


async def test_a_request_that_ends_while_its_tool_runs_ends_its_claim(client: Client, tool: Tool) -> None:
    tool.may_end.clear()
    first = asyncio.create_task(client.ask(text="the weather?", request_id="q1"))
    await tool.begun.wait()
    first.cancel()
    await asyncio.wait([first])
    tool.may_end.set()
    assert (await client.ask(text="the weather?", request_id="q1"))[0] == "It is weather 2."


async def disconnect(client: Client, monkeypatch: pytest.MonkeyPatch, request_id: str, text: str) -> None:
    """A request that ends after the first words of its answer."""

    async def ask(prompt: Any, begun: str = "") -> AsyncIterator[Any]:
        yield {"choices": [{"index": 0, "delta": {"content": "You"}}]}
        raise chatledger.StorageError("the client went away")

    with monkeypatch.context() as patch:
        patch.setattr(model, "ask", ask)
        await client.ask(text=text, request_id=request_id)


async def alternatives(client: Client, seq: int) -> list[dict[str, Any]]:
    """Of the message that is shown at that seq."""
    [message] = [one for one in (await client.get("/threads/t/messages"))["messages"] if one["seq"] == seq]
    found: list[dict[str, Any]] = await client.get(f"/threads/t/messages/{message['message_id']}/alternatives")
    return found


async def test_a_retry_asks_again_after_an_interruption(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    await disconnect(client, monkeypatch, "q1", "hello")
    for _ in range(2):
        said, end = await client.ask(text="hello", request_id="q1")
        assert (said, end["state"]) == ("You said: hello", "complete")
    assert await client.shown() == ["hello", "You said: hello"]
    assert [one["current"] for one in await alternatives(client, 2)] == [False, True]
    assert (await client.ledger.runs.get("t/q1")).status == "completed"


async def test_a_retry_returns_interrupted_words_that_a_question_follows(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await disconnect(client, monkeypatch, "q1", "hello")
    await client.ask(text="and then", request_id="q2")
    said, end = await client.ask(text="hello", request_id="q1")
    assert (said, end["state"]) == ("You", "interrupted")
    assert await client.shown() == ["hello", "You", "and then", "You said: and then"]


async def test_the_model_is_asked_at_most_three_times(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        await disconnect(client, monkeypatch, "q1", "hello")
    said, end = await client.ask(text="hello", request_id="q1")
    assert (said, end["state"]) == ("You", "interrupted")
    assert len(await alternatives(client, 2)) == 3


async def test_other_answers_and_edits_stand_beside_each_other(client: Client) -> None:
    await client.ask(text="hello", request_id="q1")
    (question, _) = (await client.get("/threads/t/messages"))["messages"]
    _, answered = await client.ask("answers", question=question["message_id"], request_id="q2")
    for seq, numbers in ((1, [True]), (2, [False, True])):
        found = await alternatives(client, seq)
        assert [one["current"] for one in found] == numbers
    await client.ask(text="and then", request_id="q3")
    (*_, then, _) = (await client.get("/threads/t/messages"))["messages"]
    assert answered["seq"] < then["seq"]
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
    draft = ada.messages.stream(
        "t",
        run_id="t/q1",
        idempotency_key="q1/0/0",
        reply_to=asked["message_id"],
        pace=Pace(interval=3_600, lease=7_200),
    )
    await draft.__aenter__()
    for piece in pieces:
        await draft.feed(piece)
    await draft.flush()
    await draft._stop()
    refused = await client.http.post("/threads/t/answers", json={"request_id": "q1", "question": asked["message_id"]})
    assert (refused.status_code, refused.json()["error"]) == (409, "DraftLive")
    assert 7_100 < int(refused.headers["Retry-After"]) <= 7_200
    await pass_time(ada, 7_200)
    for _ in range(2):
        said, end = await client.ask("answers", request_id="q1", question=asked["message_id"])
        assert (said, end["state"]) == (whole, "complete")
    assert (await client.shown())[-1] == whole
    assert (await client.ledger.runs.get("t/q1")).status == "completed"
    found = {finding.rule for finding in await findings_of(client.ledger, "t")}
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
    gone = await client.http.post("/threads/t/messages", json={"text": "again", "request_id": "q"})
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
