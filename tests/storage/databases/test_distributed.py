"""A ledger whose tables are distributed by tenant: each statement binds its tables to the tenant, and writes one.

There is no distributed PostgreSQL here. The fixture `heard` holds the statements of every test to what such a database
runs on one server, and these tests a plain PostgreSQL to the same rows and outcomes; `make test-distributed` runs the
storage suite, and the tests of the commands and of the server, in this shape.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from chatledger import (
    ChatMessage,
    InvalidArgument,
    Ledger,
    Pace,
    PostgreSQL,
    Put,
    StorageError,
    Transaction,
    VersionConflict,
)
from chatledger.errors import Erased, IdConflict, RunConflict
from chatledger.repositories import scope_of
from chatledger.storage.append import attempt
from chatledger.storage.repositories.branches import fork_at
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import call, result, texts, turn, user
from tests.distributed import Heard
from tests.faults.proxy import Cut, Proxy, proxied
from tests.faults.test_outcome import until
from tests.formats.streams.split_responses import split
from tests.formats.streams.test_storage import CALL, SEARCH, said
from tests.migrations.citus import EXTENSION
from tests.places import at
from tests.reasons import about
from tests.storage.bound_tables import unbound_tables
from tests.storage.databases.test_scope import (
    CALLS,
    NOBODYS,
    NOON,
    THEIRS,
    fill,
    in_ledger,
    in_transaction,
    outcome,
)
from tests.storage.raw import query
from tests.storage.sent import EXCEPTIONS, record, unbound

# --- The statements ---------------------------------------------------------------------------------------------------

_WRITES = re.compile(r"\b(?:INSERT INTO|DELETE FROM|UPDATE) (?:\"?chatledger\"?\.)\w+")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return record(monkeypatch)


def joined_writes(statements: Iterable[str]) -> set[str]:
    """The statements that write more than one table."""
    return {one for one in statements if len(_WRITES.findall(" ".join(one.split()))) > 1}


async def run_everything(ledger: Ledger, scope: Any) -> None:
    """Every public call, for ids that are stored and for ids that are not, and each form of an append."""
    own = ledger
    for name, calls in CALLS.items():
        if await own.threads.find(THEIRS.thread) is None:  # the last call may have deleted it
            own = ledger.tenant(f"before {name}")
            await fill(own, THEIRS)
            await own.threads.create("mine", created_at=NOON)
            await own.runs.start("mine", run_id="my run")
        async with scope(own) as repositories:
            for one in calls:
                for ids in (THEIRS, NOBODYS):
                    await outcome(repositories, one, ids)
    async with scope(ledger.tenant("appends")) as repositories:
        await append_in_each_way(repositories)


async def append_in_each_way(own: Any) -> None:
    await own.messages.append("t", turn(ids="a"), run_id="r", create=True, kv={"mode": "brief", "count": 1})
    await own.messages.append("t", turn(ids="b"), run_id="r", kv={"mode": "long"}, idempotency_key="k")
    await own.messages.append("t", [user("again", message_id="c")], reply_to=at(5))
    await own.messages.append("t", [user("from the other branch")], reply_to=at(5), branch=0, run_id="r2")
    await own.messages.append("t", [user(str(number)) for number in range(20)], rules="lenient")
    asks = ChatMessage(role="assistant", content="Let me", state="partial", tool_calls=[call("q")], message_id="d")
    await own.messages.append("t", [asks], run_id="r3")
    await own.messages.append("t", [user("never mind")], run_id="r4", on_open_calls="interrupt")
    await own.messages.append("t", [asks.model_copy(update={"message_id": "e"})])
    whole = asks.model_copy(update={"message_id": "e", "state": "complete", "content": "Let me look."})
    await own.messages.append("t", [whole], kv={"mode": "over"})
    await own.messages.append("t", [result("q")], run_id="r4")
    async with own.messages.stream("t", run_id="r5") as draft:
        for piece in ("Sun", "ny", "."):
            await draft.feed(piece)
            await draft.flush()
    async with own.messages.stream("t", format="openai-responses", run_id="r6") as draft:
        for event in split([said("m1", "One."), SEARCH, said("m2", "Two."), CALL]):
            await draft.feed(event)


@pytest.mark.parametrize("scope", [in_ledger, in_transaction])
async def test_every_statement_binds_its_tables_to_the_tenant_and_writes_one(
    pg_database: Database, heard: Heard, scope: Any
) -> None:
    async with pg_database.open(postgresql=PostgreSQL(distributed=True)) as ledger:
        await run_everything(ledger, scope)
        assert len(heard.statements) > 100
        assert joined_writes(heard.statements) == set()


async def test_a_statement_that_is_not_bound_is_found(pg_database: Database, heard: Heard) -> None:
    """That all tests can fail."""
    async with pg_database.open(postgresql=PostgreSQL(distributed=True)) as ledger:
        await scope_of(ledger).read(lambda sql: sql.fetch("SELECT 1 FROM {schema}kv WHERE key = :key", {"key": "k"}))
    assert list(unbound(heard.statements).values()) == [["kv"]]
    heard.statements.clear()


async def test_no_plain_ledger_is_heard(pg_database: Database, heard: Heard) -> None:
    async with pg_database.open(postgresql=PostgreSQL(distributed=False)) as ledger:
        await ledger.threads.create("t")
    assert not heard.statements


async def test_each_exception_is_used(pg_database: Database, heard: Heard) -> None:
    async with pg_database.open(postgresql=PostgreSQL(distributed=True)) as ledger:
        await ledger.ping()
    assert EXCEPTIONS.keys() - set(heard.statements) == set()
    assert all(unbound_tables(one) for one in EXCEPTIONS)


async def test_the_comparison_can_fail(pg_database: Database, sent: list[str]) -> None:
    """On a plain PostgreSQL an append is one statement that writes several tables."""
    async with pg_database.open(postgresql=PostgreSQL(distributed=False)) as ledger:
        sent.clear()
        await append_in_each_way(ledger)
        assert len(joined_writes(sent)) > 5


async def test_a_transaction_on_a_callers_connection_writes_one_table_a_statement(
    pg_database: Database, heard: Heard
) -> None:
    engine = create_async_engine(pg_database.url.replace("postgresql:", "postgresql+asyncpg:"))
    async with engine.begin() as connection:
        await append_in_each_way(Transaction(connection, postgresql=PostgreSQL(distributed=True)))
        assert len(heard.statements) > 20
        assert joined_writes(heard.statements) == set()
    await engine.dispose()


def test_the_commands_bind_their_tables_and_write_one(pg_database: Database, heard: Heard, tmp_path: Path) -> None:
    """Import, threads and export failed on Citus."""
    from tests.cli.commands import chatledger

    asyncio.run(query(pg_database, EXTENSION))
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    (tmp_path / "talks.json").write_text(json.dumps([{"n": str(n), "messages": talk} for n in range(3)]))
    for words in COMMANDS:
        assert chatledger(*words.split(), url=pg_database.url, cwd=tmp_path).code == 0
    assert len(heard.statements) > 40
    assert joined_writes(heard.statements) == set()


COMMANDS = (
    "import talks.json --thread-field n",
    "import talks.json --thread-field n",
    "threads",
    "export --all",
    "export --all --parquet out",
    "prompt 1 --format openai-chat",
    "show 1",
    "check",
    "runs list",
    "search Hello",
)


# --- The choice -------------------------------------------------------------------------------------------------------


async def test_a_ledger_asks_the_database_whether_it_is_distributed(pg_database: Database, sent: list[str]) -> None:
    for stated, expected in ((None, False), (True, True)):
        assert await is_by_table(pg_database, sent, distributed=stated) == expected
    await query(pg_database, EXTENSION)
    for stated, expected in ((None, True), (False, False)):
        assert await is_by_table(pg_database, sent, distributed=stated) == expected


async def is_by_table(database: Database, sent: list[str], *, distributed: bool | None) -> bool:
    """Whether this ledger's appends write one table a statement."""
    async with Ledger.open(database.url, postgresql=PostgreSQL(distributed=distributed)) as ledger:
        sent.clear()
        await ledger.messages.append("t", turn(), create=True)
        return not joined_writes(sent)


