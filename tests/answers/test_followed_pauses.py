"""What a follower with deltas is told of an answer that waits for decisions: the calls, and why each waits."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, ThreadNotFound
from chatledger.answers import Answer, Call, Pending, Turn
from chatledger.models import ThreadChange
from chatledger.storage.databases import poller
from chatledger.storage.follow import follower
from tests.answers.agents import Model
from tests.conftest import Database
from tests.following import LONG
from tests.storage.repositories.test_follow import until_waiting
from tests.storage.sent import record

FOLLOWERS = 10


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "INTERVAL", 0.01)


def asking(gate: asyncio.Event) -> Any:
    """An agent that waits for an approval, from when the gate is open."""

    async def agent(turn: Turn) -> None:
        async def pay(call: Call) -> str:
            await gate.wait()
            raise Pending(f"{call.call_id} in {turn.run.thread_id}")

        await turn.ask(Model(calls=2))
        await turn.call_tools(pay)

    return agent


async def heard(ledger: Ledger, thread: str, answer: Answer, until: str) -> list[ThreadChange]:
    """The changes since the question, up to a run of this status or a change of this kind."""
    changes = []
    async with (
        asyncio.timeout(LONG),
        aclosing(ledger.messages.follow(thread, cursor=answer.mark, deltas=True)) as following,
    ):
        async for change in following:
            changes.append(change)
            if until in (change.status, change.kind):
                break
    return changes


async def test_a_user_is_told_why_its_own_answer_waits(database: Database) -> None:
    gate = asyncio.Event()
    gate.set()
    async with database.open() as ledger, ledger.answers.serve({"weather": asking(gate)}, lease=30):
        answers = {
            user: await ledger.user(user).answers.start(f"of {user}", "Tokyo?", create=True) for user in ("ada", "bob")
        }
        for user, answer in answers.items():
            thread = f"of {user}"
            changes = await heard(ledger.user(user), thread, answer, "paused")
            assert changes[-1].waiting == {f"call-{n}": f"call-{n} in {thread}" for n in range(2)}
            assert {change.thread_id for change in changes} == {thread}
            other = ledger.user("bob" if user == "ada" else "ada")
            with pytest.raises(ThreadNotFound):
                await heard(other, thread, answer, "paused")


@pytest.mark.plain
@pytest.mark.one_statement
async def test_the_followers_of_a_pause_share_one_statement_more(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none once they were told."""
    looks = looks_of(monkeypatch)
    gate = asyncio.Event()
    async with (
        Ledger.open(pg_database.url) as ledger,
        Ledger.open(pg_database.url) as writer,
        writer.answers.serve({"weather": asking(gate)}, lease=30),
    ):
        answer = await writer.user("ada").answers.start("t", "Tokyo?", create=True)
        views = (ledger, ledger.user("ada"))
        following = [
            asyncio.create_task(heard(view, "t", answer, "paused")) for view in views for _ in range(FOLLOWERS)
        ]
        await until_waiting(ledger, 2 * FOLLOWERS)
        sent = record(monkeypatch)
        gate.set()
        for changes in await asyncio.gather(*following):
            assert changes[-1].waiting == {f"call-{n}": f"call-{n} in t" for n in range(2)}
        telling = [look for look in looks if any(change.status == "paused" for change in look.changes)]
        assert len(_reads_of_calls(sent)) == len(telling) <= 2 * len(views)

        async with asyncio.timeout(LONG), aclosing(ledger.messages.follow("t", deltas=True)) as changes_after:
            assert (await anext(changes_after)).status == "paused"
            sent.clear()
            await writer.messages.revise("t", answer.question, ChatMessage.user("Lima?"))
            assert (await anext(changes_after)).kind == "revised"
        assert _reads_of_calls(sent) == []


def looks_of(monkeypatch: pytest.MonkeyPatch) -> list[follower.Look]:
    """The reads of followers from now on."""
    looks: list[follower.Look] = []
    read = follower.read_changes

    def noting(*given: Any, **fields: Any) -> follower.Look:
        looks.append(read(*given, **fields))
        return looks[-1]

    monkeypatch.setattr(follower, "read_changes", noting)
    return looks


def _reads_of_calls(sent: list[str]) -> list[str]:
    """Those for which a run waits."""
    return [text for text in sent if text.startswith("SELECT") and "pending_reason" in text]
