"""The list of the answers that have not ended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from chatledger import Encryption, KeyRing, Ledger, PostgreSQL
from chatledger.admin import migrate
from chatledger.answers import Answer
from chatledger.answers.live import LiveAnswer, list_live
from chatledger.errors import DamagedCell, EncryptionError, InvalidCursor
from chatledger.models import Page
from chatledger.repositories import scope_of
from tests.answers.agents import Model, abandon, agent_of
from tests.answers.test_answers import soon
from tests.answers.test_kills import kill, serving, until
from tests.answers.test_limits import MANY, abandoned
from tests.answers.test_pauses import asking
from tests.conftest import Database
from tests.storage.raw import query
from tests.storage.schema.test_row_security import owned, secured, without_filter
from tests.storage.sent import record
from tests.storage.statements.plans import _explain_postgresql, _explain_sqlite
from tests.storage.statements.scene import Scene, noting

__all__ = ["owned", "secured"]  # fixtures

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def live(ledger: Ledger, thread: str | None = None, limit: int = 50, cursor: str | None = None) -> Any:
    page: Page[LiveAnswer] = await list_live(scope_of(ledger), thread, limit, cursor)
    return page


async def start(ledger: Ledger, thread: str, **options: Any) -> Answer:
    answer: Answer = await ledger.answers.start(thread, "Tokyo?", agent="weather", create=True, **options)
    return answer


async def pause(ledger: Ledger, *threads: str) -> list[Answer]:
    """Answers that wait for two calls each. Nobody serves them."""
    agent, _ = asking(calls=2)
    async with ledger.answers.serve({"weather": agent}, lease=30):
        answers = [await start(ledger, thread) for thread in threads]
        for answer in answers:
            await soon(answer.wait())
    return answers


async def pages(ledger: Ledger, limit: int) -> list[list[str]]:
    read: list[list[str]] = []
    cursor = None
    while not read or cursor is not None:
        page = await live(ledger, limit=limit, cursor=cursor)
        read.append([one.run.run_id for one in page])
        cursor = page.next_cursor
    return read


# --- The order --------------------------------------------------------------------------------------------------------


async def test_the_answer_that_began_first_comes_first(ledger: Ledger) -> None:
    """With a key or without, an answer's id tells no time."""
    answers = [await start(ledger, f"t{n}", idempotency_key=f"k{n}" if n % 2 else None) for n in range(13)]
    begun = [answer.run.run_id for answer in answers]
    assert begun != sorted(begun)
    assert await pages(ledger, 5) == [begun[:5], begun[5:10], begun[10:]]
    assert await pages(ledger, 13) == [begun]


async def test_answers_that_began_at_once_are_in_the_order_of_their_ids(database: Database) -> None:
    async with database.open() as ledger:
        begun = [(await start(ledger, f"t{n}")).run.run_id for n in range(7)]
        moment = "1" if database.kind == "sqlite" else "to_timestamp(1)"
        await query(database, f"UPDATE runs SET started_at = {moment}")
        assert [run_id for page in await pages(ledger, 2) for run_id in page] == sorted(begun)


async def test_a_cursor_of_another_list_is_refused(ledger: Ledger) -> None:
    for n in range(2):
        await ledger.runs.start((await start(ledger, f"t{n}")).run.thread_id)
    cursor = (await ledger.runs.list(limit=1)).next_cursor
    with pytest.raises(InvalidCursor):
        await live(ledger, cursor=cursor)


@pytest.mark.one_server
@pytest.mark.plain
@pytest.mark.parametrize("whole", [True, False], ids=["tenant", "thread"])
async def test_a_page_reads_open_answers_of_the_tenant_alone(database: Database, whole: bool) -> None:
    """None of another tenant, and none of the runs that have ended."""
    async with database.open() as ledger:
        await abandoned(ledger.tenant("other"), "bob", MANY)
        await abandoned(ledger, "ended", MANY)
        await abandoned(ledger, "ada", 30)
    await query(database, "DELETE FROM run_leases WHERE user_id = 'ended'")
    scene = Scene(database.kind, database.url, "default")
    with noting(scene):
        async with scene.open() as ledger:
            with scene.sending():
                page = await live(ledger, None if whole else "ada-00001", 5)
                assert len(page.items) == (5 if whole else 1)
    explain = _explain_sqlite if database.kind == "sqlite" else _explain_postgresql
    (plan,) = [(await explain(database.url, sent))[1] for sent in scene.sent if "run_leases" in sent.text]
    assert [line for line in plan.splitlines() if _READS_ALL.search(line)] == []


