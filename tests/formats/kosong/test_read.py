"""Reading: bad input, and the kinds of payload."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.errors import DecodeError
from chatledger.formats import kosong
from chatledger.formats.kosong import CODEC, UnknownPart, v0_23
from chatledger.formats.kosong.codec import KosongCodec
from chatledger.models import AudioPart, ChatMessage, ImagePart, Loss, OpaquePart, TextPart, ThinkPart, ToolCall
from tests.formats.measured import refusal

BOTH = pytest.mark.parametrize("codec", [CODEC, v0_23.CODEC], ids=["newer", "older"])


def call(**changes: Any) -> dict[str, Any]:
    return {"type": "function", "id": "1", "function": {"name": "f", "arguments": "{}"}, **changes}


def asking(**changes: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [call(**changes)]}


def test_a_message_becomes_its_canonical_fields() -> None:
    content = [
        {"type": "think", "think": "hm", "encrypted": "sig"},
        {"type": "image_url", "image_url": {"url": "u", "id": "i"}},
        {"type": "audio_url", "audio_url": {"url": "v", "id": None}},
        {"type": "later", "x": 1},
    ]
    extras = {"type": "function", "id": "1", "function": {"name": "f", "arguments": None}, "extras": {"s": 1}}
    row = {"role": "assistant", "name": "kimi", "content": content, "tool_calls": [extras]}
    [message] = CODEC.decode([row]).messages
    assert message.model_copy(update={"residual": None}) == ChatMessage(
        role="assistant",
        name="kimi",
        content=[
            ThinkPart(text="hm", signature="sig"),
            ImagePart(url="u", id="i"),
            AudioPart(url="v"),
            OpaquePart(type="later", value={"type": "later", "x": 1}),
        ],
        tool_calls=[ToolCall(id="1", name="f", extras={"s": 1})],
        format="kosong/0.30",
    )


BAD: dict[str, dict[str, Any]] = {
    "$[0].role": {"content": "x"},
    "$[0].content": {"role": "user"},
    "$[0].name": {"role": "user", "content": "x", "name": 1},
    "$[0].partial": {"role": "user", "content": "x", "partial": "yes"},
    "$[0].content[0]": {"role": "user", "content": ["x"]},
    "$[0].content[0].type": {"role": "user", "content": [{"text": "x"}]},
    "$[0].content[0].text": {"role": "user", "content": [{"type": "text"}]},
    "$[0].content[0].encrypted": {"role": "user", "content": [{"type": "think", "think": "x", "encrypted": 1}]},
    "$[0].content[0].image_url": {"role": "user", "content": [{"type": "image_url", "image_url": "u"}]},
    "$[0].content[0].image_url.url": {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
    "$[0].tool_calls": {"role": "assistant", "content": "", "tool_calls": {}},
    "$[0].tool_calls[0]": {"role": "assistant", "content": "", "tool_calls": [None]},
    "$[0].tool_calls[0].id": asking(id=None),
    "$[0].tool_calls[0].type": asking(type="custom"),
    "$[0].tool_calls[0].function": asking(function=None),
    "$[0].tool_calls[0].function.name": asking(function={"arguments": "{}"}),
    "$[0].tool_calls[0].function.arguments": asking(function={"name": "f", "arguments": {}}),
}


@BOTH
@pytest.mark.parametrize("path", BAD)
def test_strict_names_the_place(codec: KosongCodec, path: str) -> None:
    assert refusal(codec, [BAD[path]]) == path


@BOTH
@pytest.mark.parametrize("path", [path for path in BAD if path != "$[0].role"])
def test_lenient_gives_the_same_dict_back(codec: KosongCodec, path: str) -> None:
    messages = codec.decode([BAD[path]], rules="lenient").messages
    assert codec.encode(messages).payload == [BAD[path]]


@BOTH
@pytest.mark.parametrize("path", [path for path in BAD if path != "$[0].role"])
def test_a_message_that_lenient_kept_can_be_read_as_an_object(codec: KosongCodec, path: str) -> None:
    payload = codec.encode(codec.decode([BAD[path]], rules="lenient").messages).payload
    assert [message.role for message in codec.as_models(payload)] == [BAD[path]["role"]]


@BOTH
def test_a_missing_role_is_refused_at_every_level(codec: KosongCodec) -> None:
    with pytest.raises(DecodeError):
        codec.decode([{"content": "x"}], rules="lenient")


@BOTH
def test_an_unknown_role_is_refused_or_in_lenient_kept(codec: KosongCodec) -> None:
    row = {"role": "critic", "content": "no", "later": 1}
    with pytest.raises(DecodeError, match="critic"):
        codec.decode([row])
    [message] = codec.decode([row], rules="lenient").messages
    payload = codec.encode([message]).payload
    assert (message.role, payload) == ("critic", [row])
    assert codec.as_models(payload)[0].role == "critic"


@BOTH
def test_an_unknown_part_is_kept_verbatim(codec: KosongCodec) -> None:
    part = {"type": "later", "x": {"y": [1]}}
    [message] = codec.decode([{"role": "user", "content": [part]}]).messages
    assert message.content == [OpaquePart(type="later", value=part)]
    assert codec.as_models(codec.encode([message]).payload)[0].content == [UnknownPart(type="later", value=part)]


@BOTH
def test_a_part_of_bad_shape_is_an_unknown_part_in_lenient(codec: KosongCodec) -> None:
    part = {"type": "text", "txt": "x"}
    [message] = codec.decode([{"role": "user", "content": [part]}], rules="lenient").messages
    assert codec.as_models(codec.encode([message]).payload)[0].content == [UnknownPart(type="text", value=part)]


@BOTH
def test_arguments_that_are_not_json_are_kept(codec: KosongCodec) -> None:
    [message] = codec.decode([asking(function={"name": "f", "arguments": '{"a": '})]).messages
    assert message.tool_calls == [ToolCall(id="1", name="f", arguments='{"a": ')]


@BOTH
def test_missing_arguments_are_read_as_none_and_stay_missing(codec: KosongCodec) -> None:
    row = asking(function={"name": "f"})
    [message] = codec.decode([row]).messages
    payload = codec.encode([message]).payload
    assert (message.tool_calls, payload) == ([ToolCall(id="1", name="f")], [row])
    assert codec.as_models(payload)[0].tool_calls[0].function.arguments is None


@BOTH
def test_a_tool_result_without_id_is_kept(codec: KosongCodec) -> None:
    row = {"role": "tool", "content": "x"}
    [message] = codec.decode([row]).messages
    assert (message.tool_call_id, codec.encode([message]).payload) == (None, [row])


@BOTH
def test_unknown_keys_are_kept_at_every_level(codec: KosongCodec) -> None:
    row = {
        "x": 1,
        "role": "assistant",
        "content": [{"x": 2, "type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u", "x": 3}}],
        "tool_calls": [{"x": 4, **call(function={"name": "f", "x": 5, "arguments": "{}"})}],
    }
    [back] = codec.encode(codec.decode([row]).messages).payload
    assert (back, list(back), list(back["content"][0])) == (row, list(row), ["x", "type", "text"])


@pytest.mark.parametrize(
    ("value", "path", "coerced"),
    [((1,), "$[0].x", [1]), ({2: 3}, "$[0].x", {"2": 3}), (b"a", "$[0].x", "b'a'")],
)
def test_a_value_that_is_not_json_is_refused_or_in_lenient_coerced(value: Any, path: str, coerced: Any) -> None:
    row = {"role": "user", "content": "a", "x": value}
    with pytest.raises(DecodeError) as caught:
        CODEC.decode([row])
    decoded = CODEC.decode([row], rules="lenient")
    assert (caught.value.path, decoded.losses) == (path, [Loss("coerced", None, path)])
    assert CODEC.encode(decoded.messages).payload == [{**row, "x": coerced}]


def test_a_live_object_inside_a_part_object_is_refused_or_in_lenient_coerced() -> None:
    message = kosong.Message(role="user", content=[UnknownPart(type="later", value={"type": "later", "x": 1j})])
    with pytest.raises(DecodeError):
        CODEC.decode([message])
    decoded = CODEC.decode([message], rules="lenient")
    assert CODEC.encode(decoded.messages).payload[0]["content"] == [{"type": "later", "x": "1j"}]


@pytest.mark.parametrize("rules", ["strict", "lenient"])
def test_json_that_is_too_deep_is_refused(rules: Any) -> None:
    deep: Any = 1
    for _ in range(501):
        deep = [deep]
    with pytest.raises(DecodeError):
        CODEC.decode([{"role": "user", "content": "a", "x": deep}], rules=rules)


@pytest.mark.parametrize("payload", [None, "x", {"role": "user", "content": "x"}, [1]])
def test_a_value_that_is_not_a_list_of_messages_is_refused(payload: Any) -> None:
    with pytest.raises(DecodeError):
        CODEC.decode(payload)


def test_an_object_that_was_changed_to_something_invalid_is_refused() -> None:
    message = kosong.Message(role="user", content="x")
    message.role = "critic"  # type: ignore[assignment]
    with pytest.raises(DecodeError, match="critic"):
        CODEC.decode([message])
    [kept] = CODEC.decode([message], rules="lenient").messages
    assert CODEC.as_models(CODEC.encode([kept]).payload) == [message]


def test_an_object_without_its_fields_is_refused() -> None:
    hollow = kosong.Message(role="user", content="x")
    del hollow.content
    assert refusal(CODEC, [hollow]) == "$[0].content"


def test_a_lone_text_part_is_a_text_in_the_newer_revision_only() -> None:
    newer = kosong.Message(role="user", content=[kosong.TextPart(text="x")])
    older = v0_23.Message(role="user", content=[kosong.TextPart(text="x")])
    assert CODEC.decode([newer]).messages[0].content == "x"
    assert v0_23.CODEC.decode([older]).messages[0].content == [TextPart(text="x")]