async def test_a_file_is_not_distributed(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="distributed needs PostgreSQL"):
        await Ledger.open(tmp_path / "ledger.db", postgresql=PostgreSQL(distributed=True))
    async with await Ledger.open(tmp_path / "ledger.db", postgresql=PostgreSQL(distributed=False)) as ledger:
        await ledger.messages.append("t", turn(), create=True)
    engine = create_async_engine("sqlite+aiosqlite://")
    with pytest.raises(InvalidArgument, match="distributed needs PostgreSQL"):
        await Ledger.open(engine, postgresql=PostgreSQL(distributed=True))
    async with engine.begin() as connection:
        with pytest.raises(InvalidArgument, match="distributed needs PostgreSQL"):
            Transaction(connection, postgresql=PostgreSQL(distributed=True))
    await engine.dispose()


async def test_a_distributed_ledger_has_no_replica(pg_database: Database) -> None:
    """The position is one of the coordinator. A standby of a worker may be behind it: 66 of 80 reads were stale."""
    with pytest.raises(StorageError, match="distributed by tenant cannot have a replica"):
        await Ledger.open(pg_database.url, postgresql=PostgreSQL(replica=pg_database.url, distributed=True))
    await query(pg_database, EXTENSION)
    with pytest.raises(StorageError, match="distributed by tenant cannot have a replica"):
        await Ledger.open(pg_database.url, postgresql=PostgreSQL(replica=pg_database.url))


