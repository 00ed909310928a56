"""History: every window of a branch, and that a page is one state of the database."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatledger import (
    ChatMessage,
    Cursor,
    History,
    InvalidArgument,
    Ledger,
    Newest,
    Oldest,
    ThreadNotFound,
    Tokens,
    Turns,
)
from chatledger.errors import BranchNotFound, InvalidCursor, LimitExceeded, MessageNotFound
from chatledger.repositories import messages as messages_module
from chatledger.repositories import scope_of
from chatledger.storage.history import one_statement as one_statement_module
from chatledger.storage.history import path as path_module
from chatledger.storage.history import turns as history_module
from chatledger.storage.history.window_request import Window
from chatledger.storage.repositories.branches import fork_at
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user
from tests.storage.raw import elsewhere
from tests.windows import read as read_window

NUMBERS = itertools.count()


def seqs(history: History) -> list[int | None]:
    return [message.seq for message in history.messages]


async def stored(ledger: Ledger, turns: int) -> list[ChatMessage]:
    """A thread "t" with that many turns of five messages."""
    await ledger.threads.create("t")
    return (await ledger.messages.append("t", turn() * turns)).messages


async def pages(ledger: Ledger, thread_id: str, size: int, *, forward: bool) -> list[History]:
    """Every page of the active branch, in the order of reading."""
    found: list[History] = []
    following: Cursor | None = None
    while not found or following is not None:
        window = Oldest(size, after=following) if forward else Newest(size, before=following)
        found.append(await ledger.messages.history(thread_id, window))
        following = found[-1].next_cursor if forward else found[-1].previous_cursor
    return found


def cursors(history: History) -> tuple[Cursor | None, Cursor | None]:
    return history.previous_cursor, history.next_cursor


# --- All windows of any conversation ----------------------------------------------------------------------------------


@st.composite
def conversations(draw: st.DrawFn) -> list[ChatMessage]:
    """Turns with any number of calls, their results in any order, and what is only for the screen between them."""
    messages: list[ChatMessage] = []
    if draw(st.booleans()):
        messages.append(ChatMessage(role="system", content="be brief"))
    for _ in range(draw(st.integers(0, 4))):
        messages.append(user("?"))
        for _ in range(draw(st.integers(0, 2))):
            ids = [f"call_{n}" for n in range(draw(st.integers(1, 3)))]
            messages.append(assistant(calls=[call(id_) for id_ in ids]))
            messages += [result(id_) for id_ in draw(st.permutations(ids))]
            if draw(st.booleans()):
                messages.append(ChatMessage(role="custom", content="a spinner"))
        messages.append(assistant("!"))
    return messages


def begins_turn(messages: list[ChatMessage]) -> list[int]:
    return [index for index, message in enumerate(messages) if message.role == "user"]


def expected_last_turns(messages: list[ChatMessage], count: int) -> list[ChatMessage]:
    starts = begins_turn(messages)
    if count == 0:
        return []
    return messages[starts[-count] :] if len(starts) >= count else messages


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(conversation=conversations(), answered_anew=st.booleans(), size=st.integers(1, 12), data=st.data())
async def test_windows_are_slices_of_the_history(
    ledger: Ledger, conversation: list[ChatMessage], answered_anew: bool, size: int, data: st.DataObject
) -> None:
    thread_id = f"t{next(NUMBERS)}"
    await ledger.threads.create(thread_id)
    given = (await ledger.messages.append(thread_id, conversation)).messages
    if answered_anew:
        ends = [0, *(message.seq or 0 for message in given if message.text == "!")]
        at = data.draw(st.sampled_from(ends))
        await fork_at(scope_of(ledger), thread_id, at)
        given = given[:at] + (await ledger.messages.append(thread_id, turn())).messages

    whole = await ledger.messages.history(thread_id)
    assert (whole.messages, whole.last_seq, cursors(whole)) == (given, len(given), (None, None))
    forward = await pages(ledger, thread_id, size, forward=True)
    assert [message for page in forward for message in page] == given
    assert all(len(page) == size for page in forward[:-1])
    backward = await pages(ledger, thread_id, size, forward=False)
    assert [message for page in reversed(backward) for message in page] == given
    assert all(len(page) >= size for page in backward[:-1])
    last_turns = await ledger.messages.history(thread_id, Turns(size))
    assert last_turns.messages == expected_last_turns(given, size)


# --- Single windows ---------------------------------------------------------------------------------------------------


async def test_after_and_before_are_not_included(ledger: Ledger) -> None:
    await stored(ledger, 2)
    assert seqs(await ledger.messages.history("t", Oldest(1_000, after=3), branch=0)) == [4, 5, 6, 7, 8, 9, 10]
    assert seqs(await ledger.messages.history("t", Newest(1_000, before=3), branch=0)) == [1, 2]
    assert seqs(await ledger.messages.history("t", Newest(3, before=7), branch=0)) == [2, 3, 4, 5, 6]


async def test_cursors_beyond_the_ends_give_nothing(ledger: Ledger) -> None:
    await stored(ledger, 1)
    beyond = await ledger.messages.history("t", Oldest(3, after=5), branch=0)
    assert (beyond.messages, beyond.last_seq) == ([], 5)
    assert seqs(await ledger.messages.history("t", Newest(1_000, before=1), branch=0)) == []
    assert seqs(await ledger.messages.history("t", Newest(1_000, before=0), branch=0)) == []
    assert seqs(await ledger.messages.history("t", Oldest(1_000, after=2**62), branch=0)) == []


async def test_an_empty_thread_has_empty_windows(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for window in ({}, {"limit": 3}, {"limit": 3, "before": 9}, {"newest": 3}, {"last_turns": 3}):
        history = await read_window(ledger, "t", **window)
        assert (history.messages, history.last_seq, cursors(history)) == ([], 0, (None, None))


async def test_a_window_of_size_zero_is_empty(ledger: Ledger) -> None:
    await stored(ledger, 1)
    for window in ({"limit": 0}, {"newest": 0}, {"last_turns": 0}):
        history = await read_window(ledger, "t", **window)
        assert (history.messages, cursors(history)) == ([], (None, None))


async def test_a_window_of_a_huge_size_is_the_whole_branch(ledger: Ledger) -> None:
    await stored(ledger, 1)
    for word in ("limit", "newest", "last_turns"):
        window: dict[str, Any] = {word: 2**62}
        assert len(await read_window(ledger, "t", **window)) == 5


async def test_the_last_turn_is_given_whole_across_a_fork(ledger: Ledger) -> None:
    await stored(ledger, 2)
    await fork_at(scope_of(ledger), "t", 9)
    await ledger.messages.append("t", [assistant("other")])
    assert seqs(await ledger.messages.history("t", Turns(1))) == [6, 7, 8, 9, 10]
    assert len(await ledger.messages.history("t", Turns(2))) == 10


async def test_turns_keep_a_call_with_a_result_that_came_a_turn_later(ledger: Ledger) -> None:
    """Lenient lets a user message in while calls are open, and the result may still come."""
    await ledger.threads.create("t", rules="lenient")
    late = [user("a"), assistant("b"), user("c"), assistant(calls=[call("x")]), user("d"), user("e"), result("x")]
    await ledger.messages.append("t", late)
    assert seqs(await ledger.messages.history("t", Turns(1))) == [3, 4, 5, 6, 7]


async def test_a_call_that_was_never_answered_does_not_lengthen_a_turn(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", [user("a"), assistant(calls=[call("x")]), user("b"), assistant("c")])
    assert seqs(await ledger.messages.history("t", Turns(1))) == [3, 4]


@pytest.mark.parametrize("beside", ["", "\ud83d\ude00"], ids=["plain", "escaped"])  # two surrogates, not one character
@pytest.mark.parametrize(("window", "start"), [({"newest": 2}, 7), ({"newest": 5}, 7), ({"last_turns": 1}, 6)])
async def test_windows_never_begin_inside_a_group(
    ledger: Ledger, window: dict[str, Any], start: int, beside: str
) -> None:
    """The user's words in one message with the results of a turn belong to that turn."""
    await ledger.threads.create("t")
    said = user("and in Lima?", residual={"continues": True, "beside": beside})
    await ledger.messages.append("t", [*turn(), *turn()[:4], said, assistant("sunny too")])
    assert seqs(await read_window(ledger, "t", **window)) == [*range(start, 12)]
    assert len(await ledger.messages.history("t", Turns(2))) == 11


