"""The Vercel AI and the AG-UI adapter of Pydantic AI with our store: requests over HTTP, and what is stored then."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from pydantic_ai import Agent
from pydantic_ai import messages as ai
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from pydantic_ai.ui.vercel_ai import VercelAIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from chatledger import Ledger
from chatledger.adapters.pydantic_ai import LedgerConversationStore


class Chat:
    """A service with both protocols, and a model that counts its answers and keeps what it was asked."""

    def __init__(self, ledger: Ledger, protocol: str) -> None:
        self.protocol = protocol
        self.store = LedgerConversationStore(ledger)
        self.asked: list[list[Any]] = []
        self.agent = Agent(FunctionModel(stream_function=self._answer))
        app = Starlette(routes=[Route("/chat", self._serve, methods=["POST"])])
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test")

    async def _answer(self, messages: list[Any], info: AgentInfo) -> Any:
        self.asked.append(messages)
        yield f"Answer {len(self.asked)}."

    async def _serve(self, request: Request) -> Response:
        adapter: Any = AGUIAdapter if self.protocol == "ag-ui" else VercelAIAdapter
        answer: Response = await adapter.dispatch_request(
            request,
            agent=self.agent,
            conversation_store=self.store,
            conversation_scope=request.headers["x-user"],
        )
        return answer

    async def send(self, user: str, *said: tuple[str, str], regenerates: bool = False) -> httpx.Response:
        """Send the messages, each an id and a text; those of the assistant have an id that begins with "a"."""
        messages: list[dict[str, Any]] = [{"id": id_, "role": _role(id_), "content": text} for id_, text in said]
        body: dict[str, Any] = {"threadId": "c", "runId": f"run-{len(self.asked)}", "messages": messages}
        body |= {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
        if self.protocol == "vercel":
            for message in messages:
                message["parts"] = [{"type": "text", "text": message.pop("content")}]
            trigger = "regenerate-message" if regenerates else "submit-message"
            body = {"trigger": trigger, "id": "c", "messages": messages}
        return await self.client.post("/chat", json=body, headers={"x-user": user})

    def entry_ids(self, answer: httpx.Response) -> list[str]:
        """The ids of the entries that the service says it stored."""
        for line in answer.text.splitlines():
            event = json.loads(line.removeprefix("data: ")) if line.startswith("data: {") else {}
            told = event.get("data") if self.protocol == "vercel" else event.get("value")
            if isinstance(told, dict) and "entry_ids" in told:
                ids: list[str] = told["entry_ids"]
                return ids
        return []


def _role(id_: str) -> str:
    return "assistant" if id_.startswith("a") else "user"


def texts(messages: Any) -> list[str]:
    return [part.content for message in messages for part in message.parts]


@pytest.fixture(params=["vercel", "ag-ui"])
def chat(ledger: Ledger, request: pytest.FixtureRequest) -> Chat:
    return Chat(ledger, request.param)


async def test_a_submitted_turn_is_stored_and_the_next_one_goes_on(chat: Chat, ledger: Ledger) -> None:
    first = await chat.send("ada", ("u1", "Oslo?"))
    assert first.status_code == 200
    second = await chat.send("ada", ("u1", "forged"), ("a1", "forged"), ("u2", "And Bergen?"))
    assert texts(chat.asked[1]) == ["Oslo?", "Answer 1.", "And Bergen?"]
    entries = await chat.store.load_entries("c", scope="ada")
    assert entries is not None
    assert texts(entry.message for entry in entries) == ["Oslo?", "Answer 1.", "And Bergen?", "Answer 2."]
    assert chat.entry_ids(first) + chat.entry_ids(second) == [entry.id for entry in entries]
    assert [one.text for one in await ledger.messages.history("c")] == texts(entry.message for entry in entries)
    assert (await ledger.threads.get("c")).user_id == "ada"


async def test_a_turn_that_is_sent_again_replaces_the_stored_one(chat: Chat, ledger: Ledger) -> None:
    await chat.send("ada", ("u1", "Oslo?"))
    await chat.send("ada", ("u1", "Oslo?"), ("a1", "Answer 1."), ("u2", "And Bergen?"))
    again = await chat.send("ada", ("u1", "Oslo?"), ("a1", "Answer 1."), ("u2", "And Bergen?"), regenerates=True)
    assert len(chat.entry_ids(again)) == 2
    assert [one.text for one in await ledger.messages.history("c")] == [
        "Oslo?",
        "Answer 1.",
        "And Bergen?",
        "Answer 3.",
    ]
    record = await chat.store.read_record("c")
    assert record is not None
    (left,) = record.branches
    assert texts(one.message for one in await chat.store.read_history(left))[-1] == "Answer 2."
    (other, active) = await ledger.branches.list("c")
    assert (other.last_seq, other.active, active.last_seq, active.forked_at) == (4, False, 4, 2)
    await chat.store.branch("c", from_entry=left, expected_revision=record.revision)
    assert [one.text for one in await ledger.messages.history("c")][-1] == "Answer 2."


async def test_an_answer_to_a_message_that_is_not_stored_is_not_regenerated(ledger: Ledger) -> None:
    chat = Chat(ledger, "vercel")
    await chat.send("ada", ("u1", "Oslo?"))
    answer = await chat.send("ada", ("u9", "Bergen?"), regenerates=True)
    assert "not in the stored conversation" in answer.text
    assert len((await ledger.messages.history("c")).messages) == 2


async def test_a_foreign_user_finds_nothing_and_changes_nothing(chat: Chat, ledger: Ledger) -> None:
    await chat.send("ada", ("u1", "Oslo?"))
    for user in ("eve", "a"):
        for regenerates in (False, True):
            answer = await chat.send(user, ("u1", "Mine?"), regenerates=regenerates)
            assert (answer.status_code, "Oslo" in answer.text) == (404, False)
    assert len(chat.asked) == 1
    assert [one.text for one in await ledger.messages.history("c")] == ["Oslo?", "Answer 1."]


async def test_a_turn_that_another_request_saved_over_is_not_saved(chat: Chat, ledger: Ledger) -> None:
    await chat.send("ada", ("u1", "Oslo?"))
    conversation = await chat.store.load("c")
    assert conversation is not None
    model = chat.agent.model
    assert isinstance(model, FunctionModel)

    async def answer(messages: list[Any], info: AgentInfo) -> Any:
        conversation.messages.append(ai.ModelRequest(parts=[ai.UserPromptPart("first")]))
        await chat.store.save(conversation)
        yield "Too late."

    with chat.agent.override(model=FunctionModel(stream_function=answer)):
        late = await chat.send("ada", ("u1", "Oslo?"), ("a1", "Answer 1."), ("u2", "And Bergen?"))
    assert "changed by another request" in late.text
    assert [one.text for one in await ledger.messages.history("c")] == ["Oslo?", "Answer 1.", "first"]
