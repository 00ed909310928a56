"""A statement that nobody heard of may still run: until then, no append of it is said to be refused."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from chatledger import Appended, ChatMessage, Ledger, RuleViolation
from chatledger.errors import OutcomeUnknown, RunConflict
from tests.conftest import Database
from tests.conversations import assistant, call, result, user
from tests.faults.connections import busy, set_limits
from tests.storage.raw import query

OURS = "FROM pg_stat_activity WHERE application_name = 'chatledger' AND datname = current_database()"


def asks(name: str) -> list[ChatMessage]:
    return [user("?", message_id=f"{name} asks"), assistant(calls=[call(name)], message_id=f"{name} calls")]


def answers(name: str) -> list[ChatMessage]:
    return [result(name, message_id=f"{name} answers"), assistant("Sunny.", message_id=f"{name} says")]


def at_once(ledger: Ledger, name: str) -> list[asyncio.Task[Appended]]:
    """One append ahead, and two others that share a statement: a call, and what answers it."""
    batches = [("ahead", [assistant(name)]), ("t", asks(name)), ("t", answers(name))]
    return [asyncio.create_task(ledger.messages.append(*one)) for one in batches]


@pytest.fixture
async def ledger(pg_database: Database) -> AsyncIterator[Ledger]:
    """Its connections have prepared the statement of such a group."""
    async with pg_database.open() as opened:
        for thread_id in ("ahead", "t"):
            await opened.messages.append(thread_id, [assistant("hello")], create=True)
        for number in range(6):
            await asyncio.gather(*at_once(opened, f"warm {number}"))
        yield opened


async def sent(ledger: Ledger) -> None:
    """Until the statement of the group is sent, which nobody reads."""
    while busy(ledger) < 2:  # noqa: ASYNC110 - a test may poll
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)


@contextmanager
def stopped(backends: list[int]) -> Iterator[None]:
    for pid in backends:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in backends:
            os.kill(pid, signal.SIGCONT)


async def backends(database: Database) -> list[int]:
    return [pid for (pid,) in await query(database, f"SELECT pid {OURS}")]


async def gone(database: Database, pids: list[int]) -> None:
    """Until these backends have ended, and so have run what they had."""
    while set(pids) & set(await backends(database)):  # noqa: ASYNC110 - the server tells nobody
        await asyncio.sleep(0.01)


async def test_a_refusal_is_unknown_while_the_statement_of_the_group_may_still_run(
    ledger: Ledger, pg_database: Database
) -> None:
    set_limits(ledger, response_timeout=0.5, timeout=30)
    pids = await backends(pg_database)
    with stopped(pids):
        ahead, asking, answering = at_once(ledger, "late")
        await sent(ledger)
        asking.cancel()
        with pytest.raises(OutcomeUnknown) as caught:
            await asyncio.wait_for(answering, 20)
        assert isinstance(caught.value.__cause__, RuleViolation)
        await ahead
    await gone(pg_database, pids)
    stored = [message.message_id for message in await ledger.messages.history("t")]
    assert stored[-4:] == ["late asks", "late calls", "late answers", "late says"]  # so the refusal would be a lie
    assert (await ledger.messages.append("t", answers("late"))).replayed


async def test_a_refusal_is_final_once_the_branch_has_moved(ledger: Ledger, pg_database: Database) -> None:
    """The statement writes only on the tip that it was judged on."""
    set_limits(ledger, response_timeout=0.5, timeout=30)
    pids = await backends(pg_database)
    async with pg_database.open() as other:
        with stopped(pids):
            ahead, asking, answering = at_once(ledger, "late")
            await sent(ledger)
            asking.cancel()
            await other.messages.append("t", [assistant("of another")])
            with pytest.raises(RuleViolation):
                await asyncio.wait_for(answering, 20)
            await ahead
    await gone(pg_database, pids)
    assert [message.text for message in await ledger.messages.history("t")][-1] == "of another"


async def test_a_run_conflict_is_unknown_while_a_statement_may_still_run(ledger: Ledger, pg_database: Database) -> None:
    """The append was alone, and another thread took its run meanwhile."""
    set_limits(ledger, response_timeout=0.5, timeout=30)
    for number in range(3):
        await ledger.messages.append("t", [assistant("warm")], run_id=f"warm {number}")
    pids = await backends(pg_database)
    async with pg_database.open() as other:
        await other.threads.create("s")
        with stopped(pids):
            appending = asyncio.create_task(ledger.messages.append("t", [assistant("late")], run_id="r"))
            await asyncio.sleep(0.1)
            await other.runs.start("s", run_id="r")
            with pytest.raises(OutcomeUnknown) as caught:
                await asyncio.wait_for(appending, 20)
            assert isinstance(caught.value.__cause__, RunConflict)


async def test_an_append_that_only_looked_is_refused_for_certain(ledger: Ledger, pg_database: Database) -> None:
    """No statement that writes was sent."""
    set_limits(ledger, response_timeout=0.5, timeout=30)
    pids = await backends(pg_database)
    with stopped(pids):
        appending = asyncio.create_task(ledger.messages.append("t", [result("nobody called")]))
        with pytest.raises(RuleViolation):
            await asyncio.wait_for(appending, 20)
