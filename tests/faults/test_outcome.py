"""PostgreSQL goes away, or refuses, in the middle of an append: lost connections, conflicts and duplicate keys."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.util import await_only

from chatledger import Appended, Ledger, Oldest, RuleViolation, StorageError
from chatledger.errors import IdConflict, OutcomeUnknown
from chatledger.repositories import scope_of
from chatledger.storage.append import attempt as append_module
from chatledger.storage.append.write import TryAgain
from chatledger.storage.databases.postgresql import append as postgresql_append
from chatledger.storage.repositories.branches import fork_at
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user
from tests.faults.connections import busy, connections_of, none_idle, set_limits
from tests.faults.proxy import Cut, Proxy, proxied
from tests.storage.raw import query

PREFLIGHT, WRITE = 1, 2  # the round trips of an append without a cached tip; with one, the write comes first
REMEMBERED = 1


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[Proxy]:
    async with proxied(pg_database.url) as running:
        yield running


@pytest.fixture
async def ledger(proxy: Proxy) -> AsyncIterator[Ledger]:
    """Behind the proxy, with one turn in thread "t" and one connection that has prepared what a turn needs."""
    async with Ledger.open(proxy.url) as opened:
        await opened.threads.create("t")
        for _ in range(2):
            await opened.messages.append("t", turn(), run_id="r")
            forget(opened)
        yield opened


def forget(ledger: Ledger) -> None:
    """As if another process had written last."""
    ledger._database._append._tips._seen.clear()  # type: ignore[attr-defined]


async def assert_stored_once(ledger: Ledger, outcome: Appended, *, before: int = 10) -> None:
    """The batch is the last turn, whole, and the thread goes on."""
    history = await ledger.messages.history("t")
    assert (history.last_seq, history.messages[before:]) == (before + 5, outcome.messages)
    assert (outcome.messages[0].seq, outcome.last_seq, outcome.last_seq) == (before + 1, before + 5, before + 5)
    assert (await ledger.messages.append("t", turn())).last_seq == before + 10
    assert await findings_of(ledger, "t") == []
    assert busy(ledger) == 0


# --- The connection is lost -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "trip", "was_stored"),
    [("before", PREFLIGHT, False), ("after", PREFLIGHT, False), ("before", WRITE, False), ("after", WRITE, True)],
)
async def test_an_append_whose_connection_is_lost_is_stored_once(
    ledger: Ledger, proxy: Proxy, where: Cut, trip: int, was_stored: bool
) -> None:
    """A write that was committed unanswered is found by its ids, although the caller brought none."""
    proxy.cut(where, trip)
    outcome = await ledger.messages.append("t", turn(), run_id="r")
    assert outcome.replayed == was_stored
    await assert_stored_once(ledger, outcome)


@pytest.mark.parametrize(("where", "was_stored"), [("before", False), ("after", True)])
async def test_an_append_on_a_cached_tip_whose_connection_is_lost_is_stored_once(
    ledger: Ledger, proxy: Proxy, where: Cut, was_stored: bool
) -> None:
    for _ in range(2):  # the second knows the run, and prepares the statement without it
        await ledger.messages.append("t", turn(), run_id="r")
    proxy.cut(where, REMEMBERED)
    outcome = await ledger.messages.append("t", turn(), run_id="r")
    assert outcome.replayed == was_stored
    await assert_stored_once(ledger, outcome, before=20)


def cut_twice(proxy: Proxy, where: Cut, trip: int) -> None:
    """Cuts the write of the next append, and again that many round trips later."""
    counted = type(proxy).count

    def and_cut_again() -> Cut | None:
        first = counted(proxy)
        if first is not None:
            del proxy.count
            proxy.cut(where, trip)
        return first

    proxy.cut("before", WRITE)
    proxy.count = and_cut_again  # type: ignore[method-assign]


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_connection_lost_again_in_the_second_attempt(ledger: Ledger, proxy: Proxy, where: Cut) -> None:
    """At each round trip from the new connection's first to its COMMIT."""
    for trip in itertools.count(1):
        forget(ledger)
        cut_twice(proxy, where, trip)
        outcome = await ledger.messages.append("t", turn(), run_id="r")
        was_cut = proxy.spare()
        assert (outcome.messages[0].seq, outcome.last_seq) == (5 * trip + 6, 5 * trip + 10)
        assert (
            await ledger.messages.history("t", Oldest(1_000, after=5 * trip + 5), branch=0)
        ).messages == outcome.messages
        if not was_cut:
            break
    assert trip > 5  # BEGIN, the lock, the preflight, the write and COMMIT, at the least
    assert await findings_of(ledger, "t") == []


