"""Calls that take a message find its place: by the message itself, by its id, on the active branch or on its own."""

from __future__ import annotations

from typing import Any

import pytest

from chatledger import ChatMessage, InvalidArgument, KeyRing, Ledger, ThreadNotFound
from chatledger.errors import MessageNotFound
from tests.conftest import Database
from tests.conversations import assistant, user

RING = KeyRing({"k": bytes(range(32))})


async def two_answers(ledger: Ledger, *, ids: bool = True) -> list[ChatMessage]:
    """t: a question with two answers, each followed by a thanks. Branch 1 is active. The messages of branch 0."""
    named: list[dict[str, Any]] = [{"message_id": name} if ids else {} for name in ("q", "a", "t")]
    first = [user("?", **named[0]), assistant("A", **named[1]), user("Thanks", **named[2])]
    stored = (await ledger.messages.append("t", first, create=True)).messages
    await ledger.branches.fork("t", stored[0])
    await ledger.messages.append("t", [assistant("B"), user("Thank you")])
    return list(stored)


def texts(messages: Any) -> list[str]:
    return [message.text for message in messages]


@pytest.mark.parametrize("ids", [True, False])
async def test_a_fork_shares_the_messages_up_to_a_message(ledger: Ledger, ids: bool) -> None:
    question, _, thanks = await two_answers(ledger, ids=ids)
    fork = await ledger.branches.fork("t", question)
    assert (fork.forked_from, fork.forked_at, fork.last_seq, fork.active) == (0, 1, 1, True)
    other = await ledger.branches.fork("t", thanks, activate=False)  # the active branch does not have it
    assert (other.forked_from, other.forked_at) == (0, 3)
    assert texts(await ledger.messages.history("t", branch=other.branch)) == ["?", "A", "Thanks"]
    empty = await ledger.branches.fork("t", None)
    assert (empty.forked_from, empty.last_seq) == (None, 0)


async def test_a_message_is_named_by_its_id_too(ledger: Ledger) -> None:
    await two_answers(ledger)
    assert (await ledger.branches.fork("t", "a", activate=False)).forked_at == 2
    assert (await ledger.threads.copy("t", "c", until="a")).message_count == 2
    assert texts(await ledger.messages.history("c")) == ["?", "A"]
    assert texts([one.message for one in await ledger.messages.alternatives("t", "a")]) == ["A", "B"]
    assert texts(await ledger.messages.rewind("t", "q")) == ["B", "Thank you"]
    assert texts(await ledger.messages.rewind("t", "q", branch=0)) == ["A", "Thanks"]


@pytest.mark.parametrize("ids", [True, False])
async def test_a_rewind_keeps_the_messages_up_to_a_message(ledger: Ledger, ids: bool) -> None:
    question, answer, _ = await two_answers(ledger, ids=ids)
    before = await ledger.branches.get("t", 1)
    for message in (answer, "nobody"):
        with pytest.raises(MessageNotFound):  # it stands on branch 0 only
            await ledger.messages.rewind("t", message)
    assert await ledger.branches.get("t", 1) == before
    assert texts(await ledger.messages.rewind("t", answer, branch=0)) == ["Thanks"]
    assert texts(await ledger.messages.rewind("t", question)) == ["B", "Thank you"]
    assert texts(await ledger.messages.rewind("t", None)) == ["?"]
    assert texts(await ledger.messages.history("t", branch=0)) == ["?", "A"]


@pytest.mark.parametrize("ids", [True, False])
async def test_the_alternatives_of_a_message_of_any_branch(ledger: Ledger, ids: bool) -> None:
    _, answer, _ = await two_answers(ledger, ids=ids)
    shown = (await ledger.messages.history("t")).messages[1]
    for message, current in ((shown, [False, True]), (answer, [True, False])):
        found = await ledger.messages.alternatives("t", message)
        assert (texts([one.message for one in found]), [one.current for one in found]) == (["A", "B"], current)


@pytest.mark.parametrize("call", ["fork", "rewind", "alternatives", "copy"])
async def test_a_message_that_is_not_there_is_not_found(ledger: Ledger, call: str) -> None:
    _, answer, thanks = await two_answers(ledger)
    await ledger.threads.copy("t", "other")
    elsewhere = (await ledger.messages.history("other")).messages[0]
    await ledger.messages.remove("t", "t")
    calls: dict[str, Any] = {
        "fork": lambda at: ledger.branches.fork("t", at),
        "rewind": lambda to: ledger.messages.rewind("t", to),
        "alternatives": lambda message: ledger.messages.alternatives("t", message),
        "copy": lambda until: ledger.threads.copy("t", "c", until=until),
    }
    before = await ledger.branches.list("t")
    for gone in (thanks, "t", "nobody", elsewhere):
        with pytest.raises(MessageNotFound) as caught:
            await calls[call](gone)
        assert caught.value.thread_id == "t"
    for wrong in (2, user("not stored")):
        with pytest.raises(InvalidArgument):
            await calls[call](wrong)
    with pytest.raises(MessageNotFound):
        await ledger.branches.fork("t", answer, branch=1)
    assert await ledger.branches.list("t") == before
    assert await ledger.threads.find("c") is None


async def test_places_are_those_of_the_users_own_threads(database: Database) -> None:
    """Encrypted, and in a user's view."""
    async with database.open(encryption=RING) as ledger:
        ada, bob = ledger.user("ada"), ledger.user("bob")
        question, answer, _ = await two_answers(ada)
        assert (await ada.branches.fork("t", "a", activate=False)).forked_at == 2
        assert len(await ada.messages.alternatives("t", answer)) == 2
        for refused in (
            bob.branches.fork("t", question),
            bob.messages.rewind("t", "q"),
            bob.messages.alternatives("t", "a"),
            bob.threads.copy("t", until=question),
        ):
            with pytest.raises(ThreadNotFound):
                await refused
        assert texts(await ada.messages.rewind("t", question)) == ["B", "Thank you"]
