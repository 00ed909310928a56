from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import pytest
from pydantic import ValidationError

from chatledger.formats.agent_service import (
    AgentInfo,
    ChatHistory,
    ChatHistoryInput,
    ChatMessage,
    Feedback,
    FeedbackResponse,
    ServiceMetadata,
    StreamInput,
    UserInput,
)


def test_the_smallest_user_input_is_a_message() -> None:
    assert UserInput.model_validate({"message": "Hello"}).model_dump() == {
        "message": "Hello",
        "model": None,
        "thread_id": None,
        "user_id": None,
        "agent_config": {},
    }


def test_a_user_input_takes_settings_of_the_agent() -> None:
    user_input = UserInput(message="What's the weather in Tokyo?", thread_id="XYZ", agent_config={"temperature": 0.9})
    assert (user_input.thread_id, user_input.agent_config) == ("XYZ", {"temperature": 0.9})


def test_a_stream_input_streams_tokens_unless_told_otherwise() -> None:
    assert StreamInput(message="Hello").model_dump() == {
        **UserInput(message="Hello").model_dump(),
        "stream_tokens": True,
    }
    assert StreamInput(message="Hello", stream_tokens=False).stream_tokens is False


def test_a_model_name_is_text_whatever_enumeration_it_comes_from() -> None:
    names = StrEnum("names", {"GPT_5_NANO": "gpt-5-nano"})
    assert UserInput(message="Hello", model=names.GPT_5_NANO).model_dump()["model"] == "gpt-5-nano"
    assert UserInput.model_validate({"message": "Hello", "model": "GPT_4"}).model == "GPT_4"


def test_the_final_message_of_a_conversation_reads_and_dumps_with_every_field(final_message: dict[str, Any]) -> None:
    message = ChatMessage.model_validate(final_message)
    assert message.model_dump() == final_message
    assert list(message.model_dump()) == [
        "type",
        "content",
        "tool_calls",
        "tool_call_id",
        "run_id",
        "response_metadata",
        "custom_data",
    ]


@pytest.fixture
def final_message() -> dict[str, Any]:
    return {
        "type": "ai",
        "content": "The weather in Tokyo is sunny and 25°C.",
        "tool_calls": [{"name": "WeatherAPI", "args": {"location": "Tokyo"}, "id": "call_1"}],
        "tool_call_id": None,
        "run_id": "123e4567-e89b-12d3-a456-426614174000",
        "response_metadata": {"tokens_used": 50},
        "custom_data": {},
    }


def test_a_history_holds_messages_in_order(final_message: dict[str, Any]) -> None:
    question = {"type": "human", "content": "What's the weather in Tokyo?"}
    history = ChatHistory.model_validate({"messages": [question, final_message]})
    assert [message.type for message in history.messages] == ["human", "ai"]
    assert ChatHistoryInput(thread_id="XYZ").model_dump() == {"thread_id": "XYZ"}


def test_the_information_of_a_service_reads_from_its_answer() -> None:
    answer = {
        "agents": [{"key": "research-assistant", "description": "Searches and calculates"}],
        "models": ["gpt-5-nano", "fake"],
        "default_agent": "research-assistant",
        "default_model": "gpt-5-nano",
    }
    metadata = ServiceMetadata.model_validate(answer)
    assert metadata.model_dump() == answer
    assert metadata.agents == [AgentInfo(key="research-assistant", description="Searches and calculates")]


@pytest.mark.parametrize("type_", ["system", "user", "assistant", "task", "", None])
def test_a_message_has_one_of_four_types(type_: Any) -> None:
    with pytest.raises(ValidationError):
        ChatMessage(type=type_, content="x")


def test_a_message_needs_text() -> None:
    with pytest.raises(ValidationError):
        ChatMessage.model_validate({"type": "ai", "content": None})


def test_a_tool_call_is_written_in_the_order_of_its_keys_without_unknown_ones() -> None:
    call = {"type": "tool_call", "index": 3, "id": None, "args": {"b": 1, "a": 2}, "name": "search"}
    dumped = ChatMessage.model_validate({"type": "ai", "content": "", "tool_calls": [call]}).model_dump()["tool_calls"]
    assert [list(one.items()) for one in dumped] == [
        [("name", "search"), ("args", {"b": 1, "a": 2}), ("id", None), ("type", "tool_call")]
    ]


@pytest.mark.parametrize("missing", ["name", "args", "id"])
def test_a_tool_call_needs_its_name_its_args_and_an_id_that_may_be_none(missing: str) -> None:
    call: dict[str, Any] = {"name": "search", "args": {}, "id": None}
    del call[missing]
    with pytest.raises(ValidationError):
        ChatMessage.model_validate({"type": "ai", "content": "", "tool_calls": [call]})


@pytest.mark.parametrize(("type_", "word"), [("human", "Human"), ("ai", "Ai"), ("tool", "Tool"), ("custom", "Custom")])
def test_pretty_repr_is_a_title_of_80_columns_an_empty_line_and_the_content(type_: Any, word: str) -> None:
    title, empty, content = ChatMessage(type=type_, content="Hi").pretty_repr().split("\n")
    assert (len(title), title.strip("="), empty, content) == (80, f" {word} Message ", "", "Hi")
    assert len(title) - len(title.lstrip("=")) == (80 - len(word) - len(" Message ") - 1) // 2


def test_pretty_print_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    message = ChatMessage(type="ai", content="Hi")
    message.pretty_print()
    assert capsys.readouterr().out == message.pretty_repr() + "\n"


@pytest.mark.parametrize(("given", "score"), [(True, 1.0), ("0.8", 0.8), (4, 4.0)])
def test_a_score_is_a_number(given: Any, score: float) -> None:
    assert Feedback(run_id="run-7", key="human-feedback-rating", score=given).score == score


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_is_finite(score: float) -> None:
    with pytest.raises(ValidationError):
        Feedback(run_id="run-7", key="model-evaluation-score", score=score)


def test_the_answer_to_a_feedback_is_success_and_nothing_else() -> None:
    assert FeedbackResponse().model_dump() == {"status": "success"}
    with pytest.raises(ValidationError):
        FeedbackResponse.model_validate({"status": "failed"})
