"""Messages of other formats: how they are written, what is lost, and what is carried."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.formats.qwen_agent import CODEC
from chatledger.models import (
    LENIENT,
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
from tests.formats import measured

TWO_CALLS = [ToolCall(id="a", name="f", arguments='{"x": 1}'), ToolCall(id="b", name="g", arguments={"y": "é"})]


def encode(*messages: ChatMessage) -> list[dict[str, Any]]:
    payload: list[dict[str, Any]] = measured.encode(CODEC, messages).payload
    return payload


def losses(message: ChatMessage) -> list[tuple[str, str]]:
    return [(loss.code, loss.path) for loss in measured.encode(CODEC, [message]).losses]


def test_reasoning_content_and_calls_become_messages_of_their_own() -> None:
    message = ChatMessage(
        role="assistant",
        content=[ThinkPart(text="because"), TextPart(text="Looking.")],
        name="Ada",
        tool_calls=TWO_CALLS,
        seq=7,
    )
    encoded = measured.encode(CODEC, [message])
    assert encoded.payload == [
        {"role": "assistant", "content": "", "reasoning_content": "because", "name": "Ada"},
        {"role": "assistant", "content": [{"text": "Looking."}], "name": "Ada"},
        {
            "role": "assistant",
            "content": "",
            "name": "Ada",
            "function_call": {"name": "f", "arguments": '{"x": 1}'},
            "extra": {"function_id": "a"},
        },
        {
            "role": "assistant",
            "content": "",
            "name": "Ada",
            "function_call": {"name": "g", "arguments": '{"y": "é"}'},
            "extra": {"function_id": "b"},
        },
    ]
    assert encoded.losses == [
        Loss("split", 7, ""),
        Loss("reasoning-form", 7, "content[0]"),
        Loss("reasoning-form", 7, "reasoning"),
        Loss("arguments-form", 7, "tool_calls[1].arguments"),
    ]


def test_a_result_is_named_after_the_call_that_it_answers() -> None:
    history = [
        ChatMessage(role="assistant", tool_calls=TWO_CALLS),
        ChatMessage(role="tool", content="2", tool_call_id="b"),
        ChatMessage(role="tool", content="1", tool_call_id="a", name="own"),
        ChatMessage(role="tool", content="?", tool_call_id="z"),
    ]
    assert encode(*history)[2:] == [
        {"role": "function", "content": "2", "name": "g", "extra": {"function_id": "b"}},
        {"role": "function", "content": "1", "name": "own", "extra": {"function_id": "a"}},
        {"role": "function", "content": "?", "extra": {"function_id": "z"}},
    ]


@pytest.mark.parametrize(
    ("content", "row"),
    [(None, ""), ("", ""), ([], []), ([ThinkPart(text="a")], ""), ([TextPart(text="")], [{"text": ""}])],
)
def test_content_is_always_there(content: Any, row: Any) -> None:
    assert encode(ChatMessage(role="assistant", content=content))[0]["content"] == row


@pytest.mark.parametrize(
    ("part", "item"),
    [
        (ImagePart(url="https://a"), {"image": "https://a"}),
        (ImagePart(url="data:image/png;base64,AAAA"), {"image": "data:image/png;base64,AAAA"}),
        (FilePart(url="a.pdf"), {"file": "a.pdf"}),
        (VideoPart(url="a.mp4"), {"video": "a.mp4"}),
        (AudioPart(url="a.wav"), {"audio": "a.wav"}),
        (AudioPart(data="AAAA", mime_type="audio/mp3"), {"audio": {"data": "AAAA", "format": "mp3"}}),
    ],
)
def test_media_become_items(part: Part, item: dict[str, Any]) -> None:
    encoded = measured.encode(CODEC, [ChatMessage(role="user", content=[part])])
    assert (encoded.payload, encoded.losses) == ([{"role": "user", "content": [item]}], [])


@pytest.mark.parametrize(
    ("part", "item", "code"),
    [
        (ImagePart(data="AAAA", mime_type="image/png"), {"image": "data:image/png;base64,AAAA"}, "media-form"),
        (AudioPart(data="AAAA"), {"audio": {"data": "AAAA"}}, "media"),
    ],
)
def test_media_become_items_of_another_form(part: Part, item: dict[str, Any], code: str) -> None:
    encoded = measured.encode(CODEC, [ChatMessage(role="user", content=[part])])
    assert encoded.payload == [{"role": "user", "content": [item]}]
    assert encoded.losses == [Loss(code, None, "content[0]")]


@pytest.mark.parametrize(
    ("message", "lost"),
    [
        (ChatMessage(role="developer", content="a"), [("role", "role")]),
        (
            ChatMessage(role="assistant", content=[ThinkPart(text="a", signature="s")]),
            [
                ("reasoning-form", "content[0]"),
                ("signature", "content[0].signature"),
                ("content-form", "content"),
                ("reasoning-form", "reasoning"),
            ],
        ),
        (
            ChatMessage(role="assistant", content=[TextPart(text="a"), ThinkPart(text="b")]),
            [("split", ""), ("reasoning-form", "content[1]"), ("reasoning-form", "reasoning")],
        ),
        (
            ChatMessage(role="user", content=[ImagePart(url="a", mime_type="image/png", id="i", name="n")]),
            [("media", f"content[0].{field}") for field in ("mime_type", "name", "id")],
        ),
        (ChatMessage(role="user", content=[TextPart(text="a", extras={})]), [("extras", "content[0].extras")]),
        (ChatMessage(role="user", content=[ImagePart(id="a")]), [("media", "content[0]")]),
        (ChatMessage(role="user", content=[OpaquePart(value={"type": "x"})]), [("opaque", "content[0]")]),
        (
            ChatMessage(role="assistant", tool_calls=[ToolCall(name="f", extras={})]),
            [
                ("content-form", "content"),
                ("arguments-form", "tool_calls[0].arguments"),
                ("extras", "tool_calls[0].extras"),
            ],
        ),
        (ChatMessage(role="assistant", tool_calls=[]), [("content-form", "content"), ("calls", "tool_calls")]),
        (ChatMessage(role="tool", content="a", is_error=False), [("is-error", "is_error")]),
        (ChatMessage(role="user", content="a", tool_call_id="x"), [("call-id", "tool_call_id")]),
        (
            ChatMessage(role="user", content="a", state="partial", run_id="r"),
            [("state", "state"), ("run-id", "run_id")],
        ),
        (
            ChatMessage(role="user", content="a", response_metadata={}, custom_data={}, residual={}, format="x"),
            [("response-metadata", "response_metadata"), ("custom-data", "custom_data"), ("residual", "residual")],
        ),
        (ChatMessage(role="user", content="a"), []),
    ],
)
def test_fields_without_a_place_are_losses(message: ChatMessage, lost: list[tuple[str, str]]) -> None:
    assert losses(message) == lost


def test_messages_for_the_screen_are_left_out_and_reported() -> None:
    encoded = measured.encode(CODEC, [ChatMessage(role="custom", content="a", seq=3)])
    assert (encoded.payload, encoded.losses) == ([], [Loss("left-out", 3, "")])


def test_a_custom_message_that_names_a_role_is_written_with_it() -> None:
    message = ChatMessage(role="custom", content="a", custom_data={"role": "developer"})
    assert encode(message) == [{"role": "system", "content": "a"}]


def test_reasoning_with_media_becomes_items() -> None:
    message = ChatMessage(role="assistant", reasoning="see", content=[ThinkPart(text="then")])
    assert encode(message)[0]["reasoning_content"] == "seethen"
    seen = ChatMessage(role="assistant", reasoning=[TextPart(text="see"), ImagePart(url="a")])
    assert encode(seen)[0]["reasoning_content"] == [{"text": "see"}, {"image": "a"}]


def test_a_carried_message_comes_back() -> None:
    message = ChatMessage(
        role="assistant",
        content=[TextPart(text="a"), ThinkPart(text="b", signature="s")],
        tool_calls=TWO_CALLS,
        run_id="run-7",
        format="kosong/0.30",
        residual={"keys": ["role"]},
    )
    encoded = measured.encode(CODEC, [message], carry=True)
    assert encoded.losses == []
    assert [("chatledger" in it.get("extra", {})) for it in encoded.payload] == [True, False, False, False]
    assert CODEC.decode(encoded.payload).messages == [message]


def test_carry_adds_only_what_the_messages_do_not_say() -> None:
    message = ChatMessage(role="user", content="a", format="agent-service")
    assert measured.encode(CODEC, [message], carry=True).payload == [
        {"role": "user", "content": "a", "extra": {"chatledger": {"rows": 1, "fields": {"format": "agent-service"}}}}
    ]


def test_messages_of_this_format_carry_nothing() -> None:
    payload = [{"role": "user", "content": "a"}]
    assert measured.encode(CODEC, CODEC.decode(payload).messages, carry=True).payload == payload


def test_an_incomplete_carried_message_is_read_as_plain_messages() -> None:
    message = ChatMessage(role="assistant", content="a", tool_calls=TWO_CALLS, format="kosong/0.30")
    payload = measured.encode(CODEC, [message], carry=True).payload[:2]
    decoded = CODEC.decode(payload).messages
    assert [it.format for it in decoded] == ["qwen-agent", "qwen-agent"]
    assert measured.encode(CODEC, decoded).payload == payload


def test_a_changed_carried_message_is_read_as_plain_messages() -> None:
    message = ChatMessage(role="assistant", tool_calls=TWO_CALLS, format="kosong/0.30")
    first, second = measured.encode(CODEC, [message], carry=True).payload
    decoded = CODEC.decode([first, {**second, "role": "user"}]).messages
    assert [it.role for it in decoded] == ["assistant", "user"]


@pytest.mark.parametrize(
    "envelope",
    [
        "text",
        {},
        {"rows": 0, "fields": {}},
        {"rows": True, "fields": {}},
        {"rows": 1, "fields": []},
        {"rows": 1, "fields": {"seq": 3}},
        {"rows": 1, "fields": {"state": "unheard of"}},
    ],
)
def test_an_extra_of_that_name_that_is_not_ours_is_kept(envelope: Any) -> None:
    payload = [{"role": "user", "content": "a", "extra": {"chatledger": envelope}}]
    decoded = CODEC.decode(payload).messages
    assert [message.format for message in decoded] == ["qwen-agent"]
    assert measured.encode(CODEC, decoded).payload == payload


texts = st.text(max_size=3)
maybe = st.none() | texts
objects = st.none() | st.dictionaries(texts, st.none() | st.floats(allow_nan=False) | texts, max_size=2)
media = {"url": maybe, "data": maybe, "mime_type": maybe | st.just("audio/wav"), "name": maybe, "id": maybe}
parts = st.one_of(
    st.builds(TextPart, text=texts, extras=objects),
    st.builds(ThinkPart, text=texts, signature=maybe),
    st.builds(OpaquePart, value=objects),
    *(st.builds(kind, **media, extras=objects) for kind in (ImagePart, AudioPart, VideoPart, FilePart)),
)
contents = maybe | st.lists(parts, max_size=3)
calls = st.builds(ToolCall, id=maybe, name=texts.filter(bool), arguments=maybe | objects, extras=objects)
foreign = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "custom", "human"]),
        "content": contents,
        "reasoning": contents,
        "name": maybe,
        "tool_calls": st.none() | st.lists(calls, max_size=3),
        "tool_call_id": maybe,
        "is_error": st.none() | st.booleans(),
        "run_id": maybe,
        "state": st.sampled_from(["complete", "partial", "interrupted", "synthetic"]),
        "custom_data": objects,
        "format": st.sampled_from([None, "kosong/0.30", "agent-service"]),
        "residual": objects,
        "seq": st.none() | st.integers(1, 9),
    }
).map(lambda fields: ChatMessage.model_validate(fields, context=LENIENT))


@settings(max_examples=100, deadline=None)
@given(st.lists(foreign, max_size=4))
def test_any_message_that_is_not_left_out_is_carried_whole(messages: list[ChatMessage]) -> None:
    encoded = measured.encode(CODEC, messages, carry=True)
    left_out = {loss.code for loss in encoded.losses}
    expected = [it.model_copy(update={"seq": None}) for it in messages if measured.encode(CODEC, [it]).payload]
    assert CODEC.decode(encoded.payload).messages == expected
    assert left_out <= {"left-out"}
