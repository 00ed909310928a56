"""A program without an event loop: the same nouns without `await`, on both databases."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, assert_type

import pytest

from chatledger import (
    Appended,
    ChatMessage,
    Encryption,
    InvalidArgument,
    StorageError,
    Thread,
    ThreadNotFound,
    VersionConflict,
    blocking,
)
from chatledger.types import ThreadChange
from tests.conftest import KEYS, Database


@pytest.fixture
def ledger(database: Database) -> Iterator[blocking.Ledger]:
    with blocking.open(database.url) as ledger:
        yield ledger


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def texts(ledger: blocking.Ledger, thread: str = "t") -> list[Any]:
    return [message.content for message in ledger.messages.history(thread).messages]


def test_a_thread_is_written_and_read(ledger: blocking.Ledger) -> None:
    thread = assert_type(ledger.threads.create("t", title="Weather"), Thread)
    assert thread.title == "Weather"
    appended = assert_type(ledger.messages.append("t", [user("Tokyo?")]), Appended)
    assert appended.last_seq == 1
    assert texts(ledger) == ["Tokyo?"]
    assert ledger.messages.history("t").encode("openai-chat").payload == [{"role": "user", "content": "Tokyo?"}]
    assert ledger.metrics().appends == 1


def test_errors_come_as_they_are(ledger: blocking.Ledger) -> None:
    ledger.threads.create("t")
    ledger.messages.append("t", [user("a")])
    with pytest.raises(ThreadNotFound):
        ledger.messages.history("other")
    with pytest.raises(VersionConflict):
        ledger.messages.append("t", [user("a")], expected=0)
    with pytest.raises(InvalidArgument):
        ledger.messages.follow(7)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="thraeds"):
        ledger.thraeds  # type: ignore[attr-defined]  # noqa: B018


def test_views_are_faces_too(ledger: blocking.Ledger) -> None:
    ada = assert_type(ledger.user("ada"), blocking.Ledger)
    ada.threads.create("hers")
    assert [thread.thread_id for thread in ada.threads.list()] == ["hers"]
    with pytest.raises(ThreadNotFound):
        ledger.user("bob").threads.get("hers")
    with ledger.tenant("other") as other:
        assert other.threads.list().items == []
    assert ledger.ping() >= 0  # the end of a view closes nothing


def test_a_transaction_commits_or_rolls_back(ledger: blocking.Ledger) -> None:
    ledger.threads.create("t")
    assert_type(ledger.begin(), AbstractContextManager[blocking.Transaction])
    with ledger.begin() as tx:
        tx.messages.append("t", [user("kept")])
        with pytest.raises(StorageError, match="call tx and not the ledger"):
            ledger.messages.append("t", [user("beside")])
    with pytest.raises(ZeroDivisionError), ledger.begin() as tx:
        tx.messages.append("t", [user("undone")])
        raise ZeroDivisionError
    ledger.messages.append("t", [user("after")])
    assert texts(ledger) == ["kept", "after"]


def test_a_draft_is_completed_or_interrupted(ledger: blocking.Ledger) -> None:
    ledger.threads.create("t")
    with ledger.messages.stream("t") as draft:
        assert_type(draft, blocking.Draft)
        draft.feed("Su")
        draft.feed("nny")
        assert draft.message.state == "partial"
        assert draft.replayed is False
    assert draft.message.content == "Sunny"
    with pytest.raises(KeyboardInterrupt), ledger.messages.stream("t") as draft:
        draft.feed("Rai")
        raise KeyboardInterrupt
    states = [(message.content, message.state) for message in ledger.messages.history("t").messages]
    assert states == [("Sunny", "complete"), ("Rai", "interrupted")]


def test_a_draft_is_left_to_another_process(ledger: blocking.Ledger) -> None:
    ledger.threads.create("t")
    for pieces in ("Su", "nny"):
        with ledger.messages.stream("t", idempotency_key="k", resume=True) as draft:
            draft.feed(pieces)
            draft.leave()
    assert draft.message.content == "Sunny"
    assert draft.message.state == "partial"
    with ledger.messages.attach("t", draft.message.message_id or "", draft.token) as attached:
        attached.feed("ny, dry", offset=3)
        assert attached.offset == 10
    assert attached.message.content == "Sunny, dry"


def test_iterators_are_generators(ledger: blocking.Ledger) -> None:
    ledger.threads.create("t")
    ledger.messages.append("t", [user(str(number)) for number in range(5)])
    assert [message.content for message in ledger.messages.iterate("t")] == list("01234")
    assert [thread.thread_id for thread in ledger.check()] == ["t"]
    left = assert_type(ledger.messages.iterate("t"), Generator[ChatMessage, None, None])
    assert next(left).content == "0"
    left.close()
    assert list(left) == []


def test_a_thread_is_followed(ledger: blocking.Ledger) -> None:
    ledger.threads.create("t")
    mark = ledger.messages.history("t").mark
    changes = assert_type(ledger.messages.follow("t", cursor=mark), Generator[ThreadChange, None, None])
    with ThreadPoolExecutor(1) as pool:
        change = pool.submit(next, changes)
        ledger.messages.append("t", [user("heard")])
        assert change.result(10).kind == "appended"
    changes.close()


def test_the_end_of_the_ledger_ends_a_follower(database: Database) -> None:
    with ThreadPoolExecutor(1) as pool:
        with blocking.open(database.url) as ledger:
            ledger.threads.create("t")
            change = pool.submit(next, ledger.messages.follow("t"))
            with pytest.raises(TimeoutError):
                change.result(0.05)
        assert isinstance(change.exception(10), StorageError)


def test_threads_share_a_ledger(ledger: blocking.Ledger) -> None:
    ledger.threads.create("t")

    def write(writer: int) -> None:
        for number in range(5):
            ledger.messages.append("t", [user(f"{writer} {number}")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    found = texts(ledger)
    assert sorted(found) == sorted(f"{writer} {number}" for writer in range(8) for number in range(5))


def test_a_running_event_loop_may_call_it(ledger: blocking.Ledger) -> None:
    """As a notebook does, which runs its cells in one."""

    async def cell() -> Thread:
        return ledger.threads.create("t")

    assert asyncio.run(cell()).thread_id == "t"


def test_a_call_from_its_own_loop_is_refused(sqlite_database: Database) -> None:
    refused: list[str] = []

    def keys(tenant: str) -> Any:
        if threading.current_thread().name == "chatledger-blocking":
            try:
                opened[0].threads.list()
            except StorageError as error:
                refused.append(str(error))
        return KEYS

    opened: list[blocking.Ledger] = []
    with blocking.open(sqlite_database.url, encryption=Encryption(keys)) as ledger:
        opened.append(ledger)
        ledger.threads.create("t")
        ledger.messages.append("t", [user("words")])
    assert refused
    assert "would never return" in refused[0]