_READS_ALL = re.compile(
    r"(Seq|Heap) Scan on (runs|threads)|SCAN (?!first|near)|(runs|threads) USING INDEX \w+ \(tenant_id=\?\)"
)


# --- The states -------------------------------------------------------------------------------------------------------


async def test_an_answer_shows_since_when_it_is_paused(ledger: Ledger) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    (answer,) = await pause(ledger, "t")
    (shown,) = await live(ledger)
    assert (shown.state, shown.attempt, shown.until) == ("paused", 1, None)
    assert before <= answer.run.started_at <= shown.paused_at <= datetime.now(UTC) + timedelta(seconds=1)
    assert shown.waiting == {"call-0": "costs call-0", "call-1": "costs call-1"}
    await ledger.answers.resume(answer.run.run_id, approve=["call-0"])
    assert [one.waiting for one in await live(ledger)] == [{"call-1": "costs call-1"}]
    await ledger.answers.resume(answer.run.run_id, refuse=["call-1"])
    assert [(one.state, one.paused_at, one.until, one.waiting) for one in await live(ledger)] == [
        ("left", None, None, {})
    ]


async def test_an_answer_is_left_once_the_lease_of_its_process_is_over(database: Database) -> None:
    agents = {"weather": agent_of(Model(gate=asyncio.Event(), calls=0))}
    async with database.open() as ledger, ledger.answers.serve(agents, lease=600):
        await start(ledger, "t")
        (shown,) = await live(ledger)
        assert (shown.state, shown.attempt, shown.paused_at) == ("working", 1, None)
        assert timedelta(seconds=300) < shown.until - datetime.now(UTC) < timedelta(seconds=660)
        await abandon(ledger, database)  # its next beat is far away
        (shown,) = await live(ledger)
        assert (shown.state, shown.attempt, shown.until) == ("left", 1, EPOCH)


@pytest.mark.plain
async def test_an_answer_is_left_by_a_process_that_was_killed(database: Database, ledger: Ledger) -> None:
    async with serving(database) as process:
        answer = await ledger.answers.start("t", "Words, please.", agent="anew", create=True)
        await until(process, "word 5 ")
        assert [one.state for one in await live(ledger)] == ["working"]
        await kill(process)
    async with asyncio.timeout(30):
        while [one.state for one in await live(ledger)] == ["working"]:  # noqa: ASYNC110 - by the database's clock
            await asyncio.sleep(0.05)
    (shown,) = await live(ledger)
    assert (shown.run.run_id, shown.state, shown.attempt) == (answer.run.run_id, "left", 1)
    assert answer.run.started_at < shown.until


# --- Damage -----------------------------------------------------------------------------------------------------------

CELLS = [
    ("run_decisions", "pending_reason"),
    ("run_leases", "attempt"),
    ("run_leases", "paused_at"),
    ("runs", "metadata"),
    ("runs", "started_at"),
    ("threads", "user_id"),
    ("tool_calls", "call_id"),
]


@pytest.mark.plain
@pytest.mark.parametrize(("table", "column"), CELLS)
async def test_a_damaged_cell_stands_beside_the_other_answers(tmp_path: Path, table: str, column: str) -> None:
    """PostgreSQL stores a wrong type in no column."""
    database = Database("sqlite", str(tmp_path / "ledger.db"))
    migrate(database.url)
    async with database.open() as ledger:
        answers = await pause(ledger, "t0", "t1", "t2")
        await query(database, f"UPDATE {table} SET {column} = x'ff' WHERE thread_id = 't1'")
        page = await live(ledger)
    assert [one.run.thread_id for one in page] == ["t0", "t2"]
    (damage,) = page.damaged
    assert isinstance(damage, DamagedCell)
    assert (damage.table, damage.column) == (table, column)
    assert {"t1", answers[1].run.run_id} & set(damage.key.values())


