"""Closing open calls with results that the ledger invents."""

from __future__ import annotations

import sys

from chatledger import ChatMessage
from chatledger.rules import Tip, close_gaps, closing_results
from tests.conversations import assistant, call, result, turn, user
from tests.rules.folding import fold, links, recorded, tip_of

OPEN = tip_of(user("?"), assistant(calls=[call("a"), call(None, "time")], run_id="r"))


def synthetic(id_: str | None, name: str, reason: str = "interrupted", run_id: str | None = "r") -> ChatMessage:
    return ChatMessage(
        role="tool", tool_call_id=id_, name=name, content=reason, is_error=True, state="synthetic", run_id=run_id
    )


def closes(before: list[ChatMessage], batch: list[ChatMessage]) -> list[tuple[int, list[str | None]]]:
    gaps = close_gaps(tip_of(*before), batch, branch=0)
    return [(index, [result.tool_call_id for result in results]) for index, results in gaps]


def test_each_open_call_gets_a_result_in_the_order_of_the_calls() -> None:
    assert closing_results(OPEN) == [synthetic("a", "weather"), synthetic(None, "time")]


def test_the_reason_is_the_text() -> None:
    assert closing_results(OPEN, reason="gone")[0] == synthetic("a", "weather", "gone")


def test_nothing_is_closed_where_nothing_is_open() -> None:
    assert closing_results(tip_of(*turn())) == []


def test_closing_results_keep_every_rule() -> None:
    judgement = fold(closing_results(OPEN), level="ordered", tip=OPEN)
    assert (links(judgement), judgement.tip.open_calls) == ([(2, 0), (2, 1)], ())


def test_with_repeated_ids_each_result_answers_its_own_call() -> None:
    tip = tip_of(
        assistant(calls=[call("x", "first")]), assistant(calls=[call(None, "first")]), assistant(calls=[call("x")])
    )
    results = closing_results(tip)
    assert results == [synthetic(id_, name, run_id=None) for id_, name in _IN_ORDER_OF_ANSWERS]
    judgement = fold(results, tip=tip)
    assert (links(judgement), recorded(judgement)) == ([(3, 0), (1, 0), (2, 0)], [])


def test_closing_thousands_of_calls_takes_some_steps_for_each() -> None:
    tip = tip_of(user("?"), assistant(calls=[call(f"c{number}") for number in range(3_000)]))
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        gaps = close_gaps(tip, [user("?")], branch=0)
        fold(gaps[0][1], tip=tip)
    finally:
        sys.setprofile(None)
    assert len(gaps[0][1]) == 3_000
    assert steps < 200 * 3_000  # 3,000 for each call would be nine million


_IN_ORDER_OF_ANSWERS = [("x", "weather"), ("x", "first"), (None, "first")]

ASKED = [user("?"), assistant(calls=[call("a"), call("b")], run_id="r")]


def test_calls_are_closed_before_a_user_message() -> None:
    assert closes(ASKED, [user("?")]) == [(0, ["a", "b"])]


def test_results_of_the_batch_come_first_and_count() -> None:
    assert closes(ASKED, [result("b"), ChatMessage(role="custom"), user("?")]) == [(2, ["a"])]


def test_nothing_is_closed_before_what_may_come() -> None:
    batch = [assistant("!", run_id="r"), result("a"), ChatMessage(role="custom")]
    assert closes(ASKED, batch) == []


def test_nothing_is_closed_where_the_batch_answers_all() -> None:
    assert closes(ASKED, [result("b"), result("a"), user("?")]) == []


def test_calls_are_closed_before_the_assistant_of_another_run() -> None:
    assert closes(ASKED, [assistant("!", run_id="s")]) == [(0, ["a", "b"])]


def test_calls_are_closed_before_the_assistant_that_follows_a_user_who_did_not_wait() -> None:
    before = [user("?"), assistant(calls=[call("a")]), user("?")]
    assert closes(before, [assistant("!")]) == [(0, ["a"])]


def test_calls_that_the_batch_itself_opens_are_closed() -> None:
    assert closes([], [user("?"), assistant(calls=[call("a")]), user("?")]) == [(2, ["a"])]


def test_closing_an_empty_batch_does_nothing() -> None:
    assert close_gaps(Tip(), [], branch=0) == []


def test_every_gap_of_a_batch_is_closed() -> None:
    asked = [user("?"), assistant(calls=[call("a")])]
    assert closes(asked, [*asked, *asked, user("?")]) == [(0, ["a"]), (2, ["a"]), (4, ["a"])]
