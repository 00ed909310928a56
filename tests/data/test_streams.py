"""Recorded replies of providers, cut into the events of a stream: a draft stores what an append of the reply stores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chatledger import Ledger
from chatledger.models.json import same_json
from tests.formats.model_view.test_request_keys import sent, stored
from tests.formats.streams import split_anthropic, split_chat, split_responses
from tests.formats.streams.reading import fed
from tests.formats.streams.test_storage import require_equal

Reply = tuple[str, list[Any], list[Any]]
"""The format, the events, and the whole payload."""


async def test_recorded_replies_are_stored_from_their_streams_as_by_an_append(ledger: Ledger, data: Path) -> None:
    counted: Counter[str] = Counter()
    for file in sorted((data / "pydantic_ai_http").glob("*.json")):
        for interaction in json.loads(file.read_text("utf-8"))["interactions"]:
            for name, events, payload in replies(interaction["response"]):
                await require_equal(ledger, name, events, payload)
                counted[name] += 1
    assert counted == {"anthropic": 27, "openai-chat": 42, "openai-responses": 35}


def test_recorded_replies_go_back_as_requests_whether_they_were_appended_or_streamed(data: Path) -> None:
    counted: Counter[str] = Counter()
    for file in sorted((data / "pydantic_ai_http").glob("*.json")):
        for interaction in json.loads(file.read_text("utf-8"))["interactions"]:
            for name, events, payload in replies(interaction["response"]):
                appended = sent(name, stored(name, payload))
                streamed = sent(name, stored(name, fed(name, events).payload()))
                assert same_json(streamed, appended)
                counted[name] += 1
    assert counted == {"anthropic": 27, "openai-chat": 42, "openai-responses": 35}


def replies(response: Any) -> Iterator[Reply]:
    if not isinstance(response, dict):
        return
    if response.get("type") == "message":
        yield "anthropic", split_anthropic.split(response), [response]
    elif response.get("object") == "chat.completion":
        message = response["choices"][0]["message"]
        for call in message.get("tool_calls") or ():
            call.pop("index", None)  # in a stream it is the place of the piece, not a field of the call
        yield "openai-chat", split_chat.split(message), [message]
    elif response.get("object") == "response":
        yield "openai-responses", split_responses.split(response["output"]), response["output"]
