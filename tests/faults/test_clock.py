"""A clock set back a day: time is data here, and never order. Nor does the clock of a process move a lease."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from datetime import datetime, timedelta, tzinfo
from typing import Any

import pytest

from chatledger import Ledger, ids
from chatledger.repositories import scope_of
from chatledger.storage.append import request
from chatledger.storage.repositories import branches, feedback, runs, threads
from chatledger.storage.repositories.branches import fork_at
from tests.conftest import Database
from tests.conversations import user
from tests.faults.checker import verdict
from tests.faults.recording import Recorder, Recording
from tests.leases import pass_time

DAY = timedelta(days=1)


class Yesterday(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return datetime.now(tz) - DAY


def set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (branches, feedback, request, runs, threads):
        monkeypatch.setattr(module, "datetime", Yesterday)
    now = time.time_ns
    monkeypatch.setattr("chatledger.ids.time.time_ns", lambda: now() - int(DAY.total_seconds() * 1e9))


async def test_order_is_commit_order_whatever_the_clock_says(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording()
    async with database.open() as ledger, database.open() as other:
        await ledger.threads.create("t")
        await Recorder(ledger, recording).append("n5", "t")
        with monkeypatch.context() as patch:
            set_back(patch)
            for number in range(3):
                await Recorder((ledger, other)[number % 2], recording).append(f"yesterday {number}", "t")
            fork = await fork_at(scope_of(ledger), "t", 2, activate=False)
            await Recorder(other, recording).append("on a fork", "t", branch=fork.branch)
        await Recorder(other, recording).append("today again", "t")
        await Recorder(ledger, recording).read("t")
        assert (await verdict(database, ledger, ["t"], recording)).acknowledged == 6
        history = (await ledger.messages.history("t")).messages
        times = [message.created_at for message in history if message.created_at is not None]
        assert times != sorted(times)
        assert times[0] - DAY < times[-1]


async def test_ids_that_the_ledger_makes_stay_different(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ids.new_ids(1_000)
    set_back(monkeypatch)
    assert len({*before, *ids.new_ids(1_000)}) == 2_000


# --- Leases -----------------------------------------------------------------------------------------------------------


def process(database: Database, hours: float, lease: float) -> subprocess.Popen[str]:
    """With a clock that goes so many hours before ours."""
    program = [sys.executable, "-m", "tests.faults.shifted_clock", database.url, str(hours), str(lease)]
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def tell(other: subprocess.Popen[str], line: str) -> str:
    assert other.stdin is not None
    assert other.stdout is not None
    print(line, file=other.stdin, flush=True)
    return other.stdout.readline().strip()


@asynccontextmanager
async def two_hours_apart(
    database: Database, ledger: Ledger, lease: float, hours: float
) -> AsyncIterator[list[subprocess.Popen[str]]]:
    """A process that writes a draft, and one whose clock differs from its by two hours."""
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?", message_id="q")])
    with ExitStack() as stack:
        both = [stack.enter_context(process(database, by, lease)) for by in (hours, -hours)]
        for started in both:
            stack.callback(started.kill)
        assert await asyncio.to_thread(tell, both[0], "write") == "writes"
        yield both


@pytest.mark.parametrize("hours", [1, -1])
async def test_the_clock_of_a_process_ends_no_lease(pg_database: Database, hours: float) -> None:
    async with pg_database.open() as ledger, two_hours_apart(pg_database, ledger, 600, hours) as (_, other):
        wanted = {
            "list_abandoned": "0 abandoned",
            "append": "waits for its lease",
            "remove": "waits",
            "take_over": "waits",
        }
        assert {line: await asyncio.to_thread(tell, other, line) for line in wanted} == wanted
        assert await ledger.drafts.list(abandoned_for=0) == []


@pytest.mark.parametrize("ending", ["append", "take_over"])
@pytest.mark.parametrize("hours", [1, -1])
async def test_the_clock_of_a_process_keeps_no_lease(pg_database: Database, hours: float, ending: str) -> None:
    async with pg_database.open() as ledger, two_hours_apart(pg_database, ledger, 7_200, hours) as (writer, other):
        writer.kill()
        assert await asyncio.to_thread(tell, other, ending) == {"append": "waits for its lease"}.get(ending, "waits")
        await pass_time(ledger, 7_201)
        assert await asyncio.to_thread(tell, other, "list_abandoned") == "1 abandoned"
        whole = {"append": "appends", "take_over": "Rain. Sunny. complete"}
        assert await asyncio.to_thread(tell, other, ending) == whole[ending]
