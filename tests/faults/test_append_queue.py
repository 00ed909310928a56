"""Queued appends of one tenant share a statement. Each of them is still stored whole, in order and once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from chatledger import Appended, Ledger, Oldest, RuleViolation, StorageError, VersionConflict
from chatledger.errors import OutcomeUnknown
from chatledger.storage.append.request import AppendRequest, Terms, make_request
from chatledger.storage.databases.postgresql import append_queue
from chatledger.storage.databases.postgresql import group as postgresql_group
from chatledger.storage.databases.postgresql.append import PostgresqlAppend
from chatledger.storage.databases.postgresql.append_queue import AppendQueues, Shared
from chatledger.storage.databases.postgresql.group import PostgresqlGroups
from chatledger.storage.databases.postgresql.unanswered import Unanswered
from chatledger.storage.rows.encryption import Tenant
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, result, texts, turn, user
from tests.faults.connections import busy, none_idle, set_limits
from tests.faults.proxy import Proxy, proxied
from tests.faults.test_outcome import until
from tests.storage.raw import query


@pytest.fixture
async def proxy(pg_database: Database) -> AsyncIterator[Proxy]:
    async with proxied(pg_database.url) as running:
        yield running


@pytest.fixture
async def ledger(proxy: Proxy) -> AsyncIterator[Ledger]:
    """A ledger that has cached the tip, and whose connection has prepared the statements."""
    async with Ledger.open(proxy.url) as opened:
        await opened.threads.create("t")
        await opened.messages.append("t", [assistant("first")])
        yield opened


def says(number: int, **options: Any) -> dict[str, Any]:
    return {"thread_id": "t", "messages": [assistant(str(number))], **options}


async def append_all(ledger: Ledger, appends: Sequence[dict[str, Any]]) -> list[Any]:
    """Start all appends at once, in this order."""
    return await asyncio.gather(*(ledger.messages.append(**one) for one in appends), return_exceptions=True)


async def test_queued_appends_share_one_statement(ledger: Ledger, proxy: Proxy) -> None:
    await append_all(ledger, [says(n) for n in range(8)])  # prepares the statements
    before = proxy.round_trips
    done = await append_all(ledger, [says(n) for n in range(8)])
    assert proxy.round_trips - before == 2  # the first alone, seven together
    assert [one.last_seq for one in done] == list(range(10, 18))
    assert [(one.messages[0].seq, one.last_seq) for one in done] == [(seq, seq) for seq in range(10, 18)]
    assert texts(await ledger.messages.history("t"))[-8:] == [str(n) for n in range(8)]


async def test_each_append_of_a_group_returns_its_stored_messages(ledger: Ledger) -> None:
    appends: list[dict[str, Any]] = [{"thread_id": "t", "messages": turn(), "run_id": f"r{n}"} for n in range(5)]
    done: list[Appended] = await append_all(ledger, appends)
    stored = (await ledger.messages.history("t", Oldest(1_000, after=1), branch=0)).messages
    assert [message for one in done for message in one.messages] == stored
    assert [message.run_id for message in stored] == [f"r{n}" for n in range(5) for _ in range(5)]
    for message in stored:
        assert message.run_id is not None
        assert message.created_at is not None
        assert (await ledger.runs.get(message.run_id)).started_at <= message.created_at
    assert await findings_of(ledger, "t") == []


async def test_only_the_refused_append_of_a_group_gets_the_error(ledger: Ledger) -> None:
    orphan = {"thread_id": "t", "messages": [result("nobody called")]}
    done = await append_all(ledger, [says(0), says(1), orphan, says(2), says(3, expected=0), says(4)])
    kinds = [type(one) for one in done]
    assert kinds == [Appended, Appended, RuleViolation, Appended, VersionConflict, Appended]
    assert texts(await ledger.messages.history("t")) == ["first", "0", "1", "2", "4"]


async def test_the_same_batch_in_one_group_is_stored_once(ledger: Ledger) -> None:
    done = await append_all(ledger, [says(0), *[says(1, idempotency_key="k")] * 3, says(2)])
    assert [one.replayed for one in done] == [False, False, True, True, False]
    assert texts(await ledger.messages.history("t")) == ["first", "0", "1", "2"]


async def test_only_the_append_with_another_threads_run_gets_the_conflict(ledger: Ledger) -> None:
    await ledger.threads.create("s")
    await ledger.runs.start("s", run_id="of s")
    done = await append_all(ledger, [says(0), says(1), says(2, run_id="of s"), says(3)])
    assert [type(one).__name__ for one in done] == ["Appended", "Appended", "RunConflict", "Appended"]
    assert texts(await ledger.messages.history("t")) == ["first", "0", "1", "3"]


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_group_whose_connection_is_lost_is_stored_once(ledger: Ledger, proxy: Proxy, where: Any) -> None:
    await append_all(ledger, [says(n) for n in range(6)])
    proxy.cut(where, 2)  # the first goes alone
    done = await append_all(ledger, [says(n) for n in range(6)])
    assert proxy.spare()
    assert all(isinstance(one, Appended) for one in done)
    assert texts(await ledger.messages.history("t"))[-6:] == [str(n) for n in range(6)]
    assert busy(ledger) == 0


async def test_an_append_whose_group_was_not_heard_is_not_stored_again(
    ledger: Ledger, proxy: Proxy, pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though somebody removes it before it looks. What was surely never sent would be stored."""
    until_known = PostgresqlAppend.until_known

    async def late(
        self: PostgresqlAppend, request: AppendRequest, *, unanswered: Unanswered | None, since: float
    ) -> Appended:
        if request.messages[0].content == "2":
            assert unanswered
            await other.messages.pop("t")
        return await until_known(self, request, unanswered=unanswered, since=since)

    await append_all(ledger, [says(n) for n in range(3)])
    monkeypatch.setattr(PostgresqlAppend, "until_known", late)
    proxy.cut("after", 2)  # the first goes alone
    async with pg_database.open() as other:
        done = await append_all(ledger, [says(n) for n in range(3)])
        assert [type(one) for one in done] == [Appended] * 3
        assert texts(await other.messages.history("t"))[-3:] == ["2", "0", "1"]


