"""The order of judgement of an append, as `docs/contribute/append-and-history.md` gives it, and repeated appends."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from chatledger import (
    ChatMessage,
    InvalidArgument,
    Ledger,
    Limits,
    Newest,
    RuleViolation,
    StorageError,
    ThreadNotFound,
    Transaction,
    VersionConflict,
)
from chatledger.admin import configure_sqlite
from chatledger.errors import BranchNotFound, DraftLive, IdConflict, LimitExceeded, RunConflict
from chatledger.repositories import scope_of
from chatledger.storage.append import attempt as attempt_module
from chatledger.storage.append import preflight as preflight_module
from chatledger.storage.append import write as write_module
from chatledger.storage.append.request import OnOpenCalls
from chatledger.storage.databases.postgresql import append as postgresql_append_module
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.rows.encrypted import UNLESS_ENCRYPTED
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user


async def thread(ledger: Ledger, thread_id: str = "t") -> str:
    await ledger.threads.create(thread_id)
    return thread_id


# --- Limits and ids, checked before anything is sent ------------------------------------------------------------------


async def test_too_many_messages_are_refused(ledger: Ledger) -> None:
    await thread(ledger)
    with pytest.raises(LimitExceeded) as caught:
        await ledger.messages.append("t", [user("x")] * 1_001)
    assert (caught.value.given, caught.value.maximum) == (1_001, 1_000)
    assert (await ledger.messages.history("t")).last_seq == 0


async def test_too_many_bytes_are_refused(database: Database) -> None:
    async with database.open(limits=Limits(bytes=100)) as ledger:
        await thread(ledger)
        with pytest.raises(LimitExceeded, match="bytes of an append"):
            await ledger.messages.append("t", [user("ä" * 50)])
        await ledger.messages.append("t", [user("a" * 50)])


async def test_an_id_twice_in_a_batch_is_refused(ledger: Ledger) -> None:
    await thread(ledger)
    with pytest.raises(IdConflict) as caught:
        await ledger.messages.append("t", [user("a", message_id="m"), assistant("b", message_id="m")])
    assert (caught.value.id, caught.value.seq) == ("m", None)


# --- Ids that are stored already: repeats and conflicts ---------------------------------------------------------------


async def test_a_repeat_with_ids_gives_the_first_result(ledger: Ledger) -> None:
    await thread(ledger)
    first = await ledger.messages.append("t", turn(ids="m"), run_id="r")
    again = await ledger.messages.append("t", turn(ids="m"), run_id="r")
    assert again.replayed
    assert (again.messages[0].seq, again.last_seq) == (first.messages[0].seq, first.last_seq)
    assert again.messages == first.messages
    assert (await ledger.messages.history("t")).messages == first.messages


async def test_a_repeat_with_an_idempotency_key_gives_the_first_result(ledger: Ledger) -> None:
    await thread(ledger)
    first = await ledger.messages.append("t", turn(), idempotency_key="k")
    again = await ledger.messages.append("t", turn(), idempotency_key="k")
    assert again.replayed
    assert again.messages == first.messages


async def test_a_second_call_without_ids_is_a_second_turn(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", turn())
    assert not (await ledger.messages.append("t", turn())).replayed
    assert (await ledger.messages.history("t")).last_seq == 10


async def test_a_repeat_on_an_empty_branch_gives_the_first_result(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", turn(ids="m"), expected=0)
    assert (await ledger.messages.append("t", turn(ids="m"), expected=0)).replayed


async def test_a_repeat_of_tool_results_alone_gives_the_first_result(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a")])])
    results = [result("a", message_id="res")]
    await ledger.messages.append("t", results)
    assert (await ledger.messages.append("t", results)).replayed


async def test_a_repeat_after_another_append_gives_the_first_result(ledger: Ledger) -> None:
    await thread(ledger)
    first = await ledger.messages.append("t", turn(ids="m"))
    await ledger.messages.append("t", turn())
    again = await ledger.messages.append("t", turn(ids="m"))
    assert (again.replayed, again.last_seq) == (True, first.last_seq)


async def test_a_repeat_with_one_message_fewer_is_a_replay_of_those(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", turn(ids="m"))
    again = await ledger.messages.append("t", turn(ids="m")[:-1])
    assert (again.replayed, again.last_seq) == (True, 4)


async def test_a_repeat_with_one_message_more_is_a_conflict(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", turn(ids="m"))
    with pytest.raises(IdConflict):
        await ledger.messages.append("t", [*turn(ids="m"), user("more", message_id="new")])
    assert (await ledger.messages.history("t")).last_seq == 5


async def test_a_repeat_on_another_branch_is_a_conflict(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", turn(ids="m"))
    await fork_at(scope_of(ledger), "t", 0)
    with pytest.raises(IdConflict, match="branch 0"):
        await ledger.messages.append("t", turn(ids="m"))


async def test_a_repeat_in_another_order_is_a_conflict(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", [user("a", message_id="1"), assistant("b", message_id="2")])
    with pytest.raises(IdConflict):
        await ledger.messages.append("t", [assistant("b", message_id="2"), user("a", message_id="1")])


async def test_an_id_with_other_content_is_a_conflict(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", [user("a", message_id="m")])
    with pytest.raises(IdConflict) as caught:
        await ledger.messages.append("t", [user("b", message_id="m")])
    assert (caught.value.what, caught.value.id, caught.value.seq) == ("message", "m", 1)


async def test_an_unknown_branch_with_a_known_id_is_a_conflict_before_it_is_unknown(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", [user("a", message_id="m")])
    with pytest.raises(IdConflict):
        await ledger.messages.append("t", [user("a", message_id="m")], branch=7)


# --- The thread, the branch, the expected version and the rules -------------------------------------------------------


async def test_an_unknown_thread_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(ThreadNotFound):
        await ledger.messages.append("nowhere", [user("a")])


async def test_an_unknown_branch_is_not_found(ledger: Ledger) -> None:
    await thread(ledger)
    with pytest.raises(BranchNotFound) as caught:
        await ledger.messages.append("t", [user("a")], branch=7)
    assert caught.value.branch == 7


async def test_a_branch_that_is_expected_to_be_empty_and_is_not_is_a_conflict(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", turn())
    with pytest.raises(VersionConflict) as caught:
        await ledger.messages.append("t", [user("a")], expected=0)
    assert (caught.value.expected, caught.value.actual) == (0, 5)


async def test_a_refused_message_writes_nothing_of_its_batch(ledger: Ledger) -> None:
    await thread(ledger)
    with pytest.raises(RuleViolation) as caught:
        await ledger.messages.append("t", [user("a"), assistant(calls=[call("x")]), user("b")], run_id="r")
    assert (caught.value.rule, caught.value.index) == ("R8", 2)
    assert (await ledger.messages.history("t")).messages == []
    assert await ledger.runs.find("r") is None


async def test_of_racing_appends_to_an_empty_branch_one_wins(ledger: Ledger) -> None:
    await thread(ledger)
    appends = [ledger.messages.append("t", [user(str(n))], expected=0) for n in range(8)]
    outcomes = await asyncio.gather(*appends, return_exceptions=True)
    assert sum(not isinstance(outcome, BaseException) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, VersionConflict) for outcome in outcomes) == 7


# --- The guard of the write -------------------------------------------------------------------------------------------


async def wait_for(ledger: Ledger, call_id: str) -> None:
    """A thread at version 2 whose call `call_id` is open."""
    await thread(ledger)
    await ledger.messages.append("t", [user("?"), assistant(calls=[call(call_id)])])


async def make_again(ledger: Ledger) -> None:
    """The same thread at the same version, with another call open."""
    await ledger.threads.delete("t")
    await wait_for(ledger, "b")


@pytest.mark.one_statement
async def test_a_thread_made_again_between_preflight_and_write_is_judged_again(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pg_database.open() as ledger, pg_database.open() as other:
        await wait_for(other, "a")
        between(monkeypatch, lambda: make_again(other))
        with pytest.raises(RuleViolation, match="R6"):
            await ledger.messages.append("t", [result("a")])
        assert texts(await ledger.messages.history("t")) == ["?", ""]


async def test_a_thread_made_again_under_a_cached_tip_is_judged_again(database: Database) -> None:
    async with database.open() as ledger, database.open() as other:
        await wait_for(ledger, "a")
        await make_again(other)
        with pytest.raises(RuleViolation, match="R6"):
            await ledger.messages.append("t", [result("a")])
        await ledger.messages.append("t", [result("b")])
        assert await findings_of(ledger, "t") == []


async def test_only_the_guard_stops_a_stale_tip(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation check: with the version as guard in place of the stamp, the recreated thread takes the wrong result."""
    guarded = write_module.UPDATE_TIP
    assert "stamp = :stamp" in guarded
    monkeypatch.setattr(
        write_module, "UPDATE_TIP", guarded.replace("stamp = :stamp", "(stamp = :stamp OR last_seq = 2)")
    )
    for name, unless in (("_WITH_KEYS", ""), ("_WITHOUT_KEYS", UNLESS_ENCRYPTED)):
        monkeypatch.setattr(write_module, name, write_module._tip_guard(unless))
    async with pg_database.open() as ledger, pg_database.open() as other:
        await wait_for(ledger, "a")
        await make_again(other)
        await ledger.messages.append("t", [result("a")])
        assert [finding.rule for finding in await findings_of(ledger, "t")] == ["R6", "R6"]


