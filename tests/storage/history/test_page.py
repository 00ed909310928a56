"""History: every window of a branch, and that a page is one state of the database."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatledger import ChatMessage, History, InvalidArgument, Ledger, ThreadNotFound
from chatledger.errors import BranchNotFound, InvalidCursor, LimitExceeded, MessageNotFound
from chatledger.repositories import messages as messages_module
from chatledger.repositories import scope_of
from chatledger.storage.history import one_statement as one_statement_module
from chatledger.storage.history import page as history_module
from chatledger.storage.history import path as path_module
from chatledger.storage.history.window import Window
from chatledger.storage.repositories.branches import fork_at
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user
from tests.storage.raw import elsewhere

NUMBERS = itertools.count()


def seqs(history: History) -> list[int | None]:
    return [message.seq for message in history.messages]


async def stored(ledger: Ledger, turns: int) -> list[ChatMessage]:
    """A thread "t" with that many turns of five messages."""
    await ledger.threads.create("t")
    return (await ledger.messages.append("t", turn() * turns)).messages


async def pages(ledger: Ledger, thread_id: str, size: int, *, forward: bool) -> list[History]:
    """Every page of the active branch, in the order of reading."""
    word, cursor = ("after", 0) if forward else ("before", 2**62)
    read: list[History] = []
    following: int | None = cursor
    while following is not None:
        window: dict[str, Any] = {word: following}
        read.append(await ledger.messages.history(thread_id, limit=size, **window))
        following = read[-1].next_cursor if forward else read[-1].previous_cursor
    return read


def cursors(history: History) -> tuple[int | None, int | None]:
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


def expected_last(messages: list[ChatMessage], size: int) -> list[ChatMessage]:
    start = max(0, len(messages) - size)
    if start == 0 or start == len(messages):
        return messages[start:]
    later = [index for index in begins_turn(messages) if index >= start]
    return messages[(later or begins_turn(messages)[-1:] or [0])[0] :]


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
    assert (whole.messages, whole.version, cursors(whole)) == (given, len(given), (None, None))
    forward = await pages(ledger, thread_id, size, forward=True)
    assert [message for page in forward for message in page] == given
    assert all(len(page) == size for page in forward[:-1])
    backward = await pages(ledger, thread_id, size, forward=False)
    assert [message for page in reversed(backward) for message in page] == given
    assert all(len(page) == size for page in backward[:-1])
    assert (await ledger.messages.history(thread_id, last=size)).messages == expected_last(given, size)
    last_turns = await ledger.messages.history(thread_id, last_turns=size)
    assert last_turns.messages == expected_last_turns(given, size)


# --- Single windows ---------------------------------------------------------------------------------------------------


async def test_after_and_before_are_not_included(ledger: Ledger) -> None:
    await stored(ledger, 2)
    assert seqs(await ledger.messages.history("t", after=3)) == [4, 5, 6, 7, 8, 9, 10]
    assert seqs(await ledger.messages.history("t", before=3)) == [1, 2]
    assert seqs(await ledger.messages.history("t", after=3, before=7)) == [4, 5, 6]


async def test_a_page_between_two_seqs_ends_at_the_other(ledger: Ledger) -> None:
    await stored(ledger, 2)
    page = await ledger.messages.history("t", after=3, before=9, limit=2)
    assert (seqs(page), cursors(page)) == ([7, 8], (7, None))
    page = await ledger.messages.history("t", after=3, before=6, limit=2)
    assert (seqs(page), cursors(page)) == ([4, 5], (None, None))


async def test_cursors_beyond_the_ends_give_nothing(ledger: Ledger) -> None:
    await stored(ledger, 1)
    beyond = await ledger.messages.history("t", after=5, limit=3)
    assert (beyond.messages, beyond.version) == ([], 5)
    assert seqs(await ledger.messages.history("t", before=1)) == []
    assert seqs(await ledger.messages.history("t", before=0)) == []
    assert seqs(await ledger.messages.history("t", after=2**62)) == []


async def test_an_empty_thread_has_empty_windows(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for window in ({}, {"limit": 3}, {"limit": 3, "before": 9}, {"newest": 3}, {"last": 3}, {"last_turns": 3}):
        history = await ledger.messages.history("t", **window)  # type: ignore[arg-type]
        assert (history.messages, history.version, cursors(history)) == ([], 0, (None, None))


async def test_a_window_of_size_zero_is_empty(ledger: Ledger) -> None:
    await stored(ledger, 1)
    for window in ({"limit": 0}, {"newest": 0}, {"last": 0}, {"last_turns": 0}):
        history = await ledger.messages.history("t", **window)  # type: ignore[arg-type]
        assert (history.messages, cursors(history)) == ([], (None, None))


async def test_a_window_of_a_huge_size_is_the_whole_branch(ledger: Ledger) -> None:
    await stored(ledger, 1)
    for word in ("limit", "newest", "last", "last_turns"):
        window: dict[str, Any] = {word: 2**70}
        assert len(await ledger.messages.history("t", **window)) == 5


async def test_the_last_turn_is_given_whole_though_it_is_longer_than_asked(ledger: Ledger) -> None:
    await stored(ledger, 2)
    assert seqs(await ledger.messages.history("t", last=3)) == [6, 7, 8, 9, 10]
    assert seqs(await ledger.messages.history("t", last=9)) == [6, 7, 8, 9, 10]
    assert len(await ledger.messages.history("t", last=10)) == 10


async def test_the_last_turn_is_given_whole_across_a_fork(ledger: Ledger) -> None:
    await stored(ledger, 2)
    await fork_at(scope_of(ledger), "t", 9)
    await ledger.messages.append("t", [assistant("other")])
    assert seqs(await ledger.messages.history("t", last=1)) == [6, 7, 8, 9, 10]
    assert seqs(await ledger.messages.history("t", last_turns=1)) == [6, 7, 8, 9, 10]
    assert len(await ledger.messages.history("t", last_turns=2)) == 10


@pytest.mark.parametrize("window", [{"last": 2}, {"last_turns": 1}, {"last": 3}])
async def test_last_windows_keep_a_call_with_a_result_that_came_a_turn_later(
    ledger: Ledger, window: dict[str, Any]
) -> None:
    """Lenient lets a user message in while calls are open, and the result may still come."""
    await ledger.threads.create("t", rules="lenient")
    late = [user("a"), assistant("b"), user("c"), assistant(calls=[call("x")]), user("d"), user("e"), result("x")]
    await ledger.messages.append("t", late)
    assert seqs(await ledger.messages.history("t", **window)) == [3, 4, 5, 6, 7]


async def test_a_call_that_was_never_answered_does_not_lengthen_last(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", [user("a"), assistant(calls=[call("x")]), user("b"), assistant("c")])
    assert seqs(await ledger.messages.history("t", last=2)) == [3, 4]


@pytest.mark.parametrize("beside", ["", "\ud83d\ude00"], ids=["plain", "escaped"])  # two surrogates, not one character
@pytest.mark.parametrize("window", [{"last": 2}, {"last": 4}, {"last_turns": 1}])
async def test_last_windows_never_begin_inside_a_group(ledger: Ledger, window: dict[str, Any], beside: str) -> None:
    """The user's words in one message with the results of a turn belong to that turn."""
    await ledger.threads.create("t")
    said = user("and in Lima?", residual={"continues": True, "beside": beside})
    await ledger.messages.append("t", [*turn(), *turn()[:4], said, assistant("sunny too")])
    assert seqs(await ledger.messages.history("t", **window)) == [6, 7, 8, 9, 10, 11]
    assert len(await ledger.messages.history("t", last_turns=2)) == 11


