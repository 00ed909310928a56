"""Appends to different threads of one tenant share a statement while another is in flight. None waits for a lock that
is in another's way.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine, Sequence
from datetime import timedelta
from typing import Any

import pytest

from chatledger import Appended, ChatMessage, Ledger, Oldest, PostgreSQL, TextPart, Transaction
from chatledger.errors import IdConflict, RunConflict
from chatledger.storage.append import attempt
from chatledger.storage.append.write import ACTIVITY_RESOLUTION
from chatledger.storage.databases.postgresql import append_queue
from chatledger.storage.drivers import urls
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, texts, turn
from tests.faults.proxy import Proxy, proxied
from tests.storage.raw import query

THREADS = [f"t{number}" for number in range(8)]


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[Proxy]:
    async with proxied(pg_database.url) as running:
        yield running


@pytest.fixture
async def ledger(proxy: Proxy) -> AsyncIterator[Ledger]:
    """A ledger that has the tips of its threads in its cache, and connections that are open."""
    async with Database("postgresql", proxy.url).open() as opened:
        await opened.threads.create("first")
        await opened.messages.append("first", [assistant("hello")])
        for thread_id in THREADS:
            await opened.threads.create(thread_id)
            await opened.messages.append(thread_id, [assistant("hello")])
        for _ in range(2):  # prepares the statements on more than one connection
            await queued(opened, *(opened.messages.append(one, [assistant("before")]) for one in THREADS))
        yield opened


async def queued(ledger: Ledger, *calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """The outcomes of calls that begin while another append is in flight."""
    ahead = asyncio.create_task(ledger.messages.append("first", [assistant("ahead")]))
    await asyncio.sleep(0)
    outcomes = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 20)
    await ahead
    return list(outcomes)


async def last_texts(ledger: Ledger, count: int = 1) -> list[list[str]]:
    return [texts(await ledger.messages.history(one))[-count:] for one in THREADS]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which all appends of a test are within a second, after which one notes the activity of its thread
    too, with a statement that no connection has prepared.
    """
    monkeypatch.setattr(attempt, "ACTIVITY_RESOLUTION", timedelta(days=1))


@pytest.mark.usefixtures("quick")
@pytest.mark.one_statement
async def test_appends_to_several_threads_share_the_statements_that_may_be_in_flight(
    ledger: Ledger, proxy: Proxy
) -> None:
    before = proxy.round_trips
    done = await queued(ledger, *(ledger.messages.append(one, [assistant(f"to {one}")]) for one in THREADS))
    assert proxy.round_trips - before == append_queue.MOST_RUNNING  # the one ahead is the first
    assert [(one.messages[0].seq, one.last_seq) for one in done] == [(4, 4)] * len(THREADS)
    assert await last_texts(ledger) == [[f"to {one}"] for one in THREADS]


async def test_an_append_that_nothing_precedes_keeps_its_own_statement(ledger: Ledger, pg_database: Database) -> None:
    async with pg_database.open() as other:  # a writer in another process
        await other.messages.append("t0", [assistant("of another")])
        assert (await ledger.messages.append("t0", [assistant("alone")])).last_seq == 5


async def test_turns_of_any_shape_are_stored_as_they_are_returned(ledger: Ledger) -> None:
    """With ids of the caller's own and without, with calls, parts, runs, and several of one thread."""
    calls = [ledger.messages.append(one, turn(), run_id=f"run of {one}") for one in THREADS[:4]]
    calls += [ledger.messages.append("t4", [assistant(f"{n}", message_id=f"own {n}")]) for n in range(3)]
    calls += [
        ledger.messages.append("t5", [ChatMessage(role="assistant", content=[TextPart(text="a"), TextPart(text="b")])])
    ]
    done: Sequence[Appended] = await queued(ledger, *calls)
    stored: list[ChatMessage] = []
    for thread_id in THREADS[:4]:
        stored += (await ledger.messages.history(thread_id, Oldest(1_000, after=3), branch=0)).messages
        assert (await ledger.runs.get(f"run of {thread_id}")).status == "running"
    for thread_id in ("t4", "t5"):
        stored += (await ledger.messages.history(thread_id, Oldest(1_000, after=3), branch=0)).messages
    assert [message for one in done for message in one.messages] == stored
    for thread_id in THREADS:
        assert await findings_of(ledger, thread_id) == []


