"""A restored database does not go on with the answers that were open when it was saved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chatledger.admin import backup, restore
from tests.answers.agents import Model, Tools, abandon, agent_of
from tests.answers.test_answers import soon
from tests.answers.test_pauses import asking
from tests.conftest import Database
from tests.storage.raw import query

LEASE = 0.4
THREADS = ("paused", "left", "new")


@asynccontextmanager
async def saved(database: Database, request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Database]:
    """The database as it is now, at another place: a restored backup, or a copy within the same server."""
    if database.kind == "sqlite":
        await asyncio.to_thread(backup, database.url, folder / "backup.db")
        target = await asyncio.to_thread(restore, folder / "backup.db", folder / "restored.db")
        yield Database("sqlite", str(target))
        return
    made = request.getfixturevalue("pg_server").database(template=database.url)
    url = await asyncio.to_thread(made.__enter__)
    try:
        yield Database("postgresql", url)
    finally:
        await asyncio.to_thread(made.__exit__, None, None, None)


async def leave_open(database: Database) -> dict[str, str]:
    """By thread, the runs of an answer that is paused, of one whose process died, and of one that nobody took up."""
    async with database.open() as ledger:
        asks, _ = asking()
        runs = {}
        async with ledger.answers.serve({"weather": asks}, lease=LEASE):
            paused = await ledger.answers.start("paused", "Tokyo?", create=True)
            await soon(paused.wait())
            runs["paused"] = paused.run.run_id
        gate = asyncio.Event()
        async with ledger.answers.serve({"weather": agent_of(Model(calls=0, gate=gate))}, lease=600):
            left = await ledger.answers.start("left", "Tokyo?", create=True)
            runs["left"] = left.run.run_id
        runs["new"] = (await ledger.answers.start("new", "Tokyo?", agent="weather", create=True)).run.run_id
        await abandon(ledger, database)
    return runs


async def ends(database: Database, runs: dict[str, str], tools: Tools) -> dict[str, tuple[str, str | None]]:
    agent = agent_of(Model(), tools)
    async with database.open() as ledger, ledger.answers.serve({"weather": agent}, lease=LEASE):
        async with asyncio.timeout(30):
            await asyncio.gather(*[(await ledger.answers.get(run)).wait() for run in runs.values()])
            while (await ledger.runs.get(runs["paused"])).status == "running":  # noqa: ASYNC110 - a pause ends a wait
                await asyncio.sleep(0.05)
        ended = {thread: await ledger.runs.get(run) for thread, run in runs.items()}
        assert [checked.findings async for checked in ledger.check()] == [[]] * len(runs)
    return {thread: (run.status, run.error) for thread, run in ended.items()}


async def approve(database: Database, run_id: str) -> None:
    async with database.open() as ledger:
        await ledger.answers.resume(run_id, approve=["call-0"])


@pytest.mark.one_server
async def test_no_tool_runs_in_the_copy(database: Database, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    runs, here, there = await leave_open(database), Tools(), Tools()
    async with saved(database, request, tmp_path) as copied:
        assert await ends(copied, runs, there) == dict.fromkeys(THREADS, ("cancelled", "moved"))
        await approve(database, runs["paused"])
        assert await ends(database, runs, here) == dict.fromkeys(THREADS, ("completed", None))
    assert there.calls == []
    assert sorted(call.arguments["city"] for call in here.calls) == ["Tokyo"] * 3


async def test_an_answer_of_an_unknown_database_goes_on(database: Database) -> None:
    """Older versions do not say where an answer began."""
    runs = await leave_open(database)
    await query(database, "UPDATE run_leases SET database_id = NULL")
    await approve(database, runs["paused"])
    assert await ends(database, runs, Tools()) == dict.fromkeys(THREADS, ("completed", None))


async def test_an_answer_without_a_lease_is_stopped(database: Database) -> None:
    """A copy that keeps open runs has none."""
    runs = await leave_open(database)
    await query(database, "DELETE FROM run_leases")
    async with database.open() as ledger:
        for run_id in runs.values():
            stopped = await ledger.answers.stop(run_id)
            assert (stopped.status, stopped.error) == ("cancelled", "stopped")
            assert await ledger.answers.stop(run_id) == await ledger.runs.get(run_id)
        assert [checked.findings async for checked in ledger.check()] == [[]] * len(runs)


@pytest.mark.one_server
@pytest.mark.parametrize("tenant", ["acme"])
async def test_a_worker_of_one_tenant_ends_its_own_only(database: Database, tenant: str) -> None:
    async with database.open() as ledger:
        other = await ledger.answers.start("t", "Tokyo?", agent="weather", create=True)
        own = await ledger.tenant(tenant).answers.start("t", "Tokyo?", agent="weather", create=True)
        await query(database, "UPDATE run_leases SET database_id = 'another'")
        async with ledger.tenant(tenant).answers.serve({"weather": agent_of(Model())}, lease=LEASE):
            assert (await soon(own.wait())).error == "moved"
        assert (await ledger.runs.get(other.run.run_id)).status == "running"
