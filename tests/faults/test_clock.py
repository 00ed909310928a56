"""A clock set back a day: time is data here, and never order."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, tzinfo
from typing import Any

import pytest

from chatledger import ids
from chatledger.repositories import scope_of
from chatledger.storage.append import request
from chatledger.storage.repositories import branches, feedback, runs, threads
from chatledger.storage.repositories.branches import fork_at
from tests.conftest import Database
from tests.faults.checker import verdict
from tests.faults.recording import Recorder, Recording

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
