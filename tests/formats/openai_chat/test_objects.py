"""Objects of an SDK are read by their `model_dump`, whatever their class is."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict

from chatledger.errors import DecodeError
from chatledger.formats.openai_chat import CODEC


class Function(BaseModel):
    arguments: str
    name: str


class Call(BaseModel):
    id: str
    function: Function
    type: Literal["function"]


class Reply(BaseModel):
    model_config = ConfigDict(extra="allow")

    content: str | None = None
    refusal: str | None = None
    role: Literal["assistant"]
    tool_calls: list[Call] | None = None


class UserMessage(BaseModel):
    role: Literal["user"] = "user"
    content: str
    name: str | None = None


CALL = Call(id="c", type="function", function=Function(name="f", arguments="{}"))
CALL_WIRE = {"id": "c", "function": {"arguments": "{}", "name": "f"}, "type": "function"}


def round_trip(payload: list[Any]) -> Any:
    return CODEC.encode(CODEC.decode(payload).messages).payload


def test_keys_that_were_not_given_stay_absent() -> None:
    reply = Reply.model_validate({"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning": "Hm"})
    assert round_trip([reply]) == [
        {"content": None, "role": "assistant", "tool_calls": [CALL_WIRE], "reasoning": "Hm"},
    ]


def test_a_role_that_is_a_default_is_read() -> None:
    assert round_trip([UserMessage(content="Hi")]) == [{"role": "user", "content": "Hi", "name": None}]


def test_objects_inside_dicts_are_read() -> None:
    assert round_trip([{"role": "assistant", "content": None, "tool_calls": [CALL]}]) == [
        {"role": "assistant", "content": None, "tool_calls": [CALL_WIRE]}
    ]


def test_a_function_object_inside_a_dict_is_read() -> None:
    call = {"id": "c", "type": "function", "function": CALL.function}
    assert round_trip([{"role": "assistant", "content": None, "tool_calls": [call]}]) == [
        {"role": "assistant", "content": None, "tool_calls": [CALL_WIRE]}
    ]


def test_an_object_in_the_place_of_the_list_is_refused() -> None:
    with pytest.raises(DecodeError, match="expected a list of messages, not UserMessage"):
        CODEC.decode(UserMessage(content="Hi"))


def test_objects_are_recognised() -> None:
    assert CODEC.recognises([UserMessage(content="Hi"), {"role": "assistant", "content": None, "tool_calls": [CALL]}])
