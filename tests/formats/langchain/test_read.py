"""How the parts of LangChain's messages are read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger import ChatMessage, FilePart, ImagePart, OpaquePart, TextPart, ThinkPart, ToolCall, VideoPart
from chatledger.formats.langchain import CODEC
from tests.formats.langchain.samples import SAMPLES
from tests.formats.langchain.strategies import messages
from tests.formats.measured import refusal


def read(name: str) -> list[ChatMessage]:
    return CODEC.decode(SAMPLES[name]).messages


def one(content: Any, type_: str = "human", /, rules: Any = "strict", **fields: Any) -> ChatMessage:
    data = {"content": content, "type": type_, **fields}
    [message] = CODEC.decode([{"type": type_, "data": data}], rules=rules).messages
    return message


def test_a_conversation_is_typed() -> None:
    system, user, asked, result, answer = read("a question with a call")
    assert [message.role for message in (system, user, asked, result, answer)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert (user.name, user.content) == ("ada", "How cold is Oslo?")
    assert asked.tool_calls == [ToolCall(id="call_1", name="weather", arguments={"city": "Oslo"})]
    assert asked.response_metadata is not None
    assert asked.response_metadata["model_provider"] == "openai"
    assert (result.tool_call_id, result.name, result.is_error) == ("call_1", "weather", None)


def test_blocks_are_typed_and_a_repeated_call_is_not() -> None:
    _, asked, result = read("calls of Anthropic")
    assert isinstance(asked.content, list)
    assert asked.content[0] == ThinkPart(text="Two cities.", signature="c2ln", extras={"provider": "anthropic"})
    assert [part.kind for part in asked.content] == ["think", "opaque", "text", "opaque"]
    assert [call.id for call in asked.tool_calls or ()] == ["toolu_1"]
    assert (result.is_error, result.content) == (True, [TextPart(text="no such city")])


@pytest.mark.parametrize(
    ("name", "reasoning"),
    [
        ("reasoning of OpenAI", "First.\n\nThen."),
        ("reasoning beside the content", "North."),
        ("reasoning of Bedrock", "North."),
    ],
)
def test_reasoning_is_read_in_every_spelling(name: str, reasoning: str) -> None:
    [message] = read(name)
    assert (message.reasoning_text, message.text) == (reasoning, "Cold.")


def test_standard_media_are_typed() -> None:
    user, _ = read("standard blocks")
    pixel = "iVBORw0KGgo="
    assert isinstance(user.content, list)
    assert user.content[1:3] == [
        ImagePart(url="https://example.org/a.png"),
        ImagePart(data=pixel, mime_type="image/png", extras={"detail": "low"}),
    ]
    assert user.content[4:] == [
        VideoPart(id="file-1"),
        FilePart(data=pixel, mime_type="application/pdf", name="a.pdf"),
    ]


def test_media_of_other_spellings_are_typed() -> None:
    [user] = read("older and foreign blocks")
    assert isinstance(user.content, list)
    assert [part.kind for part in user.content] == [
        "text",
        "image",
        "image",
        "image",
        "audio",
        "file",
        "image",
        "file",
    ]


def test_a_call_that_cannot_be_run_keeps_its_text() -> None:
    [message] = read("a call that cannot be run")
    assert message.tool_calls == [
        ToolCall(id="call_2", name="tides", arguments={}),
        ToolCall(id="call_1", name="weather", arguments='{"city": "Os'),
    ]


def test_types_become_roles_and_unknown_ones_custom() -> None:
    assert [message.role for message in read("messages of other types")] == ["user", "custom", "tool", "custom"]
    assert read("a developer")[0].role == "developer"
    assert read("a chunk")[0].role == "assistant"
    assert one("x", "event", topic="rain").role == "custom"


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({"type": "human"}, "$"),
        ([1], "$[0]"),
        ([{"data": {}}], "$[0].type"),
        ([{"type": "human"}], "$[0].data"),
        ([{"type": "human", "data": {}}], "$[0].data.content"),
        ([{"type": "human", "data": {"content": [1]}}], "$[0].data.content[0]"),
        ([{"type": "human", "data": {"content": [{"type": "text"}]}}], "$[0].data.content[0].text"),
        ([{"type": "human", "data": {"content": [{"type": "image"}]}}], "$[0].data.content[0]"),
        ([{"type": "ai", "data": {"content": "", "tool_calls": [{"name": "f"}]}}], "$[0].data.tool_calls[0].args"),
        ([{"type": "tool", "data": {"content": "", "artifact": [object()]}}], "$[0].data.artifact[0]"),
        ([{"type": "human", "data": {"content": "", "name": 1}}], "$[0].data.name"),
    ],
)
def test_a_value_that_is_not_a_message_is_refused_with_its_path(payload: Any, path: str) -> None:
    assert refusal(CODEC, payload) == path


def test_lenient_rules_keep_what_strict_ones_refuse() -> None:
    assert one([{"type": "text"}], rules="lenient").content == [OpaquePart(type="text", value={"type": "text"})]
    assert one([None], rules="lenient").content is None
    decoded = CODEC.decode(
        [{"type": "tool", "data": {"content": "", "tool_call_id": "c", "artifact": (1,)}}], rules="lenient"
    )
    assert [(loss.code, loss.path) for loss in decoded.losses] == [("coerced", "$[0].data.artifact")]


def test_an_edited_message_is_written_as_edited() -> None:
    [message] = read("a call that cannot be run")
    _, asked, _ = read("calls of Anthropic")
    edited = asked.model_copy(update={"content": [ImagePart(url="u"), TextPart(text="No.")], "name": "ada"})
    renamed = message.model_copy(update={"tool_calls": [ToolCall(id="x", name="f", arguments="{")], "content": "Hm."})
    first, second = (entry["data"] for entry in CODEC.encode([edited, renamed]).payload)
    assert first["content"] == [{"type": "image", "url": "u"}, {"type": "text", "text": "No."}]
    assert first["name"] == "ada"
    assert second["content"] == "Hm."
    assert [call["args"] for call in second["invalid_tool_calls"]] == ["{"]


@settings(max_examples=50)
@given(st.lists(messages, max_size=3))
def test_each_message_is_one_message(payload: list[Any]) -> None:
    assert len(CODEC.decode(payload).messages) == len(payload)
