from __future__ import annotations

import json
from typing import Any

import pytest

from chatledger import ChatMessage
from chatledger.formats import get_codec
from chatledger.formats.model_view import model_view
from chatledger.types import Repair
from tests.conversations import assistant, call, result, turn, user

CODEC = get_codec("openai-chat")


def seen(messages: list[ChatMessage]) -> tuple[list[dict[str, Any]], list[Repair]]:
    numbered = [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]
    encoded, repairs = model_view(CODEC, numbered)
    return encoded.payload, repairs


def read(payload: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Repair]]:
    return seen(CODEC.decode(payload, rules="lenient").messages)


def codes(repairs: list[Repair]) -> list[tuple[str, int | None]]:
    return [(repair.code, repair.seq) for repair in repairs]


def test_a_valid_history_is_written_as_it_is_stored() -> None:
    assert seen(turn()) == (CODEC.encode(turn()).payload, [])


def test_an_open_call_is_answered_as_interrupted() -> None:
    payload, repairs = seen([user("?"), assistant(calls=[call("a"), call("b")]), result("b"), user("Well?")])
    assert [(wire["role"], wire.get("tool_call_id"), wire["content"]) for wire in payload[2:]] == [
        ("tool", "b", "sunny"),
        ("tool", "a", "interrupted"),
        ("user", None, "Well?"),
    ]
    assert repairs == [Repair("open-call", 2, "call 0 (weather) has no result: answered as interrupted")]


def test_a_late_result_is_placed_behind_its_call() -> None:
    payload, repairs = seen([user("?"), assistant(calls=[call("a")]), user("Well?"), result("a")])
    assert [wire["role"] for wire in payload] == ["user", "assistant", "tool", "user"]
    assert codes(repairs) == [("moved-result", 4)]


def test_parallel_calls_in_several_messages_get_their_results_one_by_one() -> None:
    calls = [assistant(calls=[call("a")]), assistant(calls=[call("b")])]
    payload, repairs = seen([user("?"), *calls, result("a"), result("b")])
    assert [wire["role"] for wire in payload] == ["user", "assistant", "tool", "assistant", "tool"]
    assert codes(repairs) == [("moved-result", 4)]


def test_an_orphan_result_becomes_a_user_message() -> None:
    payload, repairs = seen([user("?"), result("gone", "sunny")])
    assert payload[1] == {"role": "user", "content": "[result of a tool call (gone)]\nsunny"}
    assert codes(repairs) == [("orphan-result", 2)]


def test_an_empty_orphan_and_a_second_result_are_left_out() -> None:
    payload, repairs = seen([*turn()[:3], result("call_1", "again"), result("call_0"), result("gone", "")])
    assert [wire["content"] for wire in payload[2:]] == ["sunny", "sunny"]
    assert codes(repairs) == [("doubled-result", 4), ("orphan-result", 6)]


def test_an_id_that_comes_again_after_its_result_stays() -> None:
    payload, repairs = seen(turn() * 2)
    assert [wire["id"] for message in payload for wire in message.get("tool_calls", ())] == ["call_0", "call_1"] * 2
    assert [wire["tool_call_id"] for wire in payload if wire["role"] == "tool"] == ["call_1", "call_0"] * 2
    assert repairs == []


def test_two_calls_of_one_message_never_share_an_id() -> None:
    payload, repairs = seen([user("?"), assistant(calls=[call("a"), call("a")]), result("a"), result("a")])
    assert [wire["id"] for wire in payload[1]["tool_calls"]] == ["a", "a_2"]
    assert [wire["tool_call_id"] for wire in payload[2:]] == ["a", "a_2"]
    assert codes(repairs) == [("reused-id", 2)]


