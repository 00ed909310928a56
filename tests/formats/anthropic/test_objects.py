"""The SDK's own objects, as a program holds them after a call."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message, TextBlock, ThinkingBlock, ToolUseBlock
from anthropic.types.beta import BetaMessage

from chatledger.formats.anthropic import CODEC
from chatledger.models.json import same_json

REPLY: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"signature": "c2ln", "thinking": "Hm", "type": "thinking"},
        {"citations": None, "text": "Let me see.", "type": "text"},
        {"id": "toolu_1", "input": {"city": "Lima"}, "name": "weather", "type": "tool_use"},
        {"type": "a_block_to_come", "of": ["a", "later", "release"]},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 5},
    "container": {"id": "c", "expires_at": "2026-01-01T00:00:00Z"},
}


def round_trip(payload: Any) -> Any:
    return CODEC.encode(CODEC.decode(payload).messages).payload["messages"]


@pytest.mark.parametrize("kind", [Message, BetaMessage])
def test_a_reply_comes_back_as_its_dict(kind: Any) -> None:
    reply = kind.construct(**REPLY)
    [message] = round_trip([reply])
    assert same_json(message, reply.to_dict(mode="json", warnings=False))
    assert message == REPLY


def test_the_content_of_a_reply_is_taken_in_a_message() -> None:
    content = Message.construct(**REPLY).content
    [message] = round_trip([{"role": "assistant", "content": content}])
    assert message == {"role": "assistant", "content": REPLY["content"]}


def test_blocks_that_a_program_made_are_taken() -> None:
    blocks = [
        ThinkingBlock(type="thinking", thinking="Hm", signature="s"),
        TextBlock(type="text", text="Hi"),
        ToolUseBlock(type="tool_use", id="a", name="f", input={}),
    ]
    [message] = CODEC.decode([{"role": "assistant", "content": blocks}]).messages
    assert message.text == "Hi"
    assert message.tool_calls is not None
    inner = [{"type": "tool_result", "tool_use_id": "a", "content": [TextBlock(type="text", text="Hi")]}]
    assert CODEC.decode([{"role": "user", "content": inner}]).messages[0].text == "Hi"


def test_objects_are_recognised() -> None:
    assert CODEC.recognises([{"role": "user", "content": "Hi"}, Message.construct(**REPLY)])
