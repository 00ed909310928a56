"""Workers: whose an answer is, who takes it up, and that no two attempts write."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from chatledger import KeyRing, Ledger, PostgreSQL
from chatledger.answers import Call, Turn
from chatledger.answers.leases import Found, claim, look
from chatledger.answers.stored import find_answer
from chatledger.errors import RunLost
from chatledger.repositories import scope_of
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.request import make_request
from tests.answers.agents import Model, Tools, abandon, agent_of
from tests.answers.test_answers import ANSWERED, soon, texts
from tests.conftest import Database
from tests.conversations import assistant
from tests.storage.raw import query
from tests.storage.schema.test_row_security import owned, secured

__all__ = ["owned", "secured"]
"""Fixtures."""

LEASE = 0.4


async def test_an_attempt_that_slept_writes_nothing_more(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease is over, and another worker takes the answer up while its model still streams."""
    monkeypatch.setattr("random.uniform", lambda _, most: most)  # the sleeper's first beat comes after a quarter lease
    gate = asyncio.Event()
    async with database.open() as slow, database.open() as quick:
        async with slow.answers.serve({"weather": agent_of(Model("slow ", "words", calls=0, gate=gate))}, lease=600):
            answer = await slow.answers.start("t", "Tokyo?", create=True)
            async with asyncio.timeout(30):
                while (await texts(quick))[-1][1] != "slow ":  # noqa: ASYNC110 - no call waits for a text
                    await asyncio.sleep(0.01)
            async with quick.answers.serve({"weather": agent_of(Model("quick words", calls=0))}, lease=LEASE):
                await abandon(slow, database)
                assert (await soon((await quick.answers.get(answer.run.run_id)).wait())).status == "completed"
            gate.set()
            await asyncio.sleep(0.2)
        assert await texts(quick) == [("user", "Tokyo?", "complete"), ("assistant", "quick words", "complete")]
        assert (await quick.runs.get(answer.run.run_id)).status == "completed"


async def test_a_claim_stops_a_write_that_was_judged_before(database: Database) -> None:
    """The old attempt has passed the fence, and then another one takes the answer up."""
    async with database.open() as ledger:
        answer = await ledger.answers.start("t", "Tokyo?", agent="weather", create=True)
        scope = scope_of(ledger)
        found = Found("default", answer.run.run_id, 0, "")
        first = await scope.write(lambda sql: claim(sql, scope.terms, found, "first", 10))
        assert first is not None
        request = make_request(scope.terms, "t", [assistant("mine")], run_id=answer.run.run_id, branch=0)
        request = replace(request, fence=first.fence)
        again = found._replace(attempt=1, worker_id="first")
        second = await scope.write(lambda sql: claim(sql, scope.terms, again, "second", 10))
        assert second is not None
        assert (second.attempt, second.worker_id) == (2, "second")
        with pytest.raises(RunLost):
            await scope.append(request)
        with pytest.raises(RunLost):
            await scope.write(lambda sql: attempt_locked(sql, request))
        await scope.append(replace(request, fence=second.fence))
        assert [text for _, text, _ in await texts(ledger)] == ["Tokyo?", "mine"]


async def test_ten_workers_take_each_answer_up_once(database: Database) -> None:
    tools = Tools()
    agent = agent_of(Model(), tools)
    async with database.open() as ledger:
        answers = [
            await ledger.answers.start(f"t{number}", "Tokyo?", agent="weather", create=True) for number in range(20)
        ]
        ledgers = [await database.open() for _ in range(4)]
        try:
            serving = [other.answers.serve({"weather": agent}, lease=4, most=8) for other in ledgers]
            for one in serving:
                await one.__aenter__()
            runs = [await soon(answer.wait()) for answer in answers]
            for one in serving:
                await one.__aexit__(None, None, None)
        finally:
            for other in ledgers:
                await other.close()
        assert {run.status for run in runs} == {"completed"}
        assert all(count == 1 for count in tools.runs.values())
        assert len(tools.calls) == 20
        for number in range(20):
            assert await texts(ledger, f"t{number}") == ANSWERED


async def test_attempts_that_store_nothing_are_counted(database: Database) -> None:
    async def fail(turn: Turn) -> None:
        raise AssertionError("it was given up")

    async with database.open() as ledger:
        answer = await ledger.answers.start("t", "Tokyo?", agent="weather", create=True)
        scope, run_id = scope_of(ledger), answer.run.run_id
        found = Found("default", run_id, 0, "")
        for number in range(2):
            stored = await scope.write(lambda sql, found=found: claim(sql, scope.terms, found, "dead", 10))  # type: ignore[misc]
            assert stored is not None
            assert (stored.attempt, stored.attempts) == (number + 1, number + 1)
            found = Found("default", run_id, number + 1, "dead")
        async with ledger.answers.serve({"weather": fail}, lease=LEASE, attempts=2):
            await query(
                database, "INSERT INTO workers (worker_id, lease_until) VALUES ('dead', " + _ZERO[database.kind]
            )
            run = await soon(answer.wait())
        assert (run.status, run.error) == ("failed", "gave up after 2 attempts that stored nothing")


_ZERO = {"sqlite": "0)", "postgresql": "to_timestamp(0))"}


async def test_a_stored_message_sets_the_count_back(database: Database) -> None:
    stored = asyncio.Event()

    async def look_twice(call: Call) -> str:
        stored.set()
        await asyncio.sleep(60)
        return "late"

    async with database.open() as ledger:
        answer = await ledger.answers.start("t", "Tokyo?", agent="weather", create=True)
        await query(database, "UPDATE runs SET attempts = 9")
        async with ledger.answers.serve({"weather": agent_of(Model(), Tools(look_twice))}, lease=LEASE):
            await soon(stored.wait())
            assert await query(database, "SELECT attempts FROM runs") == [(0,)]
        await ledger.answers.stop(answer.run.run_id)


