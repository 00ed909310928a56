"""Limits on open answers, and whose answer is taken up next."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import insert

from chatledger import Ledger, Limits
from chatledger.answers import Call, Pending
from chatledger.answers.leases import Found, beat, look
from chatledger.errors import InvalidArgument, LimitExceeded, RunLive
from chatledger.repositories import scope_of
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.schema.tables import branches, run_leases, runs, threads
from tests.answers.agents import Model, Tools, agent_of
from tests.answers.test_answers import soon
from tests.conftest import Database
from tests.storage.durable import NOW
from tests.storage.raw import query
from tests.storage.statements.plans import _explain_postgresql, _explain_sqlite
from tests.storage.statements.scene import Scene, noting

LEASE = 0.4
MANY = 10_000


async def start(ledger: Any, thread: str, **options: Any) -> Any:
    return await ledger.answers.start(thread, "Tokyo?", agent="weather", create=True, **options)


@pytest.mark.parametrize(("name", "whose"), [("user_answers", "user"), ("tenant_answers", "tenant")])
async def test_an_answer_too_many_is_refused(database: Database, name: str, whose: str) -> None:
    async with database.open(limits=Limits(**{name: 2})) as ledger:
        ada = ledger.user("ada")
        first = await start(ada, "t1", idempotency_key="k1")
        await start(ada, "t2")
        with pytest.raises(LimitExceeded, match=f"(?s)2 have not ended.*Limits.{name}.*answers.stop") as refused:
            await start(ada, "t3")
        assert (refused.value.limit, refused.value.maximum) == (f"open answers of the {whose}", 2)
        assert not (await ledger.threads.list()).items[2:]  # nothing was written
        assert (await start(ada, "t1", idempotency_key="k1")).replayed
        with pytest.raises(RunLive):
            await start(ada, "t1")
        await start(ada, "t1", when_live="stop")  # in the place of the first
        other = ledger.user("bob")
        if whose == "user":
            await start(other, "b1")
            await start(ledger, "n1")  # of nobody
        else:
            with pytest.raises(LimitExceeded):
                await start(other, "b1")
            await start(ledger.tenant("another").user("ada"), "t1")
        assert (await ledger.runs.get(first.run.run_id)).status == "cancelled"
        await ada.answers.stop((await ledger.runs.list(status="running", thread_id="t2")).items[0].run_id)
        await start(ada, "t3")


async def test_the_owner_of_the_thread_counts_whoever_starts(database: Database) -> None:
    async with database.open(limits=Limits(user_answers=1)) as ledger:
        for thread in ("t1", "t2"):
            await ledger.user("ada").threads.create(thread)
        await start(ledger, "t1")
        with pytest.raises(LimitExceeded):
            await start(ledger, "t2")
        assert await query(database, "SELECT user_id FROM run_leases") == [("ada",)]


async def test_a_paused_answer_counts_until_it_ends(database: Database) -> None:
    async def wait(call: Call) -> str:
        raise Pending("ask")

    async with database.open(limits=Limits(user_answers=1)) as ledger:
        ada = ledger.user("ada")
        async with ledger.answers.serve({"weather": agent_of(Model(), Tools(wait))}, lease=LEASE):
            paused = await start(ada, "t1")
            await soon(paused.wait())
            with pytest.raises(LimitExceeded):
                await start(ada, "t2")
            await ada.answers.resume(paused.run.run_id, {"call-0": "sunny"})
            await soon(paused.wait())
            await start(ada, "t2")


def test_a_limit_is_at_least_one() -> None:
    for name in Limits.__slots__:
        with pytest.raises(InvalidArgument):
            Limits(**{name: 0})


async def abandoned(ledger: Ledger, user: str | None, count: int, worker: str = "") -> None:
    """Answers as `start` stores them, each on a thread of its own."""
    tenant = scope_of(ledger).tenant.name
    names = [f"{user}-{number:05}" for number in range(count)]
    of_thread = [{"tenant_id": tenant, "thread_id": name} for name in names]
    made = {"created_at": NOW, "active_at": NOW}

    def store(sql: WriteSql) -> None:
        sql.execute(insert(threads), [{**row, **made, "user_id": user, "active_branch": 0} for row in of_thread])
        of_branch = {"branch": 0, "lineage": "[[0,1,null]]", "last_seq": 0, "stamp": 1}
        sql.execute(insert(branches), [{**row, **of_branch, "created_at": NOW} for row in of_thread])
        of_run = {"status": "running", "started_at": NOW, "question_id": "q", "branch": 0, "attempts": 0}
        sql.execute(insert(runs), [{**row, "run_id": row["thread_id"], **of_run} for row in of_thread])
        lease = {"agent": "weather", "attempt": 0, "worker_id": worker, "user_id": user}
        rows = [{**row, "run_id": row["thread_id"], **lease, "place": n} for n, row in enumerate(of_thread)]
        sql.execute(insert(run_leases), rows)

    await scope_of(ledger).write(store)


async def look_of(ledger: Ledger, tenant: str | None = None, most: int = 20) -> list[Found]:
    def read(sql: ReadSql) -> list[Found]:
        return look(sql, "me", ["weather"], tenant=tenant, most=most)[1]

    return await scope_of(ledger).read(read, snapshot=True)


@pytest.mark.one_server
@pytest.mark.parametrize("worker", ["", "dead"])
async def test_nobody_waits_behind_another_users_answers(database: Database, worker: str) -> None:
    async with database.open() as ledger:
        if worker:
            await query(
                database, f"INSERT INTO workers (worker_id, lease_until) VALUES ('{worker}', {_AGO[database.kind]})"
            )
        await abandoned(ledger, "ada", 300, worker)
        await abandoned(ledger, "bob", 1)
        await abandoned(ledger.tenant("other"), "ada", 2)
        found = [(one.tenant, one.run_id) for one in await look_of(ledger)]
        assert set(found[:3]) == {("default", "ada-00000"), ("default", "bob-00000"), ("other", "ada-00000")}
        assert len(found) == 20
        of_tenant = await look_of(ledger, "other")
        assert [one.run_id for one in of_tenant] == ["ada-00000", "ada-00001"]


_AGO = {"sqlite": "0", "postgresql": "to_timestamp(0)"}


@pytest.mark.one_server
@pytest.mark.plain
@pytest.mark.parametrize("worker", ["", "dead"])
async def test_a_look_among_ten_thousand_reads_no_more_than_it_returns(database: Database, worker: str) -> None:
    async with database.open() as ledger:
        await abandoned(ledger, "ada", MANY, worker)
        await abandoned(ledger, "bob", 1)
    add = f"INSERT INTO workers (worker_id, lease_until) VALUES ('dead', {_AGO[database.kind]})"
    for statement in (add, "ANALYZE"):
        await query(database, statement)
    scene = Scene(database.kind, database.url, "default")
    with noting(scene):
        async with scene.open() as ledger:
            with scene.sending():
                assert len(await look_of(ledger)) == 20
    explain = _explain_sqlite if database.kind == "sqlite" else _explain_postgresql
    plans = [(await explain(database.url, sent))[1] for sent in scene.sent if "run_leases" in sent.text]
    assert len(plans) == 2  # its own, and those that nobody works on
    assert [line for plan in plans for line in plan.splitlines() if _READS_ALL.search(line)] == []


_READS_ALL = re.compile(
    r"Seq Scan on run_leases|Bitmap|Sort Key: .*leases|SCAN run_leases|USE TEMP B-TREE FOR ORDER BY .*leases"
)


async def test_each_beat_is_a_hot_update(pg_database: Database) -> None:
    """It writes no index."""

    def beats(sql: WriteSql) -> Any:
        for _ in range(21):
            beat(sql, "me", 5.0)
        counts = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'workers'"
        return [tuple(row) for row in sql.fetch(counts, {})]

    async with pg_database.open() as ledger:
        assert await scope_of(ledger).write(beats) == [(20, 20)]
