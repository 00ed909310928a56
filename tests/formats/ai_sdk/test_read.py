"""UI messages as messages of the ledger."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger.formats.ai_sdk import CODEC
from chatledger.models import ChatMessage, FilePart, ImagePart, OpaquePart, TextPart, ThinkPart, ToolCall
from tests.formats.ai_sdk.samples import histories
from tests.formats.measured import refusal

CALL = {"type": "tool-f", "toolCallId": "c", "state": "input-available", "input": {}}


def read(name: str) -> list[ChatMessage]:
    return CODEC.decode(histories()[name]).messages


def answer(*parts: Any) -> list[Any]:
    return [{"id": "a", "role": "assistant", "parts": list(parts)}]


def test_an_answer_is_a_message_for_each_step_and_each_result() -> None:
    system, user, wait, weather, tides, cold = read("weather")
    assert (system.role, system.content) == ("system", "Be short.")
    assert (user.role, user.custom_data) == ("user", {"tab": "left"})
    assert user.content == [
        TextPart(text="How cold is Oslo, and this?"),
        ImagePart(url="data:image/png;base64,iVBORw0KGgo=", mime_type="image/png", name="a.png"),
        FilePart(url="https://example.org/a.pdf", mime_type="application/pdf"),
    ]
    assert (wait.role, wait.custom_data) == ("assistant", {"model": "m-1", "tokens": 12})
    assert wait.content == [
        ThinkPart(text="North.", signature="c2ln", extras={"provider": "anthropic"}),
        TextPart(text="Wait a moment."),
    ]
    assert wait.tool_calls == [
        ToolCall(id="c1", name="weather", arguments={"city": "Oslo"}),
        ToolCall(id="c2", name="tides", arguments={"port": "Oslo"}),
    ]
    assert (weather.role, weather.tool_call_id, weather.content, weather.is_error) == (
        "tool",
        "c1",
        '{"celsius":4}',
        None,
    )
    assert (tides.name, tides.tool_call_id, tides.content, tides.is_error) == ("tides", "c2", "no network", True)
    assert isinstance(cold.content, list)
    assert [part.type for part in cold.content if isinstance(part, OpaquePart)] == [
        "source-url",
        "source-document",
        "data-chart",
    ]
    assert (cold.text, cold.custom_data) == ("Cold.", None)


def test_a_refused_call_has_an_error_and_one_that_waits_has_no_result() -> None:
    _, asked, removed, refused = read("approvals")
    assert [call.id for call in asked.tool_calls or ()] == ["c1", "c2", "c3", "c4"]
    assert (removed.tool_call_id, removed.content, removed.is_error) == ("c1", "removed", None)
    assert (refused.tool_call_id, refused.content, refused.is_error) == ("c2", "keep it", True)


def test_a_stream_that_was_cut_has_an_open_call() -> None:
    _, found, looked = read("a stream that was cut")
    assert [(call.name, call.arguments) for call in found.tool_calls or ()] == [
        ("look", {"deep": True}),
        ("weather", {"city": "Os"}),
    ]
    assert (looked.tool_call_id, looked.content) == ("c0", None)
    assert isinstance(found.content, list)
    assert [part.kind for part in found.content] == ["opaque", "think", "text", "text"]
    assert found.content[1] == ThinkPart(text="", signature="ZW5j", extras={"provider": "openai", "id": "rs_1"})


def test_input_that_is_no_object_is_text() -> None:
    raw = {**CALL, "state": "output-error", "input": None, "rawInput": "{cit", "errorText": "no JSON"}
    [asked, *_] = CODEC.decode(answer({**CALL, "input": [1, 2]}, {**CALL, "input": "a patch"}, raw)).messages
    assert [call.arguments for call in asked.tool_calls or ()] == ["[1,2]", "a patch", "{cit"]


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ({}, "$"),
        ([1], "$[0]"),
        ([{"parts": []}], "$[0].role"),
        ([{"role": "tool", "parts": []}], "$[0].role"),
        ([{"role": "user"}], "$[0].parts"),
        ([{"role": "user", "parts": {}}], "$[0].parts"),
        ([{"role": "user", "parts": ["a"]}], "$[0].parts[0]"),
        ([{"role": "user", "parts": [{"text": "a"}]}], "$[0].parts[0].type"),
        (answer({"type": "step-start"}, {"type": "text"}), "$[0].parts[1].text"),
        (answer({"type": "file", "url": "u"}), "$[0].parts[0].mediaType"),
        (answer({**CALL, "type": "tool-"}), "$[0].parts[0].type"),
        (answer({**CALL, "type": "dynamic-tool"}), "$[0].parts[0].toolName"),
        (answer({**CALL, "state": "later"}), "$[0].parts[0].state"),
        (answer({**CALL, "toolCallId": 1}), "$[0].parts[0].toolCallId"),
        (answer(CALL, {**CALL, "state": "output-error"}), "$[0].parts[1].errorText"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(payload: Any, path: str) -> None:
    assert refusal(CODEC, payload) == path
