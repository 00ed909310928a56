"""Messages of other formats for the framework, and whose signatures go where."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats import get_codec
from chatledger.formats.agent_framework import CODEC
from chatledger.models import (
    LENIENT,
    ChatMessage,
    FilePart,
    ImagePart,
    OpaquePart,
    TextPart,
    ThinkPart,
    ToolCall,
)
from tests.formats.measured import encode


def written(*messages: ChatMessage) -> list[dict[str, Any]]:
    payload: list[dict[str, Any]] = encode(CODEC, messages).payload
    return payload


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value, "additional_properties": {}}


def test_results_in_a_row_are_one_message() -> None:
    calls = [ToolCall(name="weather"), ToolCall(id="b", name="tides", arguments="{city")]
    asked, results = written(
        ChatMessage(role="assistant", tool_calls=calls),
        ChatMessage(role="tool", content="4 °C", name="weather"),
        ChatMessage(role="tool", content="no", tool_call_id="b", is_error=True),
    )
    assert [(one["call_id"], one.get("arguments")) for one in asked["contents"]] == [
        ("call_1_0", None),
        ("b", "{city"),
    ]
    first = {"type": "function_result", "call_id": "call_1_0", "result": "4 °C", "items": [text("4 °C")]}
    second = {"type": "function_result", "call_id": "b", "exception": "FunctionInvocationError", "result": "no"}
    assert results["contents"] == [
        {**first, "additional_properties": {}},
        {**second, "items": [text("no")], "additional_properties": {}},
    ]


def test_roles_that_the_framework_does_not_know_become_known_ones() -> None:
    messages = [
        ChatMessage.model_validate({"role": role, "content": "a"}, context=LENIENT)
        for role in ("developer", "custom", "narrator")
    ]
    assert [one["role"] for one in written(*messages)] == ["system", "user"]


def test_media_always_have_a_type() -> None:
    parts = [
        ImagePart(url="https://h/a"),
        ImagePart(url="data:image/png;base64,QQ=="),
        ImagePart(data="QQ==", mime_type="image/png"),
        ImagePart(data="QQ=="),
        FilePart(id="file_1"),
        OpaquePart(type="later", value={}),
    ]
    [one] = written(ChatMessage(role="user", content=list(parts)))
    assert [(item["type"], item["media_type"]) for item in one["contents"]] == [
        ("uri", "image/*"),
        ("data", "image/png"),
        ("data", "image/png"),
    ]


@pytest.mark.parametrize(
    ("source", "extras", "signed", "id_"),
    [
        ("anthropic", None, True, None),
        (None, None, True, None),
        ("pydantic-ai", {"provider": "anthropic", "id": "th_1"}, True, None),
        ("pydantic-ai", {"provider": "openai", "id": "rs_1"}, True, "rs_1"),
        ("pydantic-ai", {"provider": "openai"}, False, None),
        ("pydantic-ai", {"provider": "google"}, False, None),
        ("openai-responses", None, False, None),
        ("kosong/0.30", None, False, None),
    ],
)
def test_a_signature_is_written_only_if_the_framework_can_tell_whose_it_is(
    source: str | None, extras: Any, signed: bool, id_: str | None
) -> None:
    thought = ThinkPart(text="North.", signature="c2ln", extras=extras)
    message = ChatMessage(role="assistant", content=[thought, TextPart(text="Cold.")], format=source)
    encoded = encode(CODEC, [message])
    content = encoded.payload[0]["contents"][0]
    assert (content.get("protected_data"), content.get("id")) == ("c2ln" if signed else None, id_)
    assert ("signature" in {loss.code for loss in encoded.losses}) == (not signed)


@pytest.mark.parametrize(("id_", "own"), [("rs_1", "openai-responses"), (None, None), ("th_1", None)])
def test_a_signature_in_a_dict_goes_to_its_provider_alone(id_: str | None, own: str | None) -> None:
    thought = {"type": "text_reasoning", "text": "North.", "protected_data": "c2ln", **({"id": id_} if id_ else {})}
    source = [{"type": "message", "role": "assistant", "contents": [thought, text("Cold.")]}]
    messages = CODEC.decode(source).messages
    for target in ("openai-responses", "openai-chat"):
        assert ("c2ln" in str(encode(get_codec(target), messages).payload)) == (target == own), target
    # What nobody named is written as it is stored; a model view leaves it out.
    assert ("c2ln" in str(encode(get_codec("anthropic"), messages).payload)) == (own is None)


def test_an_edit_by_a_program_is_written() -> None:
    [row] = CODEC.decode([{"type": "message", "role": "user", "contents": [text("a")], "message_id": "m"}]).messages
    [one] = written(row.model_copy(update={"name": "ada", "content": "b"}))
    assert (one["author_name"], one["contents"], one["message_id"]) == ("ada", [text("b")], "m")


def test_a_residual_that_hides_the_role_is_not_used() -> None:
    residual: dict[str, Any] = {"head": {"keys": []}}
    [one] = written(ChatMessage(role="user", content="a", format="agent-framework", residual=residual))
    assert (one["role"], one["contents"]) == ("user", [text("a")])
