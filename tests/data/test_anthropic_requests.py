"""28 real requests to Anthropic's Messages API, one of them only to count its tokens, and the replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatledger import Ledger, Payload
from chatledger.formats import recognise
from chatledger.models.json import same_json
from tests.checks import findings_of

FORMAT = "anthropic"
CONVERSATION = ("system", "messages")


@pytest.fixture
def interactions(data: Path) -> list[dict[str, Any]]:
    files = sorted((data / "pydantic_ai_http").glob("*.json"))
    every = [one for file in files for one in json.loads(file.read_bytes())["interactions"]]
    return [one for one in every if one["endpoint"].startswith("/v1/messages")]


async def back(ledger: Ledger, payload: Any) -> Any:
    thread = await ledger.threads.create()
    await ledger.messages.append(thread.thread_id, Payload(payload, FORMAT), rules="lenient")
    history = (await ledger.messages.history(thread.thread_id)).encode(FORMAT)
    assert history.losses == ()
    return history.payload


async def test_requests_come_back_equal(ledger: Ledger, interactions: list[dict[str, Any]]) -> None:
    """Whole, with model and tools; and without them, as an import brings them."""
    assert len(interactions) == 28
    for number, interaction in enumerate(interactions):
        body = interaction["request"]
        conversation = {key: value for key, value in body.items() if key in CONVERSATION}
        assert same_json(await back(ledger, body), body), number
        assert same_json(await back(ledger, conversation), conversation), number


async def test_replies_come_back_equal(ledger: Ledger, interactions: list[dict[str, Any]]) -> None:
    replies = [one["response"] for one in interactions if "content" in (one["response"] or {})]
    assert len(replies) == 27
    for reply in replies:
        assert same_json(await back(ledger, [reply]), {"messages": [reply]})


async def test_requests_are_valid_by_strict_rules(ledger: Ledger, interactions: list[dict[str, Any]]) -> None:
    for interaction in interactions:
        thread = await ledger.threads.create()
        await ledger.messages.append(thread.thread_id, Payload(interaction["request"], FORMAT), rules="strict")
        findings = await findings_of(ledger, thread.thread_id)
        assert {finding.rule for finding in findings} <= {"R13"}  # two begin with the assistant, or prompt it later


def test_requests_with_a_prompt_or_a_telling_block_are_recognised(interactions: list[dict[str, Any]]) -> None:
    bodies = [one["request"] for one in interactions]
    telling = [body for body in bodies if "system" in body or len(body["messages"]) > 1]
    assert len(telling) == 25
    assert {recognise(body).name for body in telling} == {FORMAT}
