"""Messages of other formats are written as the SDK's own types accept them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseInputParam
from pydantic import TypeAdapter

from chatledger.formats.openai_responses import CODEC
from chatledger.models import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
    ToolCall,
    VideoPart,
)
from tests.formats.measured import encode
from tests.formats.stored import stored

TAKEN = TypeAdapter[Any](ResponseInputParam)


def written(*messages: ChatMessage) -> Any:
    payload = encode(CODEC, messages).payload
    TAKEN.validate_python(payload)
    return payload


def lost(*messages: ChatMessage) -> list[tuple[str, str]]:
    return [(loss.code, loss.path) for loss in encode(CODEC, messages).losses]


def said(role: str, content: Any = None, **fields: Any) -> ChatMessage:
    return ChatMessage(role=role, content=content, **fields)


def test_plain_messages_lose_nothing() -> None:
    history = [said("system", "s"), said("developer", "d"), said("user", "u"), said("assistant", "a")]
    assert written(*history) == [{"role": message.role, "content": message.content} for message in history]
    assert lost(*history) == []


def test_an_assistant_becomes_items_in_the_order_of_its_parts() -> None:
    parts: list[Part] = [ThinkPart(text="Hm"), TextPart(text="a"), TextPart(text="b")]
    message = said("assistant", parts, seq=3, tool_calls=[ToolCall(id="c", name="f", arguments="{}")])
    kinds = [(item["type"], item.get("id")) for item in written(message)]
    assert kinds == [("reasoning", "rs_3_0"), ("message", "msg_3_1"), ("function_call", None)]
    assert lost(message) == []


def test_reasoning_beside_the_content_comes_first() -> None:
    message = said("assistant", "a", reasoning="Hm", seq=3)
    assert [item.get("type") for item in written(message)] == ["reasoning", None]
    assert lost(message) == [("content-form", "content"), ("reasoning-form", "reasoning")]


@pytest.mark.parametrize(("origin", "kept"), [(None, True), ("anthropic", False), ("kosong/0.30", False)])
def test_a_signature_of_another_provider_is_left_out(origin: str | None, kept: bool) -> None:
    message = said("assistant", [ThinkPart(text="Hm", signature="s"), TextPart(text="a")], format=origin)
    assert (written(message)[0].get("encrypted_content") == "s") is kept
    assert (("signature", "content[0].signature") not in lost(message)) is kept


def test_calls_without_ids_and_their_results_get_the_same() -> None:
    calls = [ToolCall(name="f"), ToolCall(name="g", arguments={"a": 1})]
    history = [said("assistant", seq=3, tool_calls=calls), said("tool", "g!", name="g"), said("tool", "f!", name="f")]
    items = written(*history, said("tool", "orphan", seq=9))
    assert [item["call_id"] for item in items] == ["call_3_0", "call_3_1", "call_3_1", "call_3_0", "call_9"]
    assert [item["arguments"] for item in items[:2]] == ["{}", '{"a":1}']


def test_a_result_written_elsewhere_has_the_type_of_the_call_that_it_answers() -> None:
    asked = CODEC.decode([{"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "SELECT 1"}]).messages
    assert written(*asked, said("tool", "1", tool_call_id="c"))[1] == {
        "type": "custom_tool_call_output",
        "call_id": "c",
        "output": "1",
    }


@pytest.mark.parametrize("role", ["user", "tool"])
def test_media_are_written_where_the_api_accepts_them(role: str) -> None:
    parts: list[Part] = [
        ImagePart(url="https://h/x", extras={"detail": "low"}),
        ImagePart(data="QQ==", mime_type="image/png"),
        FilePart(data="QQ==", mime_type="a/b", name="x"),
        FilePart(url="https://h/x"),
        FilePart(id="file-1"),
    ]
    [item] = written(said(role, parts, tool_call_id="c" if role == "tool" else None))
    assert item["output" if role == "tool" else "content"] == [
        {"type": "input_image", "detail": "low", "image_url": "https://h/x"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QQ=="},
        {"type": "input_file", "file_data": "data:a/b;base64,QQ==", "filename": "x"},
        {"type": "input_file", "file_url": "https://h/x"},
        {"type": "input_file", "file_id": "file-1"},
    ]


@pytest.mark.parametrize(
    "part",
    [AudioPart(data="QQ=="), VideoPart(url="u"), OpaquePart(value={}), ImagePart(data="QQ=="), FilePart(name="x")],
)
def test_values_that_the_api_does_not_accept_are_left_out(part: Part) -> None:
    message = said("user", [TextPart(text="a"), part])
    assert written(message)[0]["content"] == [{"type": "input_text", "text": "a"}]
    assert [path for _, path in lost(message)] == ["content[1]"]


def test_a_file_id_of_another_system_is_left_out() -> None:
    message = said("user", [FilePart(id="file_011", data="QQ==", mime_type="a/b")], format="anthropic")
    assert "file_id" not in written(message)[0]["content"][0]
    assert ("media", "content[0].id") in lost(message)


def test_an_assistant_that_says_nothing_is_still_there() -> None:
    assert written(said("assistant")) == [{"role": "assistant", "content": ""}]
    assert lost(said("assistant")) == [("content-form", "content")]


def test_custom_messages_are_left_out_and_unknown_roles_are_users() -> None:
    narrator = ChatMessage.model_validate({"role": "narrator", "content": "Once"}, context={"rules": "lenient"})
    assert written(said("custom", "x"), narrator) == [{"role": "user", "content": "Once"}]
    assert lost(said("custom", "x"), narrator) == [("left-out", ""), ("role", "role")]


def test_calls_in_several_messages_are_read_as_one() -> None:
    calls = [said("assistant", tool_calls=[ToolCall(id=id_, name="f", arguments="{}")]) for id_ in "ab"]
    assert lost(*calls) == [("merged", "")]


@settings(max_examples=100)
@given(st.lists(stored([None, "anthropic", "openai-chat"]), max_size=4))
def test_messages_of_any_origin_fit_the_types_of_the_sdk(history: list[ChatMessage]) -> None:
    written(*history)
