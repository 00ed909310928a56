"""The messages that items become, and the refusals with their paths."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.errors import DecodeError
from chatledger.formats import get_codec
from chatledger.formats.message_file import CODEC, FunctionCallBuilder, MessageBuilder, MessageOutputBuilder
from chatledger.models import ChatMessage, FilePart, ImagePart, TextPart, ToolCall
from tests.formats.measured import refusal
from tests.formats.message_file.examples import weather


def said(message: ChatMessage) -> tuple[object, ...]:
    return message.role, message.name, message.text, message.tool_calls, message.tool_call_id


def test_an_item_is_a_turn_that_any_format_can_read() -> None:
    assert [said(message) for message in CODEC.decode([weather()]).messages] == [
        ("user", "m", "How warm?", None, None),
        ("assistant", None, "", [ToolCall(id="c", name="forecast", arguments={"city": "Tokyo"})], None),
        ("tool", "forecast", "stdout> 21", None, "c"),
        ("assistant", "sky", "21 degrees", None, None),
    ]
    chat = get_codec("openai-chat").encode(CODEC.decode([weather()]).messages)
    assert [message["role"] for message in chat.payload] == ["user", "assistant", "tool", "assistant"]


def test_a_call_without_a_name_is_known_by_the_nonce_of_its_output() -> None:
    output = MessageOutputBuilder().with_content("x").with_nonce("n").build()
    messages = CODEC.decode([FunctionCallBuilder().with_function_name("f").with_output(output).build()]).messages
    assert messages[0].tool_calls == [ToolCall(id="n", name="f", arguments={})]
    assert messages[1].tool_call_id == "n"


def test_contents_that_are_not_text_are_media() -> None:
    image = MessageBuilder().with_binary_content(b"\x89PNG", "image/png").build()
    pdf = MessageOutputBuilder().with_binary_content(b"%PDF", "application/pdf").build()
    page = MessageOutputBuilder().with_content("<p>").with_mime_type("text/html").build()
    image.add_output(page)
    image.add_output(pdf)
    question, answer = CODEC.decode([image]).messages
    assert question.content == [ImagePart(data="iVBORw==", mime_type="image/png")]
    assert answer.content == [TextPart(text="<p>"), FilePart(data="JVBERg==", mime_type="application/pdf")]


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({}, "$"),
        ([1], "$[0]"),
        ([{"type": "note", "content": ""}], "$[0]"),
        ([{"type": "message"}], "$[0].content"),
        ([{"type": "message", "content": "", "api_key": "x"}], "$[0].api_key"),
        ([{"type": "message", "content": "", "outputs": [{"content": 1}]}], "$[0].outputs[0].content"),
        ([{"type": "function_call", "function_name": ""}], "$[0].function_name"),
        ([{"type": "function_call", "function_name": "f", "args": "{}"}], "$[0].args"),
        (
            [{"type": "message", "content": "", "function_calls": [{"args": {}}]}],
            "$[0].function_calls[0].function_name",
        ),
    ],
)
def test_a_value_that_is_not_an_item_is_refused_with_its_path(payload: Any, path: str) -> None:
    assert refusal(CODEC, payload) == path


@pytest.mark.parametrize("key", ["outputs", "history", "function_calls"])
def test_a_value_that_may_never_end_is_refused_before_it_is_read(key: str) -> None:
    given = iter(range(1000))
    with pytest.raises(DecodeError) as caught:
        CODEC.decode([{"type": "message", "content": "", key: given}])
    assert caught.value.path.startswith(f"$[0].{key}")
    assert next(given) == 0


def test_the_kind_that_came_in_is_known() -> None:
    assert CODEC.given_as(CODEC.decode([weather()]).messages) == "models"
    assert CODEC.given_as(CODEC.decode([weather().to_dict()]).messages) == "dicts"