async def test_a_stale_tip_never_refuses(database: Database) -> None:
    async with database.open() as ledger, database.open() as other:
        await wait_for(ledger, "a")
        mark = (await other.messages.append("t", [result("a")])).mark
        stored = await ledger.messages.append("t", [user("next")], expected=mark)
        assert stored.messages[0].seq == 4


async def test_a_repeat_on_a_cached_tip_is_found(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", [user("a", message_id="1")])
    await ledger.messages.append("t", [assistant("b", message_id="2")])
    assert (await ledger.messages.append("t", [user("a", message_id="1")])).replayed
    with pytest.raises(IdConflict):
        await ledger.messages.append("t", [user("c", message_id="2")])


async def test_a_cached_tip_never_writes_to_a_branch_that_is_no_longer_active(database: Database) -> None:
    async with database.open() as ledger, database.open() as other:
        await thread(ledger)
        await ledger.messages.append("t", turn())
        await fork_at(scope_of(other), "t", 5)
        stored = await ledger.messages.append("t", [user("mine")])
        assert (stored.messages[0].branch, stored.messages[0].seq) == (1, 6)
        assert (await ledger.messages.history("t", branch=0)).last_seq == 5


async def test_rules_made_stricter_hold_for_a_cached_tip(database: Database) -> None:
    async with database.open(rules="lenient") as ledger, database.open() as other:
        await thread(ledger)
        await ledger.messages.append("t", [user("a")])
        await other.threads.update("t", rules="strict")
        with pytest.raises(RuleViolation):
            await ledger.messages.append("t", [result("nothing")])


@pytest.mark.one_statement
async def test_an_append_between_preflight_and_write_only_costs_another_attempt(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pg_database.open() as ledger, pg_database.open() as other:
        await thread(other)

        async def meanwhile() -> None:
            await other.messages.append("t", turn())

        between(monkeypatch, meanwhile)
        stored = await ledger.messages.append("t", [user("mine")])
        assert stored.messages[0].seq == 6


@pytest.mark.one_statement
async def test_a_branch_switched_between_preflight_and_write_gets_the_append(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pg_database.open() as ledger, pg_database.open() as other:
        await thread(other)
        await other.messages.append("t", turn())

        async def switch() -> None:
            await fork_at(scope_of(other), "t", 5)

        between(monkeypatch, switch)
        stored = await ledger.messages.append("t", [user("mine")])
        assert stored.messages[0].branch == 1
        assert (await ledger.messages.history("t", branch=0)).last_seq == 5


def between(monkeypatch: pytest.MonkeyPatch, happen: object) -> None:
    """Let something happen after the preflight of the next append and before its write."""
    from sqlalchemy.util import await_only

    preflight = preflight_module.preflight
    pending = [happen]

    def preflight_then(*arguments: object, **options: object) -> object:
        seen = preflight(*arguments, **options)  # type: ignore[arg-type]
        if pending:
            await_only(pending.pop()())  # type: ignore[operator]
        return seen

    for module in (attempt_module, postgresql_append_module):
        monkeypatch.setattr(module, "preflight", preflight_then)


# --- A run of another thread ------------------------------------------------------------------------------------------


async def test_a_run_of_another_thread_is_a_conflict(ledger: Ledger) -> None:
    await thread(ledger, "t")
    await thread(ledger, "u")
    await ledger.messages.append("t", [user("a")], run_id="run, 7)")
    with pytest.raises(RunConflict) as caught:
        await ledger.messages.append("u", [user("a")], run_id="run, 7)")
    assert caught.value.run_id == "run, 7)"
    assert (await ledger.messages.history("u")).last_seq == 0


async def test_a_run_of_another_thread_is_a_conflict_on_a_cached_tip(ledger: Ledger) -> None:
    """The refused attempt leaves nothing behind: the next one finds the call open and the version as expected."""
    await thread(ledger, "other")
    await ledger.messages.append("other", [user("x")], run_id="r")
    await thread(ledger)
    mark = (await ledger.messages.append("t", [user("?"), assistant(calls=[call("a")])])).mark
    with pytest.raises(RunConflict):
        await ledger.messages.append("t", [result("a")], run_id="r", expected=mark)


# --- on_open_calls, close_open_calls, partial -------------------------------------------------------------------------


async def test_closing_answers_open_calls_before_the_batch(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a"), call("b")])], run_id="r")
    stored = await ledger.messages.append("t", [user("still there?")], on_open_calls="close")
    assert (stored.messages[0].seq, len(stored.messages)) == (5, 1)
    history = (await ledger.messages.history("t")).messages
    assert [(m.role, m.tool_call_id, m.state, m.run_id) for m in history[2:4]] == [
        ("tool", "a", "synthetic", "r"),
        ("tool", "b", "synthetic", "r"),
    ]
    assert await findings_of(ledger, "t") == []


async def test_closing_counts_the_results_that_the_batch_brings(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a"), call("b")])])
    batch = [result("a", message_id="1"), user("and b?", message_id="2")]
    stored = await ledger.messages.append("t", batch, on_open_calls="close")
    roles = [(m.role, m.state) for m in (await ledger.messages.history("t")).messages[2:]]
    assert roles == [("tool", "complete"), ("tool", "synthetic"), ("user", "complete")]
    again = await ledger.messages.append("t", batch, on_open_calls="close")
    assert again.replayed
    assert again.messages == stored.messages


async def test_close_open_calls_lets_a_thread_go_on(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a")])])
    closed = await ledger.messages.close_open_calls("t", reason="the client went away")
    assert [(m.tool_call_id, m.content, m.is_error) for m in closed.messages] == [("a", "the client went away", True)]
    assert (await ledger.messages.close_open_calls("t")).messages == []
    await ledger.messages.append("t", [user("again")])


async def test_a_live_partial_message_is_interrupted_only_with_interrupt(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", [user("?"), assistant("so f", state="partial")])
    words: tuple[OnOpenCalls, ...] = ("error", "close")
    for word in words:
        with pytest.raises(DraftLive):
            await ledger.messages.append("t", [user("next")], on_open_calls=word)
    await ledger.messages.append("t", [user("next")], on_open_calls="interrupt")
    states = [m.state for m in (await ledger.messages.history("t")).messages]
    assert states == ["complete", "interrupted", "complete"]


# --- sync -------------------------------------------------------------------------------------------------------------


async def test_sync_stores_the_messages_that_follow(ledger: Ledger) -> None:
    await thread(ledger)
    history = turn()
    assert (await ledger.messages.sync("t", history[:3])).last_seq == 3
    assert (await ledger.messages.sync("t", history)).messages[0].seq == 4
    assert (await ledger.messages.sync("t", history)).replayed
    assert len((await ledger.messages.history("t")).messages) == 5


async def test_sync_refuses_a_history_that_differs(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.sync("t", turn())
    with pytest.raises(VersionConflict, match="message 0 of the batch differs from seq 1"):
        await ledger.messages.sync("t", [user("edited"), *turn()[1:]])
    with pytest.raises(VersionConflict, match="ends before seq 5"):
        await ledger.messages.sync("t", turn()[:4])


async def test_sync_knows_synthetic_results_as_the_ledgers_own(ledger: Ledger) -> None:
    await thread(ledger)
    sent = [user("?"), assistant(calls=[call("a")])]
    await ledger.messages.sync("t", sent)
    await ledger.messages.sync("t", [*sent, user("next")], on_open_calls="close")
    assert (await ledger.messages.sync("t", [*sent, user("next"), assistant("yes")])).messages[0].seq == 5


async def test_syncs_of_the_same_history_at_once_store_it_once(ledger: Ledger) -> None:
    await thread(ledger)
    await asyncio.gather(*(ledger.messages.sync("t", turn()) for _ in range(3)))
    assert (await ledger.messages.history("t")).last_seq == 5


# --- Transactions -----------------------------------------------------------------------------------------------------


async def test_a_refused_message_leaves_the_transaction_usable(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        await tx.threads.create("t")
        await tx.messages.append("t", turn())
        with pytest.raises(RuleViolation):
            await tx.messages.append("t", [result("nothing")])
        await tx.messages.append("t", turn())
    assert (await ledger.messages.history("t")).last_seq == 10


async def test_an_exception_rolls_the_transaction_back(ledger: Ledger) -> None:
    with pytest.raises(LookupError):
        async with ledger.begin() as tx:
            await tx.threads.create("t")
            raise LookupError
    assert await ledger.threads.find("t") is None


async def test_writing_through_the_ledger_inside_its_transaction_is_refused_at_once(ledger: Ledger) -> None:
    await thread(ledger)
    async with ledger.begin() as tx:
        with pytest.raises(StorageError, match="call tx and not the ledger"):
            await ledger.messages.append("t", [user("a")])
        await tx.messages.append("t", [user("a")])
    await ledger.messages.append("t", [assistant("b")])


async def test_transactions_of_two_ledgers_inside_each_other_are_both_known(
    sqlite_database: Database, pg_database: Database
) -> None:
    async with sqlite_database.open() as one, pg_database.open() as other, one.begin() as tx:
        async with other.begin() as inner:
            with pytest.raises(StorageError, match="call tx and not the ledger"):
                await asyncio.wait_for(one.threads.create("t"), 5)
            await inner.threads.create("t")
        with pytest.raises(StorageError, match="call tx and not the ledger"):
            await one.threads.create("t")
        await tx.threads.create("t")
        assert await other.threads.get("t")


async def test_a_transaction_may_end_in_another_context_than_it_began_in(ledger: Ledger) -> None:
    """As that of a test's fixture, whose two halves are run by two tasks."""
    transaction = ledger.begin()
    tx = await asyncio.create_task(transaction.__aenter__())
    await tx.threads.create("t")
    await asyncio.create_task(transaction.__aexit__(None, None, None))
    await ledger.messages.append("t", turn())


async def test_reading_through_a_ledger_in_memory_inside_its_transaction_is_refused_at_once() -> None:
    """It has one connection for everything, and would wait for the transaction around it."""
    async with Ledger.open(":memory:") as ledger:
        async with ledger.begin() as tx:
            await tx.threads.create("t")
            with pytest.raises(StorageError, match="call tx and not the ledger"):
                await asyncio.wait_for(ledger.threads.get("t"), 5)
        assert await ledger.threads.get("t")


async def test_a_ledger_is_not_closed_inside_its_own_transaction(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        with pytest.raises(StorageError, match="call tx and not the ledger"):
            await asyncio.wait_for(ledger.close(), 5)
        await tx.threads.create("t")
    assert await ledger.threads.get("t")


async def test_a_closed_ledger_refuses_calls_and_opens_no_connection(database: Database) -> None:
    async with database.open() as ledger:
        await thread(ledger)
        view = ledger.tenant("default")
    for closed in (ledger, view):
        for call_ in (closed.messages.history("t"), closed.threads.create("u"), closed.messages.append("t", turn())):
            with pytest.raises(StorageError, match="closed"):
                await call_
        with pytest.raises(StorageError, match="closed"):
            async with closed.begin():
                pass
    await ledger.close()


def engine_for(database: Database) -> AsyncEngine:
    if database.kind == "postgresql":
        return create_async_engine(database.url.replace("postgresql", "postgresql+asyncpg"))
    engine = create_async_engine(f"sqlite+aiosqlite:///{database.url}")
    configure_sqlite(engine)
    return engine


async def test_a_callers_transaction_commits_the_ledgers_writes_with_its_own(database: Database) -> None:
    engine = engine_for(database)
    async with engine.begin() as connection:
        await connection.exec_driver_sql("CREATE TABLE orders (id INTEGER)")
        tx = Transaction(connection)
        await tx.threads.create("t")
        with pytest.raises(RuleViolation):
            await tx.messages.append("t", [result("nothing")])
        await tx.messages.append("t", turn())
        await connection.exec_driver_sql("INSERT INTO orders VALUES (7)")
    async with Ledger.open(engine) as ledger:
        assert (await ledger.messages.history("t")).last_seq == 5
    async with engine.connect() as connection:
        assert (await connection.exec_driver_sql("SELECT id FROM orders")).scalar() == 7
    await engine.dispose()


async def test_a_callers_rollback_undoes_the_ledgers_writes(database: Database) -> None:
    engine = engine_for(database)
    with pytest.raises(LookupError):
        async with engine.begin() as connection:
            await Transaction(connection).threads.create("t")
            raise LookupError
    async with Ledger.open(engine) as ledger:
        assert await ledger.threads.find("t") is None
        await thread(ledger)
        await ledger.messages.append("t", turn())
        assert texts(await ledger.messages.history("t"))[-1] == "It is sunny in both."
    await engine.dispose()


async def test_a_connection_without_a_transaction_is_refused_with_the_line_to_add(database: Database) -> None:
    engine = engine_for(database)
    async with engine.connect() as connection:
        with pytest.raises(StorageError, match="the connection has no open transaction; begin one"):
            await Transaction(connection).threads.create("t")
    await engine.dispose()


async def test_an_engine_without_foreign_keys_is_refused_with_the_line_to_add(sqlite_database: Database) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{sqlite_database.url}")
    async with engine.begin() as connection:
        with pytest.raises(StorageError, match="configure_sqlite"):
            await Transaction(connection).threads.create("t")
    with pytest.raises(StorageError, match="configure_sqlite"):
        await Ledger.open(engine)
    await engine.dispose()


async def test_tasks_in_one_transaction_take_turns(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        await asyncio.gather(*(tx.threads.create(f"t{n}") for n in range(5)))
    assert len(await ledger.threads.list()) == 5


async def test_appending_nothing_returns_the_version(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", turn())
    outcome = await ledger.messages.append("t", [])
    assert (outcome.last_seq, outcome.messages) == (5, [])
    with pytest.raises(ThreadNotFound):
        await ledger.messages.append("nowhere", [])


async def test_appending_nothing_never_trusts_a_cached_tip(database: Database) -> None:
    async with database.open() as ledger, database.open() as other:
        await thread(ledger)
        await ledger.messages.append("t", turn())
        await other.messages.append("t", turn())
        assert (await ledger.messages.append("t", [])).last_seq == 10
        await ledger.messages.append("t", turn())
        await other.threads.delete("t")
        with pytest.raises(ThreadNotFound):
            await ledger.messages.append("t", [])


async def test_system_messages_do_not_belong_to_the_run(ledger: Ledger) -> None:
    await thread(ledger)
    stored = await ledger.messages.append("t", [ChatMessage(role="system", content="s"), user("u")], run_id="r")
    assert [message.run_id for message in stored.messages] == [None, "r"]


async def test_closing_closes_every_gap_of_a_batch(ledger: Ledger) -> None:
    await thread(ledger)
    asked = [user("?"), assistant(calls=[call("a")])]
    await ledger.messages.append("t", asked)
    stored = await ledger.messages.append("t", [*asked, user("still?")], on_open_calls="close")
    assert [message.seq for message in stored.messages] == [4, 5, 7]
    assert await findings_of(ledger, "t") == []


async def test_a_violation_counts_only_the_messages_of_the_caller(ledger: Ledger) -> None:
    await thread(ledger)
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a"), call("b")])])
    with pytest.raises(RuleViolation) as caught:
        await ledger.messages.append("t", [user("?"), result("nothing")], on_open_calls="close")
    assert (caught.value.rule, caught.value.index) == ("R6", 1)


async def test_a_message_that_skipped_validation_is_refused_by_its_place(ledger: Ledger) -> None:
    await thread(ledger)
    for fields in ({"role": 3}, {"content": 3}, {"custom_data": {"a": {1}}}):
        with pytest.raises(InvalidArgument, match=rf"messages\[1\] is not valid at \.{next(iter(fields))}"):
            await ledger.messages.append("t", [user("a"), user("a").model_copy(update=fields)])


@pytest.mark.parametrize("moment", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
async def test_the_ends_of_the_calendar_come_back(ledger: Ledger, moment: datetime) -> None:
    await ledger.threads.create("t", created_at=moment)
    stored = await ledger.messages.append("t", [user("a", created_at=moment)])
    assert (await ledger.messages.history("t")).messages == stored.messages
    assert (await ledger.messages.history("t", Newest(1))).messages == stored.messages
    assert (await ledger.threads.get("t")).created_at == moment