async def test_a_damaged_reason_stands_beside_the_other_answers(database: Database) -> None:
    """As it is where somebody changed the ciphertext."""
    ring = KeyRing({"k": bytes(range(32))})
    async with Ledger.open(database.url, encryption=ring) as ledger:
        await pause(ledger, "t0", "t1", "t2")
        await query(database, "UPDATE run_decisions SET pending_reason = 'plain' WHERE thread_id = 't1' AND idx = 1")
        page = await live(ledger)
        assert sorted(one.run.thread_id for one in page) == ["t0", "t2"]
        (damage,) = page.damaged
        assert isinstance(damage, EncryptionError)
        assert "run_decisions.pending_reason" in str(damage)


# --- What it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.plain
@pytest.mark.one_statement
async def test_a_page_is_one_statement_and_one_for_all_that_are_paused(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Ledger.open(pg_database.url) as ledger:
        for n in range(3):
            await start(ledger, f"left {n}")
        await live(ledger)
        sent = record(monkeypatch)
        await live(ledger)
        assert len(_reads(sent)) == 1
        await pause(ledger, "a", "b", "c")
        sent.clear()
        assert len((await live(ledger)).items) == 6
        assert len(_reads(sent)) == 2


def _reads(sent: list[str]) -> list[str]:
    return [text for text in sent if not text.startswith(("BEGIN", "COMMIT"))]


# --- Every kind of ledger ---------------------------------------------------------------------------------------------


async def test_a_tenant_sees_its_own_under_row_level_security(secured: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where a statement forgets the tenant."""
    async with Ledger.open(secured, postgresql=PostgreSQL(rls=True)) as ledger:
        for name in ("a", "b"):
            await pause(ledger.tenant(name), f"paused {name}")
            await start(ledger.tenant(name), f"left {name}")
        for forgets in (False, True):
            if forgets:
                without_filter(monkeypatch)
            for name in ("a", "b"):
                assert [
                    (one.run.thread_id, one.state, len(one.waiting)) for one in await live(ledger.tenant(name))
                ] == [
                    (f"paused {name}", "paused", 2),
                    (f"left {name}", "left", 0),
                ]
        assert not (await live(ledger.tenant("c"))).items


async def test_a_user_sees_the_answers_of_its_threads(ledger: Ledger) -> None:
    for user in ("ada", "bob"):
        await start(ledger.user(user), f"of {user}")
    assert [one.user_id for one in await live(ledger)] == ["ada", "bob"]
    assert [one.user_id for one in await live(ledger.user("ada"))] == ["ada"]
    assert not (await live(ledger.user("ada"), "of bob")).items
    assert not (await live(ledger.tenant("other"))).items


@asynccontextmanager
async def _without_keys(url: str) -> AsyncIterator[Ledger]:
    """The tenant `sealed` had keys, and they are gone."""
    ring = KeyRing({"k": bytes(range(32))})
    async with Ledger.open(url, encryption=ring, tenant="sealed") as theirs:
        await pause(theirs, "t0", "t1")
        await start(theirs, "t2", metadata={"a": 1})
    keys = Encryption(lambda name: None if name == "sealed" else ring)
    async with Ledger.open(url, encryption=keys) as ledger:
        yield ledger


@pytest.mark.plain
async def test_a_list_without_the_tenants_keys_says_which_key_is_missing(database: Database) -> None:
    """As the list of all runs does. No row is to blame, so none stands among the damaged."""
    async with _without_keys(database.url) as ledger:
        await start(ledger, "t0", metadata={"a": 1})
        assert [one.run.metadata for one in await live(ledger)] == [{"a": 1}]
        sealed = ledger.tenant("sealed")
        for read in (live(sealed), sealed.runs.list()):
            with pytest.raises(EncryptionError) as refused:
                await read
            assert (refused.value.reason, refused.value.key_id) == ("no-key", "k")
