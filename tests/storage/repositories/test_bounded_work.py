"""A rewind, a copy and a change of rules work a portion at a time, and none of them is endless: each says what it may
read, and what to do instead. One that nobody waits for any more is undone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chatledger import Ledger
from chatledger.errors import LimitExceeded
from chatledger.repositories import scope_of
from chatledger.storage.changes import copy, removal
from chatledger.storage.changes import record as changes
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.check import branch as check
from chatledger.storage.history import path, portions
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.rows import changes as rows
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, user
from tests.storage.raw import count_rows
from tests.storage.repositories.test_loop_is_free import noting

LONG = "x" * 1_000_000


async def fill(ledger: Ledger, count: int, text: str = "", *, thread: str = "t") -> None:
    """Questions and answers, so that they break no rule."""
    await ledger.threads.create(thread, rules="lenient")
    for start in range(0, count, 500):
        numbers = range(start, min(start + 500, count))
        batch = [(assistant if number % 2 else user)(f"{number} {text}") for number in numbers]
        await ledger.messages.append(thread, batch)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The messages, and the characters of their texts, that each scan reads."""
    scans: list[tuple[int, int]] = []
    scan = path._scan_range

    def noted(*given: Any) -> Any:
        found = scan(*given)
        scans.append((len(found[0]), sum(len(str(row)) for rows in found for row in rows)))
        return found

    monkeypatch.setattr(path, "_scan_range", noted)
    return scans


WORK: dict[str, Callable[[Ledger], Awaitable[Any]]] = {
    "a rewind": lambda ledger: rewind_to(scope_of(ledger), "t", 0),
    "a copy": lambda ledger: ledger.threads.copy("t", "copy"),
    "a change of rules": lambda ledger: ledger.threads.update("t", rules="strict"),
}


@pytest.mark.parametrize("work", WORK)
async def test_long_messages_are_read_a_few_at_a_time(ledger: Ledger, read: list[tuple[int, int]], work: str) -> None:
    await fill(ledger, 24, LONG)
    read.clear()
    await WORK[work](ledger)
    assert sum(count for count, _ in read) >= 24
    assert max(size for _, size in read) <= portions.BYTES + 10_000
    assert len(read) >= 3


@pytest.mark.parametrize("work", WORK)
async def test_many_messages_are_read_a_thousand_at_a_time(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, read: list[tuple[int, int]], work: str
) -> None:
    monkeypatch.setattr(portions, "MESSAGES", 100)
    await fill(ledger, 1_050)
    before = [one.text for one in await ledger.messages.history("t")]
    read.clear()
    done = await WORK[work](ledger)
    assert max(count for count, _ in read) == 100
    if work == "a rewind":
        assert [one.text for one in done] == before
    if work == "a copy":
        assert [one.text for one in await ledger.messages.history("copy")] == before
        assert await findings_of(ledger, "copy") == []


async def test_a_rewind_numbers_its_records_through_all_portions(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portions, "MESSAGES", 3)
    await fill(ledger, 8)
    written: list[int] = []
    change_values = rows.change_values

    def noted(tenant: Any, thread: str, change: Any) -> Any:
        written.append(change.idx)
        return change_values(tenant, thread, change)

    monkeypatch.setattr(changes, "change_values", noted)
    stored = [one.message_id for one in await ledger.messages.history("t")]
    await rewind_to(scope_of(ledger), "t", 1)
    assert written == list(range(7))
    assert [len(await ledger.messages.revisions("t", one or "")) for one in stored] == [0] + [1] * 7
    assert await findings_of(ledger, "t") == []


