"""Processes that die in the middle of an answer: another one goes on."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing

import pytest

from chatledger import Ledger
from chatledger.admin import migrate
from chatledger.answers import Call
from tests.answers.agents import Model, Tools, agent_of
from tests.answers.service import WORDS
from tests.answers.test_answers import soon, texts
from tests.conftest import Database
from tests.faults.kills import _kill_all
from tests.postgres import Server, own_server
from tests.storage.raw import query

LEASE = 1.0
TEXT = "".join(WORDS)


@asynccontextmanager
async def serving(database: Database, *stop: str) -> AsyncIterator[asyncio.subprocess.Process]:
    command = (sys.executable, "-m", "tests.answers.service", database.url, str(LEASE), *stop)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        await until(process, "ready")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def until(process: asyncio.subprocess.Process, word: str) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        while line := await process.stdout.readline():
            if line.decode().startswith(word):
                return line.decode()
    raise AssertionError("the process ended")


async def kill(process: asyncio.subprocess.Process) -> None:
    process.send_signal(signal.SIGKILL)
    await process.wait()


@pytest.mark.plain
@pytest.mark.parametrize("agent", ["anew", "resuming"])
async def test_another_process_goes_on_with_the_text(database: Database, ledger: Ledger, agent: str) -> None:
    async with serving(database, "30") as first:
        answer = await ledger.answers.start("t", "Words, please.", agent=agent, create=True)
        await until(first, "word 20")
        await kill(first)
    begun = (await texts(ledger))[-1]
    assert begun[2] == "partial"
    async with serving(database) as second:
        line = await until(second, "word")
        assert (line.split()[1] == "0") == (agent == "anew")
        run = await soon(answer.wait())
    assert run.status == "completed"
    assert await texts(ledger) == [("user", "Words, please.", "complete"), ("assistant", TEXT, "complete")]
    assert [checked.findings async for checked in ledger.check()] == [[]]


async def put_to_sleep(process: asyncio.subprocess.Process, database: Database) -> None:
    """Where it is in no transaction: it would hold its locks in its sleep, and the database would end that."""
    for _ in range(200):
        process.send_signal(signal.SIGSTOP)
        if not await _has_transactions(database):
            return
        process.send_signal(signal.SIGCONT)
        await asyncio.sleep(0.02)
    raise AssertionError("it is in a transaction each time")


async def _has_transactions(database: Database) -> bool:
    if database.kind == "postgresql":
        busy = "state <> 'idle' AND datname = current_database() AND pid <> pg_backend_pid()"
        return await query(database, f"SELECT count(*) FROM pg_stat_activity WHERE {busy}") != [(0,)]
    with closing(sqlite3.connect(database.url, timeout=0, isolation_level=None)) as file:
        try:
            file.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        return False


@pytest.mark.plain
async def test_a_process_that_slept_through_its_lease_writes_nothing_more(database: Database, ledger: Ledger) -> None:
    async with serving(database, "5") as sleeper:
        answer = await ledger.answers.start("t", "Words, please.", agent="anew", create=True)
        await until(sleeper, "word 5 ")
        await put_to_sleep(sleeper, database)
        async with serving(database) as other:
            await until(other, "word 1 ")
            sleeper.send_signal(signal.SIGCONT)
            assert (await soon(answer.wait())).status == "completed"
        next_one = await ledger.answers.start("u", "Words, please.", agent="anew", create=True)
        assert (await soon(next_one.wait())).status == "completed"  # by the one that slept
    expected = [("user", "Words, please.", "complete"), ("assistant", TEXT, "complete")]
    assert await texts(ledger, "t") == await texts(ledger, "u") == expected
    assert [checked.findings async for checked in ledger.check()] == [[], []]


@pytest.mark.plain
@pytest.mark.parametrize("agent", ["anew", "once"])
async def test_a_tool_runs_again_only_if_it_may(database: Database, ledger: Ledger, agent: str) -> None:
    async with serving(database) as first:
        answer = await ledger.answers.start("t", "Use a tool.", agent=agent, create=True)
        key = (await until(first, "tool")).split()[1]
        await kill(first)
    async with serving(database) as second:
        if agent == "anew":
            assert (await until(second, "tool")).split()[1:] == [key, "again=True"]
        run = await soon(answer.wait())
    assert run.status == "completed"
    result = "done" if agent == "anew" else "The tool was interrupted. It is unknown whether it ran."
    assert (await texts(ledger))[2][1] == result


@pytest.mark.plain
async def test_a_process_that_ends_leaves_its_answer_at_once(database: Database, ledger: Ledger) -> None:
    async with serving(database, "30") as first, serving(database, "30") as second:
        answer = await ledger.answers.start("t", "Words, please.", agent="resuming", create=True)
        done, _ = await asyncio.wait(
            [asyncio.create_task(until(one, "word 5 ")) for one in (first, second)],
            return_when=asyncio.FIRST_COMPLETED,
        )
        assert done
        for process in (first, second):
            process.send_signal(signal.SIGINT)
        for process in (first, second):
            await process.wait()
        assert (await texts(ledger))[-1][2] == "partial"
        assert await ledger.drafts.list(abandoned_for=0)
    async with serving(database):
        assert (await soon(answer.wait())).status == "completed"
    assert (await texts(ledger))[-1] == ("assistant", TEXT, "complete")


@pytest.fixture
def mortal_server() -> Iterator[Server]:
    with own_server() as running:
        yield running


async def test_answers_go_on_when_the_database_is_back(mortal_server: Server) -> None:
    """It is killed while some answers stream and others wait in a tool, and each is whole in the end."""
    await asyncio.to_thread(migrate, mortal_server.url)
    gate = asyncio.Event()

    async def wait(call: Call) -> str:
        await gate.wait()
        return "done"

    agents = {"text": agent_of(Model("It ", "is.", calls=0, gate=gate)), "tool": agent_of(Model("It is."), Tools(wait))}
    database = Database("postgresql", mortal_server.url)
    async with database.open() as ledger, ledger.answers.serve(agents, lease=LEASE):
        answers = [await ledger.answers.start(agent, "?", agent=agent, create=True) for agent in agents]
        async with asyncio.timeout(30):
            while [role for role, *_ in await texts(ledger, "tool")] != ["user", "assistant"]:  # noqa: ASYNC110 - no call waits for it
                await asyncio.sleep(0.05)
            while (await texts(ledger, "text"))[-1][1:] != ("It ", "partial"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await asyncio.to_thread(_kill_all, mortal_server, random.Random(0))
        gate.set()
        assert {(await soon(answer.wait())).status for answer in answers} == {"completed"}
        for agent in agents:
            assert (await texts(ledger, agent))[-1] == ("assistant", "It is.", "complete")
        assert [checked.findings async for checked in ledger.check()] == [[], []]
