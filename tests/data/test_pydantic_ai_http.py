"""The message lists of 49 real requests to chat completions endpoints of several providers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatledger import Ledger, Payload
from chatledger.models.json import same_json

FORMAT = "openai-chat"


@pytest.fixture
def requests(data: Path) -> list[list[dict[str, Any]]]:
    files = sorted((data / "pydantic_ai_http").glob("*.json"))
    interactions = [one for file in files for one in json.loads(file.read_bytes())["interactions"]]
    bodies = [one["request"] for one in interactions if one["endpoint"].endswith("/chat/completions")]
    return [body["messages"] for body in bodies]


async def test_requests_come_back_equal(ledger: Ledger, requests: list[list[dict[str, Any]]]) -> None:
    assert len(requests) == 49
    for number, messages in enumerate(requests):
        await ledger.threads.create(str(number))
        await ledger.messages.append(str(number), Payload(messages, FORMAT), rules="lenient")
        history = (await ledger.messages.history(str(number))).encode(FORMAT)
        assert same_json(history.payload, messages), number
        assert history.losses == ()
