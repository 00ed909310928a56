"""Connections that are cut: at every message of an append, of a transaction and of a read, in either direction, and at
messages of chance while many append.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from chatledger import Ledger, StorageError
from chatledger.storage.append import attempt as append_module
from chatledger.storage.append.write import TryAgain
from tests.conftest import Database
from tests.faults.batches import thread_ids
from tests.faults.boundaries import Boundary, BoundaryProxy, Side, bounded
from tests.faults.checker import Figures, verdict
from tests.faults.connections import busy, none_idle
from tests.faults.recording import Recorder, Recording

THREAD = "t"
SIDES: tuple[Side, ...] = ("client", "server")


@asynccontextmanager
async def behind(database: Database) -> AsyncIterator[tuple[Ledger, BoundaryProxy]]:
    """A ledger whose connections can be cut, with a thread."""
    async with bounded(database.url) as proxy, Ledger.open(proxy.url) as ledger:
        await ledger.threads.create(THREAD, exist_ok=True)
        yield ledger, proxy


async def tip_cached(ledger: Ledger) -> None:
    """A ledger whose connection has prepared everything, and whose tip is cached."""


async def tip_forgotten(ledger: Ledger) -> None:
    """As if another process had written last: the append begins with a preflight."""
    ledger._database._append._tips._seen.clear()  # type: ignore[attr-defined]


async def cold(ledger: Ledger) -> None:
    """Without a connection: the append itself connects and prepares its statements."""
    await tip_forgotten(ledger)
    none_idle(ledger)
    await ledger._database._engine.dispose()  # type: ignore[attr-defined]


Before = Callable[[Ledger], Awaitable[None]]


async def boundaries(proxy: BoundaryProxy, side: Side, one: Callable[[Boundary], Awaitable[None]]) -> int:
    """Cut at the first boundary of that side, the second, and so on until none is left. Returns their number."""
    for after in itertools.count():
        await one(Boundary(side, after))
        if not proxy.spare():
            return after
    raise AssertionError


async def cut_appends(database: Database, side: Side, before: Before, *, seed: object = None) -> Figures:
    recording = Recording()
    async with behind(database) as (ledger, proxy):
        recorder = Recorder(ledger, recording)
        for number in range(8):
            await recorder.append(f"first {number}", THREAD)  # every shape of batch is prepared

        async def one(boundary: Boundary) -> None:
            await recorder.append(f"n5 {side} warm {boundary.after}", THREAD)
            await before(ledger)
            proxy.cut(boundary)
            await recorder.append(f"n5 {side} {boundary.after}", THREAD)
            assert busy(ledger) == 0

        recording.faults = await boundaries(proxy, side, one)
        return await verdict(database, ledger, [THREAD], recording, seed=seed)


async def cut_locked_appends(database: Database, side: Side, *, seed: object = None) -> Figures:
    """Its second attempt, in a transaction: before and after COMMIT reaches the server."""
    recording = Recording()
    names = vars(append_module)
    written = names["write"]
    async with behind(database) as (ledger, proxy):
        recorder = Recorder(ledger, recording)

        async def one(boundary: Boundary) -> None:
            await recorder.append(f"warm {boundary.after}", THREAD)

            def moved(*_: Any, **__: Any) -> TryAgain:
                names["write"] = written
                proxy.cut(boundary)
                return TryAgain()

            await tip_forgotten(ledger)
            names["write"] = moved
            await recorder.append(f"n5 {boundary.after}", THREAD)
            assert busy(ledger) == 0

        try:
            recording.faults = await boundaries(proxy, side, one)
        finally:
            names["write"] = written
        return await verdict(database, ledger, [THREAD], recording, seed=seed)


async def cut_transactions(database: Database, side: Side, *, seed: object = None) -> Figures:
    """A retryable error says that nothing was written; only a COMMIT that nobody heard of may have been done."""
    recording = Recording()
    unanswered = []
    async with behind(database) as (ledger, proxy):

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
                unanswered.append(not error.retryable)
            assert busy(ledger) == 0

        recording.faults = await boundaries(proxy, side, one)
        assert any(unanswered)
        assert not all(unanswered)
        return await verdict(database, ledger, [THREAD], recording, seed=seed)


async def cut_reads(database: Database, side: Side, last: int | None, *, seed: object = None) -> Figures:
    recording = Recording()
    async with behind(database) as (ledger, proxy):
        recorder = Recorder(ledger, recording)
        await recorder.append("a", THREAD)
        await recorder.append("b", THREAD)

        async def one(boundary: Boundary) -> None:
            await recorder.read(THREAD, last=last)
            proxy.cut(boundary)
            await recorder.read(THREAD, last=last)
            assert busy(ledger) == 0

        recording.faults = await boundaries(proxy, side, one)
        return await verdict(database, ledger, [THREAD], recording, seed=seed)


async def cut_everything(database: Database, seed: int) -> Figures:
    """One of all these, enumerated."""
    chance = random.Random(seed)
    side = chance.choice(SIDES)
    ways: tuple[Callable[[], Awaitable[Figures]], ...] = (
        *(lambda before=before: cut_appends(database, side, before, seed=seed) for before in (tip_forgotten, cold)),
        lambda: cut_locked_appends(database, side, seed=seed),
        lambda: cut_transactions(database, side, seed=seed),
        lambda: cut_reads(database, side, chance.choice([20, None]), seed=seed),
    )
    return await chance.choice(ways)()


# --- Under many -------------------------------------------------------------------------------------------------------

WRITERS = 8


async def cut_writers(database: Database, *, cuts: int, seed: int) -> Figures:
    """Eight writers on two threads, with a cut at most two hundred messages after the one before, in any connection."""
    chance = random.Random(seed)
    recording = Recording()
    threads = thread_ids(seed, 2)
    async with behind(database) as (ledger, proxy):
        for thread in threads:
            await ledger.threads.create(thread)
        recorder = Recorder(ledger, recording)
        ended = False

        async def write(writer: int) -> None:
            for number in itertools.count():
                if ended:
                    return
                await recorder.work(f"w{seed}-{writer}.{number}", chance.choice(threads), chance)

        writers = [asyncio.create_task(write(number)) for number in range(WRITERS)]
        try:
            for _ in range(cuts):
                proxy.cut(Boundary(chance.choice(SIDES), chance.randrange(200)))
                while not proxy.is_cut:
                    await asyncio.sleep(0.001)
                    for writer in writers:
                        if writer.done():  # it ends by failing alone
                            writer.result()
                recording.faults += 1
        finally:
            ended = True
            await asyncio.gather(*writers)
        assert busy(ledger) == 0
        return await verdict(database, ledger, threads, recording, seed=seed)
