from __future__ import annotations

from typing import Any

import pytest

from chatledger import ChatMessage, TextPart, ThinkPart
from chatledger.formats import get_codec
from chatledger.formats.model_view import model_view
from chatledger.types import Repair
from tests.conversations import assistant, call, result, turn, user

CODEC = get_codec("anthropic")
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "sig"}


def seen(messages: list[ChatMessage]) -> tuple[Any, list[tuple[str, int | None]]]:
    numbered = [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]
    encoded, repairs = model_view(CODEC, numbered)
    return encoded.payload, [(repair.code, repair.seq) for repair in repairs]


def read(*messages: dict[str, Any], **around: Any) -> tuple[Any, list[tuple[str, int | None]]]:
    return seen(CODEC.decode({**around, "messages": list(messages)}, rules="lenient").messages)


def spoken(payload: Any) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in payload["messages"]]


def test_a_valid_history_is_written_as_it_is_stored() -> None:
    assert seen([ChatMessage(role="system", content="Be brief."), *turn()])[1] == []
    own = {"role": "assistant", "content": [SIGNED, {"type": "text", "text": "Tokyo", "cache_control": {"type": "x"}}]}
    payload, repairs = read({"role": "user", "content": "?"}, own, system="Be brief.")
    assert (payload, repairs) == ({"system": "Be brief.", "messages": [{"role": "user", "content": "?"}, own]}, [])


@pytest.mark.parametrize("source", [None, "kosong/0.30", "openai-responses"])
def test_reasoning_that_another_provider_signed_is_left_out(source: str | None) -> None:
    thought = [ThinkPart(text="hm", signature="sig")]
    by_field = assistant("a", reasoning=thought, format=source)
    by_part = assistant([*thought, TextPart(text="b")], format=source)  # type: ignore[arg-type]
    payload, repairs = seen([user("?"), by_field, user("?"), by_part])
    assert "thinking" not in str(payload)
    assert repairs == [("reasoning", 2), ("reasoning", 4)]


def test_thinking_without_a_signature_and_at_the_end_is_left_out() -> None:
    unsigned = {"type": "thinking", "thinking": "hm"}
    payload, repairs = read(
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [unsigned, {"type": "text", "text": "a"}, SIGNED]},
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [SIGNED]},
        {"role": "user", "content": "!"},
    )
    assert spoken(payload)[1] == ("assistant", [{"type": "text", "text": "a"}])
    assert repairs == [("reasoning", 2), ("reasoning", 2), ("reasoning", 4), ("empty", 4), ("merged", 5)]


def test_instructions_in_the_middle_are_placed_before_all() -> None:
    late = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="developer", content="Be kind.")]
    payload, repairs = seen([user("?"), assistant("!"), *late, user("?")])
    assert [block["text"] for block in payload["system"]] == ["Be brief.", "Be kind."]
    assert [role for role, _ in spoken(payload)] == ["user", "assistant", "user"]
    assert repairs == [("system", 3), ("system", 4)]


def test_instructions_that_came_among_the_messages_stay_there() -> None:
    late = {"role": "system", "content": "Be kind."}
    payload, repairs = read({"role": "user", "content": "?"}, late, {"role": "assistant", "content": "!"})
    assert (payload["messages"][1], repairs) == (late, [])


def test_messages_of_one_role_become_one() -> None:
    messages = [user("a"), user("b"), assistant("c"), assistant("d", calls=[call("x")]), result("x"), user("e")]
    payload, repairs = seen([*messages, user("f")])
    said = [(role, [block.get("text", block["type"]) for block in content]) for role, content in spoken(payload)]
    assert said == [
        ("user", ["a", "b"]),
        ("assistant", ["c", "d", "tool_use"]),
        ("user", ["tool_result", "e", "f"]),
    ]
    assert repairs == [("merged", 2), ("merged", 4), ("merged", 7)]


