"""Only UI messages with parts of the AI SDK are taken for its messages."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats import recognise
from chatledger.formats.ai_sdk import CODEC
from tests.formats.ai_sdk.samples import histories

MESSAGES = [message for history in histories().values() for message in history]


@pytest.mark.parametrize("message", MESSAGES)
def test_each_message_is_recognised(message: Any) -> None:
    assert recognise([message]).name == "ai-sdk"


@pytest.mark.parametrize(
    "payload",
    [
        "text",
        [],
        [None],
        [1, *MESSAGES],
        [{"role": "user", "parts": []}],
        [{"role": "tool", "parts": [{"type": "text", "text": "a"}]}],
        [{"role": "user", "parts": ["a"]}],
        [{"role": "user", "parts": [{"text": "a"}]}],
        [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
        [{"role": "user", "parts": [{"type": "later"}]}],
        {"messages": MESSAGES},
    ],
)
def test_others_are_not(payload: Any) -> None:
    assert not CODEC.recognises(payload)
