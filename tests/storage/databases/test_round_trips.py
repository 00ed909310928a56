"""The round trips of each call: counted on the wire on PostgreSQL, in statements of the connection on SQLite."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from chatledger import Draft, Ledger, Pace, Payload, ReasoningDelta, ToolCallDelta
from chatledger.repositories import scope_of
from chatledger.storage.changes.copy import copy_until
from chatledger.storage.drivers import sqlite
from tests.conftest import Database
from tests.conversations import assistant, call, result, turn, user
from tests.faults.proxy import Proxy, proxied
from tests.formats.streams.split_responses import split
from tests.formats.streams.test_storage import CALL, SEARCH, said
from tests.places import at
from tests.windows import window_of

# --- PostgreSQL -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[Proxy]:
    async with proxied(pg_database.url) as running:
        yield running


@pytest.fixture
async def warm(proxy: Proxy, pg_database: Database) -> AsyncIterator[Ledger]:
    """A ledger behind the proxy whose one connection has prepared the statements of a turn."""
    async with Ledger.open(proxy.url) as ledger:
        await ledger.threads.create("t")
        for _ in range(2):  # the second knows the run, and does not insert it
            await ledger.messages.append("t", turn(), run_id="r")
        await ledger.messages.history("t")
        await created_by_another(pg_database, "s")
        await ledger.messages.append("s", turn(), run_id="run of s")
        yield ledger


async def created_by_another(database: Database, thread_id: str) -> None:
    async with database.open() as other:
        await other.threads.create(thread_id)


@pytest.mark.plain
async def test_the_first_append_to_a_thread_of_others_is_one_preflight_and_one_statement(
    proxy: Proxy, warm: Ledger, pg_database: Database
) -> None:
    for thread_id in ("u", "v"):
        await created_by_another(pg_database, thread_id)
        before = proxy.round_trips
        await warm.messages.append(thread_id, turn(), run_id=f"run of {thread_id}")
        assert proxy.round_trips - before == 2


@pytest.mark.plain
async def test_the_first_append_to_a_thread_that_this_process_created_is_one_statement(
    proxy: Proxy, warm: Ledger
) -> None:
    for thread_id in ("u", "v"):
        await warm.threads.create(thread_id)
        before = proxy.round_trips
        await warm.messages.append(thread_id, turn(), run_id=f"run of {thread_id}")
        assert proxy.round_trips - before == 1


@pytest.mark.plain
async def test_a_thread_is_created_by_one_statement(proxy: Proxy, warm: Ledger) -> None:
    await warm.threads.create("u", title="Trip", metadata={"a": 1})  # prepares the statements
    before = proxy.round_trips
    await warm.threads.create("v", title="Trip", metadata={"a": 1})
    assert proxy.round_trips - before == 1 + 1 + 1 + 1  # BEGIN, the look for a mark, thread and branch, COMMIT


@pytest.mark.plain
async def test_the_first_append_to_a_copy_of_a_users_thread_is_one_statement(proxy: Proxy, warm: Ledger) -> None:
    ada = warm.user("ada")
    await ada.messages.append("hers", turn(), create=True)
    for thread_id in ("u", "v"):
        await copy_until(scope_of(ada), "hers", thread_id, 0, fields={})  # without messages: the proxy knows no COPY
        before = proxy.round_trips
        await ada.messages.append(thread_id, turn(), run_id=f"run of {thread_id}")
        assert proxy.round_trips - before == 1


@pytest.mark.plain
async def test_every_later_append_is_one_statement(proxy: Proxy, warm: Ledger) -> None:
    for _ in range(3):
        before = proxy.round_trips
        await warm.messages.append("t", turn(), run_id="r")
        assert proxy.round_trips - before == 1


PAYLOAD = [{"role": "user", "content": "Hi"}]
ODD = [{"role": "critic", "content": "No."}]


@pytest.mark.plain
async def test_a_payload_costs_no_more_than_its_messages(proxy: Proxy, warm: Ledger) -> None:
    await warm.messages.append("t", Payload(PAYLOAD, "openai-chat"))  # prepares the statement
    levels: list[Any] = [None, "strict", "lenient"]
    for rules in levels:
        before = proxy.round_trips
        await warm.messages.append("t", Payload(PAYLOAD, "openai-chat"), rules=rules)
        assert proxy.round_trips - before == 1


@pytest.mark.plain
async def test_only_a_payload_that_strict_rules_refuse_costs_a_read_of_the_level(proxy: Proxy, warm: Ledger) -> None:
    await warm.threads.create("lenient", rules="lenient")
    for _ in range(2):  # once for the plans of all that follows
        await warm.messages.append("lenient", Payload(ODD, "openai-chat"))
    before = proxy.round_trips
    await warm.threads.find("lenient")
    one_read = proxy.round_trips - before
    before = proxy.round_trips
    await warm.messages.append("lenient", Payload(ODD, "openai-chat"))
    assert proxy.round_trips - before == one_read + 1
    before = proxy.round_trips
    await warm.messages.append("lenient", Payload(ODD, "openai-chat"), rules="lenient")
    assert proxy.round_trips - before == 1


@pytest.mark.plain
async def test_a_repeat_is_found_by_a_preflight_and_a_read(proxy: Proxy, warm: Ledger) -> None:
    for _ in range(3):
        await warm.messages.append("t", turn(ids="m"), run_id="r")
    before = proxy.round_trips
    assert (await warm.messages.append("t", turn(ids="m"), run_id="r")).replayed
    assert proxy.round_trips - before <= 1 + 3  # three tables


@pytest.mark.plain
async def test_a_reply_to_the_last_message_is_two_statements(proxy: Proxy, warm: Ledger) -> None:
    trips = []
    for number in range(3):
        await warm.messages.append("t", [assistant("!", message_id=f"end {number}")])
        before = proxy.round_trips
        await warm.messages.append("t", [user("?")], reply_to=f"end {number}")
        trips.append(proxy.round_trips - before)
    assert trips[1:] == [2, 2]  # its place is looked up first; the first one prepares the statements


@pytest.mark.plain
async def test_a_reply_to_an_earlier_message_is_three_statements(proxy: Proxy, warm: Ledger) -> None:
    await warm.messages.append("t", turn(ids="m"), run_id="r")
    earlier = await warm.messages.get("t", "m3")
    seq, place = earlier.seq or 0, at(earlier.seq or 0)
    trips = []
    for message in (place, "m3", earlier, "m3", place):
        before = proxy.round_trips
        await warm.messages.append("t", [assistant("other")], run_id="r", reply_to=message, branch=0)
        trips.append(proxy.round_trips - before)
    assert trips[1:] == [3] * 4  # the first one prepares the statements
    await warm.messages.append("t", [user("on")])  # prepares the statement
    for branch in (None, 0):
        before = proxy.round_trips
        await warm.messages.append("t", [assistant("other")], run_id="r", reply_to=earlier, branch=branch)
        made = await warm.messages.append("t", [user("on")])
        assert (made.messages[0].seq, proxy.round_trips - before) == (
            seq + 2,
            3 + 1,
        )  # the tip of the new branch is cached
    kept = await warm.messages.append("t", [user("on")], branch=0)
    assert kept.messages[0].branch == 0


@pytest.mark.plain
async def test_an_append_refused_before_the_preflight_sends_nothing(proxy: Proxy, warm: Ledger) -> None:
    before = proxy.round_trips
    with pytest.raises(Exception, match="twice in the batch"):
        await warm.messages.append("t", [user("a", message_id="m")] * 2)
    assert proxy.round_trips == before


@pytest.mark.plain
async def test_a_history_costs_the_same_however_long_the_thread_is(proxy: Proxy, warm: Ledger) -> None:
    async def trips(**window: Any) -> int:
        before = proxy.round_trips
        await warm.messages.history("t", window_of(window))
        return proxy.round_trips - before

    await trips(newest=5)
    short = [await trips(), await trips(newest=5), await trips(limit=5)]
    await warm.messages.append("t", turn() * 150, run_id="r")
    assert [await trips(), await trips(newest=5), await trips(limit=5)] == short
    assert max(short) <= 6  # BEGIN, the branch row, a scan of each of three tables, COMMIT


@pytest.mark.plain
async def test_appends_one_after_another_share_a_connection(proxy: Proxy, warm: Ledger) -> None:
    for _ in range(5):
        await warm.messages.append("t", turn(), run_id="r")
    assert proxy.connections == 1


@pytest.mark.plain
async def test_a_draft_is_one_append_one_lookup_and_one_statement_for_each_write(proxy: Proxy, warm: Ledger) -> None:
    for _ in range(2):  # one opened from memory and one behind it: the plans of all that follows
        async with warm.messages.stream("t", run_id="r", pace=Pace(interval=3_600, lease=7_200)) as draft:
            await write_three_times(draft)
    before = proxy.round_trips
    async with warm.messages.stream("t", run_id="r", pace=Pace(interval=3_600, lease=7_200)) as draft:
        assert proxy.round_trips - before == 2  # a draft caches no tip of its branch
        assert await write_three_times(draft, lambda: proxy.round_trips) == [2, 1, 1]
        before = proxy.round_trips
    assert proxy.round_trips - before == 1


@pytest.mark.plain
async def test_a_response_of_several_messages_is_stored_in_one_statement(proxy: Proxy, warm: Ledger) -> None:
    events = split([said("m1", "One."), SEARCH, said("m2", "Two."), CALL])
    for thread_id in ("first", "again"):
        await warm.threads.create(thread_id)
        async with warm.messages.stream(
            thread_id, format="openai-responses", pace=Pace(interval=3_600, lease=7_200)
        ) as draft:
            await draft.feed(events[0])
            await draft.flush()
            for event in events[1:]:
                await draft.feed(event)
            before = proxy.round_trips
            await draft.complete()
        trips = proxy.round_trips - before
    assert len(draft.messages) == 2
    assert trips == 1


async def write_three_times(draft: Draft, count: Callable[[], int] = int) -> list[int]:
    """The cost of each write: text, then reasoning with text, then fragments of a call."""
    trips = []
    for deltas in (["Sun"], [ReasoningDelta(text="hm"), "ny"], [ToolCallDelta(index=0, name="f", arguments="{}")]):
        for delta in deltas:
            await draft.feed(delta)
        before = count()
        await draft.flush()
        trips.append(count() - before)
    return trips


# --- SQLite -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that any connection of ours runs from now on."""
    connect = sqlite._connect
    ran: list[str] = []

    def traced(path: str, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.set_trace_callback(ran.append)
        return connection

    monkeypatch.setattr(sqlite, "_connect", traced)
    return ran


@pytest.fixture
async def traced(statements: list[str], sqlite_database: Database) -> AsyncIterator[Ledger]:
    async with sqlite_database.open() as ledger:
        await ledger.threads.create("t")
        statements.clear()
        yield ledger


def transactions(statements: list[str]) -> list[str]:
    words = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
    return [statement for statement in statements if statement.startswith(words)]


async def test_an_append_is_one_transaction(traced: Ledger, statements: list[str]) -> None:
    await traced.messages.append("t", turn(), run_id="r")
    assert transactions(statements) == ["BEGIN IMMEDIATE", "COMMIT"]
    assert (statements[0], statements[-1]) == ("BEGIN IMMEDIATE", "COMMIT")


async def test_a_payload_runs_the_statements_of_its_messages(traced: Ledger, statements: list[str]) -> None:
    await traced.messages.append("t", [user("Hi")])
    plain = [statement.split()[0] for statement in statements]
    statements.clear()
    await traced.messages.append("t", Payload(PAYLOAD, "openai-chat"))
    assert [statement.split()[0] for statement in statements] == plain


async def test_a_payload_that_strict_rules_refuse_is_one_select_more(traced: Ledger, statements: list[str]) -> None:
    await traced.threads.create("lenient", rules="lenient")
    await traced.messages.append("lenient", Payload(ODD, "openai-chat"), rules="lenient")
    statements.clear()
    await traced.messages.append("lenient", Payload(ODD, "openai-chat"))
    read, written = statements[: statements.index("COMMIT") + 1], statements[statements.index("COMMIT") + 1 :]
    own = [statement.split()[0] for statement in read if not statement.startswith("PRAGMA")]
    assert own == ["BEGIN", "SELECT", "COMMIT"]
    assert transactions(written) == ["BEGIN IMMEDIATE", "COMMIT"]


async def test_a_refused_append_is_one_transaction_that_is_rolled_back(traced: Ledger, statements: list[str]) -> None:
    with pytest.raises(Exception, match="R6"):
        await traced.messages.append("t", [result("orphan")])
    assert transactions(statements) == ["BEGIN IMMEDIATE", "ROLLBACK"]


async def test_queued_appends_share_a_commit(traced: Ledger, statements: list[str]) -> None:
    async with traced.begin() as tx:
        appends = [asyncio.ensure_future(append_outside(traced, n)) for n in range(10)]
        await asyncio.sleep(0)
        await tx.threads.find("t")
        statements.clear()
    await asyncio.gather(*appends)
    grouped = [word for word in transactions(statements) if word.startswith(("BEGIN", "COMMIT"))]
    assert grouped == ["COMMIT", "BEGIN IMMEDIATE", "COMMIT"]
    assert (await traced.messages.history("t")).last_seq == 50


async def append_outside(ledger: Ledger, number: int) -> None:
    """As a task that was not started inside the transaction would."""
    from chatledger.storage.databases.begun import BEGUN

    BEGUN.set(None)
    await ledger.messages.append("t", turn(ids=f"{number}-"), run_id="r")


async def test_a_refused_append_undoes_no_other_of_its_group(traced: Ledger, statements: list[str]) -> None:
    orphans = [traced.messages.append("t", [result("orphan")]) for _ in range(4)]
    turns = [traced.messages.append("t", turn()) for _ in range(4)]
    mixed = [one for pair in zip(orphans, turns, strict=True) for one in pair]
    outcomes = await asyncio.gather(*mixed, return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["RuleViolation", "Appended"] * 4
    assert transactions(statements).count("COMMIT") < 4
    assert (await traced.messages.history("t")).last_seq == 20


async def test_a_history_is_one_transaction_of_four_statements(traced: Ledger, statements: list[str]) -> None:
    for turns in (1, 150):
        await traced.messages.append("t", turn() * turns)
        statements.clear()
        await traced.messages.history("t")
        own = [statement for statement in statements if not statement.startswith("PRAGMA")]
        assert [statement.split()[0] for statement in own] == [
            "BEGIN",
            "SELECT",
            "SELECT",
            "SELECT",
            "SELECT",
            "COMMIT",
        ]


async def test_a_call_with_parts_and_calls_is_still_one_transaction(traced: Ledger, statements: list[str]) -> None:
    batch = [user("?"), assistant("", calls=[call("a")], reasoning="hm"), result("a")]
    await traced.messages.append("t", batch, on_open_calls="close")
    assert transactions(statements) == ["BEGIN IMMEDIATE", "COMMIT"]


async def test_a_write_of_a_draft_is_one_transaction(traced: Ledger, statements: list[str]) -> None:
    async with traced.messages.stream("t", pace=Pace(interval=3_600, lease=7_200)) as draft:
        for _ in range(2):
            await draft.feed("Sun")
            statements.clear()
            await draft.flush()
            assert transactions(statements) == ["BEGIN IMMEDIATE", "COMMIT"]
        own = [statement.split()[0] for statement in statements]
        assert own == ["BEGIN", "UPDATE", "UPDATE", "COMMIT"]  # the branch and the message: no row of a part


async def test_a_list_of_the_runs_of_a_status_is_one_statement(traced: Ledger, statements: list[str]) -> None:
    await traced.runs.start("t", run_id="of this status")
    statements.clear()
    assert len(await traced.runs.list(status="running")) > 0
    own = [statement.split()[0] for statement in statements if not statement.startswith("PRAGMA")]
    assert own == ["BEGIN", "WITH", "COMMIT"]


async def test_the_end_of_a_draft_counts_its_usage_in_its_transaction(traced: Ledger, statements: list[str]) -> None:
    async with traced.messages.stream(
        "t", run_id="of a draft", format="openai-chat", pace=Pace(interval=3_600, lease=7_200)
    ) as draft:
        await draft.feed({"choices": [], "usage": {"prompt_tokens": 3}})
        statements.clear()
        await draft.complete()
    assert transactions(statements) == ["BEGIN IMMEDIATE", "COMMIT"]
    assert sum("UPDATE" in statement and "runs" in statement for statement in statements) == 1
