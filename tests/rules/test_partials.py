"""A partial message that grows and is completed leaves what an append of the whole would have left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger import ChatMessage, RuleViolation
from chatledger.models import RulesLevel
from chatledger.rules import Lease, Tip, Writer, close_interrupted, complete, grow, interrupted, judge
from chatledger.types import Violation
from tests.conversations import assistant, call, result, user
from tests.rules.folding import open_places, tip_of, waiting
from tests.rules.test_properties import LISTS, messages, stored

WHOLE = messages().map(lambda message: message.model_copy(update={"state": "complete"}))


def in_one(tip: Tip, whole: ChatMessage, level: RulesLevel) -> tuple[Tip, tuple[Violation, ...]] | str:
    try:
        judgement = judge(tip, [whole], branch=0, level=level)
    except RuleViolation as violation:
        return violation.rule
    return judgement.tip, judgement.messages[0].violations


def by_pieces(tip: Tip, whole: ChatMessage, calls: int, level: RulesLevel) -> tuple[Tip, tuple[Violation, ...]] | str:
    begun = whole.model_copy(update={"state": "partial", "tool_calls": (whole.tool_calls or [])[:calls] or None})
    try:
        opened = judge(tip, [begun], branch=0, level=level)
        grown = stored(grow(stored(opened.tip), whole, branch=0))
        return complete(grown, whole, branch=0, level=level, opened=opened.messages[0].violations)
    except RuleViolation as violation:
        return violation.rule


@settings(max_examples=300)
@given(LISTS, WHOLE, st.integers(0, 3), st.sampled_from(["lenient", "strict", "ordered"]))
def test_completing_is_appending_the_whole(
    before: list[ChatMessage], whole: ChatMessage, calls: int, level: RulesLevel
) -> None:
    tip = interrupted(tip_of(*before))
    in_pieces, at_once = by_pieces(tip, whole, calls, level), in_one(tip, whole, level)
    if isinstance(at_once, str):  # which rule comes first may differ: the place is judged before there is anything else
        assert isinstance(in_pieces, str)
    else:
        assert in_pieces == at_once


def test_the_calls_of_a_partial_message_are_not_open() -> None:
    tip = tip_of(user("?"), assistant(calls=[call("a")], state="partial", run_id="r"))
    assert tip == Tip(2, "assistant", turn_run="r", partial_seq=2, partial_calls=(waiting(2, 0, "a"),))
    assert interrupted(tip) == Tip(2, "assistant", (waiting(2, 0, "a"),), turn_run="r")


def test_interrupting_answers_the_calls_of_the_partial_message_alone() -> None:
    begun = [
        user("?"),
        assistant(calls=[call("a")], run_id="r"),
        assistant(calls=[call("b")], state="partial", run_id="r"),
    ]
    index, results = close_interrupted(tip_of(*begun), [user("next")])
    assert (index, [(one.tool_call_id, one.state, one.run_id) for one in results]) == (0, [("b", "synthetic", "r")])


def test_interrupting_counts_the_results_that_the_batch_brings() -> None:
    tip = tip_of(user("?"), assistant(calls=[call("a"), call("b")], state="partial"))
    batch = [result("a"), ChatMessage(role="custom"), user("next")]
    index, results = close_interrupted(tip, batch)
    assert (index, [one.tool_call_id for one in results]) == (2, ["b"])
    after = judge(tip, [*batch[:2], *results, *batch[2:]], branch=0, level="strict")
    assert (open_places(after.tip), after.interrupted) == ([], 2)


@pytest.mark.parametrize(("seconds", "held"), [(0, True), (9.9, True), (10, False), (-9.9, True), (-10, False)])
def test_a_lease_holds_for_its_seconds_and_not_from_the_future(seconds: float, held: bool) -> None:
    written = datetime(2026, 1, 1, tzinfo=UTC)
    assert Lease(written, 10.0, None, written + timedelta(seconds=seconds)).holds is held


def test_a_lease_comes_back_from_its_column() -> None:
    written = datetime(2026, 1, 1, 0, 0, 0, 7, tzinfo=UTC)
    tip = Tip(2, "assistant", partial_seq=2, lease=Lease(written, 2.5, Writer(7), written))
    lease = stored(tip).lease
    assert lease is not None
    assert lease._replace(read_at=written) == tip.lease