async def test_no_append_of_an_unheard_group_is_said_to_be_refused(ledger: Ledger, proxy: Proxy) -> None:
    set_limits(ledger, timeout=0.3)
    await append_all(ledger, [says(n) for n in range(4)])
    proxy.cut("after", 2)  # the first goes alone
    proxy.down = True
    done = await append_all(ledger, [says(n) for n in range(4)])
    assert [type(one) for one in done] == [Appended, *[OutcomeUnknown] * 3]


@pytest.mark.parametrize("refused", [False, True])
async def test_an_answered_group_says_that_nothing_else_of_it_is_stored(
    ledger: Ledger, pg_database: Database, refused: bool
) -> None:
    """Whether it skipped the branch or was refused. Else a database that is then lost would leave outcomes unknown."""
    messages = [assistant("x", message_id="taken")]
    async with pg_database.open() as other, other.begin() as transaction:
        await transaction.messages.append("t", [assistant("of another")])
        request = make_request(Terms(Tenant.of("default")), "t", messages, run_id="r" if refused else None)
        groups: PostgresqlGroups = ledger._database._queues._appends  # type: ignore[attr-defined]
        assert groups.can_share(request)
        if refused:
            await transaction.runs.start("t", run_id="r")
        assert (await groups.write_group([request])).unanswered == {}


async def test_an_append_that_needs_a_preflight_is_not_overtaken(ledger: Ledger) -> None:
    """Though another append of its group could be planned on the cached tip."""
    begun = {"thread_id": "t", "messages": [assistant("1", message_id="m")]}
    done = await append_all(ledger, [begun, says(2, reply_to="m"), says(3)])
    assert [type(one) for one in done] == [Appended] * 3
    assert texts(await ledger.messages.history("t")) == ["first", "1", "2", "3"]


async def test_a_group_on_a_stale_tip_is_stored(ledger: Ledger, pg_database: Database) -> None:
    async with pg_database.open() as other:
        await other.messages.append("t", [assistant("of another")])
        done = await append_all(ledger, [says(n) for n in range(6)])
    assert [one.last_seq for one in done] == list(range(3, 9))