@pytest.mark.one_server
async def test_a_worker_serves_every_tenant(database: Database) -> None:
    async with database.open() as ledger:
        names = [f"tenant {number}" for number in range(5)]
        answers = [
            await ledger.tenant(name).user("ada").answers.start("t", "Tokyo?", agent="weather", create=True)
            for name in names
        ]
        async with ledger.answers.serve({"weather": agent_of(Model())}, lease=LEASE, all_tenants=True):
            assert {(await soon(answer.wait())).status for answer in answers} == {"completed"}
        for name in names:
            assert await texts(ledger.tenant(name)) == ANSWERED


@pytest.mark.plain
async def test_a_tenant_without_keys_stalls_nobody(database: Database) -> None:
    ring = KeyRing({"k": bytes(range(32))})
    async with Ledger.open(database.url, encryption=ring, tenant="sealed") as theirs:
        sealed = [await theirs.answers.start(f"t{n}", "Tokyo?", agent="weather", create=True) for n in range(30)]
        async with Ledger.open(database.url) as ledger:
            answer = await ledger.answers.start("t", "Tokyo?", agent="weather", create=True)
            async with ledger.answers.serve({"weather": agent_of(Model())}, lease=LEASE, all_tenants=True):
                assert (await soon(answer.wait())).status == "completed"
        rows = await query(database, "SELECT max(attempt) FROM run_leases WHERE tenant_id = 'sealed'")
        assert rows == [(0,)]
        async with theirs.answers.serve({"weather": agent_of(Model())}, lease=LEASE):
            for one in sealed:
                assert (await soon(one.wait())).status == "completed"


@pytest.mark.one_server
async def test_a_look_that_finds_nothing_writes_nothing(database: Database) -> None:
    async with database.open() as ledger:
        await ledger.threads.create("t")
        scope = scope_of(ledger)
        for tenant in ("default", None):
            found: Any = await scope.read(
                lambda sql, tenant=tenant: look(sql, "me", ["weather"], tenant=tenant, most=20),  # type: ignore[misc]
                snapshot=True,
            )
            assert found == ([], [])
        async with ledger.answers.serve({"weather": agent_of(Model())}, lease=0.1):
            await asyncio.sleep(0.3)
        assert await query(database, "SELECT count(*) FROM workers") == [(0,)]


async def test_a_transaction_that_holds_a_lease_costs_no_answer(database: Database) -> None:
    """As a stop inside a caller's transaction does, for longer than the lease."""
    gate = asyncio.Event()
    async with database.open() as ledger, database.open() as other:
        async with ledger.answers.serve({"weather": agent_of(Model(calls=0, gate=gate))}, lease=LEASE):
            first = await ledger.answers.start("t", "Tokyo?", create=True)
            second = await ledger.answers.start("u", "Tokyo?", create=True)
            if database.kind == "postgresql":  # a SQLite file has one writer, who delays everybody
                async with other.begin() as tx:
                    await tx.answers.stop(first.run.run_id)
                    await asyncio.sleep(3 * LEASE)
            else:
                await other.answers.stop(first.run.run_id)
            gate.set()
            assert (await soon(first.wait())).status == "cancelled"
            assert (await soon(second.wait())).status == "completed"
            stored = await scope_of(other).read(lambda sql: find_answer(sql, scope_of(other).tenant, second.run.run_id))
            assert stored is not None
            assert not stored.is_open
        assert (await texts(other, "u"))[-1] == ("assistant", "It is sunny.", "complete")


async def test_two_workers_of_a_process_share_nothing(ledger: Ledger) -> None:
    async with (
        ledger.answers.serve({"weather": agent_of(Model())}, lease=LEASE, most=1),
        ledger.answers.serve({"news": agent_of(Model())}, lease=LEASE),
    ):
        answers = [
            await ledger.answers.start(f"t{number}", "Tokyo?", agent=agent, create=True)
            for number, agent in enumerate(["weather", "news", "weather"])
        ]
        assert [(await soon(answer.wait())).status for answer in answers] == ["completed"] * 3


async def test_row_level_security_lets_a_worker_see_the_leases_of_all(secured: str) -> None:
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        tenants = [ledger.tenant(name) for name in ("a", "b")]
        answers = [await own.answers.start("t", "Tokyo?", agent="weather", create=True) for own in tenants]
        async with ledger.answers.serve({"weather": agent_of(Model())}, lease=LEASE, all_tenants=True):
            for answer in answers:
                assert (await soon(answer.wait())).status == "completed"
        for own in tenants:
            assert await texts(own) == ANSWERED


async def test_a_worker_leaves_an_agent_that_lost_its_cancellation(database: Database) -> None:
    """As where a library on the way takes it for its own; without a second one, the process would never end."""
    lost: list[str] = []

    async def deaf(turn: Turn) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            lost.append(turn.run.run_id)
        await asyncio.sleep(3600)

    async with database.open() as ledger:
        async with asyncio.timeout(30), ledger.answers.serve({"weather": deaf}, lease=LEASE):
            answer = await ledger.answers.start("t", "Tokyo?", create=True)
            await asyncio.sleep(0)
        assert lost == [answer.run.run_id]
        async with ledger.answers.serve({"weather": agent_of(Model("words", calls=0))}, lease=LEASE):
            assert (await soon(answer.wait())).status == "completed"
