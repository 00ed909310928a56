"""ChatMessage and ToolCall."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chatledger import AudioPart, ChatMessage, ImagePart, TextPart, ThinkPart, ToolCall
from chatledger.models import LENIENT, ROLES, Part
from chatledger.types import Violation


def test_a_message_needs_only_a_role() -> None:
    dump = ChatMessage(role="user").model_dump(exclude_none=True)
    assert dump == {"role": "user", "state": "complete", "violations": []}


def test_a_message_is_shown_without_what_it_does_not_have() -> None:
    assert repr(ChatMessage(role="user", content="Tokyo?")) == (
        "ChatMessage(role='user', content='Tokyo?', state='complete')"
    )
    empty = ChatMessage(role="assistant", content="", tool_calls=[], custom_data={}, is_error=False)
    assert repr(empty) == (
        "ChatMessage(role='assistant', content='', tool_calls=[], is_error=False, state='complete', custom_data={})"
    )
    assert str(ToolCall(name="f", arguments={})) == "name='f' arguments={}"


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_known_role_is_taken(role: str) -> None:
    assert ChatMessage(role=role).role == role


@pytest.mark.parametrize("role", ["human", "", "User", "user ", "\ud800"])
def test_an_unknown_role_is_refused(role: str) -> None:
    with pytest.raises(ValidationError, match="known are assistant, custom, developer, system, tool, user"):
        ChatMessage(role=role)


@pytest.mark.parametrize("role", ["human", "", "User", "\ud800"])
def test_lenient_keeps_any_role(role: str) -> None:
    assert ChatMessage.model_validate({"role": role}, context=LENIENT).role == role


def test_another_context_keeps_no_unknown_role() -> None:
    with pytest.raises(ValidationError, match="unknown role"):
        ChatMessage.model_validate({"role": "human"}, context={"rules": "strict"})


@pytest.mark.parametrize(("field", "value"), [("content", "x"), ("seq", 1), ("state", "partial")])
def test_a_message_is_frozen(field: str, value: Any) -> None:
    message = ChatMessage(role="user")
    with pytest.raises(ValidationError, match="frozen"):
        setattr(message, field, value)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        ChatMessage.model_validate({"role": "user", "contents": "x"})


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(ValidationError, match="'complete', 'partial', 'interrupted' or 'synthetic'"):
        ChatMessage.model_validate({"role": "user", "state": "done"})


EMPTIES: list[Any] = [None, "", [], [TextPart(text="")]]


@pytest.mark.parametrize("field", ["content", "reasoning"])
def test_four_kinds_of_nothing_stay_apart(field: str) -> None:
    messages = [ChatMessage.model_validate({"role": "assistant", field: empty}) for empty in EMPTIES]
    assert [getattr(message, field) for message in messages] == EMPTIES
    assert [ChatMessage.model_validate(message.model_dump()) for message in messages] == messages
    assert [ChatMessage.model_validate_json(message.model_dump_json()) for message in messages] == messages
    assert all((left == right) == (i == j) for i, left in enumerate(messages) for j, right in enumerate(messages))


def test_no_calls_and_an_empty_list_of_calls_stay_apart() -> None:
    assert ChatMessage(role="assistant", tool_calls=[]) != ChatMessage(role="assistant")


ARGUMENTS: list[Any] = [None, "", "{}", '{"b":1, "a":2}', "{'a': 1}", "null", "\x00\ud800", {}, {"b": 1, "a": [None]}]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=repr)
def test_arguments_stay_verbatim(arguments: Any) -> None:
    call = ToolCall(name="f", arguments=arguments)
    assert (type(call.arguments), repr(call.arguments)) == (type(arguments), repr(arguments))
    assert ToolCall.model_validate(call.model_dump()) == call


@pytest.mark.parametrize("arguments", [3, [1], True, ({},), {"a": (1,)}, {1: "a"}], ids=repr)
def test_other_arguments_are_refused(arguments: Any) -> None:
    with pytest.raises(ValidationError):
        ToolCall(name="f", arguments=arguments)


def test_a_call_id_may_be_of_any_length() -> None:
    assert len(ToolCall(id="x" * 4_572, name="f").id or "") == 4_572


def test_any_text_is_taken() -> None:
    text = "\x00\ud800\ue000 \U0001f600 \\u0000"
    message = ChatMessage(role="user", content=text, name=text, tool_call_id=text, message_id=text, run_id=text)
    assert (message.content, message.name, message.run_id) == (text, text, text)


def test_text_is_all_text_of_the_content() -> None:
    parts: list[Part] = [ThinkPart(text="hm"), TextPart(text="a"), ImagePart(url="x"), TextPart(text="b")]
    assert ChatMessage(role="assistant", content=parts, reasoning="r").text == "ab"
    assert [ChatMessage(role="user", content=empty).text for empty in EMPTIES] == ["", "", "", ""]
    assert ChatMessage(role="user", content="a").text == "a"


def test_reasoning_text_is_its_own_field_first_then_the_think_parts() -> None:
    content: list[Part] = [TextPart(text="!"), ThinkPart(text="b"), ThinkPart(text="c")]
    assert ChatMessage(role="assistant", content=content, reasoning="a").reasoning_text == "abc"
    reasoning: list[Part] = [TextPart(text="a"), AudioPart(url="x"), ThinkPart(text="A")]
    assert ChatMessage(role="assistant", content=content, reasoning=reasoning).reasoning_text == "aAbc"
    assert ChatMessage(role="assistant", content="!").reasoning_text == ""


def test_a_message_comes_back_from_its_json() -> None:
    message = ChatMessage(
        role="assistant",
        content=[TextPart(text="a", extras={"z": 1, "a": None})],
        tool_calls=[ToolCall(name="f", arguments={"b": 1, "a": 2}), ToolCall(id="", name="g", arguments="{")],
        custom_data={"nan": [float("inf"), -0.0, 10**30]},
        violations=[Violation(rule="R9", detail="x")],
    )
    assert ChatMessage.model_validate_json(message.model_dump_json()) == message


def test_nan_comes_back_from_json_as_nan() -> None:
    message = ChatMessage(role="user", residual=[float("nan")])
    assert ChatMessage.model_validate_json(message.model_dump_json()).model_dump_json() == message.model_dump_json()
    assert '"residual":[NaN]' in message.model_dump_json()


def test_a_message_of_each_usual_role_is_made_by_its_own_call() -> None:
    call = ToolCall(id="c1", name="weather", arguments={"city": "Tokyo"})
    assert ChatMessage.user("Hi", name="ada") == ChatMessage(role="user", content="Hi", name="ada")
    assert ChatMessage.system([TextPart(text="Be brief.")]) == ChatMessage(
        role="system", content=[TextPart(text="Be brief.")]
    )
    assert ChatMessage.assistant(tool_calls=[call]) == ChatMessage(role="assistant", tool_calls=[call])
    assert ChatMessage.tool(call, "21 °C") == ChatMessage(role="tool", tool_call_id="c1", content="21 °C")
    assert ChatMessage.tool("c1", "21 °C", is_error=False).is_error is False
    with pytest.raises(ValidationError, match="extra"):
        ChatMessage.user("Hi", text="Hi")
