"""A payload is recognised as Responses items only if no other format writes it."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.errors import UnknownFormat
from chatledger.formats import recognise
from chatledger.formats.openai_responses import CODEC

ASK = {"role": "user", "content": "Tokyo?"}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    "payload",
    [
        [ASK, CALL],
        [{"type": "function_call_output", "call_id": "c", "output": "x"}],
        [{"type": "message", **ASK}],
        [{"role": "user", "content": [{"type": "input_text", "text": "Tokyo?"}]}],
        [{"type": "reasoning", "summary": []}],
        [{"type": "compaction", "encrypted_content": "gAAA"}, ASK],
        {"instructions": "Be brief.", "input": "Tokyo?"},
        {"instructions": None, "input": [ASK]},
        {"input": [CALL]},
    ],
)
def test_items_are_recognised(payload: Any) -> None:
    assert CODEC.recognises(payload)
    assert recognise(payload).name == "openai-responses"


@pytest.mark.parametrize(
    "payload",
    [
        "Tokyo?",
        [],
        {},
        {"input": "Tokyo?"},
        {"input": [ASK]},
        {"instructions": "Be brief.", "input": []},
        {"instructions": 7, "input": "Tokyo?"},
        {"model": "m", "input": [CALL], "instructions": "x"},
        [ASK],
        [ASK, {"role": "tool", "content": "x", "tool_call_id": "c"}],
        [CALL, {"type": "human", "content": "x"}],
        [CALL, {"type": "of_tomorrow"}],
        [CALL, 7],
        [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}],
        [{"type": "function_call", "name": "f"}],
        [{"type": []}],
        [{"role": "user", "content": [{"type": []}]}],
    ],
)
def test_in_doubt_nothing_is_recognised(payload: Any) -> None:
    assert not CODEC.recognises(payload)


def test_plain_messages_stay_those_of_chat_completions() -> None:
    assert recognise([ASK]).name == "openai-chat"
    with pytest.raises(UnknownFormat):
        recognise("Tokyo?")
