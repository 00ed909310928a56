"""The alternatives of a message, as a user interface shows them: "2 of 3", and arrows to the others."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger import Ledger, ThreadNotFound
from chatledger.errors import BranchNotFound, MessageNotFound
from chatledger.repositories import scope_of
from chatledger.storage.history import lineages
from chatledger.storage.repositories import alternatives as alternatives_module
from chatledger.storage.repositories.alternatives import alternatives_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.types import Alternative
from tests.conftest import Database
from tests.conversations import assistant, call, result, user
from tests.places import at
from tests.storage.raw import query


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    """Three answers to one question, the second with a conversation behind it, and two beginnings."""
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?"), assistant("one")])
    await ledger.messages.append("t", [assistant("two")], reply_to=at(1))
    await ledger.messages.append("t", [user("and?"), assistant("so")])
    await ledger.messages.append("t", [assistant("three")], reply_to=at(1))
    await ledger.messages.append("t", [user("another beginning")], alternative_to=at(1))
    return ledger


def told(found: list[Alternative]) -> list[tuple[str, int | None, int, bool]]:
    return [(one.message.text, one.message.branch, one.branch, one.current) for one in found]


async def alternatives(ledger: Ledger, seq: int, branch: int | None = None) -> list[tuple[str, int | None, int, bool]]:
    return told(list(await alternatives_of(scope_of(ledger), "t", seq, branch=branch)))


async def test_three_answers_stand_in_one_place(asked: Ledger) -> None:
    for branch, current in ((0, "one"), (1, "two"), (2, "three")):
        assert await alternatives(asked, 2, branch) == [
            (text, at, at, text == current) for text, at in (("one", 0), ("two", 1), ("three", 2))
        ]
    await asked.branches.activate("t", 1)
    assert (await alternatives(asked, 2))[1] == ("two", 1, 1, True)


async def test_a_message_without_alternatives_is_alone(asked: Ledger) -> None:
    assert await alternatives(asked, 3, 1) == [("and?", 1, 1, True)]
    assert await alternatives(asked, 4, 1) == [("so", 1, 1, True)]


async def test_beginnings_are_alternatives_of_each_other(asked: Ledger) -> None:
    assert await alternatives(asked, 1) == [("?", 0, 2, False), ("another beginning", 3, 3, True)]


async def test_the_branch_to_activate_shows_the_message(asked: Ledger) -> None:
    for seq, branch in ((1, 3), (2, 0), (2, 2)):
        for one in await alternatives_of(scope_of(asked), "t", seq, branch=branch):
            await asked.branches.activate("t", one.branch)
            history = await asked.messages.history("t")
            assert one.message in history.messages
            again = await alternatives_of(scope_of(asked), "t", seq)
            assert [other.message.message_id for other in again if other.current] == [one.message.message_id]


async def test_the_newest_branch_that_shows_a_message_is_the_one_to_activate(asked: Ledger) -> None:
    """Unless the branch that is looked at shows it."""
    await asked.messages.append("t", [assistant("so, so")], reply_to=at(3, branch=1), branch=1)
    assert await alternatives(asked, 2, 2) == [("one", 0, 0, False), ("two", 1, 4, False), ("three", 2, 2, True)]
    assert (await alternatives(asked, 2, 1))[1] == ("two", 1, 1, True)
    assert (await alternatives(asked, 2))[1] == ("two", 1, 4, True)
    assert await alternatives(asked, 4) == [("so", 1, 1, False), ("so, so", 4, 4, True)]


async def test_a_branch_without_a_message_in_that_place_does_not_count(asked: Ledger) -> None:
    await fork_at(scope_of(asked), "t", 1, branch=0)
    await fork_at(scope_of(asked), "t", 0)
    assert len(await alternatives(asked, 2, 0)) == 3
    assert len(await alternatives(asked, 1, 0)) == 2
    for branch in (None, 4):
        with pytest.raises(MessageNotFound):
            await alternatives_of(scope_of(asked), "t", 2, branch=branch)


async def test_calls_and_parts_come_whole(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a"), call("b")]), result("a"), result("b")])
    await ledger.messages.append("t", [assistant(reasoning="hm", calls=[call("c")])], reply_to=at(1))
    found = await alternatives_of(scope_of(ledger), "t", 2)
    assert [one.message for one in found] == [
        (await ledger.messages.history("t", branch=branch)).messages[1] for branch in (0, 1)
    ]


@pytest.mark.parametrize("seq", [0, -1, 5, 2**70])
async def test_a_seq_without_a_message_is_not_found(asked: Ledger, seq: int) -> None:
    with pytest.raises(MessageNotFound) as caught:
        await alternatives_of(scope_of(asked), "t", seq)
    assert caught.value.seq == seq


async def test_a_thread_or_a_branch_that_is_not_there(asked: Ledger) -> None:
    with pytest.raises(ThreadNotFound):
        await alternatives_of(scope_of(asked), "none", 1)
    with pytest.raises(BranchNotFound):
        await alternatives_of(scope_of(asked), "t", 1, branch=9)


async def test_messages_that_were_removed_are_no_alternatives(asked: Ledger, database: Database) -> None:
    """The place is where the message before it says, whatever positions are empty between them."""
    await asked.messages.append("t", [user("x"), assistant("y")], branch=0)
    await query(database, "DELETE FROM messages WHERE branch = 0 AND seq = 2")
    await query(database, "UPDATE branches SET absent = 1, stamp = 7 WHERE branch = 0")
    assert await alternatives(asked, 3, 0) == [("x", 0, 0, True), ("two", 1, 1, False), ("three", 2, 2, False)]
    assert await alternatives(asked, 2, 1) == [("x", 0, 0, False), ("two", 1, 1, True), ("three", 2, 2, False)]
    assert await alternatives(asked, 4, 0) == [("y", 0, 0, True)]
    with pytest.raises(MessageNotFound):
        await alternatives_of(scope_of(asked), "t", 2, branch=0)


async def test_the_branches_are_read_once_for_all_parts(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    await ledger.messages.append("t", [user("?", message_id="q"), assistant("0", message_id="first")], create=True)
    for number in range(1, 20):
        await ledger.messages.append("t", [assistant(str(number))], reply_to="q")
    read: list[int] = []
    paths = lineages.read_paths

    def noted(*given: Any) -> Any:
        read.append(1)
        return paths(*given)

    monkeypatch.setattr(alternatives_module, "read_paths", noted)
    found = alternatives_module.Alternatives(scope_of(ledger), "t", "first")
    parts = [await found.read(skip, 8) for skip in (0, 8, 16)]
    assert [one.message.text for part in parts for one in part] == [str(number) for number in range(20)]
    assert len(read) == 1
    with pytest.raises(MessageNotFound):
        await alternatives_module.Alternatives(scope_of(ledger), "t", "nobody").read(0, 8)
