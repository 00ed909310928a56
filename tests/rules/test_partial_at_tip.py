"""R10: one partial message, at the tip."""

from __future__ import annotations

import pytest

from chatledger import ChatMessage, RuleViolation
from chatledger.models import RulesLevel
from chatledger.rules import Tip, judge
from tests.conversations import assistant, call, user
from tests.rules.folding import fold, tip_of, waiting

PARTIAL = assistant("Su", state="partial")
AT_TIP = tip_of(user("?"), PARTIAL)
DETAIL = "message 2 is still partial; complete or interrupt it before anything follows"


@pytest.mark.parametrize("level", ["strict", "ordered"])
def test_nothing_follows_a_partial_message_inside_a_batch(level: RulesLevel) -> None:
    with pytest.raises(RuleViolation) as caught:
        fold([user("?"), PARTIAL, user("?")], level=level)
    assert (caught.value.rule, caught.value.index, caught.value.detail) == ("R10", 2, DETAIL)


@pytest.mark.parametrize("level", ["lenient", "strict", "ordered"])
def test_a_partial_message_at_the_end_of_a_batch_is_kept(level: RulesLevel) -> None:
    judgement = fold([user("?"), PARTIAL], level=level)
    assert (judgement.messages[1].message, judgement.tip.partial_seq) == (PARTIAL, 2)


@pytest.mark.parametrize("level", ["lenient", "strict", "ordered"])
@pytest.mark.parametrize("following", [user("?"), PARTIAL, ChatMessage(role="custom")], ids=lambda m: m.role)
def test_a_batch_interrupts_the_partial_message_at_the_tip(level: RulesLevel, following: ChatMessage) -> None:
    judgement = fold([following], level=level, tip=AT_TIP)
    assert (judgement.interrupted, judgement.messages[0].violations, judgement.tip.last_seq) == (2, (), 3)


def test_interrupting_is_not_a_violation() -> None:
    judgement = fold([user("?"), assistant("!")], tip=AT_TIP)
    assert (judgement.interrupted, judgement.tip) == (2, Tip(4, "assistant"))
    assert [judged.violations for judged in judgement.messages] == [(), ()]


def test_lenient_stores_a_partial_message_inside_a_batch_as_interrupted() -> None:
    judgement = fold([user("?"), PARTIAL, user("?"), PARTIAL])
    states = [judged.message.state for judged in judgement.messages]
    assert (states, judgement.interrupted) == (["complete", "interrupted", "complete", "partial"], None)
    assert judgement.tip.partial_seq == 4


def test_a_stored_and_a_new_partial_message_are_both_cut_short() -> None:
    judgement = fold([PARTIAL, user("?")], tip=AT_TIP)
    assert (judgement.interrupted, judgement.messages[0].message.state) == (2, "interrupted")


def test_interrupting_alone_leaves_no_partial_message() -> None:
    judgement = judge(AT_TIP, [], branch=0, level="strict")
    assert (judgement.interrupted, judgement.messages, judgement.tip) == (2, [], Tip(2, "assistant"))


def test_interrupting_does_not_excuse_a_partial_message_of_the_batch() -> None:
    with pytest.raises(RuleViolation) as caught:
        judge(AT_TIP, [PARTIAL, user("?")], branch=0, level="strict")
    assert (caught.value.rule, caught.value.index) == ("R10", 1)


def test_interrupting_where_nothing_is_partial_changes_nothing() -> None:
    assert judge(tip_of(user("?")), [], branch=0, level="strict").interrupted is None


def test_the_calls_of_an_interrupted_message_stay_open() -> None:
    tip = tip_of(user("?"), assistant(calls=[call("a")], state="partial"))
    judgement = judge(tip, [], branch=0, level="strict")
    assert judgement.tip == Tip(2, "assistant", (waiting(2, 0, "a"),))