def bound(monkeypatch: pytest.MonkeyPatch, messages: int, mebibytes: int) -> None:
    for where, names in (
        (removal, ("MOST_REMOVED", "MOST_REMOVED_MIB")),
        (copy, ("MOST", "MOST_MIB")),
        (check, ("MOST_JUDGED", "MOST_JUDGED_MIB")),
    ):
        for name, value in zip(names, (messages, mebibytes), strict=True):
            monkeypatch.setattr(where, name, value)


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("limited", ["messages", "bytes"])
async def test_too_much_work_is_refused_before_a_message_is_read(
    ledger: Ledger,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    read: list[tuple[int, int]],
    work: str,
    limited: str,
) -> None:
    bound(monkeypatch, *((5, 64) if limited == "messages" else (1_000, 1)))
    await fill(ledger, 6, "x" * (10 if limited == "messages" else 400_000))
    before = await count_rows(database)
    read.clear()
    with pytest.raises(LimitExceeded, match=f"{work} reads at most .* MiB; (rewind in steps|copy the)") as caught:
        await WORK[work](ledger)
    assert caught.value.limit == f"{limited} of {work}"
    assert caught.value.maximum == (5 if limited == "messages" else 2**20)
    assert caught.value.given > caught.value.maximum
    assert sum(count for count, _ in read) == 0
    assert await count_rows(database) == before
    assert (await ledger.threads.get("t")).rules == "lenient"


async def test_a_branch_of_too_much_is_rewound_in_steps(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    bound(monkeypatch, 5, 64)
    await fill(ledger, 12)
    for to in (8, 4, 0):
        await rewind_to(scope_of(ledger), "t", to)
    assert [*(await ledger.messages.history("t"))] == []


async def test_the_messages_of_all_branches_count_for_the_rules(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(monkeypatch, 20, 64)
    await fill(ledger, 6)
    for _ in range(3):
        await fork_at(scope_of(ledger), "t", 6, branch=0)
    with pytest.raises(LimitExceeded) as caught:
        await ledger.threads.update("t", rules="strict")
    assert caught.value.limit == "messages of a change of rules"
    copied = await ledger.threads.copy("t")
    assert (await ledger.threads.update(copied.thread_id, rules="strict")).rules == "strict"


@pytest.mark.parametrize("work", [name for name in WORK if name != "a change of rules"])  # which judges in a read
async def test_work_that_nobody_waits_for_is_undone_and_lets_others_write(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    """Its caller goes after the first portion, and another writer comes."""
    monkeypatch.setattr(portions, "MESSAGES", 2)
    async with sqlite_database.open() as ledger:
        await fill(ledger, 20)
        await ledger.threads.create("other")
        before = await count_rows(sqlite_database)
        scans: list[int] = []
        reached, gone = threading.Event(), threading.Event()
        scan = path._scan_range

        def wait_once(*given: Any) -> Any:
            scans.append(1)
            if not reached.is_set():
                reached.set()
                assert gone.wait(60)
            return scan(*given)

        with monkeypatch.context() as watched:
            watched.setattr(path, "_scan_range", wait_once)
            task = asyncio.ensure_future(WORK[work](ledger))
            assert await asyncio.to_thread(reached.wait, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            gone.set()
            await ledger.kv.put(("tenant",), "after", 1)
            assert len(scans) == 1
        assert await count_rows(sqlite_database) == before
        assert (await ledger.threads.get("t")).rules == "lenient"


async def test_no_loop_encodes_or_decodes_many_messages(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(ledger, 1_000)
    decoded = noting(monkeypatch, path, "decode_messages")
    planned = noting(monkeypatch, copy, "plan_rows")
    written = noting(monkeypatch, changes, "change_values")
    await ledger.threads.copy("t", "copy")
    await rewind_to(scope_of(ledger), "copy", 0)
    assert len(planned) == 1
    assert len(written) == 1_000
    assert threading.get_ident() not in (*decoded, *planned, *written)


async def test_one_long_message_is_recorded_apart_from_the_loop(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(ledger, 1, "x" * 2_000_000)
    written = noting(monkeypatch, changes, "change_values")
    await rewind_to(scope_of(ledger), "t", 0)
    assert len(written) == 1
    assert threading.get_ident() not in written


async def test_the_messages_of_all_branches_are_counted_before_one_is_judged(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred branches of a long thread kept the writer busy until the limit was reached."""
    bound(monkeypatch, 10, 64)
    await fill(ledger, 6)
    await fork_at(scope_of(ledger), "t", 5)
    sized = noting(monkeypatch, portions, "sizes_of")
    with pytest.raises(LimitExceeded) as caught:
        await ledger.threads.update("t", rules="strict")
    assert (caught.value.given, caught.value.maximum, sized) == (11, 10, [])
