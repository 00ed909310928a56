from __future__ import annotations

import json
from typing import Any

import pytest

from chatledger import ChatMessage, ThinkPart
from chatledger.formats import get_codec
from chatledger.formats.model_view import model_view
from tests.conversations import assistant, call, result, turn, user

CODEC = get_codec("openai-responses")

ASKED = {"role": "user", "content": "?"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}
CALLED = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"}
ANSWERED = {"type": "function_call_output", "call_id": "a", "output": "1"}


def seen(messages: list[ChatMessage]) -> tuple[Any, list[tuple[str, int | None]]]:
    numbered = [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]
    encoded, repairs = model_view(CODEC, numbered)
    return encoded.payload, [(repair.code, repair.seq) for repair in repairs]


def read(*items: dict[str, Any]) -> tuple[Any, list[tuple[str, int | None]]]:
    return seen(CODEC.decode(list(items), rules="lenient").messages)


def test_a_valid_history_is_written_as_it_is_stored() -> None:
    assert seen(turn()) == (CODEC.encode(turn()).payload, [])
    items: list[dict[str, Any]] = [ASKED, THOUGHT, CALLED, ANSWERED]
    assert read(*items) == (items, [])


def test_an_open_call_is_answered_and_keeps_its_reasoning() -> None:
    payload, repairs = read(ASKED, THOUGHT, CALLED)
    assert payload == [ASKED, THOUGHT, CALLED, {**ANSWERED, "output": "interrupted"}]
    assert repairs == [("open-call", 2)]


def test_a_custom_call_gets_a_custom_output() -> None:
    custom = {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "x"}
    payload, _ = read(ASKED, custom)
    assert payload[2] == {"type": "custom_tool_call_output", "call_id": "a", "output": "interrupted"}
    payload, _ = read(ASKED, custom, {"type": "function_call_output", "call_id": "a", "output": "1"})
    assert payload[2] == {"type": "custom_tool_call_output", "call_id": "a", "output": "1"}


@pytest.mark.parametrize("source", [None, "anthropic", "openai-chat"])
def test_reasoning_of_other_origin_is_left_out(source: str | None) -> None:
    thoughts: list[Any] = [ThinkPart(text="hm", signature="sig")]
    payload, repairs = seen([user("?"), assistant("a", reasoning=thoughts, format=source), user("?")])
    assert payload == [ASKED, {"role": "assistant", "content": "a"}, ASKED]
    assert repairs == [("reasoning", 2)]


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    payload, repairs = read(ASKED, THOUGHT, {"role": "assistant", "content": "mine"}, ASKED, THOUGHT)
    assert payload == [ASKED, {"role": "assistant", "content": "mine"}, ASKED]
    assert repairs == [("reasoning", 2), ("reasoning", 4)]


def test_a_repeated_item_is_written_without_its_id() -> None:
    payload, repairs = read(ASKED, THOUGHT, CALLED, ANSWERED, THOUGHT, CALLED, ANSWERED)
    assert [item.get("type", "message") for item in payload] == [
        *("message", "reasoning", "function_call", "function_call_output"),
        *("function_call", "function_call_output"),
    ]
    assert [item["call_id"] for item in payload[2:] if "call_id" in item] == ["a", "a", "a_2", "a_2"]
    assert "id" not in payload[4]
    assert repairs == [("reused-id", 4), ("reused-id", 4)]


def test_ids_of_other_providers_are_cut() -> None:
    payload, repairs = seen([user("?"), assistant(calls=[call("x" * 65)]), result("x" * 65)])
    assert [item["call_id"] for item in payload[1:]] == ["x" * 32] * 2
    assert repairs == [("call-id", 2)]


def test_a_message_without_content_is_written_as_empty_text() -> None:
    payload, repairs = read({"role": "user", "content": None}, CALLED, {**ANSWERED, "output": None})
    assert (payload[0]["content"], payload[2]["output"]) == ("", "")
    assert repairs == [("empty", 1), ("empty", 3)]


