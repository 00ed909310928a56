"""How messages of the framework are read, and which values are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.errors import UnknownFormat
from chatledger.formats import recognise
from chatledger.formats.agent_framework import CODEC
from chatledger.models import ChatMessage, FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart, ToolCall
from tests.formats.agent_framework.samples import SAMPLES
from tests.formats.measured import refusal


def read(name: str) -> list[ChatMessage]:
    return CODEC.decode(SAMPLES[name]).messages


def parts_of(message: ChatMessage) -> list[Part]:
    assert isinstance(message.content, list)
    return message.content


def message(*contents: Any, role: str = "assistant") -> dict[str, Any]:
    return {"type": "message", "role": role, "contents": list(contents), "additional_properties": {}}


def test_a_conversation_is_a_row_a_message() -> None:
    rows = read("a question with a call")
    assert [(row.role, row.name, row.content) for row in rows] == [
        ("system", None, "Be brief."),
        ("user", "ada", "How cold is Oslo?"),
        ("assistant", "Weather", "I look."),
        ("tool", None, "4 °C"),
        ("assistant", "Weather", "4 °C."),
    ]
    assert rows[2].tool_calls == [ToolCall(id="call_1", name="weather", arguments='{"city": "Oslo"}')]
    assert rows[3].tool_call_id == "call_1"
    assert all(row.message_id is None for row in rows)


def test_each_result_is_a_row_of_a_group() -> None:
    asked, first, second = read("several results")
    assert [call.arguments for call in asked.tool_calls or ()] == [{"city": "Oslo"}, None]
    assert (first.content, first.tool_call_id, first.is_error) == ('{"degrees": 4}', "a", None)
    assert (second.content, second.tool_call_id, second.is_error) == ("Error: out of order", "b", True)
    assert second.residual == {"continues": True}


def test_a_result_of_several_items_has_parts() -> None:
    picture = ImagePart(data="iVBORw==", mime_type="image/png")
    assert read("a result with an image")[1].content == [TextPart(text="The chart."), picture, TextPart(text="Done.")]


def test_other_contents_in_a_message_of_results_answer_no_call() -> None:
    rows = read("approval")
    assert [row.role for row in rows] == ["assistant", "user", "custom", "tool"]
    assert [type(part) for part in parts_of(rows[2])] == [OpaquePart]


def test_a_call_that_the_provider_answered_is_not_open() -> None:
    [row] = read("tools of a provider")
    assert row.tool_calls is None
    kinds = [part.type if isinstance(part, OpaquePart) else part.kind for part in parts_of(row)]
    assert kinds[0] == "function_call"
    assert kinds[5:8] == ["function_call", "function_result", "text"]


def test_media_are_distinguished_by_their_type() -> None:
    [row] = read("media")
    kinds = [part.kind for part in parts_of(row)]
    assert kinds == ["text", "image", "audio", "video", "file", "file", "file", "opaque"]
    assert parts_of(row)[4] == FilePart(data="JVBE", mime_type="application/pdf", name="a.pdf", id="file_1")


def test_roles_that_no_model_knows_are_custom() -> None:
    assert [row.role for row in read("other roles")] == ["developer", "custom", "custom", "user", "assistant"]


def test_the_id_of_openais_reasoning_tells_who_signed_it() -> None:
    first, second, _ = parts_of(read("reasoning of OpenAI")[0])
    assert first == ThinkPart(text="North.", signature="gAAA", extras={"provider": "openai", "id": "rs_1"})
    assert second == ThinkPart(text="So cold.", extras={"id": "rs_1"})
    assert parts_of(read("reasoning of Anthropic")[0])[0] == ThinkPart(text="North.", signature="c2ln")


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({}, "$"),
        ([1], "$[0]"),
        ([{"contents": []}], "$[0].role"),
        ([{"role": "user"}], "$[0].contents"),
        ([message(1)], "$[0].contents[0]"),
        ([message({"text": "a"})], "$[0].contents[0].type"),
        ([message({"type": "text", "text": 1})], "$[0].contents[0].text"),
        ([message({"type": "uri"})], "$[0].contents[0].uri"),
        ([message({"type": "function_call", "name": ""})], "$[0].contents[0].name"),
        ([message({"type": "function_call", "name": "a", "arguments": 1})], "$[0].contents[0].arguments"),
        ([message({"type": "function_result", "items": 1}, role="tool")], "$[0].contents[0].items"),
        ([message({"type": "text", "text": "a", "more": object()})], "$[0].contents[0].more"),
        ([{**message(), "author_name": 1}], "$[0].author_name"),
    ],
)
def test_a_rejected_message_is_named(payload: Any, path: str) -> None:
    assert refusal(CODEC, payload) == path


@pytest.mark.parametrize(
    "payload",
    [
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}],
        [{"role": "user", "content": "a"}],
        [{"role": "user", "contents": [{"text": "a"}]}],
        [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "a"}]}],
    ],
)
def test_messages_of_others_are_not(payload: Any) -> None:
    assert not CODEC.recognises(payload)
    try:
        assert recognise(payload) is not CODEC
    except UnknownFormat:
        return


@pytest.mark.parametrize("role", ["tool", "assistant", "user"])
@pytest.mark.parametrize("call_id", [["call_1"], {"id": "call_1"}, 5])
def test_a_result_whose_call_id_is_no_text_is_kept_in_its_place(role: str, call_id: Any) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"}
    result = {"type": "function_result", "call_id": call_id, "result": "4 °C"}
    payload = [message(call), message(result, role=role)]
    rows = CODEC.decode(payload, rules="lenient").messages
    assert [len(row.tool_calls or ()) for row in rows] == [1, 0]
    assert CODEC.encode(rows).payload == payload
