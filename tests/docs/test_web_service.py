"""The service of the guide to web services, driven by HTTP as its clients drive it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from chatledger import Ledger
from chatledger.admin import migrate
from tests.conversations import turn
from tests.docs.pages import code
from tests.docs.parts import DOCS

PAGE = DOCS / "guides" / "web-service.md"
SERVICE = next(block for block in code(PAGE) if "FastAPI" in block)


@dataclass(frozen=True)
class Service:
    """The service of the page while it runs, and a client of it."""

    ledger: Ledger
    client: httpx.AsyncClient
    names: dict[str, Any]

    async def ask(self, **body: str) -> httpx.Response:
        return await self.client.post("/threads/t/messages", params={"user": "ada"}, json=body)

    async def read(self, **parameters: int | str) -> httpx.Response:
        return await self.client.get("/threads/t/messages", params={"user": "ada", **parameters})

    async def page(self, **place: int) -> tuple[list[int], Any]:
        """The seqs of a page, and the page."""
        page = (await self.read(**place)).json()
        return [message["seq"] for message in page["messages"]], page


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.chdir(tmp_path)
    await asyncio.to_thread(migrate, "service.db")
    names: dict[str, Any] = {"__name__": "service"}
    exec(compile(SERVICE, str(PAGE), "exec"), names)
    app = names["app"]
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            yield Service(app.state.ledger, client, names)


def told(answer: httpx.Response) -> dict[str, Any]:
    """The message of a streamed answer, as the last event has it."""
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    last = answer.text.removesuffix("\n\n").split("\n\n")[-1]
    message: dict[str, Any] = json.loads(last.removeprefix("data: "))
    return message


async def test_the_service_answers_retries_and_maps_errors(service: Service) -> None:
    answer = {"seq": 2, "text": "You said: hello", "state": "complete"}
    for _ in range(2):
        assert told(await service.ask(text="hello", request_id="q1")) == answer
    assert [run.status for run in await service.ledger.runs.list()] == ["completed"]
    assert (await service.ask(text="goodbye", request_id="q1")).status_code == 409
    assert (await service.read(user="eve")).status_code == 404
    assert (await service.read(before=-1)).status_code == 400
    page = (await service.read()).json()
    assert [message["content"] for message in page["messages"]] == ["hello", "You said: hello"]


@dataclass
class SlowModel:
    """It says a word, and waits for the test before it says the other."""

    said: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, prompt: Any) -> AsyncIterator[str]:
        yield "Let me"
        self.said.set()
        await self.may_end.wait()
        yield " see."


async def test_a_retry_joins_a_live_answer_and_another_question_waits(service: Service) -> None:
    model = service.names["ask_the_model"] = SlowModel()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(service.ask(text="hello", request_id="q1"))
        await model.said.wait()
        again = tasks.create_task(service.ask(text="hello", request_id="q1"))
        refused = await service.ask(text="and", request_id="q2")
        assert (refused.status_code, refused.json()["error"]) == (409, "RunLive")
        model.may_end.set()
    for answer in (await asking, await again):
        assert told(answer) == {"seq": 2, "text": "Let me see.", "state": "complete"}
    assert told(await service.ask(text="and", request_id="q2"))["seq"] == 4
    assert [run.status for run in await service.ledger.runs.list()] == ["completed"] * 2


async def test_an_answer_goes_on_without_its_client(service: Service) -> None:
    model = service.names["ask_the_model"] = SlowModel()
    async with asyncio.timeout(30):
        asking = asyncio.create_task(service.ask(text="hello", request_id="q1"))
        await model.said.wait()
        asking.cancel()
        await asyncio.wait([asking])
        model.may_end.set()
        again = await service.ask(text="hello", request_id="q1")
    assert told(again) == {"seq": 2, "text": "Let me see.", "state": "complete"}


async def test_a_client_sees_each_message_once(service: Service) -> None:
    """It shows the newest messages, scrolls back to the first one, and polls for those that come later."""
    await service.ledger.user("ada").threads.create("t")
    await service.ledger.messages.append("t", turn() * 26)
    shown, page = await service.page()
    place = page["mark"]
    while page["previous"] is not None:
        earlier, page = await service.page(before=page["previous"])
        assert page["messages"][0]["role"] != "tool"
        shown = earlier + shown
    assert shown == [*range(1, 131)]

    await service.ledger.messages.append("t", turn() * 24)
    for pages in (3, 1):
        for left in reversed(range(pages)):
            later, page = await service.page(after=place)
            place = page["next"] or page["mark"]
            assert (page["next"] is None) == (left == 0)
            shown += later
    assert shown == [*range(1, 251)]


async def test_a_client_gets_an_answer_once_it_is_complete(service: Service) -> None:
    await service.ask(text="hello", request_id="q1")
    async with service.ledger.messages.stream("t") as draft:
        await draft.feed("Let me")
        await draft.flush()
        shown, page = await service.page()
        assert (shown, page["draft"]["content"]) == ([1, 2], "Let me")
        later, page = await service.page(after=page["mark"])
        assert later == []
        await draft.feed(" see.")
    later, page = await service.page(after=page["mark"])
    assert (later, page["messages"][0]["content"]) == ([3], "Let me see.")