async def test_results_whose_acknowledgement_was_lost_are_stored_once(ledger: Ledger, proxy: Proxy) -> None:
    """Judged on the branch as it is by then, they would be refused: they are looked for first."""
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a")])])
    await ledger.messages.append("t", [result("a")])
    await ledger.messages.append("t", [assistant(calls=[call("b")])])
    mark = (await ledger.branches.get("t")).mark
    forget(ledger)
    proxy.cut("after", WRITE)
    outcome = await ledger.messages.append("t", [result("b")], expected=mark)
    assert (outcome.last_seq, outcome.replayed) == (15, True)
    assert await findings_of(ledger, "t") == []


async def test_a_server_that_ends_connections_costs_another_attempt(ledger: Ledger, pg_database: Database) -> None:
    await end_connections(pg_database)
    await assert_stored_once(ledger, await ledger.messages.append("t", turn(), run_id="r"))


async def test_a_connection_ended_while_it_waits_for_a_lock_costs_another_attempt(
    ledger: Ledger, pg_database: Database
) -> None:
    other = await asyncpg.connect(pg_database.url, server_settings={"application_name": "other"})
    async with other.transaction():
        await other.execute("SELECT FROM chatledger.branches FOR UPDATE")
        appending = asyncio.create_task(ledger.messages.append("t", turn(), run_id="r"))
        await waiting(other)
        await end_connections(pg_database)
    await other.close()
    await assert_stored_once(ledger, await appending)


async def end_connections(database: Database) -> None:
    await query(
        database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'chatledger'"
    )


async def until(happened: Callable[[], bool]) -> None:
    while not happened():  # noqa: ASYNC110 - a test may poll
        await asyncio.sleep(0.001)


async def waiting(connection: Any) -> None:
    """Until somebody waits for a lock in this database."""
    blocked = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT granted AND datname = $1"
    name = await connection.fetchval("SELECT current_database()")
    while not await connection.fetchval(blocked, name):  # noqa: ASYNC110 - the server tells nobody
        await asyncio.sleep(0.005)


# --- The database stays away ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("where", "stored"), [("before", 10), ("after", 15)])
async def test_past_the_deadline_the_outcome_is_unknown_and_a_repeat_is_safe(
    ledger: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, where: Cut, stored: int
) -> None:
    set_limits(ledger, timeout=0.2)
    proxy.cut(where, WRITE)
    proxy.down = True
    with pytest.raises(OutcomeUnknown) as caught:
        await ledger.messages.append("t", turn(ids="m"), run_id="r")
    assert caught.value.message_ids == ("m0", "m1", "m2", "m3", "m4")
    proxy.down = False
    assert (await ledger.messages.history("t")).last_seq == stored
    outcome = await ledger.messages.append("t", turn(ids="m"), run_id="r")
    assert outcome.replayed == (stored == 15)
    await assert_stored_once(ledger, outcome)


