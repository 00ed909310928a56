"""How messages of other formats are written, and which losses are reported."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats.openai_chat import CODEC
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

Json = Any
Losses = list[tuple[str, str]]
PNG = "data:image/png;base64,QQ=="
AS_URI = ("media-form", "content[0]")


def encode(*messages: ChatMessage) -> tuple[list[Json], Losses]:
    encoded = measured.encode(CODEC, messages)
    return encoded.payload, [(loss.code, loss.path) for loss in encoded.losses]


def call(id_: str | None = "c", arguments: Json = "{}", **fields: Any) -> ToolCall:
    return ToolCall(id=id_, name="weather", arguments=arguments, **fields)


def asking(*calls: ToolCall, **fields: Any) -> ChatMessage:
    return ChatMessage(role="assistant", tool_calls=list(calls), **fields)


def wire_call(id_: str, arguments: str = "{}") -> Json:
    return {"id": id_, "type": "function", "function": {"name": "weather", "arguments": arguments}}


def test_a_turn_of_the_ledgers_own_messages_loses_the_name_of_a_result() -> None:
    payload, losses = encode(
        ChatMessage(role="user", name="ada", content="Tokyo?"),
        asking(call("c1"), call("c2", "{")),
        ChatMessage(role="tool", tool_call_id="c2", name="weather", content="21"),
        ChatMessage(role="tool", tool_call_id="c1", content=[TextPart(text="22")]),
        ChatMessage(role="assistant", content="Mild."),
    )
    assert payload == [
        {"role": "user", "name": "ada", "content": "Tokyo?"},
        {"role": "assistant", "content": None, "tool_calls": [wire_call("c1"), wire_call("c2", "{")]},
        {"role": "tool", "tool_call_id": "c2", "content": "21"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "22"}]},
        {"role": "assistant", "content": "Mild."},
    ]
    assert losses == [("name", "name")]


def test_a_loss_names_the_seq_of_its_message() -> None:
    encoded = measured.encode(CODEC, [ChatMessage(role="user", content="Hi", seq=6), ChatMessage(role="custom", seq=7)])
    assert encoded.losses == [Loss("left-out", 7, "")]


def test_a_custom_message_is_left_out() -> None:
    assert encode(ChatMessage(role="custom", content="Saved.")) == ([], [("left-out", "")])


@pytest.mark.parametrize("role", ["narrator", "function", ""])
def test_an_unknown_role_speaks_as_user(role: str) -> None:
    message = ChatMessage.model_validate({"role": role, "content": "Hi"}, context=LENIENT)
    assert encode(message) == ([{"role": "user", "content": "Hi"}], [("role", "role")])


@pytest.mark.parametrize("content", [None, []])
def test_no_content_is_an_empty_text(content: Json) -> None:
    message = ChatMessage(role="user", content=content)
    assert encode(message) == ([{"role": "user", "content": ""}], [("content-form", "content")])


def test_an_empty_list_beside_calls_is_null() -> None:
    payload, losses = encode(asking(call(), content=[]))
    assert (payload[0]["content"], losses) == (None, [("content-form", "content")])


def test_reasoning_stays_with_its_own_format() -> None:
    message = ChatMessage(
        role="assistant",
        reasoning=[ThinkPart(text="Hm", signature="s1")],
        content=[ThinkPart(text="Well", signature="s2"), TextPart(text="Dry.")],
    )
    assert encode(message) == (
        [{"role": "assistant", "content": [{"type": "text", "text": "Dry."}]}],
        [
            ("reasoning", "content[0]"),
            ("signature", "content[0].signature"),
            ("reasoning", "reasoning"),
            ("signature", "reasoning[0].signature"),
        ],
    )


def test_a_message_of_thoughts_alone_is_empty() -> None:
    message = ChatMessage(role="assistant", content=[ThinkPart(text="Hm")])
    losses = [("reasoning", "content[0]"), ("content-form", "content")]
    assert encode(message) == ([{"role": "assistant", "content": ""}], losses)


@pytest.mark.parametrize(
    ("part", "wire", "losses"),
    [
        (ImagePart(url="https://h/a"), {"type": "image_url", "image_url": {"url": "https://h/a"}}, []),
        (
            ImagePart(data="QQ==", mime_type="image/png", extras={"detail": "low"}),
            {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
            [AS_URI],
        ),
        (ImagePart(url=PNG, mime_type="image/png"), {"type": "image_url", "image_url": {"url": PNG}}, [AS_URI]),
        (
            AudioPart(data="QQ==", mime_type="audio/x-wav"),
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
            [("media", "content[0].mime_type")],
        ),
        (
            AudioPart(url="data:audio/mpeg;base64,QQ=="),
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
            [AS_URI],
        ),
        (
            FilePart(data="QQ==", mime_type="application/pdf", name="a.pdf"),
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"}},
            [AS_URI],
        ),
        (FilePart(id="file-1"), {"type": "file", "file": {"file_id": "file-1"}}, []),
    ],
)
def test_media_of_a_user_are_written(part: Part, wire: Json, losses: Losses) -> None:
    assert encode(ChatMessage(role="user", content=[part])) == ([{"role": "user", "content": [wire]}], losses)


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (VideoPart(url="https://h/a"), "media"),
        (ImagePart(id="i"), "media"),
        (ImagePart(data="QQ=="), "media"),
        (AudioPart(url="https://h/a", mime_type="audio/wav"), "media"),
        (AudioPart(url="data:audio/wav,raw"), "media"),
        (AudioPart(data="QQ=="), "media"),
        (FilePart(url="https://h/a", name="a"), "media"),
        (OpaquePart(type="map", value={"type": "map"}), "opaque"),
    ],
)
def test_parts_that_cannot_be_expressed_are_left_out(part: Part, code: str) -> None:
    message = ChatMessage(role="user", content=[TextPart(text="See"), part])
    assert encode(message) == (
        [{"role": "user", "content": [{"type": "text", "text": "See"}]}],
        [(code, "content[1]")],
    )


@pytest.mark.parametrize("role", ["system", "assistant", "tool"])
def test_media_are_written_in_user_messages_only(role: str) -> None:
    message = ChatMessage(role=role, content=[TextPart(text="See"), ImagePart(url=PNG)], tool_call_id=None)
    payload, losses = encode(message)
    assert payload[0]["content"] == [{"type": "text", "text": "See"}]
    assert ("media", "content[1]") in losses


@pytest.mark.parametrize(
    ("part", "paths"),
    [
        (TextPart(text="a", extras={"cache": True}), [".extras"]),
        (ImagePart(url="https://h/a", id="i", name="a.png", mime_type="image/png"), [".mime_type", ".name", ".id"]),
        (ImagePart(url="https://h/a", data="QQ==", extras={"detail": 1}), [".data", ".extras"]),
        (AudioPart(url="https://h/a", data="QQ==", mime_type="audio/wav", id="a"), [".url", ".id"]),
        (FilePart(url="https://h/a", id="file-1", mime_type="text/plain"), [""]),
    ],
)
def test_fields_of_parts_without_a_place_are_losses(part: Part, paths: list[str]) -> None:
    _, losses = encode(ChatMessage(role="user", content=[part]))
    assert [path for _, path in losses] == [f"content[0]{path}" for path in paths]
    assert {code for code, _ in losses} <= {"media", "extras"}


def test_a_file_id_belongs_to_the_provider_that_gave_it() -> None:
    alone, beside = FilePart(id="file_9"), FilePart(id="file_9", data="QQ==", mime_type="text/plain")
    payload, losses = encode(ChatMessage(role="user", content=[alone, beside], format="anthropic"))
    file = {"type": "file", "file": {"file_data": "data:text/plain;base64,QQ=="}}
    assert payload == [{"role": "user", "content": [file]}]
    assert losses == [("media", "content[0]"), ("media-form", "content[1]"), ("media", "content[1].id")]


@pytest.mark.parametrize(
    ("arguments", "text"), [({"city": "Zürich", "n": 1.0}, '{"city":"Zürich","n":1.0}'), (None, "{}")]
)
def test_arguments_that_are_not_text_become_json(arguments: Json, text: str) -> None:
    payload, losses = encode(asking(call("c", arguments)))
    assert payload[0]["tool_calls"] == [wire_call("c", text)]
    assert losses == [("arguments-form", "tool_calls[0].arguments")]


def test_calls_without_ids_get_some_and_their_results_the_same() -> None:
    payload, losses = encode(
        asking(call(None), call(None), seq=4),
        ChatMessage(role="tool", name="weather", content="21", seq=5),
        ChatMessage(role="tool", content="22", seq=6),
    )
    assert payload == [
        {"role": "assistant", "content": None, "tool_calls": [wire_call("call_4_0"), wire_call("call_4_1")]},
        {"role": "tool", "tool_call_id": "call_4_0", "content": "21"},
        {"role": "tool", "tool_call_id": "call_4_1", "content": "22"},
    ]
    assert losses == [
        ("call-id", "tool_calls[0].id"),
        ("call-id", "tool_calls[1].id"),
        ("name", "name"),
        ("call-id", "tool_call_id"),
        ("call-id", "tool_call_id"),
    ]


def test_a_result_without_an_id_takes_that_of_the_call_it_answers() -> None:
    payload, _ = encode(asking(call("c7")), ChatMessage(role="tool", content="21"))
    assert payload[1] == {"role": "tool", "tool_call_id": "c7", "content": "21"}


def test_a_result_that_answers_nothing_gets_an_id_that_no_call_has() -> None:
    assert encode(ChatMessage(role="tool", name="weather", content="21", seq=9)) == (
        [{"role": "tool", "tool_call_id": "call_9", "content": "21"}],
        [("name", "name"), ("call-id", "tool_call_id")],
    )


def test_a_repeated_call_id_pairs_with_the_open_call() -> None:
    payload, losses = encode(
        asking(call("c")),
        ChatMessage(role="tool", tool_call_id="c", name="weather", content="21"),
        asking(call("c")),
        ChatMessage(role="tool", tool_call_id="c", name="weather", content="22"),
    )
    assert [wire.get("tool_call_id") for wire in payload] == [None, "c", None, "c"]
    assert losses == [("name", "name"), ("name", "name")]


def test_fields_without_a_place_are_losses() -> None:
    message = ChatMessage(
        role="user",
        content="Hi",
        name="Ada Lovelace",
        tool_calls=[call()],
        tool_call_id="c",
        is_error=False,
        response_metadata={},
        custom_data={"k": 1},
        format="agent-service",
        residual={"keys": ["type"]},
    )
    assert encode(message) == (
        [{"role": "user", "content": "Hi"}],
        [
            ("name", "name"),
            ("call-id", "tool_call_id"),
            ("is-error", "is_error"),
            ("response-metadata", "response_metadata"),
            ("custom-data", "custom_data"),
            ("calls", "tool_calls[0]"),
            ("residual", "residual"),
        ],
    )


def test_extras_of_a_call_are_a_loss() -> None:
    assert encode(asking(call(extras={"sig": "s"})))[1] == [("extras", "tool_calls[0].extras")]


def test_an_empty_list_of_calls_is_left_out() -> None:
    message = ChatMessage(role="assistant", content="Hi", tool_calls=[])
    assert encode(message) == ([{"role": "assistant", "content": "Hi"}], [("calls", "tool_calls")])


def test_the_ledgers_result_of_a_legacy_call_is_legacy() -> None:
    asked = {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}}
    closing = ChatMessage(role="tool", name="weather", content="interrupted", state="synthetic")
    payload, losses = encode(*CODEC.decode([asked]).messages, closing)
    assert payload == [asked, {"role": "function", "name": "weather", "content": "interrupted"}]
    assert losses == [("state", "state")]


def test_the_ledgers_result_of_a_call_without_an_id_has_none() -> None:
    asked = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "weather", "arguments": "{}"}}]}
    closing = ChatMessage(role="tool", name="weather", content="interrupted", state="synthetic")
    payload, losses = encode(*CODEC.decode([asked]).messages, closing)
    assert payload == [asked, {"role": "tool", "content": "interrupted"}]
    assert losses == [("name", "name"), ("state", "state")]


def test_carry_changes_nothing() -> None:
    message = ChatMessage(role="user", content="Hi", format="anthropic", residual={"keys": []})
    assert measured.encode(CODEC, [message], carry=True) == measured.encode(CODEC, [message])
