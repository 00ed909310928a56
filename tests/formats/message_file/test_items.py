from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from chatledger.formats.message_file import (
    CodeExecutionOutputBuilder,
    FunctionCall,
    FunctionCallBuilder,
    Message,
    MessageBuilder,
    MessageItem,
    MessageOutputBuilder,
    item_from_dict,
    output_from_dict,
)

MESSAGE: dict[str, Any] = {
    "name": "message_1",
    "timeout": 30,
    "outputs": [{"content": "21 °C", "mime_type": "text/plain", "nonce": "n1"}],
    "type": "message",
    "history": [{"role": "user", "content": "hi"}],
    "heading_level": 2,
    "content": "What's the weather in Tokyo?",
    "mime_type": "text/plain",
    "agent_name": "weather",
    "function_calls": [],
}

CALL: dict[str, Any] = {
    "name": "message_1_func_1",
    "timeout": None,
    "outputs": [],
    "type": "function_call",
    "history": [],
    "heading_level": None,
    "function_name": "forecast",
    "args": {"b": [1], "a": {"c": 1.0}},
}


def test_a_message_is_built_with_every_field() -> None:
    output = output_from_dict(MESSAGE["outputs"][0])
    builder = MessageBuilder().with_name("message_1").with_timeout(30).with_output(output)
    builder = (
        builder.with_content("What's the weather in Tokyo?").with_mime_type("text/plain").with_agent_name("weather")
    )
    message: Message = builder.with_history([{"role": "user", "content": "hi"}]).with_heading_level(2).build()
    assert list(message.to_dict().items()) == list(MESSAGE.items())


def test_a_function_call_is_built_with_every_field() -> None:
    builder = FunctionCallBuilder().with_name("message_1_func_1").with_timeout(None).with_function_name("forecast")
    builder = builder.with_args({"b": [1], "a": {"c": 1.0}}).with_history([]).with_heading_level(None)
    call: FunctionCall = builder.build()
    assert repr(call.to_dict()) == repr(CALL)


def test_every_with_gives_the_builder_back() -> None:
    builder = MessageBuilder()
    assert builder.with_content("x") is builder
    assert builder.with_function_call(FunctionCallBuilder().with_function_name("f").build()) is builder


def test_nothing_is_made_by_its_protocol() -> None:
    protocols: list[Any] = [MessageItem, Message, FunctionCall]
    for protocol in protocols:
        with pytest.raises(TypeError):
            protocol()


def test_a_built_item_satisfies_its_protocols() -> None:
    message = MessageBuilder().with_content("x").build()
    call = message.add_function_call("f")
    assert [isinstance(message, each) for each in (MessageItem, Message, FunctionCall)] == [True, True, False]
    assert [isinstance(call, each) for each in (MessageItem, Message, FunctionCall)] == [True, False, True]


def test_binary_content_is_base64_with_its_type() -> None:
    message = MessageBuilder().with_binary_content(b"\0\xff", "application/pdf").build()
    assert (message.content, message.mime_type) == ("AP8=", "application/pdf")


def test_a_message_without_content_and_a_call_without_a_function_are_not_built() -> None:
    with pytest.raises(ValidationError):
        MessageBuilder().with_name("m").build()
    with pytest.raises(ValidationError):
        FunctionCallBuilder().with_args({}).build()


@pytest.mark.parametrize(
    "fields",
    [
        {"heading_level": 0},
        {"heading_level": 6},
        {"heading_level": True},
        {"heading_level": "2"},
        {"timeout": -1},
        {"timeout": "30"},
        {"timeout": float("inf")},
        {"history": "all"},
        {"history": [{"at": object()}]},
        {"history": None},
        {"name": ""},
        {"content": None},
        {"mime_type": ""},
        {"agent_name": ""},
        {"surprise": 1},
        {"type": "message_item"},
        {"outputs": "x"},
        {"outputs": [1]},
        {"function_calls": [MESSAGE]},
        {"function_calls": [CALL, CALL]},
        {"outputs": [{"content": "a", "nonce": "n"}, {"stdout": "a", "nonce": "n"}]},
    ],
)
def test_an_invalid_field_of_a_message_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        item_from_dict({**MESSAGE, **fields})


@pytest.mark.parametrize("args", [None, [], "{}", {1: 2}, {"at": object()}])
def test_args_are_a_json_object(args: Any) -> None:
    with pytest.raises(ValidationError):
        item_from_dict({**CALL, "args": args})


@pytest.mark.parametrize("mode", ["none", "include", "summary"])
def test_a_history_may_be_a_mode(mode: str) -> None:
    assert MessageBuilder().with_content("x").with_history(mode).build().to_dict()["history"] == mode


@pytest.mark.parametrize("level", [None, 1, 2, 3, 4, 5])
def test_a_heading_level_is_between_1_and_5_or_none(level: int | None) -> None:
    assert MessageBuilder().with_content("x").with_heading_level(level).build().heading_level == level


def test_outputs_are_appended_and_their_nonces_are_unique_in_the_item() -> None:
    message = MessageBuilder().with_content("x").build()
    first = MessageOutputBuilder().with_content("a").with_nonce("n").build()
    second = CodeExecutionOutputBuilder().with_stdout("b").build()
    message.add_output(first)
    message.add_output(second)
    with pytest.raises(ValidationError):
        message.add_output(first)
    assert message.outputs == (first, second)


class TheirOutput:
    content = "a"
    mime_type = "text/plain"
    nonce = None

    def to_dict(self) -> dict[str, Any]:
        return {"content": self.content, "mime_type": self.mime_type, "nonce": self.nonce}