# --- Filters ----------------------------------------------------------------------------------------------------------


async def test_a_run_keeps_only_its_messages(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for run_id in ("r1", "r2", "r1"):
        await ledger.messages.append("t", turn(), run_id=run_id)
    assert seqs(await ledger.messages.history("t", run_id="r1")) == [1, 2, 3, 4, 5, 11, 12, 13, 14, 15]
    assert seqs(await ledger.messages.history("t", run_id="r2")) == [6, 7, 8, 9, 10]
    unknown = await ledger.messages.history("t", run_id="unknown")
    assert (unknown.messages, unknown.last_seq) == ([], 15)


async def test_the_newest_messages_of_a_run_are_its_own_though_it_began_inside_a_turn(ledger: Ledger) -> None:
    """A service stores the question before it starts the run that answers it."""
    await ledger.threads.create("t")
    for _ in range(2):
        await ledger.messages.append("t", [user("?")])
        await ledger.messages.append("t", turn()[1:], run_id="r")
    assert seqs(await ledger.messages.history("t", Newest(4), run_id="r")) == [7, 8, 9, 10]


async def test_pages_of_a_run_give_each_of_its_messages_once(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for run_id in ("r1", "r2", "r1", "r2"):
        await ledger.messages.append("t", turn(), run_id=run_id)
    for size in (1, 3, 7, 20):
        read: list[int | None] = []
        cursor: Cursor | None = None
        while not read or cursor is not None:
            page = await ledger.messages.history("t", Oldest(size, after=cursor), run_id="r2")
            read += seqs(page)
            cursor = page.next_cursor
        assert read == [6, 7, 8, 9, 10, 16, 17, 18, 19, 20]


async def test_a_run_on_another_branch_is_not_on_this_one(ledger: Ledger) -> None:
    await stored(ledger, 1)
    await fork_at(scope_of(ledger), "t", 5)
    await ledger.messages.append("t", turn(), run_id="r")
    assert seqs(await ledger.messages.history("t", run_id="r")) == [6, 7, 8, 9, 10]
    assert seqs(await ledger.messages.history("t", run_id="r", branch=0)) == []


async def test_a_thread_of_another_user_is_not_found(ledger: Ledger) -> None:
    await stored(ledger.user("ada"), 1)
    assert len(await ledger.user("ada").messages.history("t")) == 5
    for user_id in ("bob", "", "Ada", "ada\0"):
        with pytest.raises(ThreadNotFound):
            await ledger.user(user_id or "nobody").messages.history("t")


async def test_a_thread_without_an_owner_is_not_found_for_a_user(ledger: Ledger) -> None:
    await stored(ledger, 1)
    with pytest.raises(ThreadNotFound):
        await ledger.user("ada").messages.history("t")


async def test_unknown_threads_and_branches_are_not_found(ledger: Ledger) -> None:
    await stored(ledger, 1)
    with pytest.raises(ThreadNotFound):
        await ledger.messages.history("nowhere")
    for branch in (1, -1, 2**31, 2**70):
        with pytest.raises(BranchNotFound) as caught:
            await ledger.messages.history("t", branch=branch)
        assert (caught.value.thread_id, caught.value.branch) == ("t", branch)


# --- What is refused --------------------------------------------------------------------------------------------------


async def test_arguments_that_do_not_go_together_are_refused(ledger: Ledger) -> None:
    await stored(ledger, 1)
    for window, branch, run_id, text in (
        (Oldest(1, after=3), None, None, "after is a seq, which names no branch: pass branch= as well, or a cursor"),
        (Newest(1, before=3), None, None, "before is a seq, which names no branch: pass branch= as well, or a cursor"),
        (Tokens(9), None, "r", "run_id does not go with Tokens, which count whole turns"),
        (9, None, None, "window must be Newest, Oldest, Turns or Tokens, not int"),
    ):
        with pytest.raises(InvalidArgument) as caught:
            await ledger.messages.history("t", window, branch=branch, run_id=run_id)  # type: ignore[arg-type]
        assert str(caught.value) == text


@pytest.mark.parametrize("seq", [-1, 2**62 + 1, 2**70])
async def test_a_seq_that_no_message_can_have_is_refused(ledger: Ledger, seq: int) -> None:
    for window in (Oldest(1, after=seq), Newest(1, before=seq)):
        with pytest.raises(InvalidCursor):
            await ledger.messages.history("t", window, branch=0)


async def test_a_cursor_belongs_to_its_thread_and_its_branch(ledger: Ledger) -> None:
    await stored(ledger, 2)
    await ledger.threads.create("other")
    page = await ledger.messages.history("t", Newest(2))
    for window, thread_id, branch in (
        (Newest(2, before=page.previous_cursor), "other", None),
        (Newest(2, before=page.previous_cursor), "t", 1),
        (Newest(2, before=page.mark), "other", None),
        (Oldest(2, after=page.mark), "t", 1),
        (Newest(2, before=Cursor("a text")), "t", None),
        (Oldest(2, after=Cursor("")), "t", None),
    ):
        with pytest.raises(InvalidCursor):
            await ledger.messages.history(thread_id, window, branch=branch)


async def test_pages_stay_on_their_branch_while_another_one_becomes_active(ledger: Ledger) -> None:
    first = await stored(ledger, 2)
    page = await ledger.messages.history("t", Newest(2))
    await ledger.branches.fork("t", first[4])
    await ledger.messages.append("t", [user("another")] * 9)
    earlier = await ledger.messages.history("t", Newest(20, before=page.previous_cursor))
    assert [*earlier, *page] == first
    later = await ledger.messages.history("t", Oldest(20, after=earlier.next_cursor))
    assert (later.branch, later.messages) == (0, page.messages)


async def test_a_mark_is_the_end_of_its_branch_at_that_time(ledger: Ledger) -> None:
    first = await stored(ledger, 1)
    mark = (await ledger.messages.history("t", Newest(1))).mark
    assert len(await ledger.messages.history("t", Oldest(9, after=mark))) == 0
    later = (await ledger.messages.append("t", turn())).messages
    await ledger.branches.fork("t", first[0])
    assert (await ledger.messages.history("t", Oldest(9, after=mark))).messages == later
    assert (await ledger.messages.history("t", Newest(9, before=mark))).messages == first


async def test_after_the_mark_of_a_draft_its_message_is_read_once_it_is_finished(ledger: Ledger) -> None:
    await stored(ledger, 1)
    async with ledger.messages.stream("t") as draft:
        await draft.feed("Sun")
        await draft.flush()
        page = await ledger.messages.history("t", Newest(9))
        assert (len(page), page.draft and page.draft.text, page.last_seq) == (5, "Sun", 6)
        assert (await ledger.messages.history("t", Oldest(9, after=page.mark))).messages == []
    assert texts(await ledger.messages.history("t", Oldest(9, after=page.mark))) == ["Sun"]
    assert len(await ledger.messages.history("t", Newest(9, before=page.mark))) == 5


@pytest.mark.parametrize("kind", [Newest, Oldest, Turns, Tokens])
def test_sizes_below_zero_are_refused(kind: Any) -> None:
    with pytest.raises(LimitExceeded) as caught:
        kind(-1)
    assert caught.value.given == -1


# --- One state --------------------------------------------------------------------------------------------------------


@pytest.fixture
def by_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all threads were long: small windows are one statement on PostgreSQL, so there is no between in them."""
    monkeypatch.setattr(Window, "is_small", False)


@pytest.mark.usefixtures("by_ranges")
@pytest.mark.parametrize("window", [{}, {"last_turns": 1}, {"limit": 65}, {"newest": 65}, {"run_id": "r"}])
async def test_an_append_between_the_statements_of_a_page_is_not_seen(
    database: Database, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, window: dict[str, Any]
) -> None:
    await ledger.threads.create("t")
    first = (await ledger.messages.append("t", turn(), run_id="r")).messages
    find_path = path_module.find_path

    def and_then_somebody_appends(*arguments: Any) -> Any:
        path = find_path(*arguments)
        monkeypatch.undo()
        elsewhere(database, lambda other: other.messages.append("t", turn(), run_id="r"))
        return path

    monkeypatch.setattr(history_module, "find_path", and_then_somebody_appends)
    page = await read_window(ledger, "t", **window)
    assert (page.messages, page.last_seq, cursors(page)) == (first, 5, (None, None))
    assert (await ledger.messages.history("t")).last_seq == 10


@pytest.mark.usefixtures("by_ranges")
async def test_a_thread_deleted_between_the_statements_of_a_page_is_read_whole(
    database: Database, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await stored(ledger, 1)
    load_path = path_module.load_path

    def after_a_deletion(*arguments: Any) -> Any:
        monkeypatch.undo()
        elsewhere(database, lambda other: other.threads.delete("t"))
        return load_path(*arguments)

    monkeypatch.setattr(history_module, "load_path", after_a_deletion)
    assert (await ledger.messages.history("t")).messages == first
    with pytest.raises(ThreadNotFound):
        await ledger.messages.history("t")


async def test_a_whole_branch_is_read_at_once_or_by_ranges(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever way: the same messages, cursors and errors, also on a fork."""
    async with database.open() as ledger:
        said = await stored(ledger, 3)
        await fork_at(scope_of(ledger), "t", 6)
        forked = (await ledger.messages.append("t", [user("again"), assistant("yes")])).messages
        windows: list[dict[str, Any]] = [{}, {"after": 3}, {"before": 8}, {"branch": 0}]
        at_once = [await read_window(ledger, "t", **window) for window in windows]
        for size in (1, 4, 8, 9, 15, 16):
            monkeypatch.setattr(one_statement_module, "SMALL", size)
            assert [await read_window(ledger, "t", **window) for window in windows] == at_once
    assert at_once[0].messages == [*said[:6], *forked]
    assert at_once[-1].messages == said


# --- iterate ----------------------------------------------------------------------------------------------------------


async def test_iterate_gives_every_message_across_pages(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    given = await stored(ledger, 3)
    for size in (1, 4, 5, 15, 16):
        monkeypatch.setattr(messages_module, "PAGE", size)
        assert [message async for message in ledger.messages.iterate("t")] == given


async def test_iterate_holds_two_pages_at_most(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    await stored(ledger, 20)
    monkeypatch.setattr(messages_module, "PAGE", 10)
    load_range = path_module.load_range
    loaded: list[int] = []
    held: list[weakref.ref[ChatMessage]] = []

    def counted(*arguments: Any) -> list[ChatMessage]:
        messages: list[ChatMessage] = load_range(*arguments)
        loaded.append(len(messages))
        held.extend(weakref.ref(message) for message in messages)
        return messages

    monkeypatch.setattr(path_module, "load_range", counted)
    monkeypatch.setattr(Window, "is_small", False)  # pages that are read by ranges
    alive = [sum(one() is not None for one in held) async for _ in ledger.messages.iterate("t")]
    assert loaded == [10] * 10
    assert max(alive) <= 20  # the page before is held while the next is read


async def test_iterate_does_not_see_what_is_appended_meanwhile(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    given = await stored(ledger, 2)
    monkeypatch.setattr(messages_module, "PAGE", 3)
    seen = []
    async for message in ledger.messages.iterate("t"):
        seen.append(message)
        await ledger.messages.append("t", [user("more")])
    assert seen == given


async def test_iterate_stays_on_its_branch(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    given = await stored(ledger, 2)
    monkeypatch.setattr(messages_module, "PAGE", 3)
    seen: list[ChatMessage] = []
    async for message in ledger.messages.iterate("t"):
        if not seen:
            await fork_at(scope_of(ledger), "t", 5)
        seen.append(message)
    assert seen == given
    assert [message.seq async for message in ledger.messages.iterate("t")] == [1, 2, 3, 4, 5]
    assert [message async for message in ledger.messages.iterate("t", branch=0)] == given


# --- get --------------------------------------------------------------------------------------------------------------


async def test_get_finds_a_message_on_any_branch(ledger: Ledger) -> None:
    await stored(ledger, 1)
    await fork_at(scope_of(ledger), "t", 1)
    kept = (await ledger.messages.append("t", turn(ids="a")[1:])).messages
    await ledger.branches.activate("t", 0)
    assert [await ledger.messages.get("t", f"a{n}") for n in range(1, 5)] == kept
    assert texts(await ledger.messages.history("t", branch=1)) == [message.text for message in turn()]


async def test_get_tells_an_unknown_message_from_an_unknown_thread(ledger: Ledger) -> None:
    await stored(ledger, 1)
    with pytest.raises(MessageNotFound) as caught:
        await ledger.messages.get("t", "nothing")
    assert (caught.value.thread_id, caught.value.message_id) == ("t", "nothing")
    with pytest.raises(ThreadNotFound):
        await ledger.messages.get("nowhere", "nothing")


async def test_a_message_is_found_in_every_thread_that_has_its_id(ledger: Ledger) -> None:
    kept = {}
    for name in ("b", "a\0", "c"):
        await ledger.threads.create(name)
        kept[name] = (await ledger.messages.append(name, turn("m"))).messages
    await fork_at(scope_of(ledger), "c", 1)
    await ledger.messages.append("c", [assistant("other", message_id="o")])
    await ledger.tenant("other").threads.create("a")
    await ledger.tenant("other").messages.append("a", turn("m"))
    assert await ledger.messages.find("m1") == [kept["b"][1], kept["c"][1], kept["a\0"][1]]
    assert [(one.thread_id, one.branch, one.seq) for one in await ledger.messages.find("o")] == [("c", 1, 2)]
    for nowhere in ("nothing", "", "m" * 600):
        assert await ledger.messages.find(nowhere) == []


async def test_as_many_messages_are_found_as_the_docstring_says(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        for number in range(101):
            await tx.threads.create(f"t{number:03}")
            await tx.messages.append(f"t{number:03}", [user("?", message_id="m")])
    assert [one.thread_id for one in await ledger.messages.find("m")] == [f"t{number:03}" for number in range(100)]