async def test_tenants_and_branches_do_not_mix(ledger: Ledger, proxy: Proxy) -> None:
    other = ledger.tenant("another")
    await other.threads.create("t0")
    await other.messages.append("t0", [assistant("of the other tenant")])
    await ledger.messages.append("t0", [assistant("named")], branch=0)
    await ledger.messages.append("t0", [assistant("active")])
    before = proxy.round_trips
    done = await queued(
        ledger,
        ledger.messages.append("t0", [assistant("a")]),
        ledger.messages.append("t0", [assistant("b")], branch=0),  # the same branch by its number
        other.messages.append("t0", [assistant("c")]),
        ledger.messages.append("t1", [assistant("d")]),
    )
    assert [one.last_seq for one in done] == [6, 7, 2, 4]
    assert texts(await other.messages.history("t0"))[-1] == "c"
    assert proxy.round_trips - before > 3
    for view in (ledger, other):
        assert await findings_of(view, "t0") == []


async def test_a_transaction_that_holds_a_branch_delays_only_the_append_to_it(
    ledger: Ledger, pg_database: Database
) -> None:
    async with pg_database.open() as other, other.begin() as transaction:
        await transaction.messages.append("t0", [assistant("held")])
        held = asyncio.create_task(ledger.messages.append("t0", [assistant("waits")]))
        rest = await queued(ledger, *(ledger.messages.append(one, [assistant("goes on")]) for one in THREADS[1:]))
        assert [one.last_seq for one in rest] == [4] * 7
        assert not held.done()
    assert (await held).last_seq == 5


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server on which the append to a locked branch waits for longer than the test takes."""
    monkeypatch.setattr(urls, "LOCK_WAIT", 60)


@pytest.mark.usefixtures("patient", "quick")
@pytest.mark.one_statement
async def test_a_branch_that_is_locked_when_the_statement_comes_is_skipped(
    ledger: Ledger, proxy: Proxy, pg_database: Database
) -> None:
    async with pg_database.open() as other, other.begin() as transaction:
        await transaction.messages.append("t0", [assistant("held")])
        before = proxy.round_trips
        calls = [ledger.messages.append(one, [assistant("goes on")]) for one in THREADS]
        ahead = asyncio.create_task(ledger.messages.append("first", [assistant("ahead")]))
        await asyncio.sleep(0)
        tasks = [asyncio.create_task(one) for one in calls]
        await asyncio.wait_for(asyncio.gather(ahead, *tasks[1:]), 20)
        assert proxy.round_trips - before <= 2 + 4  # the append to the locked branch looks and writes by itself
        assert not tasks[0].done()
    assert [(await one).last_seq for one in tasks] == [5] + [4] * 7


async def test_a_transaction_that_inserts_a_run_delays_only_the_append_of_that_run(
    ledger: Ledger, pg_database: Database
) -> None:
    async with pg_database.open() as other, other.begin() as transaction:
        await transaction.runs.start("t0", run_id="r")
        calls = [
            ledger.messages.append(one, [assistant("goes on")], run_id="r" if one == "t0" else None) for one in THREADS
        ]
        ahead = asyncio.create_task(ledger.messages.append("first", [assistant("ahead")]))
        await asyncio.sleep(0)
        tasks = [asyncio.create_task(one) for one in calls]
        await asyncio.wait_for(asyncio.gather(ahead, *tasks[1:]), 20)
        assert not tasks[0].done()
        assert ledger.metrics().lost_connections == 0  # they would go on too once the shared statement is given up
    assert [(await one).last_seq for one in tasks] == [4] * 8


async def held_by(transaction: Transaction, ledger: Ledger, threads: Sequence[str]) -> list[asyncio.Task[Appended]]:
    """Appends to threads whose branches the transaction holds, one after the other."""
    for thread_id in threads:
        await transaction.messages.append(thread_id, [assistant("held")])
    waiting = []
    for thread_id in threads:
        waiting.append(asyncio.create_task(ledger.messages.append(thread_id, [assistant("waits")])))
        await asyncio.sleep(0.01)
    return waiting


async def test_appends_that_wait_for_locks_let_others_pass(ledger: Ledger, pg_database: Database) -> None:
    """More of them than there may be statements in flight. The first of them share with nobody."""
    blocked = THREADS[: append_queue.MOST_RUNNING + 2]
    async with pg_database.open() as other, other.begin() as transaction:
        waiting = await held_by(transaction, ledger, blocked)
        for number in range(5):
            done = await asyncio.wait_for(ledger.messages.append("t7", [assistant("goes on")]), 20)
            assert done.last_seq == 4 + number
        assert not any(one.done() for one in waiting)
    assert [(await one).last_seq for one in waiting] == [5] * len(blocked)


@pytest.mark.parametrize("distributed", [False, True])
async def test_appends_that_cannot_share_a_statement_wait_for_nobody(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch, distributed: bool
) -> None:
    """Threads that the process does not know yet, and all threads of a distributed database."""
    monkeypatch.setattr(append_queue, "STALLED_AFTER", 3_600)
    async with pg_database.open() as other, pg_database.open(postgresql=PostgreSQL(distributed=distributed)) as ledger:
        for thread_id in THREADS:
            await other.threads.create(thread_id)
        async with other.begin() as transaction:
            for thread_id in THREADS[:-1]:
                await transaction.messages.append(thread_id, [assistant("held")])
            waiting = [asyncio.create_task(ledger.messages.append(one, [assistant("waits")])) for one in THREADS[:-1]]
            await asyncio.sleep(0)
            done = await asyncio.wait_for(ledger.messages.append(THREADS[-1], [assistant("goes on")]), 20)
            assert done.last_seq == 1
            assert not any(one.done() for one in waiting)
        assert [(await one).last_seq for one in waiting] == [2] * len(waiting)


async def test_a_tenant_does_not_wait_for_the_statements_of_another(
    ledger: Ledger, pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_queue, "STALLED_AFTER", 3_600)
    other = ledger.tenant("another")
    for thread_id in THREADS[:2]:
        await other.threads.create(thread_id)
        await other.messages.append(thread_id, [assistant("hello")])
    blocked = THREADS[: append_queue.MOST_RUNNING]
    async with pg_database.open() as holder, holder.begin() as transaction:
        waiting = await held_by(transaction, ledger, blocked)
        calls = [other.messages.append(thread_id, [assistant("goes on")]) for thread_id in THREADS[:2]]
        assert [one.last_seq for one in await asyncio.wait_for(asyncio.gather(*calls), 20)] == [2, 2]
        assert not any(one.done() for one in waiting)
    await asyncio.gather(*waiting)


async def test_only_the_refused_append_of_several_threads_gets_the_error(ledger: Ledger) -> None:
    await ledger.messages.append("t0", [assistant("given", message_id="taken")])
    await ledger.runs.start("t1", run_id="of t1")
    done = await queued(
        ledger,
        ledger.messages.append("t0", [assistant("another", message_id="taken")]),
        ledger.messages.append("t2", [assistant("goes on")]),
        ledger.messages.append("t3", [assistant("goes on")], run_id="of t1"),
        ledger.messages.append("t4", [assistant("goes on")]),
    )
    assert [type(one) for one in done] == [IdConflict, Appended, RunConflict, Appended]
    assert [text for (text,) in await last_texts(ledger)] == ["given", "before", "goes on", "before", "goes on"] + [
        "before"
    ] * 3


async def test_a_thread_that_another_process_moved_is_skipped(
    ledger: Ledger, proxy: Proxy, pg_database: Database
) -> None:
    async with pg_database.open() as other:
        await other.messages.append("t0", [assistant("of another")])
    done = await queued(ledger, *(ledger.messages.append(one, [assistant("goes on")]) for one in THREADS))
    assert [one.last_seq for one in done] == [5] + [4] * 7


async def test_a_thread_that_another_process_deleted_is_missed_alone(ledger: Ledger, pg_database: Database) -> None:
    async with pg_database.open() as other:
        await other.threads.delete("t0")
    done = await queued(ledger, *(ledger.messages.append(one, [assistant("goes on")]) for one in THREADS))
    assert [type(one).__name__ for one in done] == ["ThreadNotFound"] + ["Appended"] * 7


async def test_a_thread_that_another_process_created_again_begins_anew(ledger: Ledger, pg_database: Database) -> None:
    async with pg_database.open() as other:
        await other.threads.delete("t0")
        await other.threads.create("t0")
    done = await queued(ledger, *(ledger.messages.append(one, [assistant("goes on")]) for one in THREADS))
    assert [one.last_seq for one in done] == [1] + [4] * 7


async def test_appends_of_a_group_renew_when_their_threads_were_active(ledger: Ledger, pg_database: Database) -> None:
    await query(pg_database, "UPDATE threads SET active_at = '2020-01-01T00:00:00+00:00'")
    async with pg_database.open() as fresh:  # knows of no time
        for thread_id in ("first", *THREADS):
            await fresh.messages.append(thread_id, [assistant("again")])
        await query(pg_database, "UPDATE threads SET active_at = '2020-01-01T00:00:00+00:00'")
        await asyncio.sleep(ACTIVITY_RESOLUTION.total_seconds())
        await queued(fresh, *(fresh.messages.append(one, [assistant("goes on")]) for one in THREADS))
        threads = [await fresh.threads.get(one) for one in THREADS]
        assert all(one.active_at.year > 2020 for one in threads)


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_statement_of_several_threads_that_is_cut_is_stored_once(
    ledger: Ledger, proxy: Proxy, where: Any
) -> None:
    proxy.cut(where, 2)  # the one ahead runs alone
    done = await queued(ledger, *(ledger.messages.append(one, [assistant(f"to {one}")]) for one in THREADS))
    assert proxy.spare()
    assert [one.last_seq for one in done] == [4] * 8
    assert await last_texts(ledger, 2) == [["before", f"to {one}"] for one in THREADS]


@pytest.mark.parametrize("seed", range(3))
async def test_acknowledged_appends_are_stored_once_whichever_are_cancelled(pg_database: Database, seed: int) -> None:
    chance = random.Random(seed)
    async with pg_database.open() as ledger:
        views = [ledger.tenant(name) for name in ("a", "b", "c")]
        for view in views:
            for thread_id in THREADS[:4]:
                await view.threads.create(thread_id)
        tasks: dict[asyncio.Task[Appended], tuple[Ledger, str, str]] = {}
        for number in range(300):
            place = chance.choice(views), chance.choice(THREADS[:4]), f"m{number}"
            if tasks and chance.random() < 0.2:  # a repeat
                place = chance.choice(list(tasks.values()))
            view, thread_id, message_id = place
            call = view.messages.append(thread_id, [assistant(f"says {message_id}", message_id=message_id)])
            tasks[asyncio.create_task(call)] = place
            if chance.random() < 0.2:  # one that has run to any await, or not yet
                await asyncio.sleep(0)
                running = [task for task in tasks if not task.done()]
                chance.choice(running or list(tasks)).cancel()
            if chance.random() < 0.05:
                await asyncio.sleep(chance.random() / 100)
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
        stored = {
            (view, thread_id): [one.message_id for one in await view.messages.history(thread_id)]
            for view in views
            for thread_id in THREADS[:4]
        }
        for task, (view, thread_id, message_id) in tasks.items():
            count = stored[view, thread_id].count(message_id)
            assert task.cancelled() or task.exception() is None
            assert count == 1 if not task.cancelled() else count <= 1
        assert sum(task.cancelled() for task in tasks) > 5
        assert ledger._database._queues._queues == {}
