"""Following a thread: each change of its active branch is reported once and in order, whichever process wrote it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, get_args

import pytest

from chatledger import ChatMessage, Cursor, Ledger, Oldest, Pace, PostgreSQL, StorageError, ThreadNotFound
from chatledger.errors import BranchNotFound, InvalidCursor
from chatledger.models import ThreadChangeKind
from chatledger.repositories import scope_of
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.databases import poller
from chatledger.storage.databases.sqlite import database as sqlite
from chatledger.storage.databases.states import Followed, States
from chatledger.storage.follow import follower
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.schema.text import write_mark
from tests.conftest import Database
from tests.conversations import assistant, turn, user
from tests.faults.proxy import proxied
from tests.following import LONG, Reader


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here is about the time between two polls, so none waits for it."""
    monkeypatch.setattr(poller, "INTERVAL", 0.01)


@pytest.fixture
async def writer(database: Database) -> AsyncIterator[Ledger]:
    """Another process, as far as the follower knows."""
    async with database.open() as opened:
        await opened.threads.create("t")
        await opened.messages.append("t", turn("first "))
        yield opened


async def test_an_append_of_another_ledger_is_heard(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    changes = ledger.messages.follow("t", cursor=reader.cursor)
    hearing = asyncio.create_task(reader.hear(changes, "appended", "appended"))
    await asyncio.sleep(0)
    await writer.messages.append("t", [user("And in Oslo?"), assistant("Rain.")])
    await hearing
    await changes.aclose()
    assert reader.has(await ledger.messages.history("t"))


async def test_a_cursor_goes_on_where_it_was_given(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    for number in range(3):
        await writer.messages.append("t", [user(f"{number}?"), assistant(f"{number}!")])
    changes = ledger.messages.follow("t", cursor=reader.cursor)
    change = await reader.hear(changes, "appended", "appended")
    await changes.aclose()
    changes = writer.messages.follow("t", cursor=change.cursor)
    await reader.hear(changes, "appended", "appended", "appended", "appended")
    await changes.aclose()
    assert reader.has(await ledger.messages.history("t"))


async def test_without_a_cursor_a_follower_begins_now(ledger: Ledger, writer: Ledger) -> None:
    changes = ledger.messages.follow("t")
    async with asyncio.timeout(LONG):
        hearing = asyncio.ensure_future(anext(changes))
        await until_waiting(ledger)
        await writer.messages.append("t", [user("And in Oslo?")])
        change = await hearing
    await changes.aclose()
    assert (change.kind, change.seq, change.message) == (
        "appended",
        6,
        (await ledger.messages.history("t")).messages[5],
    )


# --- Each kind of change ----------------------------------------------------------------------------------------------


async def changes_of(writer: Ledger) -> AsyncIterator[str]:
    """Changes of every kind in turn, and the kinds that they are told as."""
    await writer.messages.append("t", [user("And in Oslo?", message_id="q")])
    yield "appended"
    async with writer.messages.stream(
        "t", message=ChatMessage.assistant(message_id="a"), pace=Pace(interval=0)
    ) as draft:
        yield "appended"
        await draft.feed("Rain")
        yield "grown"
        await draft.feed(" and wind.")
        yield "grown"
    yield "completed"
    with pytest.raises(KeyError):
        async with writer.messages.stream(
            "t", message=ChatMessage.assistant(message_id="b"), pace=Pace(interval=0)
        ) as draft:
            yield "appended"
            raise KeyError
    yield "completed"
    await writer.messages.revise("t", "q", user("And in Bergen?"))
    yield "revised"
    await writer.messages.remove("t", "q")
    yield "retracted"
    await writer.messages.pop("t")
    yield "retracted"
    await writer.messages.append("t", [user("1", message_id="1"), assistant("2", message_id="2")])
    yield "appended appended"
    await rewind_to(scope_of(writer), "t", 5)
    yield "rewound"
    await fork_at(scope_of(writer), "t", 5)
    yield "activated"
    await writer.messages.append("t", [user("Elsewhere?", message_id="elsewhere")])
    yield "appended"
    await writer.messages.revise("t", "first 0", user("What is the weather?"))  # which branch 0 stores
    yield "revised"
    await writer.messages.append("t", [user("Nowhere?", message_id="nowhere")], branch=0)
    await writer.branches.activate("t", 0)
    yield "activated appended"
    await writer.messages.append("t", [user("Anywhere?")], reply_to="first 4")
    yield "activated appended"


@pytest.mark.parametrize("deltas", [False, True])
async def test_each_kind_of_change_is_reported_once_and_in_order(ledger: Ledger, writer: Ledger, deltas: bool) -> None:
    """A reader may go on from each change on, and from the history of each state: it comes to the same end."""
    reader, others = await Reader.of(ledger, "t"), []
    async with aclosing(ledger.messages.follow("t", cursor=reader.cursor, deltas=deltas)) as changes:
        async for kinds in changes_of(writer):
            for kind in kinds.split():
                await reader.hear(changes, kind)
                others.append(reader.copy())
            assert reader.has(await writer.messages.history("t"))
            others.append(await Reader.of(writer, "t"))
    assert {change.kind for change in reader.told} == set(get_args(ThreadChangeKind)) - {"abandoned", "run"}
    assert [change.pieces is not None for change in reader.told if change.kind == "grown"] == [deltas] * 2
    for other in others:
        await other.catch_up(writer, deltas=deltas)
        assert other.has(await ledger.messages.history("t"))


@pytest.mark.parametrize("end", ["complete", "interrupted"])
async def test_a_mark_of_a_draft_goes_on_with_the_draft(ledger: Ledger, writer: Ledger, end: str) -> None:
    """Also where nothing tells of the time between: the draft is over, and other messages follow it."""
    async with writer.messages.stream("t", on_open_calls="close") as draft:
        readers = [await Reader.of(ledger, "t")]
        await draft.feed("Rain")
        await draft.flush()
        readers.append(await Reader.of(ledger, "t"))
        await (draft.complete() if end == "complete" else draft.interrupt())
    await writer.messages.append("t", [user("And in Oslo?")])
    for reader in readers:
        await reader.catch_up(ledger)
        assert [change.kind for change in reader.told] == ["completed", "appended"]
        assert reader.told[0].message is not None
        assert reader.told[0].message.state == end


async def test_more_changes_than_one_read_holds_are_reported_in_order(ledger: Ledger, writer: Ledger) -> None:
    reader = await Reader.of(ledger, "t")
    for gone in ("first 0", "first 4"):
        await writer.messages.append("t", [user(f"{one}") for one in range(60)])
        await writer.messages.remove("t", gone)
    await writer.messages.append("t", [user(f"{one}") for one in range(60)])
    await reader.catch_up(ledger)
    assert [change.kind for change in reader.told] == [*["appended"] * 60, "retracted"] * 2 + ["appended"] * 60


# --- The thread, its owner and the ledger -----------------------------------------------------------------------------


@pytest.mark.parametrize("gone", ["deleted", "erased", "made again"])
async def test_a_thread_that_is_gone_ends_its_followers(ledger: Ledger, writer: Ledger, gone: str) -> None:
    follower = asyncio.create_task(anext(ledger.messages.follow("t")))
    await until_waiting(ledger)
    if gone == "made again":  # in one transaction, so that the follower never sees that there is no thread
        async with writer.begin() as tx:
            await tx.threads.delete("t")
            await tx.threads.create("t")
            await tx.messages.append("t", turn("second "))
            await tx.messages.append("t", turn("third "))
    else:
        await (writer.erasures.erase(("thread", "t")) if gone == "erased" else writer.threads.delete("t"))
    with pytest.raises(ThreadNotFound):
        async with asyncio.timeout(LONG):
            await follower


async def test_a_user_follows_nobody_elses_thread(ledger: Ledger, writer: Ledger) -> None:
    await writer.user("ada").threads.create("ada's")
    cursor = (await writer.messages.history("ada's")).mark
    for other in (ledger.user("bob"), ledger.tenant("acme")):
        for after in (None, cursor):
            with pytest.raises(ThreadNotFound):
                await asyncio.wait_for(anext(other.messages.follow("ada's", cursor=after)), LONG)
    hearing = asyncio.create_task(anext(ledger.user("ada").messages.follow("ada's", cursor=cursor)))
    await writer.messages.append("ada's", [user("?")])
    async with asyncio.timeout(LONG):
        assert (await hearing).kind == "appended"


@pytest.mark.parametrize("after", ["", "x", "A" * 32, "A" * 60, "ä", "\ud800"])
async def test_a_text_that_is_no_cursor_is_refused(ledger: Ledger, writer: Ledger, after: str) -> None:
    with pytest.raises(InvalidCursor):
        ledger.messages.follow("t", cursor=Cursor(after))


async def test_a_cursor_of_another_thread_or_database_is_refused(ledger: Ledger, writer: Ledger) -> None:
    hearing = asyncio.create_task(anext(ledger.messages.follow("t")))
    await until_waiting(ledger)
    await writer.messages.append("t", [user("?")])
    cursor = (await hearing).cursor
    with pytest.raises(InvalidCursor):
        ledger.messages.follow("another", cursor=cursor)
    beyond = write_mark("t", 0, 7, 1)
    with pytest.raises(InvalidCursor):
        await anext(ledger.messages.follow("t", cursor=beyond))
    with pytest.raises(BranchNotFound):
        await anext(ledger.messages.follow("t", cursor=write_mark("t", 7, 0, 1)))


async def test_closing_the_ledger_ends_its_followers(database: Database, writer: Ledger) -> None:
    async with database.open() as ledger:
        waiting = asyncio.create_task(anext(ledger.messages.follow("t")))
        busy = ledger.messages.follow("t", cursor=(await ledger.messages.history("t", Oldest(0))).mark)
        await until_waiting(ledger)
        before = asyncio.all_tasks() - {waiting}
    for step in (waiting, anext(busy)):
        with pytest.raises(StorageError, match="closed"):
            await step
    assert asyncio.all_tasks() < before, "the poller is left"


async def test_a_follower_that_is_cancelled_or_closed_leaves_nothing(ledger: Ledger, writer: Ledger) -> None:
    before = asyncio.all_tasks()
    cancelled = asyncio.create_task(anext(ledger.messages.follow("t")))
    await until_waiting(ledger)
    poller = next(iter(ledger._guard._pollers.values()))
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert poller._task is not None
    await asyncio.wait_for(poller._task, LONG)
    changes = ledger.messages.follow("t", cursor=(await ledger.messages.history("t")).mark)
    await writer.messages.append("t", [user("?")])
    await asyncio.wait_for(anext(changes), LONG)
    await changes.aclose()
    await asyncio.wait_for(poller._task, LONG)
    assert asyncio.all_tasks() == before
    assert not poller._waiting


async def until_waiting(ledger: Ledger, followers: int = 1) -> None:
    """Waits until that many followers have read their threads and wait."""

    def waiting() -> int:
        return sum(len(poller._waiting) for poller in ledger._guard._pollers.values())

    async with asyncio.timeout(LONG):
        while waiting() < followers:  # noqa: ASYNC110 - nothing tells of the first read
            await asyncio.sleep(0.001)


@pytest.mark.plain
async def test_a_follower_waits_for_a_database_that_is_away(pg_database: Database) -> None:
    """Also one whose own read failed: the time limit of a call is over by then."""
    async with (
        pg_database.open() as writer,
        proxied(pg_database.url) as proxy,
        Ledger.open(proxy.url, timeout=0.2) as ledger,
    ):
        await writer.threads.create("t")
        reader = await Reader.of(writer, "t")
        proxy.down = True
        await proxy.close()
        async with aclosing(ledger.messages.follow("t", cursor=reader.cursor)) as changes:
            hearing = asyncio.create_task(reader.hear(changes, "appended"))
            with pytest.raises(StorageError):
                await ledger.messages.history("t")
            await asyncio.wait([hearing], timeout=0.3)
            proxy.down = False
            await writer.messages.append("t", [user("?")])
            await hearing


# --- Its cost ---------------------------------------------------------------------------------------------------------


@pytest.mark.plain
async def test_one_statement_asks_for_a_hundred_threads(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll of 100 followers, of a user's and of the tenant's ledger, is one round trip."""
    polls = count_calls(monkeypatch, poller, "_compare")
    async with (
        proxied(pg_database.url) as proxy,
        # Each connection prepares the statement, so this ledger has only one.
        Ledger.open(proxy.url, postgresql=PostgreSQL(pool_size=1, max_overflow=0)) as ledger,
        pg_database.open() as writer,
    ):
        for number in range(100):
            await writer.user("ada").threads.create(f"t{number}")
        views = (ledger, ledger.user("ada"))
        hearing = [asyncio.create_task(anext(views[number % 2].messages.follow(f"t{number}"))) for number in range(100)]
        await until_waiting(ledger, 100)
        trips = []
        for _ in range(3):
            before, polled = proxy.round_trips, len(polls)
            await until_called(polls, polled + 1)
            trips.append(proxy.round_trips - before)
        assert trips[1:] == [1, 1], "the first one may have been sent before"
        await writer.messages.append("t7", [user("?")])
        assert (await asyncio.wait_for(hearing[7], LONG)).thread_id == "t7"
        for task in hearing:
            task.cancel()
        await asyncio.gather(*hearing, return_exceptions=True)


async def test_a_poll_wakes_no_follower_that_came_during_it(
    ledger: Ledger, writer: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    polls, reads = count_calls(monkeypatch, poller, "_compare"), count_calls(monkeypatch, follower, "read_changes")
    states, asked, go_on = ledger._database.states, asyncio.Event(), asyncio.Event()

    async def held(followed: Sequence[Followed]) -> States:
        asked.set()
        found = await states(followed)
        await go_on.wait()
        return found

    monkeypatch.setattr(ledger._database, "states", held)
    await writer.threads.create("another")
    first = asyncio.create_task(anext(ledger.messages.follow("t")))
    async with asyncio.timeout(LONG):
        await asked.wait()
    second = asyncio.create_task(anext(ledger.messages.follow("another")))
    await until_waiting(ledger, 2)
    go_on.set()
    await until_called(polls, 3)
    assert len(reads) == 2, "a follower read again, though its thread had not moved"
    await writer.messages.append("another", [user("?")])
    assert (await asyncio.wait_for(second, LONG)).kind == "appended"
    first.cancel()


async def test_a_file_that_nobody_writes_to_is_not_read(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = count_calls(monkeypatch, sqlite, "read_states")
    monkeypatch.setattr(poller, "INTERVAL", 0.001)
    asked = count_calls(monkeypatch, sqlite._States, "read")
    async with sqlite_database.open() as ledger, sqlite_database.open() as writer:
        await writer.threads.create("t")
        hearing = asyncio.create_task(anext(ledger.messages.follow("t")))
        await until_called(asked, 10)
        assert len(read) == 1
        await writer.messages.append("t", [user("?")])
        assert (await asyncio.wait_for(hearing, LONG)).kind == "appended"


async def until_called(calls: list[int], times: int) -> None:
    async with asyncio.timeout(LONG):
        while len(calls) < times:  # noqa: ASYNC110 - nothing tells of a call
            await asyncio.sleep(0)


def count_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """A list that grows with each call of the method."""
    calls: list[int] = []
    original = getattr(owner, name)

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(1)
        return original(*given, **named)

    monkeypatch.setattr(owner, name, counted)
    return calls
