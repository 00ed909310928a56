"""The SDK's own objects and types: replies are read unchanged, and its requests accept the written payloads."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageParam
from pydantic import TypeAdapter

from chatledger.formats import get_codec
from chatledger.formats.openai_chat import CODEC
from chatledger.models import AudioPart, ChatMessage, FilePart, ImagePart, TextPart, ThinkPart, ToolCall

REQUEST: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
REPLIES: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Hi", "refusal": None, "annotations": []},
    {"role": "assistant", "content": None, "refusal": "No."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}},
            {"id": "d", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
        ],
    },
    {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
    {
        "role": "assistant",
        "content": None,
        "audio": {"id": "a", "data": "QQ==", "expires_at": 9, "transcript": "Hello"},
    },
    {"role": "assistant", "content": "Hi", "reasoning_content": "Hm", "reasoning_details": [{"index": 0}]},
]


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_of_the_sdk_comes_back_as_it_dumps(reply: dict[str, Any]) -> None:
    message = ChatCompletionMessage.model_validate(reply)
    [stored] = CODEC.decode([message]).messages
    assert repr(CODEC.encode([stored]).payload) == repr([message.model_dump(exclude_unset=True)])


def test_messages_of_other_formats_are_written_as_a_request_takes_them() -> None:
    media = [
        ImagePart(data="QQ==", mime_type="image/png", extras={"detail": "low"}),
        AudioPart(data="QQ==", mime_type="audio/wav"),
        FilePart(data="QQ==", mime_type="application/pdf", name="a.pdf"),
    ]
    history = [
        ChatMessage(role="developer", content="Be brief."),
        ChatMessage(role="user", name="ada", content=[TextPart(text="See"), *media]),
        ChatMessage(
            role="assistant", content=[ThinkPart(text="Hm")], tool_calls=[ToolCall(name="f"), ToolCall(name="g")]
        ),
        ChatMessage(role="tool", name="g", content=[TextPart(text="21")]),
        ChatMessage(role="tool", name="f", content=None),
        ChatMessage(role="custom", content="Saved."),
        ChatMessage(role="assistant", content=None, reasoning="Hm"),
    ]
    payload = CODEC.encode(history).payload
    REQUEST.validate_python(payload)
    assert len(payload) == 6


def test_a_reply_of_the_sdk_is_read_by_every_other_format() -> None:
    message = ChatCompletionMessage.model_validate(REPLIES[2])
    stored = CODEC.decode([message]).messages
    row = get_codec("agent-service").encode(stored).payload["messages"][0]
    assert [(call["name"], call["args"]) for call in row["tool_calls"]] == [
        ("f", {"_raw": "{"}),
        ("sql", {"_raw": "SELECT 1"}),
    ]
