"""The rules on decoded conversations, most of which the real agent produced with a scripted model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from chatledger.errors import DecodeError, RuleViolation
from chatledger.formats.qwen_agent import CODEC
from chatledger.models import RulesLevel, Violation
from chatledger.models.json import same_json
from chatledger.rules import Judgement, Tip, judge

Conversation = Callable[[str], list[dict[str, Any]]]


def judged(payload: list[dict[str, Any]], level: RulesLevel = "strict") -> Judgement:
    return judge(Tip(), CODEC.decode(payload, rules=level).messages, branch=0, level=level)


def answered(judgement: Judgement) -> list[tuple[int, int]]:
    """The seq of each result with that of the call it answers."""
    return [(one.seq, one.answers.seq) for one in judgement.messages if one.answers is not None]


def call(name: str, id_: str | None) -> dict[str, Any]:
    row = {"role": "assistant", "content": "", "function_call": {"name": name, "arguments": "{}"}}
    return row if id_ is None else {**row, "extra": {"function_id": id_}}


def result(name: str, id_: str | None) -> dict[str, Any]:
    row = {"role": "function", "content": name, "name": name}
    return row if id_ is None else {**row, "extra": {"function_id": id_}}


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("parallel_calls", [(6, 4), (7, 5)]),
        ("ids_that_repeat", [(3, 2), (5, 4)]),
        ("broken_arguments", [(3, 2)]),
        ("calls_without_ids", [(4, 2), (5, 3)]),
    ],
)
def test_strict_accepts_what_the_real_agent_emits(
    name: str, pairs: list[tuple[int, int]], conversation: Conversation
) -> None:
    judgement = judged(conversation(name))
    assert answered(judgement) == pairs
    assert judgement.tip.open_calls == ()


EMITTED = ["parallel_calls", "ids_that_repeat", "broken_arguments", "calls_without_ids"]


@pytest.mark.parametrize(("name", "rules"), [("nameless_call", "lenient"), *product(EMITTED, ["strict", "lenient"])])
def test_messages_of_the_real_agent_come_back(name: str, rules: RulesLevel, conversation: Conversation) -> None:
    payload = conversation(name)
    assert same_json(CODEC.encode(CODEC.decode(payload, rules=rules).messages).payload, payload)


def test_broken_arguments_are_recorded(conversation: Conversation) -> None:
    judgement = judged(conversation("broken_arguments"))
    violation = Violation(rule="R9", detail="the arguments of tool call 0 (get_weather) are not JSON")
    assert [one.violations for one in judgement.messages] == [(), (violation,), (), ()]


def test_a_nameless_call_is_refused_and_imported_as_an_orphan_result(conversation: Conversation) -> None:
    payload = conversation("nameless_call")
    with pytest.raises(DecodeError) as caught:
        judged(payload)
    assert caught.value.path == "[1].function_call.name"
    judgement = judged(payload, "lenient")
    assert [[violation.rule for violation in one.violations] for one in judgement.messages] == [[], [], ["R6"], []]


def test_parallel_calls_without_ids_are_answered_by_name_and_order() -> None:
    payload = [call("f", None), call("g", None), call("f", None), result("g", None), result("f", None)]
    judgement = judged([*payload, result("f", None)])
    assert answered(judgement) == [(4, 2), (5, 1), (6, 3)]


def test_parallel_calls_of_one_id_are_refused_and_imported_with_a_record() -> None:
    payload = [call("f", "1"), call("g", "1"), result("f", "1"), result("g", "1")]
    with pytest.raises(RuleViolation) as caught:
        judged(payload)
    assert (caught.value.rule, caught.value.index) == ("R5", 1)
    judgement = judged(payload, "lenient")
    assert [[violation.rule for violation in one.violations] for one in judgement.messages] == [[], ["R5"], [], []]
    assert judgement.tip.open_calls == ()


def test_a_result_of_the_default_id_keeps_it_where_a_call_has_it() -> None:
    payload = [call("f", None), call("g", "1"), result("g", "1"), result("f", "1")]
    messages = CODEC.decode(payload).messages
    assert [message.tool_call_id for message in messages] == [None, None, "1", None]
    assert answered(judged(payload)) == [(3, 2), (4, 1)]


def test_a_result_of_the_default_id_alone_keeps_it() -> None:
    assert CODEC.decode([result("f", "1")]).messages[0].tool_call_id == "1"


def test_reasoning_content_and_calls_are_one_turn() -> None:
    reasoning = {"role": "assistant", "content": "", "reasoning_content": "because"}
    spoken = {"role": "assistant", "content": "Looking."}
    payload = [{"role": "user", "content": "?"}, reasoning, spoken, call("f", "1"), spoken, result("f", "1"), spoken]
    judgement = judge(Tip(), CODEC.decode(payload).messages, branch=0, level="ordered")
    assert answered(judgement) == [(6, 4)]


def test_a_second_result_and_an_orphan_are_refused() -> None:
    for payload, rule in (
        ([call("f", "a"), result("f", "a"), result("f", "a")], "R7"),
        ([result("f", "a")], "R6"),
    ):
        with pytest.raises(RuleViolation) as caught:
            judged(payload)
        assert caught.value.rule == rule