def test_arguments_are_written_as_text() -> None:
    payload, repairs = read(ASKED, {**CALLED, "arguments": {"a": 1}}, ANSWERED)
    assert payload[1]["arguments"] == '{"a":1}'
    assert repairs == [("arguments", 2)]


@pytest.mark.parametrize("source", [None, "openai-responses", "anthropic"])
def test_a_call_without_arguments_has_an_empty_object(source: str | None) -> None:
    payload, repairs = seen([user("?"), assistant(calls=[call("a", arguments="")], format=source), result("a")])
    assert payload[1]["arguments"] == "{}"
    assert repairs == [("arguments", 2)]


@pytest.mark.parametrize("source", [None, "openai-responses", "anthropic"])
@pytest.mark.parametrize("arguments", ['{"city": "Tok', "[1]", "null"])
def test_arguments_that_are_no_object_are_written_as_anthropic_gets_them(source: str | None, arguments: str) -> None:
    messages = [user("?"), assistant(calls=[call("a", arguments=arguments)], format=source), result("a")]
    payload, repairs = seen(messages)
    assert json.loads(payload[1]["arguments"]) == {"_raw": arguments}
    assert repairs == [("arguments", 2)]


def test_an_item_whose_arguments_were_cut_off_keeps_its_id_and_its_reasoning() -> None:
    payload, repairs = read(ASKED, THOUGHT, {**CALLED, "arguments": '{"a'}, ANSWERED)
    assert payload == [ASKED, THOUGHT, {**CALLED, "arguments": '{"_raw":"{\\"a"}'}, ANSWERED]
    assert repairs == [("arguments", 2)]


def test_an_item_without_arguments_keeps_its_id_and_its_reasoning() -> None:
    payload, repairs = read(ASKED, THOUGHT, {**CALLED, "arguments": ""}, ANSWERED)
    assert payload == [ASKED, THOUGHT, CALLED, ANSWERED]
    assert repairs == [("arguments", 2)]


def test_the_free_text_of_a_custom_tool_may_be_empty() -> None:
    custom = {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": ""}
    items = [ASKED, custom, {"type": "custom_tool_call_output", "call_id": "a", "output": "1"}]
    assert read(*items) == (items, [])


def test_a_rewritten_custom_call_has_an_object() -> None:
    without_id = {"type": "custom_tool_call", "name": "f", "input": ""}
    payload, repairs = read(ASKED, without_id)
    assert payload[1] == {"type": "function_call", "call_id": "call_2_0", "name": "f", "arguments": "{}"}
    assert repairs == [("open-call", 2), ("arguments", 2), ("call-id", 2)]
    twice = {**without_id, "id": "ctc_1", "call_id": "a"}
    output = {"type": "custom_tool_call_output", "call_id": "a", "output": "1"}
    payload, repairs = read(ASKED, twice, output, twice, output)
    assert payload[3] == {"type": "function_call", "call_id": "a_2", "name": "f", "arguments": "{}"}
    said = {**twice, "input": "SELECT 1"}
    payload, _ = read(ASKED, said, output, said, output)
    assert json.loads(payload[3]["arguments"]) == {"_raw": "SELECT 1"}
    assert ("reused-id", 4) in repairs


def test_an_output_that_loses_its_only_part_is_empty_text() -> None:
    output = {"type": "function_call_output", "call_id": None, "output": [{"type": "input_image"}]}
    payload, repairs = read({"type": "function_call", "name": "f", "arguments": "{}"}, output)
    assert payload[1] == {"type": "function_call_output", "call_id": "call_1_0", "output": ""}
    assert repairs == [("call-id", 1), ("empty", 2)]


def test_an_id_that_comes_again_is_replaced_on_the_call_and_its_result() -> None:
    payload, repairs = seen(turn() * 2)
    calls = [item["call_id"] for item in payload if item.get("type") == "function_call"]
    assert calls == ["call_0", "call_1", "call_0_2", "call_1_2"]
    assert repairs == [("reused-id", 7), ("reused-id", 7)]
