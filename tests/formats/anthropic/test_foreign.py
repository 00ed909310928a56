"""How messages of other formats are written."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats.anthropic import CODEC
from chatledger.models import AudioPart, ChatMessage, FilePart, ImagePart, OpaquePart, Part, TextPart, ThinkPart
from tests.conversations import assistant, call, result, turn, user
from tests.formats.openai_chat.strategies import Json


def written(*messages: ChatMessage) -> Json:
    return CODEC.encode(messages).payload


def block(part: Part, role: str = "user") -> Json:
    [message] = written(ChatMessage(role=role, content=[part]))["messages"]
    return message["content"][0] if message["content"] else None


def test_a_turn_with_parallel_calls() -> None:
    lima = {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Lima"}}
    assert written(*turn()) == {
        "messages": [
            {"role": "user", "content": "What is the weather in Tokyo and in Lima?"},
            {"role": "assistant", "content": [{**lima, "id": "call_0", "input": {"city": "Tokyo"}}, lima]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"},
                    {"type": "tool_result", "tool_use_id": "call_0", "content": "sunny"},
                ],
            },
            {"role": "assistant", "content": "It is sunny in both."},
        ]
    }


def test_a_user_text_after_results_is_in_their_message() -> None:
    [_, answered] = written(assistant(calls=[call("a")]), result("a"), user("and now?"))["messages"]
    assert answered["content"][1:] == [{"type": "text", "text": "and now?"}]
    assert len(written(assistant(calls=[call("a")]), result("a"), user(""))["messages"]) == 3


def test_leading_system_messages_are_the_prompt_and_later_ones_stay() -> None:
    system = ChatMessage(role="system", content="Be brief.")
    developer = ChatMessage(role="developer", content=[TextPart(text="Be kind.")])
    assert written(system, user("Hi")) == {"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}
    assert written(system, developer) == {
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
        "messages": [],
    }
    assert written(user("Hi"), system)["messages"][1] == {"role": "system", "content": "Be brief."}


def test_custom_messages_are_left_out_and_unknown_roles_speak_as_user() -> None:
    assert written(ChatMessage(role="custom", content="a spinner")) == {"messages": []}
    narrator = ChatMessage.model_construct(role="narrator", content="Meanwhile")
    assert written(narrator)["messages"] == [{"role": "user", "content": "Meanwhile"}]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ('{"city": "Tokyo"}', {"city": "Tokyo"}),
        ({"city": "Tokyo"}, {"city": "Tokyo"}),
        (None, {}),
        ("", {}),
        (" \n", {}),
        ("print(1)", {"_raw": "print(1)"}),
        ("[1]", {"_raw": "[1]"}),
    ],
)
def test_arguments_are_an_object(arguments: Any, given: Json) -> None:
    [message] = written(assistant(calls=[call("a", arguments=arguments)]))["messages"]
    assert message["content"][0]["input"] == given


def test_an_object_that_is_too_deep_is_text() -> None:
    deep: Any = {}
    for _ in range(498):
        deep = {"a": deep}
    payload = written(assistant(calls=[call("a", arguments=deep)]))
    assert list(payload["messages"][0]["content"][0]["input"]) == ["_raw"]
    assert len(CODEC.decode(payload).messages) == 1


def test_missing_ids_are_generated_and_others_kept() -> None:
    messages = [assistant(calls=[call(None), call("functions.f:0")], seq=7), result(None), result("functions.f:0")]
    asked, answered = written(*messages)["messages"]
    assert [one["id"] for one in asked["content"]] == ["call_7_0", "functions.f:0"]
    assert [one["tool_use_id"] for one in answered["content"]] == ["call_7_0", "functions.f:0"]
    assert written(result(None, seq=3))["messages"][0]["content"][0]["tool_use_id"] == "call_3"


def test_errors_are_written() -> None:
    [message] = written(result("a", "gone", is_error=True))["messages"]
    assert message["content"][0]["is_error"] is True


def test_signed_reasoning_is_written() -> None:
    signed, unsigned = ThinkPart(text="Hm", signature="s"), ThinkPart(text="Hm")
    said = {"type": "thinking", "thinking": "Hm", "signature": "s"}
    assert block(signed, "assistant") == said
    assert block(unsigned, "assistant") is None
    assert block(signed, "user") is None
    [message] = written(assistant("Yes", reasoning=[unsigned, signed]))["messages"]
    assert message["content"] == [said, {"type": "text", "text": "Yes"}]
    assert written(assistant("Yes", reasoning="Hm"))["messages"] == [{"role": "assistant", "content": "Yes"}]


@pytest.mark.parametrize(
    ("part", "source"),
    [
        (ImagePart(url="https://h/x"), {"type": "url", "url": "https://h/x"}),
        (ImagePart(url="data:image/jpg;base64,QQ=="), {"type": "base64", "media_type": "image/jpeg", "data": "QQ=="}),
        (ImagePart(data="QQ==", mime_type="image/png"), {"type": "base64", "media_type": "image/png", "data": "QQ=="}),
        (ImagePart(data="QQ=="), None),
        (ImagePart(id="file-of-another"), None),
        (FilePart(url="https://h/x"), {"type": "url", "url": "https://h/x"}),
        (
            FilePart(url="data:application/pdf;base64,QQ=="),
            {"type": "base64", "media_type": "application/pdf", "data": "QQ=="},
        ),
        (
            FilePart(data="SGk=", mime_type="text/plain"),
            {"type": "text", "media_type": "text/plain", "data": "Hi"},
        ),
        (FilePart(data="QQ==", mime_type="text/csv"), None),
        (AudioPart(data="QQ==", mime_type="audio/wav"), None),
        (OpaquePart(type="x", value={"type": "x"}), None),
    ],
)
def test_media_are_written_by_their_source(part: Part, source: Json) -> None:
    said = block(part)
    assert (said and said["source"]) == source
    assert block(part, "assistant") is None
