from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.agent_service import (
    Feedback,
    StreamInput,
    UserInput,
    run_input,
    to_ledger_feedback,
    user_input_to_message,
)
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models import Feedback as LedgerFeedback


@pytest.mark.parametrize("user_input", [UserInput(message="Hello"), StreamInput(message="Hello"), {"message": "Hello"}])
def test_a_user_input_becomes_the_users_message(user_input: object) -> None:
    assert user_input_to_message(user_input) == LedgerMessage(role="user", content="Hello")


def test_the_input_of_a_run_is_the_request_in_its_order() -> None:
    request = StreamInput(message="Hello", model="gpt-5-nano", thread_id="t", agent_config={"temperature": 0.9})
    assert list(run_input(request).items()) == [
        ("message", "Hello"),
        ("model", "gpt-5-nano"),
        ("thread_id", "t"),
        ("user_id", None),
        ("agent_config", {"temperature": 0.9}),
        ("stream_tokens", True),
    ]


@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "OPENAI_API_KEY",
        "x-api-key",
        "apiKey",
        "client_secret",
        "dbPassword",
        "credentials",
        "Authorization",
        "token",
        "hf_token",
        "aws_access_key_id",
        "private-key",
    ],
)
def test_credentials_are_never_part_of_it(key: str) -> None:
    config = {key: "hush", "deep": [{key: {"a": "hush"}}, 1], "temperature": 0.9}
    stored = run_input(UserInput(message="Hello", agent_config=config))
    assert stored["agent_config"] == {"deep": [{}, 1], "temperature": 0.9}


@pytest.mark.parametrize("key", ["max_tokens", "stream_tokens", "key", "keyboard", "tokenizer", "author"])
def test_a_key_that_only_sounds_like_a_credential_stays(key: str) -> None:
    assert run_input(UserInput(message="Hello", agent_config={key: 1}))["agent_config"] == {key: 1}


def test_the_request_itself_is_not_changed() -> None:
    request = UserInput(message="Hello", agent_config={"a": [{"api_key": "hush"}]})
    run_input(request)
    assert request.agent_config == {"a": [{"api_key": "hush"}]}


def test_a_deep_configuration_is_stored() -> None:
    config: dict[str, Any] = {}
    for _ in range(450):
        config = {"a": config}
    assert run_input({"message": "Hello", "agent_config": config})["agent_config"] == config


def test_a_live_object_in_a_request_is_refused_with_its_path() -> None:
    with pytest.raises(DecodeError) as error:
        run_input(UserInput(message="Hello", agent_config={"tool": object()}))
    assert error.value.path == "$.agent_config.tool"


@pytest.mark.parametrize("user_input", [None, "Hello", {}, {"message": None}])
def test_a_request_without_a_message_is_refused(user_input: object) -> None:
    with pytest.raises(DecodeError) as error:
        user_input_to_message(user_input)
    assert error.value.path == "$.message"


class TheirFeedback(BaseModel):  # type: ignore[no-redef]  # the plugin's __init__ has a **kwargs of its own
    run_id: str
    key: str
    score: float
    kwargs: dict[str, Any] = {}
    source_info: str = "ui"


def test_feedback_is_recorded_as_it_is() -> None:
    theirs = TheirFeedback(run_id="run-7", key="human-feedback-stars", score=0.8, kwargs={"comment": "nice"})
    ours = Feedback(run_id="run-7", key="human-feedback-stars", score=0.8, kwargs={"comment": "nice"})
    record = LedgerFeedback(run_id="run-7", key="human-feedback-stars", score=0.8, kwargs={"comment": "nice"})
    assert [to_ledger_feedback(theirs), to_ledger_feedback(ours)] == [record, record]


def test_a_score_that_is_not_finite_and_an_empty_key_are_refused() -> None:
    for theirs in (
        TheirFeedback(run_id="run-7", key="stars", score=float("nan")),
        TheirFeedback(run_id="run-7", key="", score=1),
    ):
        with pytest.raises(ValidationError):
            to_ledger_feedback(theirs)


def test_a_value_that_is_not_feedback_is_refused() -> None:
    with pytest.raises(DecodeError):
        to_ledger_feedback("five stars")