async def test_cancelling_one_append_of_a_group_leaves_the_others(
    ledger: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(ledger, response_timeout=0.3)
    first, *group = [asyncio.create_task(ledger.messages.append(**says(n))) for n in range(4)]
    proxy.cut("hang", 2)
    sent = proxy.round_trips + 2
    await first
    await until(lambda: proxy.round_trips >= sent)
    group[0].cancel()
    proxy.spare()
    await asyncio.wait(group, timeout=15)  # their connection is silent, so they time out first
    assert group[0].cancelled()
    assert [task.exception() for task in group[1:]] == [None, None]
    assert texts(await ledger.messages.history("t"))[-2:] == ["2", "3"]


async def test_a_cancelled_group_discards_its_connection(ledger: Ledger, proxy: Proxy) -> None:
    tasks = [asyncio.create_task(ledger.messages.append(**says(n))) for n in range(4)]
    proxy.cut("hang", 2)
    sent = proxy.round_trips + 2
    await tasks[0]
    await until(lambda: proxy.round_trips >= sent)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert (await ledger.messages.append(**says(4))).last_seq == 3
    assert busy(ledger) == 0


@pytest.mark.parametrize("steps", range(6))
async def test_the_others_get_their_turn_whichever_append_is_cancelled(ledger: Ledger, steps: int) -> None:
    for number in range(6):
        tasks = [asyncio.create_task(ledger.messages.append(**says(n))) for n in range(6)]
        for _ in range(steps):
            await asyncio.sleep(0)
        tasks[number].cancel()
        done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        assert all(isinstance(one, Appended) for index, one in enumerate(done) if index != number)
    assert await findings_of(ledger, "t") == []


@pytest.mark.parametrize("told", [False, True])
async def test_the_next_waiter_is_cancelled_as_its_turn_comes(told: bool) -> None:
    """Just before it gets its turn, and just after."""
    gate = asyncio.Event()
    went: list[str] = []

    async def append(request: AppendRequest) -> None:
        async with queue.slot(request):
            await gate.wait()
            went.append(request.thread_id)

    class Alone:
        timeout = 10.0

        def can_share(self, _request: AppendRequest) -> bool:
            return False

        async def write_group(self, _requests: Sequence[AppendRequest]) -> Shared:
            raise AssertionError

        async def rejudge(self, _requests: Sequence[AppendRequest]) -> Shared:
            raise AssertionError

    queue = AppendQueues(Alone())
    requests = [make_request(Terms(Tenant.of("default")), "t", [user(str(n))]) for n in range(3)]
    tasks = [asyncio.create_task(append(request)) for request in requests]
    await asyncio.sleep(0)
    gate.set()
    if told:
        asyncio.get_running_loop().call_soon(tasks[1].cancel)
    else:
        tasks[1].cancel()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
    assert tasks[1].cancelled()
    assert went == ["t", "t"]


async def test_a_group_cancelled_before_it_begins_leaves_the_queue_open(ledger: Ledger) -> None:
    """As a service does that cancels all its tasks and then stores a last message."""
    tasks = [asyncio.create_task(ledger.messages.append(**says(n))) for n in range(4)]
    ours = {asyncio.current_task(), *tasks}
    begun = asyncio.all_tasks() | ours
    while not (group := asyncio.all_tasks() - begun):  # noqa: ASYNC110 - a test may poll
        await asyncio.sleep(0)
    for task in {*tasks, *group}:
        task.cancel()
    await asyncio.wait({*tasks, *group})
    await asyncio.wait_for(ledger.messages.append(**says(5)), 5)
    assert await findings_of(ledger, "t") == []


async def test_the_appends_of_a_failed_group_go_alone(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr(postgresql_group, "statement_of", broken)
    done = await asyncio.wait_for(append_all(ledger, [says(n) for n in range(4)]), 10)
    assert [one.last_seq for one in done] == [2, 3, 4, 5]


async def test_a_group_is_bounded(
    ledger: Ledger, pg_database: Database, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_queue, "GROUP", 3)
    await append_all(ledger, [says(n) for n in range(10)])
    before = proxy.round_trips
    await append_all(ledger, [says(n) for n in range(10)])
    assert proxy.round_trips - before == 1 + 3
    monkeypatch.setattr(append_queue, "BYTES", 10)
    before = proxy.round_trips
    await append_all(ledger, [says(n) for n in range(10)])
    assert proxy.round_trips - before == 10  # each has more than half of that, its id included
    assert await query(pg_database, "SELECT count(*) FROM messages") == [(31,)]


async def test_each_queued_append_learns_that_the_database_is_away(
    ledger: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was sent, so no outcome is unknown."""
    set_limits(ledger, timeout=0.05)
    none_idle(ledger)
    await ledger._database._engine.dispose()  # type: ignore[attr-defined]
    proxy.down = True
    done = await append_all(ledger, [says(n) for n in range(3)])
    assert [type(one) for one in done] == [StorageError] * 3


async def test_queued_appends_share_the_deadline_of_a_database_that_is_away(
    ledger: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first append tries until the deadline. It is then over for the queued ones too, which send nothing."""
    set_limits(ledger, timeout=2.0)
    tried: Counter[str] = Counter()
    attempt = PostgresqlAppend._attempt

    async def counted(self: PostgresqlAppend, request: AppendRequest, *rest: Any, **named: Any) -> Any:
        tried[request.messages[0].text] += 1
        return await attempt(self, request, *rest, **named)

    monkeypatch.setattr(PostgresqlAppend, "_attempt", counted)
    none_idle(ledger)
    await ledger._database._engine.dispose()  # type: ignore[attr-defined]
    proxy.down = True
    done = await append_all(ledger, [says(n) for n in range(4)])
    assert [type(one) for one in done] == [StorageError] * 4
    assert all(tried["0"] > tried[str(n)] for n in range(1, 4)), tried
    assert "earlier append" in str(done[-1])