@pytest.mark.parametrize("source", [None, "openai-chat", "kosong/0.30"])
@pytest.mark.parametrize("arguments", ["", " \n"])
def test_a_call_without_arguments_has_an_empty_object(source: str | None, arguments: str) -> None:
    messages = [user("?"), assistant(calls=[call("a", arguments=arguments)], format=source), result("a")]
    payload, repairs = seen(messages)
    assert payload[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert repairs == [Repair("arguments", 2, "no arguments: written as {}")]


@pytest.mark.parametrize("source", [None, "openai-chat", "openai-responses"])
@pytest.mark.parametrize("arguments", ['{"city": "Tok', "[1]", "null"])
def test_arguments_that_are_no_object_are_written_as_anthropic_gets_them(source: str | None, arguments: str) -> None:
    messages = [user("?"), assistant(calls=[call("a", arguments=arguments)], format=source), result("a")]
    payload, repairs = seen(messages)
    anthropic, _ = model_view(get_codec("anthropic"), messages)
    assert json.loads(payload[1]["tool_calls"][0]["function"]["arguments"]) == {"_raw": arguments}
    assert anthropic.payload["messages"][1]["content"][0]["input"] == {"_raw": arguments}
    assert repairs == [Repair("arguments", 2, "arguments that are no JSON object: written as an object")]


def test_the_arguments_of_a_legacy_call_that_were_cut_off_are_an_object() -> None:
    payload, repairs = read(
        [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a'}},
            {"role": "function", "name": "f", "content": "1"},
        ]
    )
    assert json.loads(payload[0]["function_call"]["arguments"]) == {"_raw": '{"a'}
    assert codes(repairs) == [("arguments", 1)]


def test_the_text_of_a_custom_tool_that_becomes_a_function_is_an_object() -> None:
    custom = {"type": "custom", "custom": {"name": "f", "input": "SELECT 1"}}
    payload, repairs = read(
        [{"role": "assistant", "content": None, "tool_calls": [custom]}, {"role": "tool", "content": "1"}]
    )
    assert json.loads(payload[0]["tool_calls"][0]["function"]["arguments"]) == {"_raw": "SELECT 1"}
    assert codes(repairs) == [("arguments", 1), ("call-id", 1)]


def test_the_free_text_of_a_custom_tool_may_be_empty() -> None:
    custom = {"id": "a", "type": "custom", "custom": {"name": "f", "input": ""}}
    function = {"id": "b", "type": "function", "function": {"name": "f", "arguments": ""}}
    payload, repairs = read(
        [
            {"role": "assistant", "content": None, "tool_calls": [custom, function]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "b", "content": "1"},
        ]
    )
    assert payload[0]["tool_calls"] == [custom, {**function, "function": {"name": "f", "arguments": "{}"}}]
    assert codes(repairs) == [("arguments", 1)]


def test_a_custom_call_without_an_id_and_a_text_becomes_a_call_of_a_function() -> None:
    custom = {"type": "custom", "custom": {"name": "f", "input": ""}}
    payload, repairs = read(
        [{"role": "assistant", "content": None, "tool_calls": [custom]}, {"role": "tool", "content": "1"}]
    )
    assert payload[0]["tool_calls"] == [
        {"id": "call_1_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]
    assert codes(repairs) == [("arguments", 1), ("call-id", 1)]


def test_a_legacy_call_without_arguments_stays_one() -> None:
    payload, repairs = read(
        [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
            {"role": "function", "name": "f", "content": "1"},
        ]
    )
    assert payload[0] == {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    assert codes(repairs) == [("arguments", 1)]


def test_a_history_that_grows_keeps_the_beginning_that_it_had() -> None:
    longer, _ = seen(turn() * 3)
    shorter, _ = seen(turn() * 2)
    assert longer[: len(shorter)] == shorter


def test_a_long_id_is_cut_and_stays_unlike_the_others() -> None:
    ids = ["x" * 4_572 + tail for tail in ("a", "b")]
    payload, repairs = seen([assistant(calls=[call(id_) for id_ in ids]), *(result(id_) for id_ in ids)])
    assert [wire["id"] for wire in payload[0]["tool_calls"]] == ["x" * 32, "x" * 32 + "_2"]
    assert [wire["tool_call_id"] for wire in payload[1:]] == ["x" * 32, "x" * 32 + "_2"]
    assert codes(repairs) == [("call-id", 1), ("call-id", 1)]


def test_custom_and_partial_messages_are_left_out() -> None:
    messages = [user("?"), ChatMessage(role="custom", content="shown"), assistant("I am", state="partial")]
    payload, repairs = seen(messages)
    assert payload == [{"role": "user", "content": "?"}]
    assert codes(repairs) == [("custom", 2), ("partial", 3)]


def test_the_call_of_a_partial_message_takes_its_result_with_it() -> None:
    payload, repairs = seen([assistant(calls=[call("a")], state="partial"), result("a")])
    assert payload == [{"role": "user", "content": "[result of a tool call (a)]\nsunny"}]
    assert codes(repairs) == [("partial", 1), ("orphan-result", 2)]


def test_a_tool_name_is_spelled_in_letters_that_are_taken() -> None:
    payload, repairs = seen([assistant(calls=[call("a", "läuft es?")]), result("a")])
    assert payload[0]["tool_calls"][0]["function"]["name"] == "l_uft_es_"
    assert codes(repairs) == [("name", 1)]


def test_invalid_values_of_the_format_itself_are_repaired() -> None:
    payload, repairs = read(
        [
            {"role": "user", "content": None},
            {"role": "user", "content": "?", "name": "a <b>"},
            {"role": "narrator", "content": "Then"},
            {"role": "assistant", "content": "one", "tool_calls": []},
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}, "id": None}]},
            {"role": "tool", "content": "1"},
        ]
    )
    assert payload == [
        {"role": "user", "content": ""},
        {"role": "user", "content": "?"},
        {"role": "user", "content": "Then"},
        {"role": "assistant", "content": "one"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_5_0", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
        },
        {"role": "tool", "tool_call_id": "call_5_0", "content": "1"},
    ]
    assert codes(repairs) == [("empty", 1), ("name", 2), ("role", 3), ("empty", 4), ("arguments", 5), ("call-id", 5)]


def test_legacy_calls_and_results_need_no_ids() -> None:
    payload: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    ]
    assert read(payload) == (payload, [])


def test_an_open_legacy_call_gets_a_legacy_result() -> None:
    payload, repairs = read([{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}])
    assert payload[1:] == [{"role": "function", "name": "f", "content": "interrupted"}]
    assert codes(repairs) == [("open-call", 1)]


def test_a_refusal_is_content_enough() -> None:
    payload = [{"role": "assistant", "content": None, "refusal": "No."}]
    assert read(payload) == (payload, [])
