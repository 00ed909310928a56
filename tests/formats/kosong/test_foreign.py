"""Messages of other formats written as kosong: by their canonical fields alone, and with which losses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats.kosong import CODEC, v0_23
from chatledger.formats.kosong.codec import KosongCodec
from chatledger.models import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    Loss,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
    ToolCall,
    VideoPart,
)
from tests.formats.kosong.strategies import residuals
from tests.formats.measured import encode

OLDER = v0_23.CODEC


def short(messages: list[ChatMessage], codec: KosongCodec = CODEC) -> list[dict[str, Any]]:
    """The written messages, as objects dump them without None."""
    models = codec.as_models(encode(codec, messages).payload)
    return [model.model_dump(exclude_none=True) for model in models]


def losses(messages: list[ChatMessage], codec: KosongCodec = CODEC) -> list[tuple[str, int | None, str]]:
    return [(loss.code, loss.seq, loss.path) for loss in encode(codec, messages).losses]


def content_of(*parts: Part, codec: KosongCodec = CODEC) -> Any:
    """How parts are written; a first text keeps the list a list."""
    return encode(codec, [ChatMessage(role="user", content=[TextPart(text=""), *parts])]).payload[0]["content"][1:]


def asking(*calls: ToolCall, **fields: Any) -> ChatMessage:
    return ChatMessage(role="assistant", tool_calls=list(calls), **{"content": "", **fields})


def test_one_turn_of_several_messages_is_one_message() -> None:
    turn = [
        ChatMessage(role="assistant", content="", reasoning="hm", run_id="r", seq=2, format="qwen-agent"),
        ChatMessage(role="assistant", content="Let me see.", run_id="r", seq=3, format="qwen-agent"),
        asking(ToolCall(id="1", name="f", arguments="{}"), run_id="r", seq=4, format="qwen-agent"),
        asking(ToolCall(id="2", name="g", arguments="{}"), run_id="r", seq=5, format="qwen-agent"),
        ChatMessage(role="tool", tool_call_id="1", name="f", content="a", run_id="r", seq=6, format="qwen-agent"),
    ]
    functions = [{"name": "f", "arguments": "{}"}, {"name": "g", "arguments": "{}"}]
    assert short(turn) == [
        {
            "role": "assistant",
            "content": [
                {"type": "think", "think": "hm", "encrypted": None},
                {"type": "text", "text": "Let me see."},
            ],
            "tool_calls": [
                {"type": "function", "id": str(n), "function": function} for n, function in enumerate(functions, 1)
            ],
        },
        {"role": "tool", "name": "f", "content": "a", "tool_call_id": "1"},
    ]
    assert [loss for loss in losses(turn) if loss[0] == "merged"] == [("merged", seq, "") for seq in (3, 4, 5)]


@pytest.mark.parametrize("change", [{"run_id": "s"}, {"name": "b"}, {"state": "interrupted"}, {"role": "user"}])
def test_messages_of_two_turns_are_not_merged(change: dict[str, Any]) -> None:
    first = ChatMessage(role="assistant", content="x", run_id="r", name="a")
    second = ChatMessage.model_validate({**first.model_dump(), **change})
    assert len(encode(CODEC, [first, second]).payload) == 2


@pytest.mark.parametrize("codec", [CODEC, OLDER])
def test_messages_of_kosong_are_never_merged(codec: KosongCodec) -> None:
    messages = CODEC.decode([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]).messages
    assert len(encode(codec, messages).payload) == 2


def test_a_text_before_a_call_stays_a_text() -> None:
    turn = [ChatMessage(role="assistant", content="a"), asking(ToolCall(id="1", name="f"))]
    assert encode(OLDER, turn).payload[0]["content"] == "a"


def test_empty_reasoning_is_not_the_absence_of_reasoning() -> None:
    [row] = encode(CODEC, [ChatMessage(role="assistant", content="a", reasoning="")]).payload
    assert row["content"] == [{"type": "think", "think": "", "encrypted": None}, {"type": "text", "text": "a"}]


def test_reasoning_of_parts_becomes_thoughts() -> None:
    reasoning: list[Part] = [TextPart(text="a"), ThinkPart(text="b", signature="s")]
    [row] = encode(CODEC, [ChatMessage(role="assistant", reasoning=reasoning)]).payload
    assert row["content"] == [
        {"type": "think", "think": "a", "encrypted": None},
        {"type": "think", "think": "b", "encrypted": "s"},
    ]


def test_missing_ids_are_made_and_results_find_them() -> None:
    messages = [
        asking(ToolCall(name="f"), ToolCall(name="g"), seq=7),
        ChatMessage(role="tool", name="g", content="b", seq=8),
        ChatMessage(role="tool", name="f", content="a", seq=9),
        ChatMessage(role="tool", name="h", content="c", seq=10),
    ]
    payload = encode(CODEC, messages).payload
    assert [call["id"] for call in payload[0]["tool_calls"]] == ["call_7_0", "call_7_1"]
    assert [row["tool_call_id"] for row in payload[1:]] == ["call_7_1", "call_7_0", None]
    assert losses(messages) == [
        ("call-id", 7, "tool_calls[0].id"),
        ("call-id", 7, "tool_calls[1].id"),
        ("call-id", 8, "tool_call_id"),
        ("call-id", 9, "tool_call_id"),
    ]


def test_arguments_become_compact_json() -> None:
    calls = [ToolCall(id="1", name="f", arguments={"b": 1e2, "a": "é"}), ToolCall(id="2", name="f")]
    [row] = encode(CODEC, [asking(*calls)]).payload
    assert [call["function"]["arguments"] for call in row["tool_calls"]] == ['{"b":100.0,"a":"é"}', None]


def test_a_medium_is_its_url_or_a_data_uri() -> None:
    assert content_of(
        ImagePart(url="u", id="i"),
        AudioPart(data="QUJD", mime_type="audio/wav"),
        VideoPart(url="v"),
        ImagePart(data="QUJD"),
    ) == [
        {"type": "image_url", "image_url": {"url": "u", "id": "i"}},
        {"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64,QUJD", "id": None}},
        {"type": "video_url", "video_url": {"url": "v", "id": None}},
        {"type": "image_url", "image_url": {"url": "data:application/octet-stream;base64,QUJD", "id": None}},
    ]


def test_media_without_a_part_become_a_link_in_a_text() -> None:
    links = content_of(FilePart(url="f.pdf"), FilePart(data="QUJD", name="g.pdf"), ImagePart(id="file-1"))
    assert [part["text"] for part in links] == ["[file](f.pdf)", "[file](g.pdf)", "[image](file-1)"]
    assert content_of(VideoPart(url="v"), codec=OLDER) == [{"type": "text", "text": "[video](v)"}]


def test_the_frames_of_a_video_become_images() -> None:
    assert content_of(VideoPart(extras={"frames": ["a", "b"]})) == [
        {"type": "image_url", "image_url": {"url": "a", "id": None}},
        {"type": "image_url", "image_url": {"url": "b", "id": None}},
    ]


def test_an_opaque_part_of_another_format_is_left_out() -> None:
    message = ChatMessage(role="user", content=[TextPart(text="a"), OpaquePart(type="x", value={"x": 1})], seq=1)
    assert encode(CODEC, [message]).payload[0]["content"] == "a"
    assert losses([message]) == [("opaque", 1, "content[1]"), ("content-form", 1, "content")]


@pytest.mark.parametrize(
    ("message", "role", "loss"),
    [
        (ChatMessage(role="developer", content="x"), "system", ("role", None, "role")),
        (ChatMessage.model_construct(role="critic", content="x"), "user", ("role", None, "role")),
    ],
)
def test_other_roles_become_the_nearest(message: ChatMessage, role: str, loss: Any) -> None:
    assert (encode(CODEC, [message]).payload[0]["role"], losses([message])) == (role, [loss])


def test_custom_is_left_out_unless_it_says_its_role() -> None:
    system = ChatMessage(role="custom", content="x", custom_data={"role": "system"}, seq=1)
    screen = ChatMessage(role="custom", content="y", custom_data={"task": 1}, seq=2)
    assert short([system, screen]) == [{"role": "system", "content": "x"}]
    assert losses([system, screen]) == [
        ("role", 1, "role"),
        ("custom-data", 1, "custom_data"),
        ("left-out", 2, ""),
    ]


def test_a_role_that_is_not_text_is_ignored() -> None:
    screen = ChatMessage(role="custom", content="y", custom_data={"role": ["system"]}, seq=2)
    assert losses([screen]) == [("left-out", 2, "")]


def test_fields_without_a_place_are_reported() -> None:
    message = ChatMessage(
        role="assistant",
        content=[TextPart(text="a", extras={"x": 1}), ImagePart(url="u", mime_type="image/png", name="n")],
        run_id="r",
        is_error=False,
        state="interrupted",
        response_metadata={},
        custom_data={"x": 1},
        residual={"x": 1},
        format="agent-service",
        seq=3,
    )
    assert encode(CODEC, [message]).losses == [
        Loss("is-error", 3, "is_error"),
        Loss("state", 3, "state"),
        Loss("run-id", 3, "run_id"),
        Loss("response-metadata", 3, "response_metadata"),
        Loss("custom-data", 3, "custom_data"),
        Loss("extras", 3, "content[0].extras"),
        Loss("media", 3, "content[1].mime_type"),
        Loss("media", 3, "content[1].name"),
        Loss("residual", 3, "residual"),
    ]


@pytest.mark.parametrize(
    ("content", "newer", "older", "is_lost_in"),
    [
        (None, [], None, {"newer"}),
        ("", "", None, {"older"}),
        ([], [], None, {"older"}),
        ([TextPart(text="a")], "a", [{"type": "text", "text": "a"}], {"newer"}),
    ],
)
def test_forms_of_content(content: Any, newer: Any, older: Any, is_lost_in: set[str]) -> None:
    message = ChatMessage(role="user", content=content)
    encoded = {"newer": encode(CODEC, [message]), "older": encode(OLDER, [message])}
    assert [found.payload[0]["content"] for found in encoded.values()] == [newer, older]
    assert {name for name, found in encoded.items() if found.losses} == is_lost_in


def test_the_other_revision_keeps_partial_and_unknown_parts() -> None:
    row = {
        "role": "assistant",
        "content": [{"type": "later", "x": 1}, {"type": "video_url", "video_url": {"url": "v", "id": None}}],
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}, "extras": {"s": 1}}],
        "partial": True,
    }
    encoded = encode(OLDER, CODEC.decode([row]).messages)
    assert [model.model_dump(exclude_none=True) for model in OLDER.as_models(encoded.payload)] == [
        {
            "role": "assistant",
            "content": [{"type": "later", "x": 1}, {"type": "text", "text": "[video](v)"}],
            "tool_calls": [{"type": "function", "id": "1", "function": {"name": "f", "arguments": "{}"}}],
            "partial": True,
        }
    ]
    assert [loss.code for loss in encoded.losses] == ["media", "extras", "residual"]


def test_carry_changes_nothing() -> None:
    message = ChatMessage(role="user", content="a", residual={"x": 1}, format="qwen-agent")
    assert encode(CODEC, [message], carry=True) == encode(CODEC, [message])


texts = st.none() | st.text(max_size=3)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, text=st.text(max_size=3)),
    st.builds(ThinkPart, text=st.text(max_size=3), signature=texts),
    *(
        st.builds(kind, url=texts, data=texts, mime_type=texts, name=texts, id=texts)
        for kind in (ImagePart, AudioPart, VideoPart, FilePart)
    ),
    st.builds(OpaquePart, value=st.none() | st.just({"type": "text"})),
)
content = texts | st.lists(parts, max_size=3)
messages = st.builds(
    ChatMessage,
    role=st.sampled_from(["system", "developer", "user", "assistant", "tool", "custom"]),
    content=content,
    reasoning=content,
    name=texts,
    tool_calls=st.none() | st.lists(st.builds(ToolCall, id=texts, name=st.text(max_size=3)), max_size=2),
    tool_call_id=texts,
    run_id=texts,
    format=st.sampled_from([None, "qwen-agent", "kosong/0.23", "kosong/0.30"]),
    residual=residuals,
    custom_data=st.sampled_from([None, {"role": "system"}]),
)


@given(st.lists(messages, max_size=5), st.sampled_from([CODEC, OLDER]))
@settings(max_examples=100, deadline=None)
def test_encoding_never_fails(given_messages: list[ChatMessage], codec: KosongCodec) -> None:
    payload = encode(codec, given_messages).payload
    assert len(codec.as_models(payload)) == len(payload) <= len(given_messages)
