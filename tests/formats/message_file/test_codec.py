from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.errors import DecodeError
from chatledger.formats import get_codec, recognise
from chatledger.formats.message_file import (
    CODEC,
    CodeExecutionOutputBuilder,
    FunctionCallBuilder,
    MessageBuilder,
    MessageOutputBuilder,
)
from chatledger.models import ChatMessage, FilePart, ImagePart, Loss, TextPart, ThinkPart, ToolCall
from chatledger.models.json import same_json
from tests.formats.agent_service.strategies import foreign_messages
from tests.formats.message_file.strategies import items


def stored(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The messages after they rested as plain data, at their positions."""
    return [
        ChatMessage.model_validate({**message.model_dump(), "seq": seq})
        for seq, message in enumerate(messages, start=1)
    ]


def read(*messages: ChatMessage) -> tuple[Any, list[Loss]]:
    encoded = CODEC.encode(stored(list(messages)))
    return encoded.payload, encoded.losses


@given(st.lists(items, max_size=3))
@settings(max_examples=150)
def test_objects_come_back_equal_and_without_losses(payload: list[Any]) -> None:
    encoded = CODEC.encode(stored(CODEC.decode(payload).messages))
    assert same_json(encoded.payload, [item.to_dict() for item in payload])
    assert [repr(item) for item in CODEC.as_models(encoded.payload)] == [repr(item) for item in payload]
    assert encoded.losses == []


@given(st.lists(items, max_size=3))
@settings(max_examples=50)
def test_dicts_come_back_before_they_are_stored(payload: list[Any]) -> None:
    dicts = [item.to_dict() for item in payload]
    assert same_json(CODEC.encode(CODEC.decode(dicts).messages).payload, dicts)


@given(st.lists(foreign_messages, max_size=5))
@settings(max_examples=150)
def test_messages_of_any_origin_become_items(messages: list[ChatMessage]) -> None:
    payload, _ = read(*messages)
    assert [item.to_dict() for item in CODEC.as_models(payload)] == payload or "nan" in repr(payload)
    assert same_json(read(*messages)[0], payload)


def weather() -> Any:
    result = CodeExecutionOutputBuilder().with_stdout("21\n").build()
    call = FunctionCallBuilder().with_name("c").with_function_name("forecast").with_args({"city": "Tokyo"})
    answer = MessageOutputBuilder().with_content("21 degrees").with_nonce("n").build()
    message = MessageBuilder().with_name("m").with_content("How warm?").with_agent_name("sky").with_output(answer)
    return message.with_function_call(call.with_output(result).build()).build()


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


def test_another_formats_conversation_becomes_items() -> None:
    payload, losses = read(
        ChatMessage(role="system", content="Be brief."),
        ChatMessage(role="user", content="How warm?", run_id="r"),
        ChatMessage(
            role="assistant",
            content=[ThinkPart(text="hm"), TextPart(text="I look.")],
            tool_calls=[ToolCall(id="a", name="f", arguments='{"b":1}'), ToolCall(id="a", name="f", arguments="{")],
        ),
        ChatMessage(role="tool", tool_call_id="a", content="21"),
        ChatMessage(role="tool", tool_call_id="z", content="?"),
    )
    [item] = payload
    first, second = item["function_calls"]
    assert (item["content"], item["history"]) == ("How warm?", [{"run_id": "r"}])
    assert [output["content"] for output in item["outputs"]] == ["I look.", "?"]
    assert [(call["name"], call["args"]) for call in (first, second)] == [("a", {"b": 1}), (None, {"_raw": "{"})]
    assert first["outputs"] == [{"content": "21", "mime_type": "text/plain", "nonce": "output_4_0"}]
    assert losses == [
        Loss("left-out", 1, ""),
        Loss("run-id", 2, "run_id"),
        Loss("split", 3, ""),
        Loss("reasoning", 3, "content[0]"),
        Loss("arguments-form", 3, "tool_calls[0].arguments"),
        Loss("call-id", 3, "tool_calls[1].id"),
        Loss("arguments", 3, "tool_calls[1].arguments"),
        Loss("name", 4, "name"),
        Loss("merged", 5, ""),
        Loss("role", 5, "role"),
        Loss("call-id", 5, "tool_call_id"),
    ]


def test_outputs_whose_item_is_not_in_the_window_are_an_empty_messages() -> None:
    payload, losses = read(*stored(CODEC.decode([weather()]).messages)[3:])
    assert (payload[0]["content"], payload[0]["outputs"][0]["content"]) == ("", "21 degrees")
    assert [loss.code for loss in losses] == ["made-up", "name", "residual"]


def test_items_are_recognised_as_objects_and_as_dicts() -> None:
    assert recognise([weather()]) is CODEC
    assert recognise([weather().to_dict()]) is CODEC
    assert not CODEC.recognises([{"type": "message", "role": "user", "content": []}])


def test_the_kind_that_came_in_is_known() -> None:
    assert CODEC.given_as(CODEC.decode([weather()]).messages) == "models"
    assert CODEC.given_as(CODEC.decode([weather().to_dict()]).messages) == "dicts"


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
def test_what_is_no_item_is_refused_with_its_path(payload: Any, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        CODEC.decode(payload)
    assert caught.value.path == path
