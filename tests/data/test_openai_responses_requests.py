"""The input of 39 real requests to Responses endpoints, and the 69 output items of 36 real replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatledger import Ledger, Payload
from chatledger.models.json import same_json
from chatledger.models.threads import RulesLevel

FORMAT = "openai-responses"


@pytest.fixture
def interactions(data: Path) -> list[dict[str, Any]]:
    files = sorted((data / "pydantic_ai_http").glob("*.json"))
    found = [one for file in files for one in json.loads(file.read_bytes())["interactions"]]
    return [one for one in found if "/responses" in one["endpoint"]]


async def test_requests_come_back_equal(ledger: Ledger, interactions: list[dict[str, Any]]) -> None:
    """As the object with its instructions, and the input alone."""
    bodies = [one["request"] for one in interactions]
    assert (len(bodies), sum("instructions" in body for body in bodies)) == (39, 16)
    for number, body in enumerate(bodies):
        request = {key: value for key, value in body.items() if key in ("instructions", "input")}
        await assert_comes_back(ledger, f"{number}", request)
        await assert_comes_back(ledger, f"{number} input", body["input"])


async def test_output_comes_back_equal(ledger: Ledger, interactions: list[dict[str, Any]]) -> None:
    outputs = [one["response"]["output"] for one in interactions if "output" in (one["response"] or ())]
    assert (len(outputs), sum(map(len, outputs))) == (36, 69)
    for number, output in enumerate(outputs):
        await assert_comes_back(ledger, f"{number}", output)


async def test_a_reply_follows_its_request(ledger: Ledger, interactions: list[dict[str, Any]]) -> None:
    """Appended apart, as an agent does."""
    for number, one in enumerate(interactions):
        pieces = [one["request"]["input"], (one["response"] or {}).get("output", [])]
        thread_id = (await ledger.threads.create(f"{number}", rules="lenient")).thread_id
        for piece in pieces:
            await ledger.messages.append(thread_id, Payload(piece, FORMAT))
        history = (await ledger.messages.history(thread_id)).encode(FORMAT)
        assert same_json(history.payload, [*pieces[0], *pieces[1]]), number


async def assert_comes_back(ledger: Ledger, thread_id: str, payload: Any) -> None:
    """Under strict rules, but for the two requests that begin with the result of a call in an earlier response."""
    await ledger.threads.create(thread_id)
    begun = (payload["input"] if isinstance(payload, dict) else payload)[:1]
    is_continued = any(item.get("type") == "function_call_output" for item in begun)
    rules: RulesLevel = "lenient" if is_continued else "strict"
    await ledger.messages.append(thread_id, Payload(payload, FORMAT), rules=rules)
    history = (await ledger.messages.history(thread_id)).encode(FORMAT)
    assert same_json(history.payload, payload), thread_id
    assert history.losses == ()
