"""How a payload of chat completions is read, and where it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.errors import DecodeError
from chatledger.formats import get_codec
from chatledger.formats.openai_chat import CODEC
from chatledger.models import (
    ChatMessage,
    OpaquePart,
    ToolCall,
)
from chatledger.models.json import same_json
from tests.formats.measured import refusal

Json = Any
VOICE = {"id": "audio_1", "expires_at": 9, "data": "QQ==", "transcript": "Hello"}


def decode_one(source: Json, **options: Any) -> ChatMessage:
    """The one message of a payload that comes back as it was."""
    decoded = CODEC.decode([source], **options)
    assert same_json(CODEC.encode(decoded.messages).payload, [source])
    (message,) = decoded.messages
    return message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"role": "system", "content": "Be brief."}, ChatMessage(role="system", content="Be brief.")),
        ({"role": "developer", "content": ""}, ChatMessage(role="developer", content="")),
        ({"role": "user", "name": "ada", "content": "Tokyo?"}, ChatMessage(role="user", name="ada", content="Tokyo?")),
        ({"role": "user", "content": []}, ChatMessage(role="user", content=[])),
        ({"role": "assistant", "content": None}, ChatMessage(role="assistant")),
        (
            {"role": "assistant", "content": "Dry.", "reasoning_content": "No clouds."},
            ChatMessage(role="assistant", content="Dry.", reasoning="No clouds."),
        ),
        (
            {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "21"},
            ChatMessage(role="tool", tool_call_id="c1", name="weather", content="21"),
        ),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}],
            },
            ChatMessage(role="assistant", tool_calls=[ToolCall(id="c1", name="weather", arguments="")]),
        ),
    ],
)
def test_an_ordinary_message_needs_no_residual(source: Json, message: ChatMessage) -> None:
    assert decode_one(source) == message.model_copy(update={"format": "openai-chat"})


def test_absent_content_is_not_null() -> None:
    assert decode_one({"role": "assistant"}).residual == {"keys": ["role"]}


def test_only_the_order_of_keys_is_kept_where_nothing_else_differs() -> None:
    message = decode_one(
        {
            "content": "",
            "role": "assistant",
            "tool_calls": [{"function": {"arguments": "{}", "name": "f"}, "id": "c", "type": "function"}],
        }
    )
    assert message.tool_calls == [ToolCall(id="c", name="f", arguments="{}")]
    assert message.residual == {
        "keys": ["content", "role", "tool_calls"],
        "calls": {"0": {"keys": ["function", "id", "type"], "inner": {"keys": ["arguments", "name"]}}},
    }


def test_unknown_keys_are_kept_in_place() -> None:
    message = decode_one({"role": "assistant", "refusal": None, "content": "Hi", "reasoning_details": [{"index": 0}]})
    assert message.residual == {
        "keys": ["role", "refusal", "content", "reasoning_details"],
        "extra": {"refusal": None, "reasoning_details": [{"index": 0}]},
    }


def test_reasoning_under_the_other_key_is_not_kept_twice() -> None:
    message = decode_one({"role": "assistant", "content": "Dry.", "reasoning": "No clouds."})
    assert (message.reasoning, message.residual) == ("No clouds.", {"spelled": {"reasoning": "reasoning"}})


def test_reasoning_that_is_not_text_is_kept_but_not_read() -> None:
    assert decode_one({"role": "assistant", "content": "Dry.", "reasoning": {"effort": "low"}}).reasoning is None


def test_a_legacy_call_is_a_call_without_an_id() -> None:
    message = decode_one(
        {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": '{"city": '}}
    )
    assert message.tool_calls == [ToolCall(name="weather", arguments='{"city": ')]
    assert message.residual == {"spelled": {"tool_calls": "function_call"}}


def test_a_legacy_call_keeps_its_own_key_order() -> None:
    message = decode_one({"role": "assistant", "content": None, "function_call": {"arguments": "{}", "name": "f"}})
    assert message.residual == {
        "spelled": {"tool_calls": "function_call"},
        "calls": {"0": {"keys": ["arguments", "name"]}},
    }


def test_a_legacy_result_is_a_tool_message_that_keeps_its_name() -> None:
    message = decode_one({"role": "function", "name": "weather", "content": "21"})
    assert (message.role, message.name, message.residual) == ("tool", "weather", {"extra": {"role": "function"}})


def test_calls_win_over_a_legacy_call_beside_them() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    legacy = {"name": "g", "arguments": "{}"}
    message = decode_one({"role": "assistant", "content": None, "tool_calls": [call], "function_call": legacy})
    assert message.tool_calls == [ToolCall(id="c", name="f", arguments="{}")]


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ({"function": {"name": "f", "arguments": None}}, ToolCall(name="f")),
        ({"id": None, "function": {"name": "f"}}, ToolCall(name="f")),
        ({"function": {"name": "f", "arguments": {"a": 1}}}, ToolCall(name="f", arguments={"a": 1})),
        ({"function": {"name": "f", "arguments": "print(1)"}}, ToolCall(name="f", arguments="print(1)")),
        ({"id": "c", "index": 0, "function": {"name": "f", "strict": True}}, ToolCall(id="c", name="f")),
        (
            {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}},
            ToolCall(id="c", name="sql", arguments="select 1"),
        ),
        ({"id": "c", "type": "mcp", "mcp": {"server": "s"}}, ToolCall(id="c", name="mcp")),
    ],
)
def test_calls_of_every_shape(source: Json, call: ToolCall) -> None:
    assert decode_one({"role": "assistant", "content": None, "tool_calls": [source]}).tool_calls == [call]


def test_a_custom_call_needs_only_its_form() -> None:
    source = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    message = decode_one({"role": "assistant", "content": None, "tool_calls": [source]})
    assert message.residual == {"calls": {"0": {"form": "custom"}}}


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        (None, "messages"),
        ("Hi", "messages"),
        ({"role": "user", "content": "Hi"}, "messages"),
        ({"model": "m", "messages": []}, "messages"),
        (({"role": "user", "content": "Hi"},), "messages"),
        (["Hi"], "messages[0]"),
        ([{"role": "user", "content": "Hi"}, None], "messages[1]"),
        ([{"content": "Hi"}], "messages[0].role"),
        ([{"role": None}], "messages[0].role"),
        ([{"role": ["user"]}], "messages[0].role"),
        ([{"role": "narrator"}], "messages[0].role"),
        ([{"role": "custom"}], "messages[0].role"),
        ([{"role": "user", "content": 1}], "messages[0].content"),
        ([{"role": "user", "content": {"type": "text"}}], "messages[0].content"),
        ([{"role": "user", "content": ["Hi"]}], "messages[0].content[0]"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
        ([{"role": "user", "content": [{"type": "text", "text": None}]}], "messages[0].content[0].text"),
        ([{"role": "user", "content": [{"type": "refusal"}]}], "messages[0].content[0].refusal"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].image_url"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
            "messages[0].content[0].image_url.url",
        ),
        (
            [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": 1}}]}],
            "messages[0].content[0].input_audio.format",
        ),
        (
            [{"role": "user", "content": [{"type": "file", "file": {"file_id": 1}}]}],
            "messages[0].content[0].file.file_id",
        ),
        ([{"role": "user", "name": 1}], "messages[0].name"),
        ([{"role": "tool", "tool_call_id": 1}], "messages[0].tool_call_id"),
        ([{"role": "assistant", "tool_calls": {}}], "messages[0].tool_calls"),
        ([{"role": "assistant", "tool_calls": [None]}], "messages[0].tool_calls[0]"),
        ([{"role": "assistant", "tool_calls": [{}]}], "messages[0].tool_calls[0].function"),
        ([{"role": "assistant", "tool_calls": [{"type": 1}]}], "messages[0].tool_calls[0].type"),
        ([{"role": "assistant", "tool_calls": [{"id": 1, "type": "mcp"}]}], "messages[0].tool_calls[0].id"),
        ([{"role": "assistant", "tool_calls": [{"function": {}}]}], "messages[0].tool_calls[0].function.name"),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": [1]}}]}],
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": None}}]}],
            "messages[0].tool_calls[0].custom.name",
        ),
        ([{"role": "assistant", "function_call": "auto"}], "messages[0].function_call"),
        ([{"role": "assistant", "function_call": {"name": 1}}], "messages[0].function_call.name"),
        ([{"role": "user", "x": {1: 2}}], "messages[0].x"),
        ([{"role": "user", "x": [object()]}], "messages[0].x[0]"),
    ],
)
def test_an_invalid_value_is_refused_at_its_path(payload: Json, path: str) -> None:
    assert refusal(CODEC, payload) == path


def test_a_request_body_is_refused_with_the_key_to_give() -> None:
    with pytest.raises(DecodeError, match="give its key 'messages'"):
        CODEC.decode({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})


def deep(levels: int) -> Json:
    value: Json = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_json_of_500_levels_is_kept() -> None:
    decode_one({"role": "user", "content": "Hi", "x": deep(498)})


def test_deeper_json_is_refused() -> None:
    with pytest.raises(DecodeError, match="nested deeper than 500"):
        CODEC.decode([{"role": "user", "content": "Hi", "x": deep(499)}])


def test_a_payload_that_holds_itself_is_refused() -> None:
    payload: list[Json] = [{"role": "user", "content": "Hi"}]
    payload[0]["self"] = payload
    with pytest.raises(DecodeError, match="nested deeper than 500"):
        CODEC.decode(payload)


@pytest.mark.parametrize("role", ["narrator", "custom", ""])
def test_lenient_keeps_an_unknown_role(role: str) -> None:
    assert decode_one({"role": role, "content": "Hi"}, rules="lenient").role == role


def test_lenient_keeps_a_malformed_part_whole() -> None:
    part = {"type": "text", "text": None}
    message = decode_one({"role": "user", "content": [part]}, rules="lenient")
    assert message.content == [OpaquePart(type="text", value=part)]


@pytest.mark.parametrize("key", ["tool_calls", "function_call"])
def test_lenient_leaves_a_nameless_call_to_the_residual(key: str) -> None:
    nameless = {"name": "", "arguments": "{}"}
    calls = [{"id": "a", "type": "function", "function": nameless}, {"id": "b", "type": "function", "function": NAMED}]
    source = {"role": "assistant", "content": None, key: calls if key == "tool_calls" else nameless}
    [message] = CODEC.decode([source], rules="lenient").messages
    assert [call.id for call in message.tool_calls or ()] == (["b"] if key == "tool_calls" else [])
    assert CODEC.encode([message]).payload == [source]


NAMED = {"name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    "source",
    [
        {"role": "assistant", "content": None, "refusal": "No."},
        {"refusal": "No.", "role": "assistant"},
        {"role": "assistant", "content": None, "refusal": None, "audio": {**VOICE, "transcript": "No."}},
        {"role": "assistant", "audio": {**VOICE, "transcript": "No."}, "tool_calls": []},
    ],
)
def test_a_refusal_and_a_voice_are_read_by_every_format(source: Json) -> None:
    message = decode_one(source)
    assert message.content == "No."
    assert get_codec("agent-service").encode([message]).payload["messages"][0]["content"] == "No."


@pytest.mark.parametrize(
    "source",
    [
        {"role": "assistant", "content": "Hi", "refusal": "No.", "audio": VOICE},
        {"role": "assistant", "content": None, "refusal": ""},
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        {"role": "assistant", "content": None, "audio": [1]},
    ],
)
def test_other_keys_beside_a_content_are_kept(source: Json) -> None:
    assert decode_one(source).content == source["content"]
