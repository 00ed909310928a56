"""How events are read: roles, parts, calls, results, and malformed values."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats import recognise
from chatledger.formats.google_adk import CODEC
from chatledger.models import ChatMessage, ImagePart, OpaquePart, TextPart, ThinkPart, ToolCall, continues
from chatledger.models.json import same_json
from tests.formats.google_adk.samples import SAMPLES
from tests.formats.measured import refusal


def read(name: str) -> list[ChatMessage]:
    stored, by_alias = (CODEC.decode(SAMPLES[f"{name}, {spelling}"]).messages for spelling in ("stored", "by alias"))
    fields = {"role", "content", "name", "tool_calls", "tool_call_id", "is_error"}
    assert [one.model_dump(include=fields) for one in stored if one.content != [] and not _opaque(one)] == [
        one.model_dump(include=fields) for one in by_alias if one.content != [] and not _opaque(one)
    ]
    return stored


def _opaque(message: ChatMessage) -> bool:
    return isinstance(message.content, list) and any(isinstance(part, OpaquePart) for part in message.content)


def event(*parts: Any, role: str | None = "model", author: str = "helper", **more: Any) -> Any:
    content = {"parts": list(parts), **({} if role is None else {"role": role})}
    return {"content": content, "invocation_id": "e", "author": author, "id": "x", "timestamp": 1.5, **more}


def one(*parts: Any, **given: Any) -> ChatMessage:
    (message,) = CODEC.decode([event(*parts, **given)]).messages
    return message


def test_speakers() -> None:
    text = {"text": "a"}
    assert [(one(text, **given).role, one(text, **given).name) for given in (
        {"role": "user", "author": "user"},
        {"role": "user", "author": "helper"},
        {"role": "model", "author": "helper"},
        {"role": "model", "author": "model"},
        {"role": None, "author": "user"},
        {"role": None, "author": "helper"},
        {"role": "system", "author": "helper"},
    )] == [
        ("user", None),
        ("user", "helper"),
        ("assistant", "helper"),
        ("assistant", None),
        ("user", None),
        ("assistant", "helper"),
        ("custom", "helper"),
    ]  # fmt: skip
    assert one({"function_call": {"name": "f"}}, role="user").role == "assistant"
    assert [read(name)[0].role for name in ("a change of state", "a compaction", "an error")] == ["custom"] * 3


def test_a_thought_and_calls() -> None:
    (message,) = read("a signed thought and calls")
    assert isinstance(message.content, list)
    thought, text = message.content
    assert thought == ThinkPart(text="Hm.", signature="__4-Pw==", extras={"provider": "google"})
    assert text == TextPart(text="I look.")
    assert message.tool_calls == [
        ToolCall(id="adk-1", name="weather", arguments={"city": "Oslo", "days": 2}),
        ToolCall(id="adk-2", name="news", arguments={}),
    ]


def test_the_results_of_an_event_are_a_group() -> None:
    first, second, rest = read("results")
    assert (first.role, first.content, first.tool_call_id, first.name) == ("tool", "sunny", "adk-1", "weather")
    assert isinstance(second.content, list)
    text, image = second.content
    assert text == TextPart(text='{"items":[1,null],"error":null}')
    assert image == ImagePart(data="//4+Pw==", mime_type="image/png", name="map.png")
    assert (rest.role, rest.content) == ("user", "both")
    assert [continues(row) for row in (first, second, rest)] == [False, True, True]


@pytest.mark.parametrize(
    ("response", "content", "is_error"),
    [
        ({"result": "a"}, "a", None),
        ({"output": "a"}, "a", None),
        ({"error": "a"}, "a", True),
        ({"error": ""}, "", True),
        ({"error": {"code": 5}}, '{"error":{"code":5}}', True),
        ({"error": None, "result": 1}, '{"error":null,"result":1}', None),
        ({}, "{}", None),
        (None, None, None),
    ],
)
def test_a_response_is_a_text_or_its_json(response: Any, content: str | None, is_error: bool | None) -> None:
    message = one({"function_response": {"id": "c", "name": "f", "response": response}}, role="user")
    assert (message.content, message.is_error) == (content, is_error)


def test_parts_of_other_kinds_stay_whole_in_their_place() -> None:
    signature_alone = {"thought": True, "thought_signature": "YQ=="}
    message = one({"executable_code": {"code": "1"}}, {"text": "a"}, signature_alone, {"text": "b", "inline_data": {}})
    assert isinstance(message.content, list)
    assert [part.kind for part in message.content] == ["opaque", "text", "opaque", "opaque"]


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        ("text", "$[0]"),
        ({"author": "a", "content": "text"}, "$[0].content"),
        ({"author": "a", "content": {"parts": "text"}}, "$[0].content.parts"),
        (event(None), "$[0].content.parts[0]"),
        (event({"text": 1}), "$[0].content.parts[0].text"),
        (event({"function_call": {"name": ""}}), "$[0].content.parts[0].function_call"),
        (event({"function_call": {"name": "f", "args": []}}), "$[0].content.parts[0].function_call.args"),
        (event({"function_response": {"response": "a"}}), "$[0].content.parts[0].function_response.response"),
        (event({"text": "a"}, output={1, 2}), "$[0].output"),
    ],
)
def test_malformed_values_are_refused_with_their_path(broken: Any, path: str) -> None:
    assert refusal(CODEC, [broken]) == path


def test_only_events_are_recognised() -> None:
    assert all(recognise(payload) is CODEC for payload in SAMPLES.values())
    for other in (
        [],
        [{"role": "user", "content": "a"}],
        [{"author": "a", "content": "text", "actions": {}}],
        [{"author": "a", "content": {"parts": []}}],
        [*SAMPLES["a question, stored"], {"role": "user", "content": "a"}],
    ):
        assert not CODEC.recognises(other)


@pytest.mark.parametrize("parts", [[None], [{"text": "a"}, None], [None, {"function_call": {"name": "f", "args": {}}}]])
@pytest.mark.parametrize("content", [{}, {"role": "model"}])
def test_null_parts_come_back(parts: list[Any], content: dict[str, Any]) -> None:
    payload = [{"invocation_id": "", "id": "", "branch": "", "content": {**content, "parts": parts}}]
    assert same_json(CODEC.encode(CODEC.decode(payload, rules="lenient").messages).payload, payload)
