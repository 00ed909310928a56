"""What we write as `ai-sdk` is what the real package takes: its own validation, and its way to a model's messages."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from chatledger.formats import get_codec
from chatledger.models import ChatMessage
from tests import programs
from tests.ai_sdk.node import NODE
from tests.formats.ai_sdk.samples import histories
from tests.formats.any_messages import foreign, numbered, read
from tests.formats.measured import encode
from tests.formats.round_trips import ROUND_TRIPS

CODEC = get_codec("ai-sdk")
OTHERS = [trip for trip in ROUND_TRIPS if trip.format != "ai-sdk"]


def problems(payloads: Sequence[Any]) -> list[str | None]:
    """What the SDK finds wrong with each payload."""
    node = programs.find(NODE)
    assert node is not None
    command = [node, str(Path(__file__).with_name("check.mjs")), os.environ["CHATLEDGER_AI_SDK"]]
    lines = "".join(f"{json.dumps(payload, allow_nan=False)}\n" for payload in payloads)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(payloads)
    return found


def is_json(payload: Any) -> bool:
    """JSON of the standard, which has no NaN; without the key that JavaScript takes for a prototype."""
    try:
        return "__proto__" not in json.dumps(payload, allow_nan=False)
    except ValueError:
        return False


def written(messages: st.SearchStrategy[list[ChatMessage]], count: int) -> list[Any]:
    payloads: list[Any] = []

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(messages)
    def each(history: list[ChatMessage]) -> None:
        payload = encode(CODEC, numbered(history)).payload
        if payload and is_json(payload):
            payloads.append(payload)

    each()
    return payloads


def test_the_check_can_fail() -> None:
    message = {"id": "a", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
    wrong = {"id": "a", "role": "assistant", "parts": [{"type": "tool-f", "toolCallId": "c", "state": "output-error"}]}
    fine, refused, unknown = problems([[message], [wrong], [{**message, "later": 1}]])
    assert fine is None
    assert refused is not None
    assert "TypeValidationError" in refused
    assert unknown is not None
    assert "keys" in unknown


def test_the_samples_are_of_the_sdk_and_come_back() -> None:
    payloads = [encode(CODEC, CODEC.decode(sample).messages).payload for sample in histories().values()]
    assert payloads == list(histories().values())
    assert problems(payloads) == [None] * len(payloads)


def test_messages_of_any_origin_are_valid() -> None:
    payloads = written(st.lists(foreign("ai-sdk"), min_size=1, max_size=4), 300)
    assert len(payloads) > 150
    assert [(found, payload) for found, payload in zip(problems(payloads), payloads, strict=True) if found] == []


@pytest.mark.parametrize("trip", OTHERS, ids=[trip.format for trip in OTHERS])
def test_messages_of_each_format_are_valid(trip: Any) -> None:
    payloads = written(read(trip), 100)
    assert payloads  # of google-adk few are JSON of the standard
    assert [(found, payload) for found, payload in zip(problems(payloads), payloads, strict=True) if found] == []


def test_a_result_that_comes_later_is_valid_in_each_state() -> None:
    payloads = []
    for sample in histories().values():
        for is_error in (None, True):
            messages = CODEC.decode(sample).messages
            answered = {message.tool_call_id for message in messages if message.role == "tool"}
            calls = [call for message in messages for call in message.tool_calls or () if call.id not in answered]
            later = [ChatMessage(role="tool", tool_call_id=call.id, content="x", is_error=is_error) for call in calls]
            payloads.append(encode(CODEC, [*messages, *later, ChatMessage(role="assistant", content="So.")]).payload)
    assert len(payloads) == 6
    found = [one for one in problems(payloads) if one is not None and "keys" not in one]
    assert found == []