def test_joined_messages_keep_their_residuals() -> None:
    first = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    second = {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    payload, repairs = read({"role": "user", "content": [first]}, {"role": "user", "content": [second]})
    assert (spoken(payload), repairs) == ([("user", [first, second])], [("merged", 2)])


def test_results_in_several_messages_become_one_with_what_follows() -> None:
    uses = [{"type": "tool_use", "id": id_, "name": "f", "input": {}} for id_ in "ab"]
    results = [{"type": "tool_result", "tool_use_id": id_, "content": "1"} for id_ in "ab"]
    said = {"type": "text", "text": "Well?"}
    payload, repairs = read(
        {"role": "assistant", "content": uses},
        {"role": "user", "content": [said, results[0]]},
        {"role": "user", "content": [results[1]]},
    )
    assert spoken(payload)[1:] == [("user", [*results, said])]
    assert ("moved-result", 4) in repairs


def test_an_open_call_is_answered_before_what_the_user_says() -> None:
    payload, repairs = seen([user("?"), assistant(calls=[call("a"), call("b")]), result("b"), user("Well?")])
    [*_, (role, blocks)] = spoken(payload)
    assert [block.get("tool_use_id", block.get("text")) for block in blocks] == ["b", "a", "Well?"]
    assert (role, blocks[1]["is_error"], repairs) == ("user", True, [("open-call", 2)])


def test_ids_are_spelled_in_letters_that_are_taken() -> None:
    ids = ["f:0", "f.0", "f_0"]
    payload, repairs = seen([user("?"), assistant(calls=[call(id_) for id_ in ids]), *(result(id_) for id_ in ids)])
    assert [block["id"] for block in spoken(payload)[1][1]] == ["f_0", "f_0_2", "f_0_3"]
    assert [block["tool_use_id"] for block in spoken(payload)[2][1]] == ["f_0", "f_0_2", "f_0_3"]
    assert repairs == [("call-id", 2), ("call-id", 2), ("reused-id", 2)]


def test_texts_without_a_word_are_left_out() -> None:
    payload, repairs = read(
        {"role": "user", "content": " "},
        {"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "a"}]},
        {"role": "user", "content": ""},
    )
    assert spoken(payload) == [("assistant", [{"type": "text", "text": "a"}])]
    assert repairs == [("empty", 1), ("empty", 2), ("empty", 3)]


def test_white_space_at_the_end_of_the_last_message_is_left_out() -> None:
    payload, repairs = seen([user("? "), assistant("one\n"), user("? "), assistant("two \n")])
    assert [content for _, content in spoken(payload)] == ["? ", "one\n", "? ", "two"]
    assert repairs == [("space", 4)]


def test_an_input_that_is_not_an_object_is_written_as_one() -> None:
    cut_off = {"type": "tool_use", "id": "a", "name": "f", "input": '{"city": "Tok'}
    payload, repairs = read({"role": "assistant", "content": [cut_off]})
    assert spoken(payload)[0][1] == [{**cut_off, "input": {"_raw": '{"city": "Tok'}}]
    assert repairs == [("open-call", 1), ("arguments", 1)]


@pytest.mark.parametrize("source", [None, "openai-chat", "anthropic"])
def test_a_call_without_arguments_has_an_empty_input(source: str | None) -> None:
    payload, repairs = seen([user("?"), assistant(calls=[call("a", arguments="")], format=source), result("a")])
    assert spoken(payload)[1][1][0]["input"] == {}
    assert repairs == ([("arguments", 2)] if source == "anthropic" else [])


@pytest.mark.parametrize("arguments", ['{"city": "Tok', "[1]", "null"])
def test_arguments_of_another_format_that_are_not_an_object_are_a_repair(arguments: str) -> None:
    messages = [user("?"), assistant(calls=[call("a", arguments="{}"), call("b", arguments=arguments)])]
    payload, repairs = seen([*messages, result("a"), result("b")])
    assert [block["input"] for block in spoken(payload)[1][1]] == [{}, {"_raw": arguments}]
    assert repairs == [("arguments", 2)]


def test_a_repair_says_what_was_done() -> None:
    _, repairs = model_view(CODEC, [user("?", seq=7), user("!", seq=8)])
    assert repairs == [Repair("merged", 8, "a second user message in a row: joined with the first")]
