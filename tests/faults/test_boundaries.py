"""The connection dropped at every message of an append, of a transaction and of a read, in either direction."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from chatledger import Ledger, StorageError
from chatledger.storage import append as append_module
from tests.conftest import Database
from tests.conversations import turn
from tests.faults.boundaries import Boundary, BoundaryProxy, Side, bounded
from tests.faults.checker import verdict
from tests.faults.connections import connections_of
from tests.faults.recording import Recorder, Recording
from tests.storage.raw import query

THREAD = "t"


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[BoundaryProxy]:
    async with bounded(pg_database.url) as running:
        yield running


@pytest.fixture
async def ledger(proxy: BoundaryProxy) -> AsyncIterator[Ledger]:
    async with Ledger.open(proxy.url) as opened:
        await opened.threads.create(THREAD)
        yield opened


async def remembered(ledger: Ledger) -> None:
    """A connection that has prepared everything, and a tip in memory."""


async def forgotten(ledger: Ledger) -> None:
    """As if another process had written last: the append looks first."""
    ledger._database._append._tips._seen.clear()  # type: ignore[attr-defined]


async def cold(ledger: Ledger) -> None:
    """No connection: it is made, and what it says is prepared, within the append."""
    await forgotten(ledger)
    connections_of(ledger).close()
    await ledger._database._engine.dispose()  # type: ignore[attr-defined]


Before = Callable[[Ledger], Awaitable[None]]


async def boundaries(proxy: BoundaryProxy, side: Side, one: Callable[[Boundary], Awaitable[None]]) -> int:
    """Cut at the first boundary of that side, the second, … until nothing is left to cut; how many there were."""
    for after in itertools.count():
        await one(Boundary(side, after))
        if not proxy.spare():
            return after
    raise AssertionError


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(("before", "least"), [(remembered, 3), (forgotten, 6), (cold, 15)])
async def test_an_append_cut_at_any_message_is_stored_once(
    ledger: Ledger, proxy: BoundaryProxy, pg_database: Database, side: Side, before: Before, least: int
) -> None:
    recording = Recording()
    recorder = Recorder(ledger, recording)
    for number in range(8):
        await recorder.append(f"first {number}", THREAD)  # every shape of batch is prepared

    async def one(boundary: Boundary) -> None:
        await recorder.append(f"n5 {side} warm {boundary.after}", THREAD)
        await before(ledger)
        proxy.cut(boundary)
        await recorder.append(f"n5 {side} {boundary.after}", THREAD)
        recording.faults += 1
        assert connections_of(ledger).busy == 0

    assert await boundaries(proxy, side, one) >= least
    await verdict(pg_database, ledger, [THREAD], recording)


@pytest.mark.parametrize("side", ["client", "server"])
async def test_an_append_under_the_lock_cut_at_any_message_is_stored_once(
    ledger: Ledger, proxy: BoundaryProxy, pg_database: Database, side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second attempt, in a transaction: before and after COMMIT reaches the server."""
    recording = Recording()
    recorder = Recorder(ledger, recording)
    written = append_module.__dict__["write"]

    async def one(boundary: Boundary) -> None:
        await recorder.append(f"warm {boundary.after}", THREAD)

        def moved(*arguments: Any) -> None:
            monkeypatch.setattr(append_module, "write", written)
            proxy.cut(boundary)

        await forgotten(ledger)
        monkeypatch.setattr(append_module, "write", moved)
        await recorder.append(f"n5 {boundary.after}", THREAD)
        assert connections_of(ledger).busy == 0

    assert await boundaries(proxy, side, one) >= 10
    await verdict(pg_database, ledger, [THREAD], recording)


@pytest.mark.parametrize("side", ["client", "server"])
async def test_a_transaction_cut_at_any_message_is_whole_or_not_there(
    ledger: Ledger, proxy: BoundaryProxy, pg_database: Database, side: Side
) -> None:
    """A retryable error says that nothing was written; only a COMMIT that nobody heard of may have been done."""
    recording = Recording()
    unheard = []

    async def one(boundary: Boundary) -> None:
        names = [f"{side} {boundary.after} {part}" for part in "ab"]
        proxy.cut(boundary)
        try:
            async with ledger.begin() as tx:
                for name in names:
                    await Recorder(tx, recording, resolve=-1).append(name, THREAD)  # type: ignore[arg-type]
        except StorageError as error:
            for name in names:
                if name in recording.appends:
                    recording.appends[name].outcome = "refused" if error.retryable else "unknown"
            unheard.append(not error.retryable)
        assert connections_of(ledger).busy == 0

    assert await boundaries(proxy, side, one) >= 15
    assert any(unheard)
    assert not all(unheard)
    await verdict(pg_database, ledger, [THREAD], recording)


@pytest.mark.parametrize("last", [20, None], ids=["one statement", "snapshot"])
@pytest.mark.parametrize("side", ["client", "server"])
async def test_a_read_cut_at_any_message_is_read_again(
    ledger: Ledger, proxy: BoundaryProxy, pg_database: Database, side: Side, last: int | None
) -> None:
    recording = Recording()
    recorder = Recorder(ledger, recording)
    await recorder.append("a", THREAD)
    await recorder.append("b", THREAD)

    async def one(boundary: Boundary) -> None:
        await recorder.read(THREAD, last=last)
        proxy.cut(boundary)
        await recorder.read(THREAD, last=last)
        assert connections_of(ledger).busy == 0

    assert await boundaries(proxy, side, one) >= 3
    await verdict(pg_database, ledger, [THREAD], recording)


async def test_reads_after_a_restart_find_a_connection_that_lives(
    ledger: Ledger, proxy: BoundaryProxy, pg_database: Database
) -> None:
    """Every connection of the pool is dead, and several read at once."""
    await ledger.messages.append(THREAD, turn())
    await asyncio.gather(*(ledger.messages.history(THREAD) for _ in range(8)))
    assert connections_of(ledger).idle > 1
    ours = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'chatledger'"
    await query(pg_database, ours)
    histories = await asyncio.gather(*(ledger.messages.history(THREAD) for _ in range(8)))
    assert {history.version for history in histories} == {5}
    assert connections_of(ledger).busy == 0
