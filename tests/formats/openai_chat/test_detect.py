"""Which payloads openai-chat claims as its own."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats import recognise
from chatledger.formats.openai_chat import CODEC

USER = {"role": "user", "content": "Tokyo?"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
LEGACY = {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "message",
    [
        USER,
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None, "annotations": []},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": ""}}]},
        {"role": "assistant", "content": "Dry.", "reasoning_content": "No clouds."},
        {"role": "tool", "tool_call_id": "c", "content": "21"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail": "low"}}]},
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]},
        LEGACY,
        {"role": "function", "name": "f", "content": "21"},
    ],
)
def test_its_own_messages_are_claimed(message: Any) -> None:
    assert recognise([USER, message]) is CODEC


@pytest.mark.parametrize("payload", [None, "Hi", [], {"messages": [USER]}, USER, ["Hi"], [[USER]]])
def test_a_value_that_is_not_a_list_of_messages_is_not_recognised(payload: Any) -> None:
    assert not CODEC.recognises(payload)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user"},
        {"role": "narrator", "content": "Hi"},
        {"role": ["user"], "content": "Hi"},
        {"role": "user", "content": 1},
        {"role": "user", "content": ["Hi"]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "21"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm", "signature": "s"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "message", "role": "user", "content": "Hi"},
        {"type": "human", "content": "Hi"},
        {"role": "user", "kind": "chat", "content": "Hi"},
        {"role": "user", "parts": [{"text": "Hi"}], "content": "Hi"},
        {"role": "user", "content": [{"text": "Hi"}]},
        {"role": "user", "content": "Hi", "extra": {"seen": True}},
        {"role": "assistant", "content": [{"type": "think", "think": "Hm", "encrypted": None}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "id": None}}]},
        {"role": "assistant", "content": "Hi", "partial": None},
        {"role": "assistant", "content": None, "tool_calls": [{**CALL, "extras": None}]},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "args": {}, "id": None}]},
        {"role": "assistant", "content": "", "tool_calls": "f"},
        {**LEGACY, "reasoning_content": "Hm"},
    ],
)
def test_a_message_of_another_system_is_not_claimed(message: Any) -> None:
    assert not CODEC.recognises([USER, message])


def test_reasoning_and_legacy_calls_in_one_conversation_are_of_qwen_agent() -> None:
    reasoning = {"role": "assistant", "content": "", "reasoning_content": "Hm"}
    assert not CODEC.recognises([USER, reasoning, LEGACY])