# --- Filters ----------------------------------------------------------------------------------------------------------


async def test_a_run_keeps_only_its_messages(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for run_id in ("r1", "r2", "r1"):
        await ledger.messages.append("t", turn(), run_id=run_id)
    assert seqs(await ledger.messages.history("t", run_id="r1")) == [1, 2, 3, 4, 5, 11, 12, 13, 14, 15]
    assert seqs(await ledger.messages.history("t", run_id="r2")) == [6, 7, 8, 9, 10]
    assert seqs(await ledger.messages.history("t", run_id="r2", last=2)) == [6, 7, 8, 9, 10]
    unknown = await ledger.messages.history("t", run_id="unknown")
    assert (unknown.messages, unknown.version) == ([], 15)


async def test_the_last_messages_of_a_run_are_its_own_though_it_began_inside_a_turn(ledger: Ledger) -> None:
    """A service stores the question before it starts the run that answers it."""
    await ledger.threads.create("t")
    for _ in range(2):
        await ledger.messages.append("t", [user("?")])
        await ledger.messages.append("t", turn()[1:], run_id="r")
    assert seqs(await ledger.messages.history("t", run_id="r", last=9)) == [2, 3, 4, 5, 7, 8, 9, 10]
    for window in ({"last": 1}, {"last": 4}, {"last": 5}, {"newest": 4}):
        assert seqs(await ledger.messages.history("t", run_id="r", **window)) == [7, 8, 9, 10]  # type: ignore[arg-type]


async def test_pages_of_a_run_give_each_of_its_messages_once(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for run_id in ("r1", "r2", "r1", "r2"):
        await ledger.messages.append("t", turn(), run_id=run_id)
    for size in (1, 3, 7, 20):
        read: list[int | None] = []
        cursor: int | None = 0
        while cursor is not None:
            page = await ledger.messages.history("t", run_id="r2", limit=size, after=cursor)
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
    assert len(await ledger.messages.history("t", user_id="ada")) == 5
    for user_id in ("bob", "", "Ada", "ada\0"):
        with pytest.raises(ThreadNotFound):
            await ledger.messages.history("t", user_id=user_id)


async def test_a_thread_without_an_owner_is_not_found_for_a_user(ledger: Ledger) -> None:
    await stored(ledger, 1)
    with pytest.raises(ThreadNotFound):
        await ledger.messages.history("t", user_id="ada")


async def test_unknown_threads_and_branches_are_not_found(ledger: Ledger) -> None:
    await stored(ledger, 1)
    with pytest.raises(ThreadNotFound):
        await ledger.messages.history("nowhere")
    for branch in (1, -1, 2**31, 2**70):
        with pytest.raises(BranchNotFound) as caught:
            await ledger.messages.history("t", branch=branch)
        assert (caught.value.thread_id, caught.value.branch) == ("t", branch)


# --- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "text"),
    [
        ({"limit": 1, "newest": 1}, "newest cannot be combined with limit; pass one of them"),
        ({"limit": 1, "last": 1}, "last cannot be combined with limit; pass one of them"),
        ({"newest": 1, "last": 1}, "last cannot be combined with newest; pass one of them"),
        ({"last": 1, "last_turns": 1}, "last_turns cannot be combined with last; pass one of them"),
        ({"last": 1, "max_tokens": 1}, "max_tokens cannot be combined with last; pass one of them"),
        (
            {"newest": 1, "after": 0},
            "newest counts backward and cannot be combined with after; pass limit to read forward",
        ),
        (
            {"last": 1, "before": 0},
            "last reads the end of the branch and cannot be combined with before; pass newest or limit",
        ),
        ({"last": 1, "after": 0}, "last reads the end of the branch and cannot be combined with after; pass limit"),
        (
            {"last_turns": 1, "after": 1},
            "last_turns reads the end of the branch and cannot be combined with after; pass limit",
        ),
        (
            {"max_tokens": 1, "before": 3},
            "max_tokens reads the end of the branch and cannot be combined with before; pass newest or limit",
        ),
        (
            {"max_tokens": 1, "run_id": "r"},
            "max_tokens counts whole turns and cannot be combined with run_id; pass one of them",
        ),
        ({"count_tokens": len}, "count_tokens is used only with max_tokens; pass max_tokens as well, or leave it out"),
    ],
)
async def test_arguments_that_cannot_be_combined_are_refused(ledger: Ledger, window: dict[str, Any], text: str) -> None:
    for history in (ledger.messages.history("t", **window), ledger.history("t", format="openai-chat", **window)):
        with pytest.raises(InvalidArgument) as caught:
            await history
        assert (str(caught.value), caught.value.argument) == (text, text.split()[0])


@pytest.mark.parametrize("window", [{"after": -1}, {"before": -1}, {"before": 2**62 + 1}, {"limit": 1, "after": 2**70}])
async def test_a_cursor_that_no_message_can_have_is_refused(ledger: Ledger, window: dict[str, int]) -> None:
    with pytest.raises(InvalidCursor):
        await ledger.messages.history("t", **window)  # type: ignore[arg-type]


@pytest.mark.parametrize("word", ["limit", "newest", "last", "last_turns", "max_tokens"])
async def test_sizes_below_zero_are_refused(ledger: Ledger, word: str) -> None:
    window: dict[str, Any] = {word: -1}
    with pytest.raises(LimitExceeded) as caught:
        await ledger.messages.history("t", **window)
    assert caught.value.given == -1


# --- One state --------------------------------------------------------------------------------------------------------


@pytest.fixture
def by_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all threads were long: small windows are one statement on PostgreSQL, so there is no between in them."""
    monkeypatch.setattr(Window, "is_small", False)


@pytest.mark.usefixtures("by_ranges")
@pytest.mark.parametrize(
    "window", [{}, {"last": 65}, {"last_turns": 1}, {"limit": 65}, {"newest": 65}, {"run_id": "r"}]
)
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
    page = await ledger.messages.history("t", **window)
    assert (page.messages, page.version, cursors(page)) == (first, 5, (None, None))
    assert (await ledger.messages.history("t")).version == 10


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
        windows: list[dict[str, Any]] = [{}, {"after": 3}, {"before": 8}, {"after": 2, "before": 9}, {"branch": 0}]
        at_once = [await ledger.messages.history("t", **window) for window in windows]
        for size in (1, 4, 8, 9, 15, 16):
            monkeypatch.setattr(one_statement_module, "SMALL", size)
            assert [await ledger.messages.history("t", **window) for window in windows] == at_once
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