# --- The outcomes -----------------------------------------------------------------------------------------------------


async def test_each_append_stores_the_same_rows(pg_database: Database) -> None:
    stored = []
    for tenant, distributed in (("plain", False), ("apart", True)):
        async with pg_database.open(tenant=tenant, postgresql=PostgreSQL(distributed=distributed)) as ledger:
            await append_in_each_way(ledger)
            stored.append(await content(ledger))
    assert stored[0] == stored[1]


async def content(ledger: Ledger) -> list[Any]:
    """What is stored of the thread, without the times, stamps and minted ids."""
    branches = await ledger.branches.list("t")
    histories = [await ledger.messages.history("t", branch=branch.branch) for branch in branches]
    messages = [
        (one.branch, one.seq, one.role, one.content, one.tool_calls, one.run_id, one.state, one.violations)
        for history in histories
        for one in history.messages
    ]
    runs = sorted((run.run_id, run.status, run.error or "") for run in await ledger.runs.list())
    values = [(value.key, value.value) for value in await ledger.kv.list(("thread", "t"))]
    findings = await findings_of(ledger, "t")
    return [messages, runs, values, findings]


async def test_a_refused_append_leaves_nothing_behind(pg_database: Database) -> None:
    async with pg_database.open(postgresql=PostgreSQL(distributed=True)) as ledger:
        await ledger.messages.append("t", turn(), create=True, run_id="r", kv={"mode": "brief"})
        await ledger.messages.append("other", turn(ids="x"), create=True, run_id="r of other")
        before = await rows(pg_database)
        with pytest.raises(VersionConflict, check=about("value")):  # on a cached tip
            await ledger.messages.append("t", turn(), kv={"mode": Put("long", expected=1)})
        with pytest.raises(VersionConflict, check=about("value")):  # under the lock
            await ledger.messages.append("t", turn(), kv={"mode": Put("long", expected=1)})
        with pytest.raises(RunConflict, match="r of other"):
            await ledger.messages.append("t", turn(), run_id="r of other")
        with pytest.raises(RunConflict, match="r of other"):
            await ledger.messages.append("new", turn(), create=True, run_id="r of other")
        with pytest.raises(VersionConflict):
            await ledger.messages.append("t", turn(), expected=0)
        await ledger.messages.append("t", [user("m", message_id="m")])
        await fork_at(scope_of(ledger), "t", 5)
        with pytest.raises(IdConflict):
            await ledger.messages.append("t", [user("m", message_id="m")])
        assert await ledger.threads.find("new") is None
        await ledger.threads.delete("t")
        await ledger.erasures.erase(("thread", "other"))
        with pytest.raises(Erased):
            await ledger.threads.create("other")
        with pytest.raises(Erased):
            await ledger.messages.append("other", turn(), create=True)
        assert before > await rows(pg_database) == 0


async def rows(database: Database) -> int:
    counts = [await query(database, f"SELECT count(*) FROM {name}") for name in ("threads", "branches", "messages")]
    return sum(found[0][0] for found in counts)


