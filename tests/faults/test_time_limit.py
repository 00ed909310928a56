"""The time limit of reads and writes: they wait for a PostgreSQL that comes back, and end if it does not."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from chatledger import InvalidArgument, Ledger, Newest, StorageError, Turns
from chatledger.admin import migrate
from chatledger.storage.databases.retries import Retries
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import turn
from tests.faults.connections import busy, connections_of, set_limits
from tests.faults.proxy import Proxy, proxied
from tests.postgres import Server, own_server, stop

THREAD = "t"
RESTARTS = 3

Call = Callable[[Ledger], Awaitable[object]]


async def small(ledger: Ledger) -> None:
    assert (await ledger.messages.history(THREAD, Newest(5))).last_seq >= 5


async def whole(ledger: Ledger) -> None:
    assert (await ledger.messages.history(THREAD)).last_seq >= 5


async def turns(ledger: Ledger) -> None:
    assert (await ledger.messages.history(THREAD, Turns(1))).last_seq >= 5


async def get(ledger: Ledger) -> None:
    assert (await ledger.threads.get(THREAD)).thread_id == THREAD


async def check(ledger: Ledger) -> None:
    assert await findings_of(ledger, THREAD) == []


async def summary(ledger: Ledger) -> None:
    assert await ledger.feedback.summary() == []


async def position(ledger: Ledger) -> None:
    assert await ledger.position()


async def update_if_heard(ledger: Ledger) -> None:
    """Only a COMMIT without an answer may fail."""
    try:
        await update(ledger)
    except StorageError as error:
        if "during COMMIT" not in str(error):
            raise


async def update(ledger: Ledger) -> None:
    assert (await ledger.threads.update(THREAD, title="x")).title == "x"


READS: tuple[Call, ...] = (small, whole, turns, get, check, summary, position)
CALLS: tuple[Call, ...] = (*READS, update)


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[Proxy]:
    async with proxied(pg_database.url) as running:
        yield running


@pytest.fixture
async def ledger(proxy: Proxy) -> AsyncIterator[Ledger]:
    """A ledger behind the proxy, with a thread, whose one connection has prepared the statements of every call."""
    async with Ledger.open(proxy.url) as opened:
        await opened.threads.create(THREAD)
        await opened.messages.append(THREAD, turn())
        for call in CALLS:
            await call(opened)
        yield opened


@pytest.fixture
def retried(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
    """The number of further attempts of a call, by the error that it got."""
    asked: Counter[bool] = Counter()
    ask = Retries.next

    async def counted(self: Retries, **options: Any) -> bool:
        told = await ask(self, **options)
        asked[told] += 1
        return told

    monkeypatch.setattr(Retries, "next", counted)
    return asked


# --- The server restarts ----------------------------------------------------------------------------------------------


@pytest.fixture
def restarted_server() -> Iterator[Server]:
    """A PostgreSQL of this test's own: the others need theirs."""
    with own_server() as running:
        yield running


def restart(server: Server) -> None:
    """As an administrator does: the server ends all sessions, and takes new ones once it is up again."""
    assert server.process is not None
    assert server.start_again is not None
    stop(server.process)
    server.process = server.start_again()


async def test_no_call_fails_while_the_server_restarts(restarted_server: Server, retried: Counter[bool]) -> None:
    """With a longer limit than the default, because a restart may be slow on a busy machine."""
    await asyncio.to_thread(migrate, restarted_server.url)
    calls = (*READS, update_if_heard)
    done: Counter[str] = Counter()
    ended = False

    async def go_on(call: Call) -> None:
        while not ended:
            await call(ledger)
            done[call.__name__] += 1

    async def progress() -> None:
        """Until every call was made twice more, so that at least one of the two began after now."""
        enough = {call.__name__: done[call.__name__] + 2 for call in calls}
        while any(done[name] < least for name, least in enough.items()):
            await asyncio.sleep(0.005)
            for task in tasks:
                if task.done():  # it ends by failing alone
                    task.result()

    async with Ledger.open(restarted_server.url, timeout=60) as ledger:
        await ledger.threads.create(THREAD)
        await ledger.messages.append(THREAD, turn())
        tasks = [asyncio.create_task(go_on(call)) for call in calls for _ in range(2)]
        try:
            for _ in range(RESTARTS):
                await progress()
                await asyncio.to_thread(restart, restarted_server)
            await progress()
        finally:
            ended = True
            await asyncio.gather(*tasks)
        assert busy(ledger) == 0
    assert retried[True] >= RESTARTS
    assert not retried[False]


# --- The server stays away --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_tries_again_until_its_limit(
    ledger: Ledger, proxy: Proxy, retried: Counter[bool], call: Call
) -> None:
    set_limits(ledger, timeout=0.3)
    proxy.down = True
    proxy.cut("before", 1)
    with pytest.raises(StorageError) as caught:
        await call(ledger)
    assert caught.value.retryable
    assert retried[True] > 1
    assert retried[False] == 1
    proxy.down = False
    await call(ledger)
    assert busy(ledger) == 0


