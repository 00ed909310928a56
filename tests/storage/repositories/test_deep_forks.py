"""A thread has a bounded number of branches, each with a bounded number of forks, so that no call reads endless
lineages. A thread that was deeper before stays usable, and the event loop reads no long lineage.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from chatledger import Ledger, Newest
from chatledger.errors import LimitExceeded, ThreadNotFound
from chatledger.repositories import scope_of
from chatledger.storage.changes import record as changes
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.history import lineages, path
from chatledger.storage.repositories import alternatives, branches
from chatledger.storage.repositories.branches import fork_at
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import user
from tests.places import at
from tests.storage.raw import query
from tests.storage.repositories.test_loop_is_free import noting


async def chain(ledger: Ledger, count: int) -> None:
    """Each branch leaves the one before at its end, and adds a message."""
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("0")])
    for number in range(1, count + 1):
        await fork_at(scope_of(ledger), "t", number)
        await ledger.messages.append("t", [user(str(number))])


async def deepen(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    with monkeypatch.context() as before_there_was_a_limit:
        before_there_was_a_limit.setattr(path, "MOST_SEGMENTS", 10**6)
        await chain(ledger, count)


async def test_a_path_with_too_many_forks_is_not_forked_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "MOST_SEGMENTS", 4)
    await chain(ledger, 3)
    for activate in (True, False):
        with pytest.raises(LimitExceeded, match=r"copy the path to a thread of its own \(threads.copy\)") as caught:
            await fork_at(scope_of(ledger), "t", 4, activate=activate)
        assert (caught.value.limit, caught.value.given, caught.value.maximum) == ("forks along a path", 4, 3)
    await ledger.messages.append("t", [user("on the same branch")])
    shown = (await ledger.messages.history("t")).messages
    with pytest.raises(LimitExceeded, match="up to seq 4"):
        await ledger.messages.append("t", [user("another")], reply_to=shown[3])
    assert len(await ledger.branches.list("t")) == 4
    await ledger.messages.append("t", [user("nearer to the root")], reply_to=shown[1])
    copied = await ledger.threads.copy("t")
    assert (await fork_at(scope_of(ledger), copied.thread_id, 3)).branch == 1


async def test_a_rewind_leaves_no_longer_lineage_than_a_fork(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "MOST_SEGMENTS", 4)
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("0")])

    async def leave_a_gap() -> None:
        appended = await ledger.messages.append("t", [user("keep"), user("shared")], branch=0)
        await fork_at(scope_of(ledger), "t", appended.last_seq, branch=0, activate=False)
        await rewind_to(scope_of(ledger), "t", appended.messages[0].seq, branch=0)

    for _ in range(3):
        await leave_a_gap()
    with pytest.raises(LimitExceeded) as caught:
        await leave_a_gap()
    assert caught.value.limit == "forks along a path"


async def test_a_thread_with_too_many_branches_gets_no_other(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "MOST_BRANCHES", 3)
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?"), user("!")])
    for _ in range(2):
        await fork_at(scope_of(ledger), "t", 1, branch=0)
    with pytest.raises(LimitExceeded, match=r"threads\.copy") as caught:
        await fork_at(scope_of(ledger), "t", 1, branch=0)
    assert (caught.value.limit, caught.value.given, caught.value.maximum) == ("branches of a thread", 4, 3)
    with pytest.raises(LimitExceeded):
        await ledger.messages.append("t", [user("other")], branch=0, reply_to=at(1))
    assert len(await ledger.branches.list("t")) == 3


async def test_a_part_of_the_branches_is_read_alone(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    await chain(ledger, 7)
    monkeypatch.setattr(lineages, "AT_ONCE", 3)
    every = list(await ledger.branches.list("t"))
    assert [one.branch for one in every] == list(range(8))
    read = noting(monkeypatch, branches, "read_lineage")
    assert await branches.branches_of(scope_of(ledger), "t", skip=2, limit=3) == every[2:5]
    assert len(read) == 3
    assert await branches.branches_of(scope_of(ledger), "t", skip=8) == []
    assert await branches.branches_of(scope_of(ledger), "t", limit=0) == []
    with pytest.raises(ThreadNotFound):
        await branches.branches_of(scope_of(ledger), "nowhere", skip=3)
    read.clear()
    assert (await ledger.branches.activate("t", 1)).branch == 1
    assert len(read) == 1


async def test_a_deep_thread_of_before_is_read_and_changed_apart_from_the_loop(
    ledger: Ledger, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await deepen(ledger, monkeypatch, 130)
    ((longest,),) = await query(database, "SELECT max(length(lineage)) FROM branches")
    assert longest > 130 * 8
    monkeypatch.setattr(lineages, "AT_ONCE", 50)
    read = [
        noting(monkeypatch, lineages, "read_lineage"),
        noting(monkeypatch, branches, "read_lineage"),
        noting(monkeypatch, changes, "read_path"),
        noting(monkeypatch, changes, "without"),
        noting(monkeypatch, alternatives, "tail"),
    ]
    assert len(await ledger.branches.list("t")) == 131
    assert len(await alternatives.alternatives_of(scope_of(ledger), "t", 131)) == 1
    assert [one.text for one in (await ledger.messages.history("t", Newest(2))).messages] == ["129", "130"]
    assert [one.text for one in await rewind_to(scope_of(ledger), "t", 129)] == ["129", "130"]
    message = (await ledger.messages.history("t", branch=5)).messages[-1]
    await ledger.messages.revise("t", message.message_id or "", user("new"))
    await ledger.messages.remove("t", message.message_id or "")
    here = threading.get_ident()
    assert min(map(len, read)) > 0
    assert [sum(thread == here for thread in one) for one in read] == [0] * 5
    with pytest.raises(LimitExceeded):
        await fork_at(scope_of(ledger), "t", 129, branch=130)
    await rewind_to(scope_of(ledger), "t", 3)
    assert {one.rule for one in await findings_of(ledger, "t")} == {"R13"}  # two user messages in a row


async def test_a_chain_compares_each_segment_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    await chain(ledger, 60)
    given: list[int] = []
    without: Any = path.without

    def noted(segments: list[path.Segment], others: set[path.Segment]) -> Any:
        given.append(len(others))
        return without(segments, others)

    monkeypatch.setattr(changes, "without", noted)
    await rewind_to(scope_of(ledger), "t", 0)
    assert given == [60]  # of 60 branches with 1 to 60 segments each


async def test_the_ways_of_a_page_read_the_branches_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user(str(number)) for number in range(20)])
    for seq in range(1, 20):
        await ledger.messages.append("t", [user("other")], branch=0, reply_to=at(seq))
    read = noting(monkeypatch, alternatives, "read_paths")
    found = await alternatives.find_ways(scope_of(ledger), "t", 0, range(2, 21))
    assert [len(ways) for ways in found.values()] == [2] * 19
    assert len(read) == 1
