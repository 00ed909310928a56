"""Messages of other formats as events, and events in every other format. Signatures go only to their provider."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats import format_names, get_codec
from chatledger.formats.google_adk import CODEC
from chatledger.models import ChatMessage, ImagePart, TextPart, ThinkPart, ToolCall
from tests.formats.google_adk.samples import SAMPLES
from tests.formats.measured import encode

SIGNED = "c2ln"


def thought_of(messages: list[ChatMessage]) -> Any:
    return encode(CODEC, messages).payload[0]["content"]["parts"][0]


def test_a_conversation_with_calls() -> None:
    messages = [
        ChatMessage(role="system", content="Be brief."),
        ChatMessage(role="user", content="Oslo?", name="Ada"),
        ChatMessage(
            role="assistant",
            name="helper",
            content=None,
            tool_calls=[
                ToolCall(id=None, name="weather", arguments='{"city": "Oslo"}'),
                ToolCall(id="c2", name="news", arguments="not JSON"),
            ],
        ),
        ChatMessage(role="tool", tool_call_id="c2", content="no network", is_error=True),
        ChatMessage(role="tool", content=[TextPart(text="a map"), ImagePart(data="+/8=", mime_type="image/png")]),
    ]
    encoded = encode(CODEC, messages)
    asked, called, answered = encoded.payload
    assert (asked["author"], asked["content"]) == ("user", {"parts": [{"text": "Oslo?"}], "role": "user"})
    assert (called["author"], called["content"]["role"]) == ("helper", "model")
    assert called["content"]["parts"] == [
        {"function_call": {"id": "call_3_0", "args": {"city": "Oslo"}, "name": "weather"}},
        {"function_call": {"id": "c2", "args": {"_raw": "not JSON"}, "name": "news"}},
    ]
    assert answered["author"] == "helper"
    assert answered["content"] == {
        "parts": [
            {"function_response": {"id": "c2", "name": "news", "response": {"error": "no network"}}},
            {
                "function_response": {
                    "parts": [{"inline_data": {"data": "-_8=", "mime_type": "image/png"}}],
                    "id": "call_3_0",
                    "name": "weather",
                    "response": {"result": "a map"},
                }
            },
        ],
        "role": "user",
    }
    assert {(loss.code, loss.seq) for loss in encoded.losses} >= {("left-out", None)}


def test_a_url_is_written_with_its_type() -> None:
    content = [ImagePart(url="https://example.com/a.png"), ImagePart(url="data:image/gif;base64,+/8=")]
    [event] = encode(CODEC, [ChatMessage(role="user", content=content)]).payload
    assert event["content"]["parts"] == [
        {"file_data": {"file_uri": "https://example.com/a.png", "mime_type": "image/png"}},
        {"inline_data": {"data": "-_8=", "mime_type": "image/gif"}},
    ]


@pytest.mark.parametrize(
    ("fields", "is_sent"),
    [
        ({}, True),
        ({"format": "anthropic"}, False),
        ({"format": "openai-responses"}, False),
        ({"format": "langchain"}, True),
    ],
)
def test_only_a_signature_of_googles_is_written(fields: dict[str, Any], is_sent: bool) -> None:
    message = ChatMessage(role="assistant", content=[ThinkPart(text="Hm.", signature=SIGNED)], **fields)
    assert thought_of([message]) == {
        "text": "Hm.",
        "thought": True,
        **({"thought_signature": SIGNED} if is_sent else {}),
    }
    of_part = ThinkPart(text="Hm.", signature=SIGNED, extras={"provider": "openai"})
    assert "thought_signature" not in thought_of([message.model_copy(update={"content": [of_part]})])


def test_a_signature_that_is_not_base64_is_left_out() -> None:
    message = ChatMessage(role="assistant", content=[ThinkPart(text="Hm.", signature="not base64!")])
    assert "thought_signature" not in thought_of([message])
    assert "signature" in {loss.code for loss in encode(CODEC, [message]).losses}


@pytest.mark.parametrize("spelling", ["stored", "by alias"])
def test_a_signature_goes_to_its_provider_only(spelling: str) -> None:
    claudes = CODEC.decode(SAMPLES[f"thoughts of Claude, {spelling}"]).messages
    googles = CODEC.decode(SAMPLES[f"a signed thought and calls, {spelling}"]).messages
    anthropic = str(encode(get_codec("anthropic"), claudes).payload)
    assert "'signature': 'EqQB+/='" in anthropic
    assert "signature" not in str(encode(get_codec("anthropic"), googles).payload)
    for messages in (claudes, googles):
        assert "encrypted_content" not in str(encode(get_codec("openai-responses"), messages).payload)
    gemini = encode(get_codec("langchain"), googles).payload
    assert "'type': 'thinking'" not in str(gemini)
    assert "'type': 'thinking'" in str(encode(get_codec("langchain"), claudes).payload)


@pytest.mark.parametrize("name", format_names())
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_event_reads_in_every_format_and_back(name: str, sample: str) -> None:
    there = get_codec(name)
    messages = CODEC.decode(SAMPLES[sample]).messages
    encoded = encode(there, messages)
    back = encode(CODEC, there.decode(encoded.payload, rules="lenient").messages)
    assert isinstance(back.payload, list)
    lost = {loss.code for loss in encoded.losses}
    assert lost or name == CODEC.name or all(message.role != "custom" for message in messages)
