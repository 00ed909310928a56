"""Objects of the SDKs are stored under the names and with the values of their API, as its dicts would be."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from anthropic.types import Message, TextBlock, ToolUseBlock
from anthropic.types.beta import BetaFallbackBlock
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message_function_tool_call import Function
from openai.types.responses import ResponseCustomToolCall, ResponseFunctionToolCall

from chatledger import Ledger, Payload
from chatledger.errors import DecodeError
from chatledger.formats import get_codec
from chatledger.models.json import same_json
from tests.formats.measured import refusal
from tests.formats.openai_chat.test_objects import UserMessage

CALL: dict[str, Any] = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "async": True}
CUSTOM: dict[str, Any] = {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": "x", "async": False}


async def test_a_field_of_the_openai_sdk_is_stored_under_the_name_of_its_api(ledger: Ledger) -> None:
    function, custom = ResponseFunctionToolCall.model_validate(CALL), ResponseCustomToolCall.model_validate(CUSTOM)
    assert (function.async_, custom.async_) == (True, False)
    stored = []
    for thread_id, payload in (("objects", [function, custom]), ("dicts", [CALL, CUSTOM])):
        await ledger.threads.create(thread_id)
        await ledger.messages.append(thread_id, Payload(payload, "openai-responses"))
        history = (await ledger.messages.history(thread_id)).encode("openai-responses")
        stored.append([{**item} for item in history.payload])
    assert stored[1] == [CALL, CUSTOM]
    assert stored[0] == stored[1]


def test_a_field_of_the_anthropic_sdk_is_read_under_the_name_of_its_api() -> None:
    block = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}
    made = BetaFallbackBlock.construct(**block)  # type: ignore[arg-type]
    codec = get_codec("anthropic")
    messages = codec.decode([{"role": "assistant", "content": [made]}]).messages
    assert codec.encode(messages).payload["messages"][0]["content"] == [block]


def test_a_date_of_the_anthropic_sdk_is_read_as_its_api_spells_it() -> None:
    container = {"id": "c", "expires_at": datetime(2026, 1, 1, tzinfo=UTC)}
    said = Message.construct(type="message", role="assistant", content=[], container=container)
    [message] = get_codec("anthropic").decode([said]).messages
    assert message.response_metadata is not None
    assert message.response_metadata["container"] == {"id": "c", "expires_at": "2026-01-01T00:00:00Z"}


def in_anthropic(value: Any) -> tuple[str, list[Any], str]:
    block = ToolUseBlock.construct(type="tool_use", id="c", name="f", input={"x": value})
    return "anthropic", [{"role": "assistant", "content": [block]}], "messages[0].content[0].input.x"


def in_openai_chat(value: Any) -> tuple[str, list[Any], str]:
    said = ChatCompletionMessage.construct(role="assistant", content="a", x=value)
    return "openai-chat", [said], "messages[0].x"


def in_openai_responses(value: Any) -> tuple[str, list[Any], str]:
    return "openai-responses", [ResponseFunctionToolCall.construct(**CALL, x=value)], "input[0].x"


PLACES = [in_anthropic, in_openai_chat, in_openai_responses]


@pytest.mark.parametrize("rules", ["strict", "lenient"])
@pytest.mark.parametrize("value", [(1, 2), {3}, {1: 2}, b"x", 1j], ids=repr)
@pytest.mark.parametrize("place", PLACES)
def test_an_object_changes_no_value_in_silence(place: Callable[[Any], Any], value: Any, rules: Any) -> None:
    name, payload, path = place(value)
    with pytest.raises(DecodeError) as caught:
        get_codec(name).decode(payload, rules=rules)
    assert caught.value.path == path


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.0, 1e300], ids=repr)
@pytest.mark.parametrize("place", PLACES)
def test_numbers_that_pydantic_does_not_write_as_json_stay(place: Callable[[Any], Any], value: float) -> None:
    name, payload, _ = place(value)
    codec = get_codec(name)
    back = codec.encode(codec.decode(payload).messages).payload
    if name == "anthropic":
        assert same_json(back["messages"][0]["content"][0]["input"]["x"], value)
    else:
        assert same_json(back[0]["x"], value)


class Timed(ChatCompletionMessageFunctionToolCall):
    seconds: int = 0


class Scored(TextBlock):
    score: float = 0.0


def test_fields_that_a_subclass_adds_inside_an_object_are_kept() -> None:
    call = Timed(id="c", type="function", function=Function(name="f", arguments="{}"), seconds=7)
    reply = ChatCompletionMessage(role="assistant", content=None, tool_calls=[call])
    codec = get_codec("openai-chat")
    [wire] = codec.encode(codec.decode([reply]).messages).payload
    assert wire["tool_calls"][0]["seconds"] == 7
    said = Message.construct(
        type="message", role="assistant", content=[Scored(type="text", text="a", citations=None, score=0.5)]
    )
    codec = get_codec("anthropic")
    [message] = codec.encode(codec.decode([said]).messages).payload["messages"]
    assert message["content"][0]["score"] == 0.5


class WithoutOptions:
    def model_dump(self) -> dict[str, str]:
        return {"role": "user", "content": "Hi"}


class Broken:
    def model_dump(self, **options: object) -> dict[str, str]:
        raise RuntimeError("gone")


class Unreadable:
    @property
    def model_dump(self) -> object:
        raise RuntimeError("gone")


class Endless:
    def model_dump(self, **options: object) -> object:
        return {"role": "user", "content": [self]}


ROOTS = {"openai-chat": "messages[0]", "anthropic": "messages[0]", "openai-responses": "input[0]"}


@pytest.mark.parametrize("name", ROOTS)
def test_a_model_dump_without_options_is_enough(name: str) -> None:
    codec = get_codec(name)
    [message] = codec.decode([WithoutOptions()]).messages
    assert (message.role, message.content) == ("user", "Hi")


@pytest.mark.parametrize("value", [Broken(), Unreadable(), Endless(), UserMessage, object(), b"Hi", {1, 2}])
@pytest.mark.parametrize("name", ROOTS)
def test_an_object_that_does_not_dump_is_refused(name: str, value: object) -> None:
    assert refusal(get_codec(name), [value]).startswith(ROOTS[name])
    assert not get_codec(name).recognises([value])