async def test_two_processes_that_write_a_thread_at_once_store_each_turn_once(pg_database: Database) -> None:
    ledgers = [await pg_database.open(postgresql=PostgreSQL(distributed=True)) for _ in range(2)]
    await ledgers[0].threads.create("t")
    appends = [own.messages.append("t", turn(ids=f"{n}/")) for n in range(12) for own in ledgers]
    outcomes = await asyncio.gather(*appends)
    assert sorted(one.replayed for one in outcomes) == [False] * 12 + [True] * 12
    history = await ledgers[0].messages.history("t")
    assert (history.last_seq, len({one.message_id for one in history.messages})) == (60, 60)
    branching = [
        own.messages.append("t", [user("else")], reply_to=at(5), branch=0) for _ in range(6) for own in ledgers
    ]
    made = {one.messages[0].branch for one in await asyncio.gather(*branching)}
    assert made == set(range(1, 13))
    assert await findings_of(ledgers[0], "t") == []
    for ledger in ledgers:
        await ledger.close()


async def test_many_processes_that_create_a_thread_at_once_create_one(pg_database: Database) -> None:
    ledgers = [await pg_database.open(postgresql=PostgreSQL(distributed=True)) for _ in range(4)]
    for number in range(5):
        creating = [own.messages.append(f"t{number}", [user("hello")], create=True, rules="lenient") for own in ledgers]
        assert sorted(one.last_seq for one in await asyncio.gather(*creating)) == [1, 2, 3, 4]
    for ledger in ledgers:
        await ledger.close()


# --- The connection is lost -------------------------------------------------------------------------------------------


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[Proxy]:
    async with proxied(pg_database.url) as running:
        yield running


@asynccontextmanager
async def prepared(proxy: Proxy) -> AsyncIterator[Ledger]:
    """A ledger behind the proxy that has cached the tip, and whose connection has prepared the statements of a turn."""
    async with Ledger.open(proxy.url, postgresql=PostgreSQL(distributed=True)) as ledger:
        await ledger.threads.create("t")
        for _ in range(2):
            await ledger.messages.append("t", turn(), run_id="r")
        yield ledger


APPEND = 1 + 1 + 3 + 1
"""The round trips of a turn: BEGIN, the tip, messages, calls, results, COMMIT."""


async def test_an_append_is_one_transaction_of_one_statement_a_table(proxy: Proxy) -> None:
    async with prepared(proxy) as ledger:
        before = proxy.round_trips
        await ledger.messages.append("t", turn(), run_id="r")
        assert proxy.round_trips - before == APPEND


@pytest.mark.parametrize("where", ["before", "after"])
async def test_an_append_whose_connection_is_lost_at_any_round_trip_is_stored_once(
    proxy: Proxy, where: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each append touches its thread. Otherwise one in each second did, and its COMMIT was a round trip later."""
    monkeypatch.setattr(attempt, "ACTIVITY_RESOLUTION", timedelta())
    async with prepared(proxy) as ledger:
        version, cut, replayed, unanswered = 10, [], [], []
        for trip in range(1, 3 * APPEND):
            proxy.cut(where, trip)
            appended = await ledger.messages.append("t", turn(), run_id="r")
            cut.append(proxy.spare())
            replayed.append(appended.replayed)
            unanswered.append(where == "after" and cut[-1] and b"COMMIT" in proxy.lost)
            await ledger.messages.append("t", turn(), run_id="r")  # caches the tip again
            version += 10
            assert (appended.last_seq, (await ledger.messages.history("t")).last_seq) == (version - 5, version)
        assert cut == [trip <= APPEND + 1 for trip in range(1, 3 * APPEND)]
        assert replayed == unanswered
        assert replayed.count(True) == (1 if where == "after" else 0)
        assert await findings_of(ledger, "t") == []


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_draft_whose_commit_is_not_heard_goes_on(proxy: Proxy, where: Cut) -> None:
    async with prepared(proxy) as ledger:
        async with ledger.messages.stream("t", pace=Pace(interval=3_600, lease=7_200)) as draft:
            for number in range(6):
                await draft.feed(f"{number} ")
                proxy.cut(where, number + 1)
                with_retry = asyncio.create_task(flushed(draft))
                await until(with_retry.done)
                await with_retry
                proxy.spare()
            proxy.cut(where, 4)
        assert texts(await ledger.messages.history("t"))[-1] == "0 1 2 3 4 5 "
        assert draft.message.state == "complete"
        assert await findings_of(ledger, "t") == []


async def flushed(draft: Any) -> None:
    """Flush, and again after a temporary error, as a caller does."""
    for _ in range(10):
        try:
            await draft.flush()
            return
        except StorageError as error:
            if not error.retryable:
                raise
    raise AssertionError("the draft could not be written")