@pytest.mark.parametrize("call", [*READS, update_if_heard])
async def test_a_connection_lost_at_any_round_trip_costs_another_attempt(
    ledger: Ledger, proxy: Proxy, call: Call
) -> None:
    for trip in itertools.count(1):
        proxy.cut("before", trip)
        await call(ledger)
        if not proxy.spare():
            break
    assert trip > 1
    assert busy(ledger) == 0


async def test_a_write_whose_commit_has_no_answer_is_not_sent_again(
    ledger: Ledger, proxy: Proxy, retried: Counter[bool]
) -> None:
    """It may have happened, and a second one might not do the same."""

    def then_cut(_: object) -> None:
        proxy.cut("after", 1)

    with pytest.raises(StorageError, match="during COMMIT") as caught:
        await ledger._scope.write(then_cut)
    assert not caught.value.retryable
    assert not retried


async def test_a_transaction_is_not_tried_again(ledger: Ledger, proxy: Proxy, retried: Counter[bool]) -> None:
    """Its reads and writes so far were lost with its connection."""
    with pytest.raises(StorageError) as caught:
        async with ledger.begin() as tx:
            await tx.threads.get(THREAD)
            proxy.cut("before", 1)
            await tx.threads.get(THREAD)
    assert caught.value.retryable
    assert not retried
    assert busy(ledger) == 0


async def test_dead_connections_in_the_pool_cost_no_pause(
    ledger: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them is found dead by its use, and only then a new one is made."""
    paused: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        paused.append(seconds)
        await sleep(seconds)

    all_begun = asyncio.Barrier(8)

    async def hold() -> None:
        async with ledger.begin() as tx:
            await tx.threads.get(THREAD)
            await all_begun.wait()

    await asyncio.gather(*(hold() for _ in range(8)))
    assert connections_of(ledger).unused == 8
    await proxy.close()
    monkeypatch.setattr(asyncio, "sleep", noted)
    await small(ledger)
    await get(ledger)
    assert sum(paused) == 0


# --- The server says nothing ------------------------------------------------------------------------------------------


async def test_a_small_history_leaves_a_silent_connection_for_another(ledger: Ledger, proxy: Proxy) -> None:
    set_limits(ledger, response_timeout=0.2)
    connections = proxy.connections
    proxy.cut("hang", 1)
    await asyncio.wait_for(small(ledger), 30)
    assert proxy.connections > connections
    assert busy(ledger) == 0


@pytest.mark.parametrize("call", [whole, turns, get, check, summary, position])
async def test_a_read_ends_whichever_answer_does_not_come(ledger: Ledger, proxy: Proxy, call: Call) -> None:
    """At each of its round trips: with an error, or with the answer of another connection."""
    errors: list[StorageError] = []
    for trip in itertools.count(1):
        await call(ledger)
        set_limits(ledger, timeout=0.2, response_timeout=0.1)
        proxy.cut("hang", trip)
        try:
            await asyncio.wait_for(call(ledger), 30)
        except StorageError as error:
            errors.append(error)
        if not proxy.spare():
            break
        assert busy(ledger) == 0
        set_limits(ledger, timeout=10, response_timeout=5)
    assert trip > 1
    assert all(error.retryable for error in errors)


async def test_the_time_limit_does_not_end_a_running_write(ledger: Ledger) -> None:
    """A deletion takes as long as its thread is long."""
    set_limits(ledger, timeout=0.1)
    assert await ledger._scope.write(lambda sql: sql.fetch("SELECT 1 FROM pg_sleep(0.5)", {})[0][0]) == 1


async def test_a_read_that_takes_longer_than_the_limit_says_so(ledger: Ledger) -> None:
    set_limits(ledger, timeout=0.1)
    with pytest.raises(StorageError, match="no answer within the time limit") as caught:
        await ledger._scope.read(lambda sql: sql.fetch("SELECT 1 FROM pg_sleep(30)", {}))
    assert caught.value.retryable


# --- The limit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 10**400, 86_401])
def test_a_time_limit_is_positive_and_at_most_a_day(timeout: float) -> None:
    with pytest.raises(InvalidArgument, match="timeout must be more than 0 and at most 86,400 seconds"):
        Ledger.open("never.db", timeout=timeout)


async def test_a_ledger_on_a_file_waits_for_a_lock_as_long_as_it_was_told(sqlite_database: Database) -> None:
    async with sqlite_database.open(timeout=3.5) as ledger:
        read = await ledger._scope.read(lambda sql: sql._fetch("PRAGMA busy_timeout", {}))
        written = await ledger._scope.write(lambda sql: sql.fetch("PRAGMA busy_timeout", {}))
    assert [tuple(row) for row in (*read, *written)] == [(3_500,), (3_500,)]