async def test_an_unknown_outcome_has_ids_though_the_caller_gave_none(
    ledger: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(ledger, timeout=0.2)
    proxy.cut("after", WRITE)
    proxy.down = True
    with pytest.raises(OutcomeUnknown) as caught:
        await ledger.messages.append("t", turn(), run_id="r")
    proxy.down = False
    stored = (await ledger.messages.history("t", Oldest(1_000, after=10), branch=0)).messages
    assert caught.value.message_ids == tuple(message.message_id for message in stored)


@pytest.mark.parametrize("trip", [PREFLIGHT, WRITE])
async def test_a_connection_that_falls_silent_costs_another_attempt(
    ledger: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, trip: int
) -> None:
    set_limits(ledger, response_timeout=0.2)
    proxy.cut("hang", trip)
    outcome = await asyncio.wait_for(ledger.messages.append("t", turn(), run_id="r"), 5)
    assert not outcome.replayed
    await assert_stored_once(ledger, outcome)


async def test_a_database_silent_beyond_the_deadline_leaves_the_outcome_unknown(
    ledger: Ledger, pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody holds the branch; what the server still does when they let go, it does at most once."""
    set_limits(ledger, response_timeout=0.2)
    set_limits(ledger, timeout=0.3)
    other = await asyncpg.connect(pg_database.url)
    async with other.transaction():
        await other.execute("SELECT FROM chatledger.branches FOR UPDATE")
        with pytest.raises(OutcomeUnknown):
            await asyncio.wait_for(ledger.messages.append("t", turn(ids="m"), run_id="r"), 5)
    await other.close()
    monkeypatch.undo()
    await assert_stored_once(ledger, await ledger.messages.append("t", turn(ids="m"), run_id="r"))


async def test_an_append_that_was_never_sent_is_a_retryable_error(
    ledger: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(ledger, timeout=0.2)
    proxy.down = True
    await ledger._database._engine.dispose()  # type: ignore[attr-defined]
    with pytest.raises(StorageError) as caught:
        await ledger.messages.append("t", turn())
    assert caught.value.retryable


@pytest.mark.parametrize(("cut", "expected"), [(False, StorageError), (True, OutcomeUnknown)])
async def test_a_pool_without_a_free_connection_in_time(
    ledger: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, cut: bool, expected: type[StorageError]
) -> None:
    """Retryable, unless an attempt was sent before: then nobody looked what became of it."""
    set_limits(ledger, timeout=0.2)
    none_idle(ledger)
    pool = ledger._database._engine.pool  # type: ignore[attr-defined]
    lend, calls = pool.connect, []

    def exhausted() -> Any:
        calls.append(1)
        if cut and len(calls) == 1:
            return lend()
        raise PoolTimeout("QueuePool limit reached")

    monkeypatch.setattr(pool, "connect", exhausted)
    monkeypatch.setattr(ledger._database._engine.sync_engine, "raw_connection", exhausted)  # type: ignore[attr-defined]
    if cut:
        proxy.cut("after", WRITE)
    with pytest.raises(expected) as caught:
        await ledger.messages.append("t", turn())
    assert caught.value.retryable is not cut
    if not cut:
        with pytest.raises(StorageError) as read:
            await ledger.messages.history("t")
        assert read.value.retryable


async def test_a_transaction_that_cannot_begin_is_a_retryable_error(ledger: Ledger, proxy: Proxy) -> None:
    proxy.down = True
    await ledger._database._engine.dispose()  # type: ignore[attr-defined]
    with pytest.raises(StorageError) as caught:
        async with ledger.begin():
            pass
    assert caught.value.retryable


async def test_an_error_inside_a_transaction_comes_out_unchanged(ledger: Ledger) -> None:
    with pytest.raises(ConnectionError):
        async with ledger.begin():
            raise ConnectionError


async def test_a_commit_without_an_answer_is_not_a_retryable_error(ledger: Ledger, proxy: Proxy) -> None:
    """StorageError promises with `retryable` that nothing was written."""
    with pytest.raises(StorageError, match="during COMMIT") as of_several:
        async with ledger.begin() as tx:
            await tx.messages.append("t", turn())
            proxy.cut("after", 1)

    def then_cut(_: object) -> None:
        proxy.cut("after", 1)

    with pytest.raises(StorageError, match="during COMMIT") as of_one:
        await ledger._scope.write(then_cut)
    assert not of_several.value.retryable
    assert not of_one.value.retryable
    assert (await ledger.messages.history("t")).last_seq == 15
    assert busy(ledger) == 0


async def test_reading_while_the_server_is_away_is_a_retryable_error(ledger: Ledger, proxy: Proxy) -> None:
    async with Ledger.open(proxy.url, timeout=1) as reader:
        assert (await reader.messages.history("t")).last_seq == 10
        proxy.cut("before", 1)
        proxy.down = True
        for _ in range(2):
            with pytest.raises(StorageError) as caught:
                await reader.messages.history("t")
            assert caught.value.retryable
        assert 2 <= proxy.refused < 60  # attempts with pauses; without them there are hundreds a second
        proxy.down = False
        assert (await reader.messages.history("t")).last_seq == 10


# --- The server asks for another attempt, or the branch keeps moving --------------------------------------------------


async def test_a_deadlock_costs_another_attempt(ledger: Ledger, pg_database: Database) -> None:
    """The append holds the branch and waits for the thread; the other holds the thread and waits for the branch."""
    name = pg_database.url.rpartition("/")[2]
    # The append looks once for a deadlock, and the other must be waiting by then.
    await query(pg_database, f"ALTER DATABASE \"{name}\" SET deadlock_timeout = '1s'")
    await query(pg_database, "UPDATE threads SET active_at = '2000-01-01'")
    await end_connections(pg_database)  # a setting of the database is that of new connections
    other = await asyncpg.connect(pg_database.url, server_settings={"deadlock_timeout": "60s"})
    async with other.transaction():
        await other.execute("SELECT FROM chatledger.threads FOR UPDATE")
        appending = asyncio.create_task(ledger.messages.append("t", turn(), run_id="r"))
        await waiting(other)
        await other.execute("SELECT FROM chatledger.branches FOR UPDATE")
    deadlocks = await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted")
    await other.close()
    assert deadlocks == 0
    await assert_stored_once(ledger, await appending)


async def test_serialization_failures_cost_other_attempts(pg_database: Database) -> None:
    """On a server whose default isolation is stricter than what we ask of it."""
    name = pg_database.url.rpartition("/")[2]
    await query(pg_database, f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'repeatable read'")
    async with pg_database.open() as one, pg_database.open() as other:
        await one.threads.create("t")
        for ledger in (one, other):  # writers of one ledger take turns; these have their statements ready to meet
            await ledger.messages.append("t", turn())
        appends = [ledger.messages.append("t", turn(ids=f"{n}-")) for n, ledger in enumerate((one, other) * 4)]
        outcomes = await asyncio.gather(*appends)
        history = (await one.messages.history("t", Oldest(1_000, after=10), branch=0)).messages
    assert sorted(outcome.messages[0].seq for outcome in outcomes) == list(range(11, 50, 5))
    ordered = sorted(outcomes, key=lambda outcome: outcome.messages[0].seq)
    assert history == [message for outcome in ordered for message in outcome.messages]


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03"])
async def test_attempts_are_bounded(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, sqlstate: str) -> None:
    set_limits(ledger, timeout=1)  # an append waits for a lock until its time limit, with growing pauses
    attempts = []

    def refused(*_: object, **__: object) -> None:
        attempts.append(1)
        raise asyncpg.PostgresError.new({"C": sqlstate, "M": "again"})

    monkeypatch.setattr(append_module, "write", refused)
    with pytest.raises(StorageError) as caught:
        await ledger.messages.append("t", turn(), run_id="r")
    assert caught.value.retryable
    assert 2 <= len(attempts) <= postgresql_append.ATTEMPTS
    assert busy(ledger) == 0


# --- A duplicate key --------------------------------------------------------------------------------------------------


def before_the_write(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], Awaitable[object]]) -> None:
    """Let something happen after the preflight of the next append, once."""
    written = append_module.__dict__["write"]

    def then_write(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(append_module, "write", written)
        await_only(happen())
        return written(*arguments, **options)

    monkeypatch.setattr(append_module, "write", then_write)


async def test_an_id_stored_on_another_branch_meanwhile_is_a_conflict(
    ledger: Ledger, pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard does not see it, the unique key does."""
    await fork_at(scope_of(ledger), "t", 5, activate=False)
    async with pg_database.open() as other:
        before_the_write(monkeypatch, lambda: other.messages.append("t", turn(ids="m"), branch=1))
        with pytest.raises(IdConflict) as caught:
            await ledger.messages.append("t", turn(ids="m"))
    assert caught.value.seq == 6
    assert (await ledger.messages.history("t")).last_seq == 10


async def test_the_same_batch_stored_meanwhile_is_a_replay(
    ledger: Ledger, pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pg_database.open() as other:
        before_the_write(monkeypatch, lambda: other.messages.append("t", turn(ids="m"), run_id="r"))
        outcome = await ledger.messages.append("t", turn(ids="m"), run_id="r")
    assert outcome.replayed
    await assert_stored_once(ledger, outcome)


async def test_the_same_batch_sent_at_once_is_stored_once(ledger: Ledger) -> None:
    appends = [ledger.messages.append("t", turn(), run_id="r", idempotency_key="k") for _ in range(6)]
    outcomes = await asyncio.gather(*appends)
    assert sorted(outcome.replayed for outcome in outcomes) == [False, *[True] * 5]
    await assert_stored_once(ledger, outcomes[0])


async def test_a_foreign_row_at_a_later_seq_is_an_error_with_its_facts(ledger: Ledger, pg_database: Database) -> None:
    """Written by other means: the branch says 10, and seq 12 is taken."""
    row = "SELECT tenant_id, thread_id, 0, 12, 'user', 'complete', now()"
    await query(
        pg_database,
        f"INSERT INTO messages (tenant_id, thread_id, branch, seq, role, state, created_at) {row} FROM threads",
    )
    with pytest.raises(StorageError, match="unique") as caught:
        await ledger.messages.append("t", turn(), run_id="r")
    assert not caught.value.retryable
    assert isinstance(caught.value.__cause__, Exception)
    assert await query(pg_database, "SELECT count(*) FROM messages") == [(11,)]
    assert (await ledger.messages.append("t", [user("fits")])).last_seq == 11


# --- Cancellation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trip", [PREFLIGHT, WRITE])
async def test_a_cancelled_append_discards_its_connection(ledger: Ledger, proxy: Proxy, trip: int) -> None:
    proxy.cut("hang", trip)
    sent = proxy.round_trips + trip
    appending = asyncio.create_task(ledger.messages.append("t", turn(), run_id="r"))
    await until(lambda: proxy.round_trips >= sent)
    appending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(appending, 2)
    assert busy(ledger) == 0
    await assert_stored_once(ledger, await ledger.messages.append("t", turn(), run_id="r"))
    assert proxy.connections == 3  # one of them asked the server to cancel the statement


async def test_an_append_cancelled_while_it_waits_for_the_lock_discards_its_connection(
    ledger: Ledger, pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second attempt, inside a transaction."""
    forget(ledger)
    monkeypatch.setattr(append_module, "write", lambda *_, **__: TryAgain())
    other = await asyncpg.connect(pg_database.url)
    async with other.transaction():
        await other.execute("SELECT FROM chatledger.branches FOR UPDATE")
        appending = asyncio.create_task(ledger.messages.append("t", turn(), run_id="r"))
        await waiting(other)
        appending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(appending, 2)
        assert busy(ledger) == 0
    await other.close()
    monkeypatch.undo()
    await assert_stored_once(ledger, await ledger.messages.append("t", turn(), run_id="r"))


async def test_a_cancelled_transaction_is_rolled_back(ledger: Ledger, proxy: Proxy) -> None:
    begun = asyncio.Event()

    async def work() -> None:
        async with ledger.begin() as tx:
            await tx.messages.append("t", turn())
            begun.set()
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await begun.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert busy(ledger) == 0
    await assert_stored_once(ledger, await ledger.messages.append("t", turn(), run_id="r"))


async def test_a_refused_append_keeps_its_connection(ledger: Ledger, proxy: Proxy) -> None:
    for _ in range(3):
        with pytest.raises(RuleViolation):
            await ledger.messages.append("t", [result("orphan")])
    assert (proxy.connections, connections_of(ledger).unused) == (1, 1)
    assert texts(await ledger.messages.history("t", Oldest(1_000, after=9), branch=0)) == ["It is sunny in both."]
