"""`ledger.check` finds what `threads.check` finds, in every thread, in statements that grow with the batches only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, ThreadNotFound
from chatledger.repositories import scope_of
from chatledger.storage.check import threads as check_all
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.lists import thread_ids
from chatledger.storage.lists.thread_ids import iterate_ids
from chatledger.storage.repositories.branches import fork_at
from chatledger.types import CheckedThread
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, turn, user
from tests.storage.raw import query


async def checked(ledger: Ledger, thread_id: str | None = None) -> list[CheckedThread]:
    return [one async for one in ledger.check(thread_id)]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that storage functions send."""
    sent: list[str] = []
    with monkeypatch.context() as patched:
        for name in ("_execute", "_fetch"):
            whole = getattr(ReadSql, name)

            def counting(self: ReadSql, statement: Any, *given: Any, whole: Any = whole) -> Any:
                sent.append(str(statement))
                return whole(self, statement, *given)

            patched.setattr(ReadSql, name, counting)
        yield sent


async def fill(ledger: Ledger, count: int, *, first: int = 0) -> None:
    for number in range(first, first + count):
        await ledger.threads.create(f"t{number:03}")
        await ledger.messages.append(f"t{number:03}", turn(), run_id=f"run {number}")


async def test_statements_grow_with_the_batches_and_not_with_the_threads(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_all, "THREADS", 10)
    counts = []
    stored = 0
    for number in (1, 10, 30):
        await fill(ledger, number - stored, first=stored)
        stored = number
        with counted(monkeypatch) as sent:
            assert len(await checked(ledger)) == stored
        counts.append(len(sent))
    one, ten, thirty = counts
    assert one == ten
    assert thirty - 2 == 3 * (one - 2)  # the last two find no more threads, and no values of users and the tenant


@pytest.mark.parametrize("size", [1, 7, 5_000])
async def test_every_thread_is_judged_as_by_itself(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Whether its messages are read with those of its neighbours or by themselves."""
    monkeypatch.setattr(check_all, "MESSAGES", size)
    await ledger.threads.create("empty")
    await fill(ledger, 3)
    await ledger.threads.create("open")
    await ledger.messages.append("open", [user("?"), assistant(calls=[call("c")])])
    await ledger.threads.create("orphan")
    await ledger.messages.append("orphan", [user("?"), result("c", "!"), user("more")], rules="lenient")
    await fork_at(scope_of(ledger), "orphan", 1)
    await ledger.messages.append("orphan", [ChatMessage(role="assistant", content="forked", state="partial")])
    await fork_at(scope_of(ledger), "t001", 5, activate=False)
    found = await checked(ledger)
    assert [one.thread_id for one in found] == ["empty", "open", "orphan", "t000", "t001", "t002"]
    for one in found:
        assert one.thread_id is not None
        assert list(one.findings) == await findings_of(ledger, one.thread_id)
        assert await checked(ledger, one.thread_id) == [one]


@pytest.mark.parametrize("size", [1, 5_000])
@pytest.mark.plain
async def test_damage_on_another_branch_is_found(
    database: Database, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(check_all, "MESSAGES", size)
    await fill(ledger, 2)
    await fork_at(scope_of(ledger), "t000", 1)
    await query(database, """UPDATE messages SET custom_data = '{"a' WHERE seq = 4 AND thread_id = 't000'""")
    assert await findings_of(ledger, "t000") == []
    (damaged, whole) = await checked(ledger)
    assert [(one.seq, one.rule, one.severity) for one in damaged.findings] == [(4, "R11", "error")]
    assert damaged.findings[0].detail.startswith("messages.custom_data of 't000', 0, 4: ")
    assert whole.findings == []


async def test_missing_messages_are_found_in_a_batch(database: Database, ledger: Ledger) -> None:
    await fill(ledger, 2)
    await query(database, "DELETE FROM messages WHERE thread_id = 't001' AND seq = 5")
    found = {one.thread_id: [(finding.seq, finding.rule) for finding in one.findings] for one in await checked(ledger)}
    assert found == {"t000": [], "t001": [(5, "R2")]}


async def test_a_call_that_lost_its_name_stops_nothing(database: Database, ledger: Ledger) -> None:
    await fill(ledger, 2)
    await query(database, "UPDATE tool_calls SET name = '' WHERE thread_id = 't000' AND idx = 0")
    found = {one.thread_id: [(finding.seq, finding.rule) for finding in one.findings] for one in await checked(ledger)}
    assert found == {"t000": [(2, "R11")], "t001": []}


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.plain
async def test_damaged_values_of_users_and_of_the_tenant_are_found(
    database: Database, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(check_all, "VALUES", size)
    await fill(ledger, 1)
    for scope in (("tenant",), ("user", "ada \0"), ("user", "ada \0", "plans"), ("user", "bob"), ("thread", "t000")):
        for key in ("a", "b\0"):
            await ledger.kv.put(scope, key, {"n": 1})
    await ledger.tenant("other").kv.put(("tenant",), "theirs", 1)
    assert [one.findings for one in await checked(ledger)] == [[]]
    await query(database, """UPDATE kv SET value = '{"a' WHERE key <> 'a' OR kind = 'thread'""")
    thread, beside = await checked(ledger)
    assert (thread.thread_id, len(thread.findings), beside.thread_id) == ("t000", 2, None)
    assert {(one.seq, one.rule, one.severity) for one in beside.findings} == {(0, "R11", "error")}
    assert sorted(one.detail.partition(": ")[0] for one in beside.findings) == [
        f"kv.value of {place}, 'b\\x00'"
        for place in (
            r"'tenant', '', ''",
            r"'user', 'ada \x00', ''",
            r"'user', 'ada \x00', 'plans'",
            "'user', 'bob', ''",
        )
    ]
    assert await checked(ledger, "t000") == [thread]


async def test_progress_is_reported_and_a_missing_thread_raises(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_all, "THREADS", 2)
    await fill(ledger, 3)
    told: list[tuple[int, int]] = []
    async for _ in ledger.check(progress=lambda done, total: told.append((done, total))):
        pass
    assert told == [(2, 3), (3, 3)]
    with pytest.raises(ThreadNotFound):
        await checked(ledger, "missing")


async def test_all_thread_ids_are_checked_in_order(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(thread_ids, "_THREADS", 2)
    await fill(ledger, 5)
    assert [thread_id async for thread_id in iterate_ids(scope_of(ledger))] == [f"t{number:03}" for number in range(5)]
