"""Pairing with an index finds the same calls as looking at all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatledger import ChatMessage, ToolCall
from chatledger.formats import get_codec
from chatledger.formats.model_view import model_view, provider_names
from chatledger.formats.registry import BUILT_IN
from chatledger.rules import OpenCall, Tip, check_messages, close_gaps, closing_results, fold, judge
from chatledger.rules.judge import OpenCalls
from tests.rules.folding import find_call

IDS = st.sampled_from([None, "a", "b"])
NAMES = st.sampled_from(["f", "g"])
ASKED = st.lists(st.tuples(IDS, NAMES), min_size=1, max_size=4)
ANSWERED = st.tuples(IDS, st.none() | NAMES)


@given(st.lists(ASKED | ANSWERED.map(lambda one: (one,)), max_size=12))
def test_the_index_finds_what_a_search_finds(steps: list[Any]) -> None:
    waiting: tuple[OpenCall, ...] = ()
    indexed = OpenCalls()
    for seq, step in enumerate(steps):
        if isinstance(step, list):
            calls = [OpenCall(0, seq, idx, id_, name) for idx, (id_, name) in enumerate(step)]
            waiting += tuple(calls)
            indexed.add(calls)
            continue
        call = find_call(waiting, *step[0])
        assert indexed.find(*step[0]) == call
        if call is not None:
            waiting = tuple(other for other in waiting if other is not call)
            indexed.close(call)
        for id_ in (None, "a", "b"):
            assert indexed.has(id_) == any(other.id == id_ for other in waiting)


def conversation(count: int, *, same: bool) -> list[ChatMessage]:
    """Calls whose results come in the opposite order, and a repeated result for each."""
    ids = ["c" if same else f"c{number}" for number in range(count)]
    calls = [ToolCall(id=id_, name="f", arguments="{}") for id_ in ids]
    results = [ChatMessage(role="tool", tool_call_id=id_, content="r") for id_ in reversed(ids)]
    return [ChatMessage(role="user", content="?"), ChatMessage(role="assistant", tool_calls=calls), *results, *results]


def steps_of(work: Callable[..., object], *given: object) -> int:
    """The lines and calls of Python that the work runs, with one for each element of a comprehension."""
    steps = 0

    def note(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += 1
        return note

    sys.settrace(note)
    try:
        work(*given)
    finally:
        sys.settrace(None)
    return steps


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("name", [name for name in BUILT_IN if name != "agent-service"])
def test_four_times_the_calls_take_four_times_the_steps(name: str, same: bool) -> None:
    codec = get_codec(name)
    few, many = conversation(100, same=same), conversation(400, same=same)
    assert steps_of(codec.encode, many) < 6 * steps_of(codec.encode, few)
    if name in provider_names():
        assert steps_of(model_view, codec, many) < 6 * steps_of(model_view, codec, few)


ASIDE = ChatMessage(role="custom", content="a note")


def stored(messages: list[ChatMessage]) -> list[ChatMessage]:
    return [message.model_copy(update={"seq": seq, "branch": 0}) for seq, message in enumerate(messages, 1)]


def with_notes(count: int) -> list[ChatMessage]:
    """Many calls of one message and their results, each with a note behind it."""
    question, asking, *results = conversation(count, same=False)
    return stored([question, asking, *[one for result in results for one in (result, ASIDE)]])


PAIRINGS: dict[str, Callable[[list[ChatMessage]], object]] = {
    "judge": lambda messages: judge(Tip(), messages, branch=0, level="lenient"),
    "fold": lambda messages: fold(Tip(), messages),
    "fold with links": lambda messages: fold(Tip(), messages, links_of(messages)),
    "check": check_messages,
    "close the gaps": lambda messages: close_gaps(Tip(), messages, branch=0),
}


def links_of(messages: list[ChatMessage]) -> dict[tuple[int, int], tuple[int, int, int]]:
    """The second half of the results repeats the first, so it answers nothing."""
    results = [message for message in messages if message.role == "tool"]
    return {(0, result.seq or 0): (0, 2, at) for at, result in enumerate(reversed(results[: len(results) // 2]))}


@pytest.mark.parametrize("name", PAIRINGS)
def test_four_times_the_results_of_one_message_take_four_times_the_steps(name: str) -> None:
    few, many = with_notes(100), with_notes(400)
    assert steps_of(PAIRINGS[name], many) < 5 * steps_of(PAIRINGS[name], few)


def test_closing_many_calls_takes_few_steps_for_each() -> None:
    few, many = (
        Tip(open_calls=tuple([OpenCall(0, 1, idx, f"c{idx}", "f") for idx in range(count)])) for count in (100, 400)
    )
    assert steps_of(closing_results, many) < 6 * steps_of(closing_results, few)
