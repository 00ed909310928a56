"""R6 and R7: which call a result answers."""

from __future__ import annotations

from chatledger import ChatMessage
from chatledger.rules import OpenCall, Tip, check_messages, judge
from tests.conversations import assistant, call, result, turn, user
from tests.rules.folding import fold, links, open_places, recorded


def answers(calls: list[ChatMessage], *results: ChatMessage) -> list[tuple[int, int] | None]:
    """(seq, idx) of the call that each result answers, all in one batch."""
    return links(fold([*calls, *results]))[len(calls) :]


def test_ids_that_repeat_in_each_turn_pair_within_their_turn() -> None:
    judgement = fold([*turn(), *turn()], level="strict")
    assert links(judgement) == [None, None, (2, 1), (2, 0), None, None, None, (7, 1), (7, 0), None]
    assert judgement.tip.open_calls == ()


def test_a_call_left_open_by_an_earlier_turn_does_not_take_the_result_of_a_later_one() -> None:
    calls = [user("?"), assistant(calls=[call("call_0")]), user("?"), assistant(calls=[call("call_0")])]
    assert answers(calls, result("call_0")) == [(4, 0)]


def test_the_call_left_open_is_next_when_the_later_one_is_answered() -> None:
    calls = [user("?"), assistant(calls=[call("call_0")]), user("?"), assistant(calls=[call("call_0")])]
    assert answers(calls, result("call_0"), result("call_0")) == [(4, 0), (2, 0)]


def test_an_id_twice_in_a_message_pairs_in_order() -> None:
    calls = [user("?"), assistant(calls=[call("x"), call("x")])]
    assert answers(calls, result("x"), result("x"), result("x")) == [(2, 0), (2, 1), None]


def test_the_latest_message_comes_first_and_the_first_call_in_it() -> None:
    twice = assistant(calls=[call("x"), call("x")])
    calls = [user("?"), twice, twice]
    assert answers(calls, *[result("x")] * 4) == [(3, 0), (3, 1), (2, 0), (2, 1)]


def test_a_result_without_an_id_answers_the_first_call_of_its_name() -> None:
    calls = [user("?"), assistant(calls=[call(None), call(None, "time"), call(None, "time")])]
    assert answers(calls, result(None, name="time"), result(None, name="time")) == [(2, 1), (2, 2)]


def test_a_result_without_an_id_may_answer_a_call_that_has_one() -> None:
    calls = [user("?"), assistant(calls=[call("a"), call("b", "time")])]
    assert answers(calls, result(None, name="time")) == [(2, 1)]


def test_a_result_without_id_and_name_answers_the_first_call() -> None:
    calls = [user("?"), assistant(calls=[call("a"), call(None, "time")])]
    assert answers(calls, result(None), result(None)) == [(2, 0), (2, 1)]


def test_an_id_says_more_than_a_name() -> None:
    calls = [user("?"), assistant(calls=[call("a"), call("b", "time")])]
    assert answers(calls, result("b", name="weather")) == [(2, 1)]


def test_an_empty_id_is_an_id() -> None:
    calls = [user("?"), assistant(calls=[call(None), call("")])]
    assert answers(calls, result("")) == [(2, 1)]


def test_results_in_any_order_and_among_custom_messages_close_the_group() -> None:
    custom = ChatMessage(role="custom")
    judgement = fold(
        [user("?"), assistant(calls=[call("a"), call("b"), call("c")]), result("c"), custom, result("a"), result("b")],
        level="strict",
    )
    assert links(judgement) == [None, None, (2, 2), None, (2, 0), (2, 1)]
    assert judgement.tip.answered == ("c", "a", "b")


def test_calls_of_several_messages_of_a_turn_are_answered_together() -> None:
    judgement = fold(
        [assistant(calls=[call("a")], run_id="r"), assistant(calls=[call("b")], run_id="r"), result("b"), result("a")],
        level="strict",
    )
    assert links(judgement) == [None, None, (2, 0), (1, 0)]


def test_an_orphan_answers_nothing_and_closes_nothing() -> None:
    judgement = fold([user("?"), assistant(calls=[call("a")]), result("z")])
    assert (links(judgement), open_places(judgement.tip)) == ([None, None, None], [(2, 0)])
    assert recorded(judgement) == [(3, "R6")]


def test_a_second_result_answers_nothing() -> None:
    judgement = fold([assistant(calls=[call("a"), call("b")]), result("a"), result("a"), result("b"), result("a")])
    assert links(judgement) == [None, (1, 0), None, (1, 1), None]
    assert recorded(judgement) == [(3, "R7"), (5, "R7")]


def test_calls_on_a_message_that_may_not_have_any_are_answered_all_the_same() -> None:
    judgement = fold([ChatMessage(role="custom", tool_calls=[call("a")]), result("a")])
    assert (links(judgement), recorded(judgement)) == ([None, (1, 0)], [(1, "R4")])


def test_a_call_of_the_shared_part_is_answered_on_the_branch() -> None:
    shared = OpenCall(branch=0, seq=2, idx=0, id="a", name="weather")
    judgement = judge(Tip(2, "assistant", (shared,)), [result("a")], branch=3, level="strict")
    assert judgement.messages[0].answers is shared


def test_calls_are_open_on_the_branch_that_they_are_appended_to() -> None:
    tip = judge(Tip(7, "user"), [assistant(calls=[call("a")])], branch=3, level="strict").tip
    assert tip.open_calls == (OpenCall(branch=3, seq=8, idx=0, id="a", name="weather"),)


def test_a_result_of_nothing_says_what_it_came_with() -> None:
    results = [
        result("x"),
        ChatMessage(role="tool", name="weather", content="?"),
        ChatMessage(role="tool", content="?"),
    ]
    details = [check_messages([one])[0].detail for one in results]
    told = ("id 'x'", "name 'weather'", "neither an id nor a name")
    assert details == [f"a tool result with {what}, but no call is open" for what in told]
