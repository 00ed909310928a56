"""`answers`: a page names the call of a result as it was linked when it was stored, or says nothing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatledger import ChatMessage, Ledger
from chatledger.errors import LimitExceeded
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.types import CallPlace
from tests.conftest import Database
from tests.conversations import assistant, call, result, turn, user
from tests.storage.raw import query
from tests.windows import read as read_window

NUMBERS = itertools.count()
IDS = st.sampled_from(["a", "b", None])
NAMES = st.sampled_from(["f", "g"])
MESSAGES = st.one_of(
    st.just(user("?")),
    st.builds(lambda made: assistant(calls=[call(id_, name) for id_, name in made]), st.lists(st.tuples(IDS, NAMES))),
    st.builds(lambda id_, name: result(id_, name=name), IDS, st.one_of(st.none(), NAMES)),
    st.just(ChatMessage(role="custom", content="aside")),
    st.just(ChatMessage(role="tool", content="x", tool_calls=[call("a", "f")], tool_call_id="b")),
)
STEPS = st.lists(
    st.one_of(
        MESSAGES,
        MESSAGES,
        MESSAGES,
        st.tuples(st.just("fork"), st.integers(0, 20)),
        st.tuples(st.just("retract"), st.integers(0, 20)),
        st.tuples(st.just("close"), st.just(0)),
    ),
    min_size=4,
    max_size=24,
)


async def links(database: Database, thread_id: str) -> dict[tuple[int, int], CallPlace]:
    """The stored links: the place of each result, and that of its call."""
    rows = await query(
        database, f"SELECT branch, seq, call_seq, call_idx FROM tool_results WHERE thread_id = '{thread_id}'"
    )
    return {(branch, seq): CallPlace(seq=call_seq, index=idx) for branch, seq, call_seq, idx in rows}


async def play(ledger: Ledger, thread_id: str, steps: list[Any]) -> None:
    await ledger.threads.create(thread_id, rules="lenient")
    for step in steps:
        if isinstance(step, ChatMessage):
            await ledger.messages.append(thread_id, [step])
            continue
        verb, at = step
        path = (await ledger.messages.history(thread_id)).messages
        if verb == "close":
            await ledger.messages.close_open_calls(thread_id)
        elif path:
            chosen = path[at % len(path)]
            if verb == "fork":
                await fork_at(scope_of(ledger), thread_id, chosen.seq or 0)
            else:
                await ledger.messages.remove(thread_id, chosen.message_id or "")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_a_page_says_what_was_linked_or_nothing(sqlite_database: Database, steps: list[Any]) -> None:
    thread_id = f"t{next(NUMBERS)}"
    async with sqlite_database.open() as ledger:
        await play(ledger, thread_id, steps)
        stored = await links(sqlite_database, thread_id)
        for branch in await ledger.branches.list(thread_id):
            whole = await ledger.messages.history(thread_id, branch=branch.branch)
            windows = [{}, {"last_turns": 1}, {"newest": 2}, {"max_tokens": 8}]
            windows += [{"limit": size, "after": after} for size in (2, 5) for after in range(0, whole.last_seq, 2)]
            for window in windows:
                try:
                    page = await read_window(ledger, thread_id, branch=branch.branch, **window)
                except LimitExceeded:
                    continue  # max_tokens is too small
                for message in page:
                    linked = stored.get((message.branch or 0, message.seq or 0))
                    assert message.answers in (None, linked), (window, message)
            if len(whole) == whole.last_seq:  # nothing was removed, so the whole branch tells all
                found = {(one.branch, one.seq): one.answers for one in whole if one.answers is not None}
                assert found == {
                    (one.branch, one.seq): stored[one.branch or 0, one.seq or 0]
                    for one in whole
                    if (one.branch, one.seq) in stored
                }


def place(seq: int, index: int) -> CallPlace:
    return CallPlace(seq=seq, index=index)


async def answers(ledger: Ledger, **window: Any) -> list[CallPlace | None]:
    return [message.answers for message in await read_window(ledger, "t", **window)]


async def test_a_result_names_its_call(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    appended = await ledger.messages.append("t", turn())
    assert [one.answers for one in appended.messages] == [None, None, place(2, 1), place(2, 0), None]
    assert await answers(ledger) == [None, None, place(2, 1), place(2, 0), None]
    read = (await ledger.messages.history("t")).messages[2]
    assert read.model_dump()["answers"] == {"seq": 2, "index": 1}
    assert ChatMessage.model_validate_json(read.model_dump_json()) == read
    assert "answers" in read.model_fields_set


async def test_a_result_without_an_id_is_named_where_no_earlier_call_can_be_open(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    nameless = [assistant(calls=[call(None, "f"), call(None, "g")]), result(None, name="g"), result(None)]
    await ledger.messages.append("t", [user("?"), *nameless, user("?"), *nameless, assistant("so")])
    first, second = [place(2, 1), place(2, 0)], [place(6, 1), place(6, 0)]
    assert await answers(ledger) == [None, None, *first, None, None, *second, None]
    assert await answers(ledger, last_turns=1) == [None, None, *second, None]
    assert await answers(ledger, after=5) == [None, *[None, None], None]  # an earlier call may be open for all it shows
    assert await answers(ledger, after=2) == [None, None, None, None, *second, None]


async def test_a_repeated_id_is_the_latest_call(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    asked = [assistant(calls=[call("c"), call("c")]), assistant(calls=[call("c")])]
    await ledger.messages.append("t", [user("?"), *asked, result("c"), result("c"), result("c"), result("c")])
    assert await answers(ledger) == [None, None, None, place(3, 0), place(2, 0), place(2, 1), None]
    assert await answers(ledger, after=2) == [None, place(3, 0), None, None, None]


async def test_a_call_that_may_have_its_result_already_is_not_named(ledger: Ledger) -> None:
    """The page does not show which call the result without an id answers, so the next one may answer either."""
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("c"), call("c")]), result(None), result("c")])
    assert await answers(ledger) == [None, None, place(2, 0), place(2, 1)]
    assert await answers(ledger, after=1) == [None, None, None]


async def test_a_fork_answers_a_shared_call_again(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", turn())
    await fork_at(scope_of(ledger), "t", 2)
    await ledger.messages.append("t", [result("call_0")])
    assert await answers(ledger) == [None, None, place(2, 0)]


@pytest.mark.parametrize("claimed", [None, place(9, 9)])
async def test_answers_is_the_ledgers_own_word(ledger: Ledger, claimed: CallPlace | None) -> None:
    """An append ignores the value of a given message, and comparisons of messages leave it out."""
    await ledger.threads.create("t")
    given = [message.model_copy(update={"answers": claimed}) for message in turn("m")]
    assert given == turn("m")
    assert given[0] != turn("n")[0]
    stored = (await ledger.messages.append("t", given)).messages
    assert [one.answers for one in stored] == [None, None, place(2, 1), place(2, 0), None]
    assert (await ledger.messages.append("t", given)).replayed
    alone = await ledger.messages.get("t", "m2")
    assert (alone.answers, alone) == (None, stored[2])
