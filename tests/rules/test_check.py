"""Judging a whole branch."""

from __future__ import annotations

from chatledger import ChatMessage
from chatledger.models import LENIENT
from chatledger.rules import Finding, check_messages
from tests.conversations import assistant, call, result, turn, user


def at(seq: int, message: ChatMessage) -> ChatMessage:
    return message.model_copy(update={"seq": seq, "branch": 0})


def test_a_good_branch_has_no_findings() -> None:
    assert check_messages([*turn(), *turn()]) == []


def test_an_empty_branch_has_no_findings() -> None:
    assert check_messages([]) == []


def test_calls_that_wait_are_open_not_broken() -> None:
    findings = check_messages([user("?"), assistant(calls=[call("a"), call("b", "time")]), result("a")])
    assert findings == [Finding(2, "R6", "call 1 (time) has no result", open=True)]


def test_a_partial_message_at_the_end_is_open_not_broken() -> None:
    findings = check_messages([user("?"), assistant("Su", state="partial")])
    assert findings == [Finding(2, "R10", "partial: still being written, or abandoned", open=True)]


def test_a_partial_message_inside_is_broken() -> None:
    assert check_messages([user("?"), assistant("Su", state="partial"), user("?")]) == [
        Finding(2, "R10", "partial, but not the last message of the branch")
    ]


def test_an_interrupted_message_is_fine() -> None:
    assert check_messages([user("?"), assistant("Su", state="interrupted"), user("?")]) == []


def test_disorder_is_reported() -> None:
    system = ChatMessage(role="system")
    assert check_messages([user("?"), user("?"), system, system]) == [
        Finding(2, "R13", "two user messages in a row"),
        Finding(3, "R13", "a system message after the conversation began"),
        Finding(4, "R13", "a system message after the conversation began"),
    ]


def test_arguments_that_are_not_json_are_kept_by_one_rule_and_refused_by_another() -> None:
    detail = "the arguments of tool call 0 (weather) are not JSON"
    findings = check_messages([assistant(calls=[call("a", arguments="{")]), result("a")])
    assert findings == [Finding(1, "R9", detail)]


def test_a_gap_is_reported_once() -> None:
    messages = [at(1, user("?")), at(4, assistant("!")), at(5, user("?"))]
    assert check_messages(messages) == [Finding(4, "R2", "seq 4 follows seq 1")]


def test_a_duplicate_seq_is_reported() -> None:
    assert check_messages([at(1, user("?")), at(1, assistant("!"))]) == [Finding(1, "R2", "seq 1 follows seq 1")]


def test_an_unknown_role_is_reported() -> None:
    bot = ChatMessage.model_validate({"role": "bot"}, context=LENIENT)
    assert check_messages([user("?"), bot]) == [Finding(2, "R3", "unknown role 'bot'")]


def test_findings_are_in_order_of_seq() -> None:
    findings = check_messages([assistant(calls=[call("a")]), user("?"), user("?")])
    assert [(finding.seq, finding.rule) for finding in findings] == [(1, "R6"), (2, "R8"), (3, "R8"), (3, "R13")]


def test_any_iterable_will_do() -> None:
    assert check_messages(iter(turn())) == []
