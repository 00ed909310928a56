"""The documentation's stricter rules: reported by `check`, refused under the context, never on by default."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chatledger.formats.qwen_agent import DOCUMENTED, ContentItem, FunctionCall, Message, Problem, check


def changed(message: Message, key: str, value: Any) -> Message:
    message[key] = value
    return message


@pytest.mark.parametrize(
    ("message", "problems"),
    [
        (Message("user", ""), []),
        (Message("function", "", name="f"), []),
        (Message("function", ""), [Problem("name", "a function message needs the name of its function")]),
        (Message("function", "", name=""), [Problem("name", "a function message needs the name of its function")]),
        (
            Message("assistant", "", function_call=FunctionCall("", "{")),
            [
                Problem("function_call.name", "a function call needs a name"),
                Problem("function_call.arguments", "the arguments are not JSON"),
            ],
        ),
        (
            Message("assistant", "", function_call=FunctionCall(" f", "3")),
            [Problem("function_call.name", "the name ' f' has spaces around it")],
        ),
        (
            Message("user", [ContentItem(text="a"), ContentItem(text="a", image="")]),
            [Problem("content[1]", "one kind of content is allowed, not text and image")],
        ),
        (
            changed(Message("user", ""), "role", "human"),
            [Problem("role", "the role 'human' is none of user, assistant, system, function")],
        ),
    ],
)
def test_check_reports_what_the_documentation_does_not_allow(message: Message, problems: list[Problem]) -> None:
    assert check(message) == problems


def test_check_takes_the_real_models(upstream: Any) -> None:
    assert check(upstream.Message("function", "")) == check(Message("function", ""))


def test_documented_rules_refuse_a_nameless_result() -> None:
    data = {"role": "function", "content": "x"}
    assert Message.model_validate(data).name is None
    with pytest.raises(ValidationError, match="needs the name of its function"):
        Message.model_validate(data, context=DOCUMENTED)


def test_documented_rules_strip_the_name_of_a_call() -> None:
    data = {"role": "assistant", "content": "", "function_call": {"name": " f ", "arguments": "{}"}}
    assert Message.model_validate(data, context=DOCUMENTED).function_call == FunctionCall("f", "{}")
    assert FunctionCall.model_validate(data["function_call"], context=DOCUMENTED) == FunctionCall("f", "{}")


@pytest.mark.parametrize("call", [{"name": "  ", "arguments": "{}"}, {"name": "f", "arguments": "print(1)"}])
def test_documented_rules_refuse_a_bad_call(call: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        FunctionCall.model_validate(call, context=DOCUMENTED)
    with pytest.raises(ValidationError):
        Message.model_validate({"role": "assistant", "content": "", "function_call": call}, context=DOCUMENTED)
