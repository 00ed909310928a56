"""Conditions of an append: a mark means one state of one branch, and 0 a branch without a message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

from chatledger import (
    ChatMessage,
    InvalidArgument,
    Ledger,
    Mark,
    Newest,
    Oldest,
    Pace,
    Payload,
    ThreadNotFound,
    Tokens,
    Turns,
    VersionConflict,
)
from chatledger.errors import DraftLive, IdConflict
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import advance, fork_at
from tests.conftest import Database
from tests.conversations import assistant, call, texts, turn, user
from tests.faults.proxy import proxied
from tests.leases import pass_time
from tests.windows import read


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    """A question and its answer: version 2 of branch 0."""
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?", message_id="q"), assistant("!")])
    return ledger


async def refuse(ledger: Ledger, mark: Mark, *, branch: int | None = None) -> VersionConflict:
    """Every call that takes the mark refuses it, and nothing is written."""
    before = [(one.branch, one.last_seq) for one in await ledger.branches.list("t")]
    calls: list[Awaitable[Any]] = [
        ledger.messages.append("t", [user("next")], branch=branch, expected=mark),
        ledger.messages.append("t", [], branch=branch, expected=mark),
        fork_at(scope_of(ledger), "t", 0, branch=branch, expected=mark),
        ledger.messages.append(
            "t", Payload([{"role": "user", "content": "x"}], "openai-chat"), branch=branch, expected=mark
        ),
        ledger.messages.stream("t", branch=branch, expected=mark).__aenter__(),
        advance(scope_of(ledger), "t", mark) if branch is not None else ledger.messages.append("t", [], expected=mark),
    ]
    errors = []
    for waiting in calls:
        with pytest.raises(VersionConflict) as caught:
            await waiting
        errors.append(caught.value)
    assert [(one.branch, one.last_seq) for one in await ledger.branches.list("t")] == before
    return errors[0]


# --- A mark that holds ------------------------------------------------------------------------------------------------


async def test_the_mark_of_a_history_and_of_an_append_hold_until_something_changes(asked: Ledger) -> None:
    for _ in range(2):
        mark = (await asked.messages.history("t")).mark
        assert (await asked.messages.history("t", Newest(1))).mark == mark
        assert (await asked.messages.history("t", Turns(1))).mark == mark
        assert (await asked.messages.history("t", Tokens(1_000))).mark == mark
        assert (await asked.messages.history("t", Newest(1))).mark == mark
        assert (await asked.messages.history("t", Oldest(1, after=0), branch=0)).mark == mark
        assert (await asked.messages.prompt("t", "openai-chat")).history.mark == mark
        assert (await asked.branches.get("t")).mark == mark
        stored = await asked.messages.append("t", [user("next"), assistant("!")], expected=mark)
        more = await asked.messages.append("t", [user("more"), assistant("!")], expected=stored.mark, branch=0)
        assert (more.mark == stored.mark, len(more.mark)) == (False, 32)
    assert (await asked.branches.get("t")).mark == more.mark
    assert (await asked.messages.append("t", [], expected=more.mark)).mark == more.mark


CHANGES: dict[str, tuple[Callable[[Ledger], Awaitable[Any]], set[int]]] = {
    "an append": (lambda ledger: ledger.messages.append("t", [user("next")]), {0}),
    "an append to another branch": (lambda ledger: ledger.messages.append("t", [user("next")], branch=1), {1}),
    "the first removal": (lambda ledger: ledger.messages.remove("t", "own"), {0, 1}),
    "a revision": (lambda ledger: ledger.messages.revise("t", "own", user("other")), {0}),
    "a revision of a shared message": (lambda ledger: ledger.messages.revise("t", "q", user("other")), {0, 1}),
    "an erasure": (lambda ledger: ledger.messages.erase("t", "own"), {0, 1}),
    "other rules": (lambda ledger: ledger.threads.update("t", rules="lenient"), {0, 1}),
    "a fork": (lambda ledger: ledger.branches.fork("t", at="q"), {0}),
    "a fork that stays inactive": (lambda ledger: ledger.branches.fork("t", at="q", activate=False), {0}),
    "an activation": (lambda ledger: ledger.branches.activate("t", 1), {0}),
    "another title": (lambda ledger: ledger.threads.update("t", title="other"), set()),
}
"""The branches whose marks each call makes stale, as the guide about retries lists them."""


@pytest.mark.parametrize("name", CHANGES)
async def test_each_call_makes_the_marks_stale_that_the_guide_lists(asked: Ledger, name: str) -> None:
    change, stale = CHANGES[name]
    await asked.branches.fork("t", at="q", activate=False)
    await asked.messages.append("t", [user("own", message_id="own")])
    before = [(await asked.messages.history("t", branch=branch)).mark for branch in (0, 1)]
    await change(asked)
    after = [(await asked.messages.history("t", branch=branch)).mark for branch in (0, 1)]
    assert {branch for branch in (0, 1) if before[branch] != after[branch]} == stale


async def test_the_mark_of_a_page_is_that_of_the_whole_branch(database: Database) -> None:
    async with database.open() as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [user(str(number)) for number in range(1_000)])
        stored = await ledger.messages.append("t", [user("and one that no single statement reads")])
        for window in ({}, {"limit": 10}, {"newest": 10, "before": 5}, {"run_id": "none"}):
            assert (await read(ledger, "t", **window)).mark == stored.mark


async def test_calls_that_take_a_mark_do_their_work_on_it(asked: Ledger) -> None:
    fork = await fork_at(scope_of(asked), "t", 1, expected=(await asked.branches.get("t")).mark)
    mark = (
        await asked.messages.append("t", [assistant("another")], expected=(await asked.branches.get("t")).mark)
    ).mark
    async with asked.messages.stream("t", expected=mark) as draft:
        await draft.feed("and more")
    assert texts(await asked.messages.history("t", branch=fork.branch)) == ["?", "another", "and more"]
    mark = (await asked.branches.get("t")).mark
    kept = (await asked.messages.history("t")).messages
    assert (await asked.messages.sync("t", [*kept, user("?")], expected=mark)).messages[0].seq == 4


async def test_a_mark_after_an_append_that_shared_a_statement_holds_only_for_the_last(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("first")])
    appends = [ledger.messages.append("t", [user(str(number))]) for number in range(6)]
    done = sorted(await asyncio.gather(*appends), key=lambda one: one.last_seq)
    for earlier in done[:-1]:
        with pytest.raises(VersionConflict):
            await ledger.messages.append("t", [user("next")], expected=earlier.mark)
    await ledger.messages.append("t", [user("next")], expected=done[-1].mark)


# --- A mark that is stale ---------------------------------------------------------------------------------------------


async def append(ledger: Ledger) -> None:
    await ledger.messages.append("t", [user("next")])


async def fork(ledger: Ledger) -> None:
    await fork_at(scope_of(ledger), "t", 1)


async def fork_and_append(ledger: Ledger) -> None:
    await fork_at(scope_of(ledger), "t", 1)
    await ledger.messages.append("t", [assistant("another answer")])


async def fork_aside(ledger: Ledger) -> None:
    await fork_at(scope_of(ledger), "t", 1, activate=False)


async def activate_there_and_back(ledger: Ledger) -> None:
    await fork_at(scope_of(ledger), "t", 1)
    await ledger.branches.activate("t", 0)


async def add_an_output(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        await advance(scope_of(tx), "t", (await tx.branches.get("t")).mark)


async def make_again(ledger: Ledger) -> None:
    await ledger.threads.delete("t")
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?"), assistant("!")])


MOVES = [append, fork, fork_and_append, fork_aside, activate_there_and_back, add_an_output, make_again]


@pytest.mark.parametrize("by", ["itself", "another"])
@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.__name__)
async def test_every_change_makes_a_mark_stale(
    asked: Ledger, database: Database, move: Callable[[Ledger], Awaitable[None]], by: str
) -> None:
    """Also for a ledger that has the tip of the branch in its cache."""
    mark = (await asked.messages.history("t")).mark
    if by == "itself":
        await move(asked)
    else:
        async with database.open() as other:
            await move(other)
    conflict = await refuse(asked, mark)
    assert (conflict.thread_id, conflict.expected) == ("t", 2)
    active = (await asked.threads.get("t")).active_branch
    assert conflict.branch == active
    if active:
        assert "the mark is of branch 0, which is no longer the active branch" in str(conflict)
    assert (await refuse(asked, mark, branch=0)).branch == 0


async def test_a_mark_of_the_other_answer_is_refused_at_the_same_version(asked: Ledger) -> None:
    mark = (await asked.messages.history("t")).mark
    await fork_and_append(asked)
    assert (await asked.messages.history("t")).last_seq == 2
    with pytest.raises(
        VersionConflict, match="branch 1 of thread 't' is still at version 2, but the mark is of branch 0"
    ):
        await asked.messages.append("t", [user("next")], expected=mark)


async def test_a_piece_of_a_live_draft_makes_a_mark_stale(asked: Ledger) -> None:
    async with asked.messages.stream("t", pace=Pace(interval=3_600, lease=7_200)) as draft:
        mark = (await asked.branches.get("t")).mark
        with pytest.raises(DraftLive):
            await asked.messages.append("t", [user("next")], expected=mark)
        await draft.feed("piece")
        await draft.flush()
        with pytest.raises(VersionConflict, match="still at version 3, but a draft, an output"):
            await asked.messages.append("t", [user("next")], expected=mark)


async def test_a_stale_mark_does_not_sync(asked: Ledger) -> None:
    before = await asked.messages.history("t")
    sent = [*before.messages, user("next")]
    await append(asked)
    with pytest.raises(VersionConflict):
        await asked.messages.sync("t", [*sent, assistant("more")], expected=before.mark)
    assert (await asked.messages.sync("t", sent, expected=before.mark)).replayed


async def test_a_repeat_is_a_repeat_whatever_is_expected(asked: Ledger) -> None:
    mark = (await asked.branches.get("t")).mark
    first = await asked.messages.append("t", [user("next", message_id="n")], expected=mark)
    again = await asked.messages.append("t", [user("next", message_id="n")], expected=mark)
    assert (again.replayed, again.mark) == (True, first.mark)
    await append(asked)
    again = await asked.messages.append("t", [user("next", message_id="n")], expected=mark)
    await refuse(asked, again.mark)


# --- What is no mark --------------------------------------------------------------------------------------------------


GARBAGE = ["", "x", "2", "é" * 32, "A" * 31, "A" * 33, "A" * 36, "A" * 31 + "!", "\ud800", "A" * 32]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
async def test_an_invalid_mark_is_refused_before_anything_is_sent(asked: Ledger, garbage: Mark) -> None:
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("expected", lambda: asked.messages.append("t", [user("next")], expected=garbage)),
        ("expected", lambda: asked.messages.sync("t", [], expected=garbage)),
        ("expected", lambda: fork_at(scope_of(asked), "t", 1, expected=garbage)),
        ("mark", lambda: advance(scope_of(asked), "t", garbage)),
    ]
    for name, make in calls:
        with pytest.raises(InvalidArgument, match=r"mark") as caught:
            await make()
        assert caught.value.argument == name
    with pytest.raises(InvalidArgument):
        asked.messages.stream("t", expected=garbage)


async def test_the_mark_of_another_thread_is_refused(asked: Ledger) -> None:
    await asked.threads.create("u")
    with pytest.raises(InvalidArgument, match="expected is a mark of another thread"):
        await asked.messages.append("t", [user("next")], expected=(await asked.branches.get("u")).mark)
    own = asked.tenant("another tenant")
    await own.threads.create("t")
    with pytest.raises(VersionConflict):
        await own.messages.append("t", [user("next")], expected=(await asked.branches.get("t")).mark)


async def test_a_mark_contradicts_another_branch(asked: Ledger) -> None:
    mark = (await asked.branches.get("t")).mark
    with pytest.raises(InvalidArgument, match="expected is a mark of branch 0, but branch=1 was given"):
        await asked.messages.append("t", [user("next")], expected=mark, branch=1)


# --- No message yet ---------------------------------------------------------------------------------------------------


async def test_an_empty_branch_is_expected_whichever_branch_it_is(asked: Ledger) -> None:
    for batch in ([user("next")], []):
        with pytest.raises(VersionConflict):
            await asked.messages.append("t", batch, expected=0)
    await fork_at(scope_of(asked), "t", 0)
    stored = await asked.messages.append("t", [user("another beginning")], expected=0)
    assert (stored.messages[0].branch, stored.messages[0].seq) == (1, 1)
    with pytest.raises(VersionConflict) as caught:
        await asked.messages.append("t", [user("next")], expected=0, branch=0)
    assert (caught.value.branch, caught.value.expected, caught.value.actual) == (0, 0, 2)


async def test_of_two_writers_one_begins_a_new_thread(asked: Ledger) -> None:
    begun = await asked.messages.append("new", [user("mine")], expected=0, create=True)
    with pytest.raises(VersionConflict):
        await asked.messages.append("new", [user("mine")], expected=0, create=True)
    assert [message.text for message in await asked.messages.history("new")] == ["mine"]
    assert begun.last_seq == 1


async def test_a_mark_costs_no_round_trip(pg_database: Database) -> None:
    async with proxied(pg_database.url) as proxy, Ledger.open(proxy.url) as ledger:
        await ledger.threads.create("t")
        mark: Mark | Literal[0] = 0
        trips = []
        for _ in range(6):
            before = proxy.round_trips
            mark = (await ledger.messages.append("t", turn(), expected=mark)).mark
            trips.append(proxy.round_trips - before)
    assert trips[2:] == [1] * 4


# --- An append of nothing, and one that completes a partial message ---------------------------------------------------


async def test_an_append_of_nothing_compares_and_writes_nothing(asked: Ledger) -> None:
    mark = (await asked.branches.get("t")).mark
    for expectation in ({}, {"expected": mark}, {"branch": 0, "expected": mark}):
        nothing = await asked.messages.append("t", [], **expectation)
        assert (nothing.last_seq, nothing.messages) == (2, [])
        assert (nothing.replayed, nothing.mark) == (False, mark)
    with pytest.raises(VersionConflict):
        await asked.messages.append("t", [], expected=0)
    with pytest.raises(ThreadNotFound):
        await asked.messages.append("nowhere", [], expected=0)
    assert (await asked.branches.get("t")).mark == mark


async def test_an_append_of_nothing_after_a_live_draft_returns_the_mark_of_the_history(asked: Ledger) -> None:
    async with asked.messages.stream("t"):
        before = await asked.messages.history("t")
        nothing = await asked.messages.append("t", [], expected=before.mark)
        assert (nothing.last_seq, nothing.mark) == (before.last_seq, before.mark)
        await asked.messages.append("t", [], expected=nothing.mark)


async def test_an_append_of_nothing_closes_no_call(asked: Ledger) -> None:
    await asked.messages.append("t", [user("?"), assistant(calls=[call("a")])])
    assert (await asked.messages.append("t", [], on_open_calls="close")).last_seq == 4
    assert len(await asked.messages.history("t")) == 4


async def test_completing_a_partial_message_compares_what_is_expected(asked: Ledger) -> None:
    begun = await asked.messages.append("t", [assistant("so f", state="partial", message_id="p")])
    whole = [assistant("so far so good", message_id="p")]
    with pytest.raises(VersionConflict):
        await asked.messages.append("t", whole, expected=0)
    stale = begun.mark
    await advance(scope_of(asked), "t", stale)
    with pytest.raises(VersionConflict):
        await asked.messages.append("t", whole, expected=stale)
    assert (await asked.messages.history("t")).draft is not None
    mark = (await asked.branches.get("t")).mark
    completed = await asked.messages.append("t", whole, expected=mark)
    assert (completed.messages[0].state, completed.last_seq) == ("complete", 3)
    assert (await asked.branches.get("t")).mark == completed.mark
    again = await asked.messages.append("t", whole, expected=mark)
    assert (again.replayed, again.mark) == (True, completed.mark)


async def test_a_draft_that_starts_again_is_not_compared_with_the_state_before_it(asked: Ledger) -> None:
    mark = (await asked.branches.get("t")).mark
    options: dict[str, Any] = {"idempotency_key": "k", "pace": Pace(interval=3_600, lease=7_200)}
    left = asked.messages.stream("t", expected=mark, **options)
    await left.__aenter__()
    await left._stop()
    await pass_time(asked, 7_201)
    async with asked.messages.stream("t", expected=mark, **options) as draft:
        await draft.feed("again")
    assert texts(await asked.messages.history("t")) == ["?", "!", "again"]


# --- A retry after a fork ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_repeat_is_found_on_the_inherited_part_of_the_branch(ledger: Ledger, key: str | None) -> None:
    await ledger.threads.create("t")
    question = [user("?", message_id=None if key else "q1")]
    first = await ledger.messages.append("t", question, idempotency_key=key)
    await ledger.messages.append("t", [assistant("!")])
    await fork_at(scope_of(ledger), "t", 1)
    again = await ledger.messages.append("t", question, idempotency_key=key)
    assert (again.replayed, again.last_seq, again.messages) == (True, 1, first.messages)
    answer = await ledger.messages.append("t", [assistant("another")], expected=again.mark)
    assert answer.messages[0].branch == 1
    await fork_at(scope_of(ledger), "t", 2)
    assert (await ledger.messages.append("t", question, idempotency_key=key)).replayed
    assert (await ledger.messages.append("t", question, idempotency_key=key, branch=0)).replayed


async def test_a_repeat_may_run_over_the_point_of_a_fork(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    question, answer = user("?", message_id="q"), assistant("!", message_id="a")
    await ledger.messages.append("t", [question, assistant("no")])
    await fork_at(scope_of(ledger), "t", 1)
    await ledger.messages.append("t", [answer])
    again = await ledger.messages.append("t", [question, answer])
    assert (again.replayed, again.messages[0].seq, again.last_seq) == (True, 1, 2)
    assert [(one.branch, one.seq) for one in again.messages] == [(0, 1), (1, 2)]


async def test_a_repeat_with_a_key_is_found_on_any_branch_and_activates_none(asked: Ledger) -> None:
    first = await asked.messages.append("t", [user("a"), assistant("b")], idempotency_key="k")
    await fork_at(scope_of(asked), "t", 1)
    for branch in (None, 0, 1):
        again = await asked.messages.append("t", [user("a"), assistant("b")], idempotency_key="k", branch=branch)
        assert (again.replayed, again.last_seq, again.messages) == (True, 4, first.messages)
        assert (await asked.threads.get("t")).active_branch == 1
    stored = await asked.messages.append("t", [user("next")], branch=0, expected=again.mark)
    assert stored.messages[0].seq == 5
    assert len(await asked.messages.history("t")) == 1


async def test_a_repeat_with_a_key_and_other_content_is_a_conflict_on_any_branch(asked: Ledger) -> None:
    await asked.messages.append("t", [user("a")], idempotency_key="k")
    await fork_at(scope_of(asked), "t", 1)
    with pytest.raises(IdConflict, match="is already stored, with other content"):
        await asked.messages.append("t", [user("b")], idempotency_key="k")
    with pytest.raises(IdConflict, match="not with the rest of the batch"):
        await asked.messages.append("t", [user("a"), ChatMessage(role="user", content="b")], idempotency_key="k")


async def test_a_draft_with_the_key_of_a_draft_on_another_branch_does_not_write_it(asked: Ledger) -> None:
    options: dict[str, Any] = {"idempotency_key": "k", "pace": Pace(interval=3_600, lease=7_200)}
    async with asked.messages.stream("t", **options) as first:
        await fork_at(scope_of(asked), "t", 1)
        with pytest.raises(IdConflict, match="is partial on branch 0"):
            await asked.messages.stream("t", **options).__aenter__()
        await first.feed("mine")
    async with asked.messages.stream("t", **options) as again:
        assert (again.replayed, again.message.text) == (True, "mine")
    assert len(await asked.messages.history("t")) == 1
