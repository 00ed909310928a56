"""Pages: the cursors of any window name its neighbours, and a walk from either end gives each message once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from chatledger import ChatMessage, History, Ledger, Newest, Oldest, Payload
from chatledger.models import continues
from chatledger.repositories import scope_of
from chatledger.storage.history.window_request import Window, read_position
from chatledger.storage.repositories.branches import fork_at
from tests.conversations import assistant, call, result, turn, user
from tests.formats.anthropic.test_stored import ANSWERED, ASKED, CALLING, CLOSING, RESULTS, TURN
from tests.windows import read as read_window

PLAIN = [message for n in range(6) for message in (user(f"question {n}"), assistant(f"answer {n}"))]
BESIDE = [
    user("?"),
    assistant(calls=[call("a")]),
    ChatMessage(role="custom", content="a spinner"),
    assistant(calls=[call("b")]),
    result("b"),
    ChatMessage(role="custom", content="a spinner"),
    result("a"),
    assistant("!"),
]
"""Two messages of one turn with calls, and results in another order."""
LATE = [user("a"), assistant(calls=[call("x")]), user("b"), assistant(calls=[call("y")]), result("x"), user("c")]
LATE += [result("y"), assistant("d"), assistant(calls=[call("z")]), user("e")]
"""Lenient rules let a user message in while calls are open, and the results may still come."""
UNNAMED = [user("?"), assistant(calls=[call(None), call(None)]), result(None), result(None), assistant("!")]


async def store(ledger: Ledger, messages: list[ChatMessage]) -> None:
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", messages)


async def store_anthropic(ledger: Ledger) -> None:
    """With messages of the user that hold results and words at once, and with several messages of results."""
    apart = [ASKED, CALLING, *({"role": "user", "content": [one]} for one in RESULTS), CLOSING]
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", Payload([*TURN, *apart, ASKED, CALLING, ANSWERED], "anthropic"))


async def store_openai(ledger: Ledger) -> None:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": id_, "type": "function", "function": function} for id_ in ("a", "b")]
    answered = [{"role": "tool", "tool_call_id": id_, "content": "sunny"} for id_ in ("b", "a")]
    asked = [{"role": "user", "content": "?"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    await ledger.threads.create("t")
    await ledger.messages.append(
        "t", Payload([*asked, *answered, {"role": "assistant", "content": "!"}] * 3, "openai-chat")
    )


async def store_forks(ledger: Ledger) -> None:
    """A fork between the results of two calls, and a fork of that one."""
    await store(ledger, turn() * 2)
    await fork_at(scope_of(ledger), "t", 8)
    await ledger.messages.append("t", [result("call_0", "other"), assistant("so"), *turn()])
    await fork_at(scope_of(ledger), "t", 12)
    await ledger.messages.append("t", [result("call_0"), result("call_1"), user("and"), *BESIDE])


STORED: dict[str, Callable[[Ledger], Any]] = {
    "plain": lambda ledger: store(ledger, PLAIN),
    "turns": lambda ledger: store(ledger, turn() * 3),
    "beside": lambda ledger: store(ledger, [*turn(), *BESIDE]),
    "late": lambda ledger: store(ledger, LATE),
    "unnamed": lambda ledger: store(ledger, UNNAMED * 2),
    "forks": store_forks,
    "anthropic": store_anthropic,
    "openai-chat": store_openai,
}
CONVERSATIONS = pytest.mark.parametrize("stored", STORED.values(), ids=STORED)


def seqs(messages: list[ChatMessage]) -> list[int]:
    return [message.seq or 0 for message in messages]


def cursors(history: History) -> tuple[int | None, int | None]:
    """The seqs in the cursors."""
    pair = (history.previous_cursor, history.next_cursor)
    first, last = (None if one is None else read_position("", one, history.thread_id, None)[1] for one in pair)
    return first, last


async def walk(ledger: Ledger, window: dict[str, Any], *, word: str, size: str) -> list[History]:
    """Pages from the window on, in one direction, until no cursor leads further."""
    pages = [await read_window(ledger, "t", **window)]
    while (cursor := getattr(pages[-1], {"before": "previous_cursor", "after": "next_cursor"}[word])) is not None:
        pages.append(await read_window(ledger, "t", **{word: cursor, size: next(iter(window.values()))}))
    return pages


def answered(messages: list[ChatMessage]) -> list[tuple[int, int]]:
    """The seqs of each call and its result."""
    waiting: list[tuple[str | None, int]] = []
    pairs = []
    for message in messages:
        waiting += [(one.id, message.seq or 0) for one in message.tool_calls or ()]
        if message.role == "tool":
            found = next(one for one in waiting if one[0] == message.tool_call_id)
            waiting.remove(found)
            pairs.append((found[1], message.seq or 0))
    return pairs


def newest(messages: list[ChatMessage], size: int) -> list[ChatMessage]:
    """The last messages, from the last place on that is in no group."""
    pairs = answered(messages)
    for start in range(max(0, len(messages) - size), 0, -1):
        first = messages[start].seq or 0
        if not continues(messages[start]) and not any(before < first <= after for before, after in pairs):
            return messages[start:]
    return messages


# --- Walks ------------------------------------------------------------------------------------------------------------


@CONVERSATIONS
async def test_walks_from_either_end_give_each_message_once(ledger: Ledger, stored: Callable[[Ledger], Any]) -> None:
    await stored(ledger)
    whole = (await ledger.messages.history("t")).messages
    for size in range(1, len(whole) + 2):
        forward = await walk(ledger, {"limit": size}, word="after", size="limit")
        assert [*chain(*forward)] == whole
        backward = await walk(ledger, {"newest": size}, word="before", size="newest")
        assert [*chain(*reversed(backward))] == whole
        assert {page.next_cursor for page in backward[:1]} == {None}
        assert [cursors(page)[1] for page in backward[1:]] == [
            (page.messages[0].seq or 0) - 1 for page in backward[:-1]
        ]
        assert [cursors(page)[0] for page in backward[:-1]] == [page.messages[0].seq for page in backward[:-1]]


@pytest.mark.parametrize("small", [True, False], ids=["at once", "by ranges"])
@CONVERSATIONS
async def test_newest_gives_that_number_of_messages_and_the_rest_of_their_first_group(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, stored: Callable[[Ledger], Any], small: bool
) -> None:
    await stored(ledger)
    whole = (await ledger.messages.history("t")).messages
    monkeypatch.setattr(Window, "is_small", small)
    branch = (await ledger.messages.history("t")).branch
    for before in range(1, len(whole) + 2):
        known = whole[: before - 1]
        for size in range(1, len(known) + 2):
            page = await ledger.messages.history("t", Newest(size, before=before), branch=branch)
            assert page.messages == newest(known, size)


async def test_newest_of_a_format_never_divides_one_of_its_messages(ledger: Ledger) -> None:
    await store_anthropic(ledger)
    whole = (await ledger.messages.history("t")).encode("anthropic").payload["messages"]
    for size in range(1, 20):
        page = await ledger.messages.history("t", Newest(size))
        messages = page.encode("anthropic").payload["messages"]
        while page.previous_cursor is not None:
            page = await ledger.messages.history("t", Newest(size, before=page.previous_cursor))
            messages = page.encode("anthropic").payload["messages"] + messages
        assert messages == whole


async def test_pages_of_a_run_from_its_end_give_each_of_its_messages_once(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for run_id in ("r1", "r2", "r1", "r2", "r1"):
        await ledger.messages.append("t", turn(), run_id=run_id)
    for size in (1, 3, 7, 30):
        page = await ledger.messages.history("t", Newest(size), run_id="r2")
        read = seqs(page.messages)
        while page.previous_cursor is not None:
            page = await ledger.messages.history("t", Newest(size, before=page.previous_cursor), run_id="r2")
            read = seqs(page.messages) + read
        assert read == [6, 7, 8, 9, 10, 16, 17, 18, 19, 20]


# --- The neighbours of one window -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "neighbours"),
    [
        ({}, (None, None)),
        ({"limit": 5}, (None, 5)),
        ({"limit": 10}, (None, None)),
        ({"limit": 5, "after": 3}, (4, 8)),
        ({"limit": 5, "after": 5}, (6, None)),
        ({"after": 3}, (4, None)),
        ({"before": 9}, (None, 8)),
        ({"newest": 5}, (6, None)),
        ({"newest": 3}, (7, None)),
        ({"newest": 3, "before": 6}, (2, 5)),
        ({"last_turns": 1}, (6, None)),
        ({"last_turns": 2}, (None, None)),
        ({"limit": 5, "after": 10}, (11, None)),
        ({"limit": 5, "after": 2**62}, (11, None)),
        ({"newest": 5, "before": 1}, (None, 0)),
        ({"newest": 5, "before": 0}, (None, 0)),
        ({"max_tokens": 1_000}, (None, None)),
    ],
)
async def test_a_window_names_its_neighbours(
    ledger: Ledger, window: dict[str, int], neighbours: tuple[int | None, int | None]
) -> None:
    await store(ledger, turn() * 2)
    history = await read_window(ledger, "t", **window)
    assert cursors(history) == neighbours


async def test_no_page_names_a_partial_message_that_it_leaves_out(ledger: Ledger) -> None:
    await store(ledger, [*turn(), assistant("So", state="partial")])
    page = await ledger.messages.history("t", Newest(1))
    assert (seqs(page.messages), cursors(page)) == ([5], (5, None))
    page = await ledger.messages.history("t", Oldest(1, after=4), branch=0)
    assert (seqs(page.messages), cursors(page)) == ([5], (5, None))
