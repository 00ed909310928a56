"""Reading: the typed fields, the refusals of strict with their paths, and the results of lenient."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.errors import DecodeError, EncodeError
from chatledger.formats.qwen_agent import CODEC, ContentItem, Message
from chatledger.models import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    Loss,
    OpaquePart,
    Part,
    TextPart,
    ToolCall,
    VideoPart,
)


def decode_one(message: Any, rules: Any = "strict") -> ChatMessage:
    [decoded] = CODEC.decode([message], rules=rules).messages
    return decoded


def refusal(message: Any, rules: Any = "strict") -> str:
    with pytest.raises(DecodeError) as caught:
        CODEC.decode([{"role": "user", "content": ""}, message], rules=rules)
    return caught.value.path


def test_a_call_takes_its_id_from_extra() -> None:
    call = {"name": "f", "arguments": '{"b": 1,  "a": 2}'}
    message = {"role": "assistant", "content": "", "function_call": call, "extra": {"function_id": "call_0"}}
    assert decode_one(message) == ChatMessage(
        role="assistant",
        content="",
        tool_calls=[ToolCall(id="call_0", name="f", arguments='{"b": 1,  "a": 2}')],
        format="qwen-agent",
    )


def test_a_result_is_a_tool_message_with_the_id_of_its_call() -> None:
    message = {"role": "function", "content": "25", "name": "f", "extra": {"function_id": "call_0"}}
    assert decode_one(message) == ChatMessage(
        role="tool", content="25", name="f", tool_call_id="call_0", format="qwen-agent"
    )


def test_only_calls_and_results_have_an_id() -> None:
    message = decode_one({"role": "assistant", "content": "a", "extra": {"function_id": "1"}})
    assert (message.tool_call_id, message.tool_calls) == (None, None)
    assert message.residual == {"keys": ["role", "content", "extra"], "extra": {"extra": {"function_id": "1"}}}


@pytest.mark.parametrize("reasoning", [None, "", "because"])
def test_reasoning_is_kept_apart_from_its_absence(reasoning: str | None) -> None:
    assert decode_one(Message("assistant", "", reasoning)).reasoning == reasoning


@pytest.mark.parametrize("name", [None, "", "Ada"])
def test_a_name_is_kept_apart_from_its_absence(name: str | None) -> None:
    assert decode_one(Message("assistant", "", name=name)).name == name


@pytest.mark.parametrize(
    ("item", "part"),
    [
        ({"text": ""}, TextPart(text="")),
        ({"image": "https://a.example/b.png"}, ImagePart(url="https://a.example/b.png")),
        ({"file": "/tmp/a.pdf"}, FilePart(url="/tmp/a.pdf")),
        ({"audio": "a.wav"}, AudioPart(url="a.wav")),
        ({"audio": {"data": "AAAA", "format": "wav"}}, AudioPart(data="AAAA", mime_type="audio/wav")),
        ({"audio": {"data": "https://a", "format": "mp3"}}, AudioPart(url="https://a", mime_type="audio/mp3")),
        ({"audio": {"duration": 3}}, AudioPart(extras={"audio": {"duration": 3}})),
        ({"video": "a.mp4"}, VideoPart(url="a.mp4")),
        ({"video": ["1.png", {"fps": 2}]}, VideoPart(extras={"frames": ["1.png", {"fps": 2}]})),
    ],
)
def test_each_kind_of_content_is_a_part(item: dict[str, Any], part: Part) -> None:
    assert decode_one({"role": "user", "content": [item]}).content == [part]
    assert decode_one({"role": "assistant", "content": "", "reasoning_content": [item]}).reasoning == [part]


CALL: dict[str, Any] = {"name": "f", "arguments": "{}"}
REFUSED: dict[str, tuple[Any, str]] = {
    "no message": ("hello", ""),
    "missing role": ({"content": "a"}, ".role"),
    "role None": ({"role": None, "content": "a"}, ".role"),
    "unknown role": ({"role": "human", "content": "a"}, ".role"),
    "missing content": ({"role": "user"}, ".content"),
    "content of another type": ({"role": "user", "content": 3}, ".content"),
    "item that is no object": ({"role": "user", "content": ["a"]}, ".content[0]"),
    "unknown kind": ({"role": "user", "content": [{"text": "a"}, {"link": "b"}]}, ".content[1].link"),
    "part of another format": ({"role": "user", "content": [{"type": "text", "text": "a"}]}, ".content[0].type"),
    "two kinds": ({"role": "user", "content": [{"text": "a", "image": "b"}]}, ".content[0]"),
    "no kind": ({"role": "user", "content": [{"image": ""}]}, ".content[0]"),
    "image that is no text": ({"role": "user", "content": [{"image": {"url": "a"}}]}, ".content[0].image"),
    "reasoning of another type": ({"role": "user", "content": "", "reasoning_content": {}}, ".reasoning_content"),
    "name that is no text": ({"role": "user", "content": "", "name": 3}, ".name"),
    "call that is no object": ({"role": "assistant", "content": "", "function_call": "f"}, ".function_call"),
    "call without a name": (
        {"role": "assistant", "content": "", "function_call": {"arguments": ""}},
        ".function_call.name",
    ),
    "arguments that are no text": (
        {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": {}}},
        ".function_call.arguments",
    ),
    "unknown key of a call": (
        {"role": "assistant", "content": "", "function_call": {**CALL, "id": "1"}},
        ".function_call.id",
    ),
    "extra that is no object": ({"role": "user", "content": "", "extra": []}, ".extra"),
    "live object": ({"role": "user", "content": "", "extra": {"a": [object()]}}, ".extra.a[0]"),
    "live object in an object": (Message("user", "", extra={"a": {"b": ContentItem(text="a")}}), ".extra.a.b"),
    "key that is no text": ({"role": "user", "content": "", "extra": {"a": {3: 4}}}, ".extra.a"),
    "tuple": ({"role": "user", "content": [{"video": [(1, 2)]}]}, ".content[0].video[0]"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_strict_refuses_with_the_path(name: str) -> None:
    message, path = REFUSED[name]
    assert refusal(message) == f"[1]{path}"


@pytest.mark.parametrize("name", ["no message", "missing role", "role None"])
def test_lenient_refuses_values_that_are_not_messages(name: str) -> None:
    message, path = REFUSED[name]
    assert refusal(message, "lenient") == f"[1]{path}"


@pytest.mark.parametrize("payload", [None, "text", {"role": "user", "content": ""}, 3])
def test_a_payload_is_a_list(payload: Any) -> None:
    with pytest.raises(DecodeError, match="a list of messages"):
        CODEC.decode(payload, rules="lenient")


@pytest.mark.parametrize("rules", ["strict", "lenient"])
def test_nesting_deeper_than_500_is_refused(rules: str) -> None:
    deep: Any = []
    for _ in range(600):
        deep = [deep]
    assert refusal({"role": "user", "content": "", "extra": {"a": deep}}, rules).startswith("[1].extra.a[0]")
    assert refusal({"role": "user", "content": "", "extra": {"a": deep, "b": ()}}, rules).startswith("[1].extra")


def test_unknown_keys_of_a_message_are_kept() -> None:
    message = {"role": "user", "weight": 3, "content": "a"}
    assert CODEC.encode([decode_one(message)]).payload == [message]


def test_objects_changed_by_assignment_are_judged() -> None:
    message = Message("user", "a")
    message["role"] = "bogus"
    assert refusal(message) == "[1].role"


def test_arguments_that_are_not_json_stay_verbatim() -> None:
    message = {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": '{"code": '}}
    assert decode_one(message).tool_calls == [ToolCall(name="f", arguments='{"code": ')]


def test_a_result_without_name_and_id_is_read() -> None:
    message = decode_one({"role": "function", "content": "25"})
    assert message == ChatMessage(role="tool", content="25", format="qwen-agent")


def test_lenient_keeps_an_unknown_role_as_its_text() -> None:
    assert decode_one({"role": "human", "content": "a"}, "lenient").role == "human"


@pytest.mark.parametrize(
    ("item", "type_"),
    [({"text": "a", "image": "b"}, None), ({"type": "text", "text": "a"}, "text"), ("a", None), ({}, None)],
)
def test_lenient_keeps_a_bad_item_as_an_opaque_part(item: Any, type_: str | None) -> None:
    message = {"role": "user", "content": [item, {"text": "b"}]}
    decoded = decode_one(message, "lenient")
    assert decoded.content == [OpaquePart(type=type_, value=item), TextPart(text="b")]
    assert CODEC.encode([decoded]).payload == [message]


def test_lenient_leaves_a_nameless_call_to_the_residual() -> None:
    message = {"role": "assistant", "content": "", "function_call": {"name": "", "arguments": ""}}
    with pytest.raises(DecodeError, match="a call needs a name"):
        decode_one(message)
    decoded = decode_one(message, "lenient")
    assert decoded.tool_calls is None
    assert CODEC.encode([decoded]).payload == [message]


def test_lenient_coerces_values_that_are_not_json_and_reports_it() -> None:
    extra = {"live": ContentItem(text="a"), 3: (1, {"set": {2}}), "kept": [None]}
    decoded = CODEC.decode([Message("user", "", extra=extra)], rules="lenient")
    paths = ["[0].extra", "[0].extra.live", "[0].extra.3", "[0].extra.3[1].set"]
    assert decoded.losses == [Loss("coerced", None, path) for path in paths]
    item = {"text": "a", "image": None, "file": None, "audio": None, "video": None}
    coerced = {"live": item, "3": [1, {"set": [2]}], "kept": [None]}
    assert CODEC.encode(decoded.messages).payload == [{"role": "user", "content": "", "extra": coerced}]


def test_as_models_refuses_what_no_object_can_hold() -> None:
    rows: list[Any] = [{"role": "user", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "a"}]}]
    with pytest.raises(EncodeError) as caught:
        CODEC.as_models(rows)
    assert caught.value.path == "[1]"
