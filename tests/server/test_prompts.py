"""What a model is sent of a thread, over HTTP."""

from __future__ import annotations

import httpx
import pytest

from chatledger import ChatMessage, Ledger, ToolCall
from chatledger.server.routes import prompts
from tests.server.conftest import json_of

PROMPT = "/v1/threads/t/prompt"


@pytest.fixture
async def asked(ledger: Ledger) -> None:
    call = ToolCall(id="c", name="weather", arguments="{}")
    turn = [ChatMessage.user("Oslo?"), ChatMessage(role="assistant", tool_calls=[call])]
    await ledger.messages.append("t", [ChatMessage.user("Bergen?"), ChatMessage.assistant("Rain.")], create=True)
    await ledger.messages.append("t", turn)


async def test_a_prompt_is_what_the_provider_accepts(client: httpx.AsyncClient, asked: None, ledger: Ledger) -> None:
    answer = await client.get(PROMPT, params={"format": "anthropic"})
    found = json_of(answer)
    stored = await ledger.messages.prompt("t", "anthropic")
    assert found["payload"] == stored.payload
    assert [one["code"] for one in found["repairs"]] == [one.code for one in stored.repairs] != []
    assert (found["mark"], found["last_seq"], found["branch"]) == (stored.history.mark, 4, 0)
    assert answer.headers["ETag"] == f'"{found["mark"]}"'


async def test_a_draft_is_no_part_of_a_prompt(client: httpx.AsyncClient, asked: None, ledger: Ledger) -> None:
    await ledger.messages.close_open_calls("t")
    async with ledger.messages.stream("t") as draft:
        await draft.feed("half an answer")
        await draft.flush()
        text = (await client.get(PROMPT, params={"format": "openai-chat"})).text
        assert json_of(await client.get("/v1/threads/t/messages"))["draft"]["content"] == "half an answer"
    assert "Oslo?" in text
    assert "half an answer" not in text


@pytest.mark.parametrize("window", [{"turns": 1}, {"tokens": 5}])
async def test_a_prompt_may_be_of_the_newest_turns(
    client: httpx.AsyncClient, asked: None, window: dict[str, int]
) -> None:
    found = json_of(await client.get(PROMPT, params={"format": "openai-chat", **window}))
    assert [one["role"] for one in found["payload"]] == ["user", "assistant", "tool"]


async def test_a_prompt_of_a_branch_is_that_branchs(client: httpx.AsyncClient, asked: None) -> None:
    json_of(await client.post("/v1/threads/t/branches", json={"at": None}), 201)
    json_of(await client.post("/v1/threads/t/messages", json={"messages": [{"role": "user", "content": "Rome?"}]}), 201)
    texts = [
        json_of(await client.get(PROMPT, params={"format": "openai-chat", **of}))["payload"][0]["content"]
        for of in ({}, {"branch": 0})
    ]
    assert texts == ["Rome?", "Bergen?"]


async def test_a_prompt_that_cannot_be_is_refused(client: httpx.AsyncClient, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    nothing = json_of(await client.get(PROMPT, params={"format": "openai-chat"}), 422)
    assert nothing["type"] == "urn:chatledger:NothingToSend"
    assert json_of(await client.get(PROMPT, params={"format": "langchain"}), 400)["format"] == "langchain"
    both = json_of(await client.get(PROMPT, params={"format": "openai-chat", "turns": 1, "tokens": 9}), 400)
    assert both["detail"] == "tokens cannot be combined with turns; pass one of them"
    assert json_of(await client.get(PROMPT), 400)["errors"][0]["path"] == "query.format"


async def test_a_prompt_without_a_window_has_a_limited_number_of_messages(
    client: httpx.AsyncClient, asked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "MOST_MESSAGES", 4)
    json_of(await client.get(PROMPT, params={"format": "openai-chat"}))
    monkeypatch.setattr(prompts, "MOST_MESSAGES", 2)
    refused = json_of(await client.get(PROMPT, params={"format": "openai-chat"}), 413)
    assert (refused["maximum"], refused["given"]) == (2, 4)
    assert "pass turns or tokens" in refused["detail"]
    json_of(await client.get(PROMPT, params={"format": "openai-chat", "turns": 1}))
