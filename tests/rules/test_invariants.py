"""R3 to R9 and R13, one message at a time: what each level does with it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from chatledger import ChatMessage, RuleViolation
from chatledger.models import LENIENT, RulesLevel
from chatledger.types import Violation
from tests.conversations import assistant, call, result, turn, user
from tests.rules.folding import broken, fold, tip_of


@dataclass(frozen=True)
class Case:
    """A message after others; the records that lenient keeps; the rules for which the other levels refuse it."""

    name: str
    before: list[ChatMessage]
    message: ChatMessage
    records: tuple[Violation, ...] = ()
    strict: str | None = None
    ordered: str | None = None


def custom(**fields: object) -> ChatMessage:
    return ChatMessage(role="custom", **fields)


def system(text: str = "Be brief.") -> ChatMessage:
    return ChatMessage(role="system", content=text)


def of_role(role: str) -> ChatMessage:
    return ChatMessage.model_validate({"role": role, "content": "?"}, context=LENIENT)


def refused(name: str, before: list[ChatMessage], message: ChatMessage, *records: Violation) -> Case:
    return Case(name, before, message, records, strict=records[0].rule, ordered=records[0].rule)


def kept(name: str, before: list[ChatMessage], message: ChatMessage) -> Case:
    return Case(name, before, message)


def only_ordered(name: str, before: list[ChatMessage], message: ChatMessage, *records: Violation) -> Case:
    return Case(name, before, message, records, ordered="R13")


ASKED = [user("?"), assistant(calls=[call("a"), call("b")], run_id="r")]
HALF = [*ASKED, result("a")]
ANSWERED = [*HALF, result("b")]
WAITING = "while calls wait for results: weather ('a'), weather ('b')"
TWICE = assistant(calls=[call("a"), call("a")])

CASES = [
    # R3
    refused("an unknown role", [], of_role("human"), broken("R3", "unknown role 'human'")),
    kept("a developer message", [], of_role("developer")),
    # R4
    refused(
        "a user's calls",
        [],
        ChatMessage(role="user", tool_calls=[call("a")]),
        broken("R4", "tool calls on a message of role 'user'"),
    ),
    refused(
        "a call id on an assistant message",
        [user("?")],
        assistant("!", tool_call_id="a"),
        broken("R4", "a tool_call_id on a message of role 'assistant'"),
    ),
    refused(
        "a custom message's calls",
        [user("?")],
        custom(tool_calls=[call("a")]),
        broken("R4", "tool calls on a message of role 'custom'"),
    ),
    kept("a user's empty list of calls", [], ChatMessage(role="user", tool_calls=[])),
    # R5
    refused("an id twice in a message", [user("?")], TWICE, broken("R5", "call id 'a' occurs twice in one message")),
    refused(
        "an id that is open still",
        ASKED,
        assistant(calls=[call("b")], run_id="r"),
        broken("R5", "call id 'b' is still open"),
    ),
    kept("an id that was answered before", turn(), assistant(calls=[call("call_0")])),
    kept("two calls without an id", [user("?")], assistant(calls=[call(None), call(None)])),
    kept("an empty id", [user("?")], assistant(calls=[call("")])),
    # R6
    refused(
        "a result without any call",
        [user("?")],
        result("a"),
        broken("R6", "a tool result with id 'a', but no call is open"),
    ),
    refused(
        "a result of another call",
        ASKED,
        result("c"),
        broken("R6", "a tool result with id 'c', but no open call has it"),
    ),
    refused(
        "a result of another name",
        ASKED,
        result(None, name="time"),
        broken("R6", "a tool result with name 'time', but no open call has it"),
    ),
    refused(
        "a result of a call of an earlier turn",
        turn(),
        result("call_0"),
        broken("R6", "a tool result with id 'call_0', but no call is open"),
    ),
    kept("a result in another order", ASKED, result("b")),
    kept("a failed result", ASKED, result("b", is_error=True)),
    # R7
    refused(
        "a second result while others are open",
        HALF,
        result("a"),
        broken("R7", "the call with id 'a' already has its result"),
    ),
    refused(
        "a second result when the group is closed",
        ANSWERED,
        result("a"),
        broken("R7", "the call with id 'a' already has its result"),
    ),
    refused(
        "a second result after a custom message",
        [*ANSWERED, custom()],
        result("b"),
        broken("R7", "the call with id 'b' already has its result"),
    ),
    # R8
    refused("a user while calls are open", ASKED, user("?"), broken("R8", f"a user message {WAITING}")),
    refused(
        "a system message while calls are open",
        ASKED,
        system(),
        broken("R8", f"a system message {WAITING}"),
    ),
    refused(
        "the assistant of another run",
        ASKED,
        assistant("!", run_id="s"),
        broken("R8", f"an assistant message {WAITING}"),
    ),
    refused(
        "the assistant after the first result",
        HALF,
        assistant("!", run_id="r"),
        broken("R8", "an assistant message while calls wait for results: weather ('b')"),
    ),
    refused(
        "the assistant after a user who did not wait",
        [user("?"), assistant(calls=[call("a"), call("b")]), user("?")],
        assistant("!"),
        broken("R8", f"an assistant message {WAITING}"),
    ),
    refused(
        "the assistant going on after the first result, once more",
        [*HALF, assistant("!", run_id="r")],
        assistant("!", run_id="r"),
        broken("R8", "an assistant message while calls wait for results: weather ('b')"),
    ),
    kept("the assistant going on before the first result", ASKED, assistant("!", run_id="r")),
    kept("the assistant going on with another call", ASKED, assistant(calls=[call("c")], run_id="r")),
    kept("a custom message while calls are open", ASKED, custom()),
    kept("a custom message among the results", HALF, custom(custom_data={"progress": 0.5})),
    kept("the assistant going on after a custom message", [*ASKED, custom()], assistant("!", run_id="r")),
    kept("an answer when all is answered", ANSWERED, assistant("!", run_id="r")),
    # R9, and R13 of the arguments
    only_ordered(
        "arguments that are not JSON",
        [user("?")],
        assistant(calls=[call("a", arguments="{'city': 'Lima'}")]),
        broken("R9", "the arguments of tool call 0 (weather) are not JSON"),
    ),
    only_ordered(
        "arguments that are empty",
        [user("?")],
        assistant(calls=[call("a"), call("b", arguments="")]),
        broken("R9", "the arguments of tool call 1 (weather) are not JSON"),
    ),
    only_ordered(
        "arguments that are nested beyond reading",
        [user("?")],
        assistant(calls=[call("a", arguments="[" * 100_000)]),
        broken("R9", "the arguments of tool call 0 (weather) are not JSON"),
    ),
    kept("no arguments", [user("?")], assistant(calls=[call("a", arguments=None)])),
    kept("an object as arguments", [user("?")], assistant(calls=[call("a", arguments={"city": "Lima"})])),
    kept("arguments with a key twice", [user("?")], assistant(calls=[call("a", arguments='{"a":1,"a":2}')])),
    kept("arguments with a long number", [user("?")], assistant(calls=[call("a", arguments="1" * 5_000)])),
    # R13
    only_ordered("two users in a row", [user("?")], user("?")),
    only_ordered("two users around a custom message", [user("?"), custom()], user("?")),
    only_ordered("two users around a system message", [user("?"), system()], user("?")),
    only_ordered("a late system message", [user("?"), assistant("!")], system()),
    only_ordered("a late developer message", [user("?")], of_role("developer")),
    only_ordered("a late system message after another", [user("?"), system()], system()),
    kept("two system messages at the beginning", [system()], system()),
    kept("a system message after a custom one", [custom()], system()),
    kept("two assistant messages in a row", [user("?"), assistant("!")], assistant("!", run_id="s")),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_lenient_keeps_with_records(case: Case) -> None:
    judged = fold([case.message], tip=tip_of(*case.before)).messages[0]
    assert (judged.message, judged.seq, judged.violations) == (case.message, len(case.before) + 1, case.records)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_strict_refuses_what_breaks_a_rule(case: Case) -> None:
    assert refusal(case, "strict") == (case.strict and (case.strict, 1, case.records[0].detail))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ordered_refuses_disorder_as_well(case: Case) -> None:
    rule, index, _ = refusal(case, "ordered") or (None, None, None)
    assert (rule, index) == (case.ordered, case.ordered and 1)


def refusal(case: Case, level: RulesLevel) -> tuple[str, int, str] | None:
    """What the message is refused for, second in its batch: after a custom message, which moves nothing."""
    try:
        fold([custom(), case.message], level=level, tip=tip_of(*case.before))
    except RuleViolation as violation:
        return violation.rule, violation.index, violation.detail
    return None


@pytest.mark.parametrize("level", ["lenient", "strict", "ordered"])
def test_a_call_with_an_empty_name_is_refused_at_every_level(level: RulesLevel) -> None:
    with pytest.raises(RuleViolation) as caught:
        fold([user("?"), assistant(calls=[call("a"), call("b", "")])], level=level)
    violation = caught.value
    assert (violation.rule, violation.index, violation.detail) == ("R9", 1, "tool call 1 has an empty name")


def test_a_message_that_breaks_several_rules_is_kept_with_a_record_of_each() -> None:
    message = ChatMessage.model_validate(
        {"role": "bot", "tool_calls": [{"id": "a", "name": "f", "arguments": "?"}], "tool_call_id": "x"},
        context=LENIENT,
    )
    judged = fold([message], tip=tip_of(*ASKED)).messages[0]
    assert [violation.rule for violation in judged.violations] == ["R3", "R4", "R4", "R5", "R8", "R9"]


def test_a_long_id_is_shortened_in_a_record() -> None:
    judged = fold([user("?"), assistant(calls=[call("x" * 4_572)] * 2)]).messages[1]
    assert judged.violations == (broken("R5", f"call id '{'x' * 57}…' occurs twice in one message"),)