def test_anyones_output_may_be_added() -> None:
    message = MessageBuilder().with_content("x").with_output(TheirOutput()).build()
    message.add_output(TheirOutput())
    assert [output.content for output in message.outputs] == ["a", "a"]
    assert len({output.nonce for output in message.outputs}) == 2


def test_a_call_added_to_a_message_is_named_after_it_one_level_below() -> None:
    message = MessageBuilder().with_name("message_1").with_content("x").with_heading_level(2).build()
    call = message.add_function_call("forecast", {"city": "Tokyo"}, timeout=5)
    assert (call.name, call.heading_level, call.args, call.timeout) == ("message_1_func_1", 3, {"city": "Tokyo"}, 5)
    assert message.function_calls == (call,)


def test_a_call_below_the_deepest_level_stays_there() -> None:
    message = MessageBuilder().with_content("x").with_heading_level(5).build()
    assert message.add_function_call("f").heading_level == 5


def test_a_name_that_is_taken_is_not_given_again() -> None:
    message = MessageBuilder().with_name("m").with_content("x").build()
    names = [message.add_function_call("f", name=name).name for name in ("m_func_2", None, "own", None)]
    assert names == ["m_func_2", "m_func_3", "own", "m_func_4"]
    with pytest.raises(ValidationError):
        message.add_function_call("f", name="own")


def test_a_call_in_a_nameless_message_has_no_name() -> None:
    assert MessageBuilder().with_content("x").build().add_function_call("f").name is None


def test_calls_handed_to_the_builder_are_copied_and_named() -> None:
    call = FunctionCallBuilder().with_function_name("f").build()
    message = (
        MessageBuilder().with_name("m").with_content("x").with_function_call(call).with_function_call(call).build()
    )
    call.add_output(MessageOutputBuilder().with_content("later").build())
    assert [(one.name, one.outputs) for one in message.function_calls] == [("m_func_1", ()), ("m_func_2", ())]


def test_an_output_added_to_a_call_is_seen_in_its_message() -> None:
    message = MessageBuilder().with_content("x").build()
    message.add_function_call("f").add_output(output_from_dict({"content": "21", "nonce": "n"}))
    assert message.to_dict()["function_calls"][0]["outputs"][0]["content"] == "21"


def test_a_built_object_shares_nothing_with_the_arguments() -> None:
    args: dict[str, Any] = {"cities": ["Tokyo"]}
    history = [{"parts": ["hi"]}]
    builder = FunctionCallBuilder().with_function_name("f").with_args(args).with_history(history)
    first, second = builder.build(), builder.build()
    args["cities"].append("Kyoto")
    history[0]["parts"].append("ho")
    first.to_dict()["args"]["cities"].append("Osaka")
    first.add_output(MessageOutputBuilder().with_content("x").build())
    assert [(call.args, call.history) for call in (first, second)] == [({"cities": ["Tokyo"]}, [{"parts": ["hi"]}])] * 2
    assert second.outputs == ()


def test_only_outputs_and_calls_grow() -> None:
    message = MessageBuilder().with_content("x").build()
    with pytest.raises(ValidationError):
        message.content = "y"


@pytest.mark.parametrize("data", [MESSAGE, CALL, {**MESSAGE, "function_calls": [CALL]}])
def test_an_item_comes_back_from_its_dict(data: dict[str, Any]) -> None:
    assert repr(item_from_dict(data).to_dict()) == repr(data)


def test_from_dict_of_a_class_takes_only_its_own_type() -> None:
    message = MessageBuilder().with_content("x").build()
    assert type(message).from_dict(MESSAGE) == item_from_dict(MESSAGE)
    with pytest.raises(ValidationError):
        type(message).from_dict(CALL)


@pytest.mark.parametrize("data", [{}, {"type": "cell"}, {"content": "x"}])
def test_a_dict_without_a_type_is_not_an_item(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        item_from_dict(data)


def in_order(*keys: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda data: {key: data[key] for key in keys}


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner), max_leaves=6
)
objects = st.dictionaries(st.text(max_size=5), values, max_size=3)
names = st.none() | st.text(min_size=1, max_size=5)
outputs = st.lists(
    st.fixed_dictionaries({"content": st.text(), "mime_type": st.just("text/plain"), "nonce": st.uuids().map(str)}).map(
        in_order("content", "mime_type", "nonce")
    ),
    max_size=2,
    unique_by=lambda output: output["nonce"],
)
items = {
    "name": names,
    "timeout": st.none() | st.integers(0) | st.floats(0, 1e9),
    "outputs": outputs,
    "type": st.just("function_call"),
    "history": st.lists(objects, max_size=2) | st.sampled_from(["none", "include", "summary"]),
    "heading_level": st.none() | st.integers(1, 5),
}
calls = st.fixed_dictionaries({**items, "function_name": st.text(min_size=1), "args": objects}).map(in_order(*CALL))
messages = st.fixed_dictionaries(
    {
        **items,
        "type": st.just("message"),
        "content": st.text(),
        "mime_type": st.text(min_size=1),
        "agent_name": names,
        "function_calls": st.lists(calls, max_size=2, unique_by=lambda call: call["name"] or object()),
    }
).map(in_order(*MESSAGE))


@given(messages | calls)
@settings(max_examples=60, deadline=None)
def test_any_item_comes_back_from_its_dict_with_its_key_order(data: dict[str, Any]) -> None:
    item = item_from_dict(data)
    assert repr(item.to_dict()) == repr(data)
    assert item_from_dict(item.to_dict()) == item
