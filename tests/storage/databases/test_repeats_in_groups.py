"""A repeat or a refusal among appends that share a statement costs the others nothing: the rest is written together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from chatledger import Appended, ChatMessage, Ledger, RuleViolation, ThreadNotFound
from chatledger.errors import IdConflict, RunConflict
from chatledger.storage.databases.postgresql import append_queue
from chatledger.storage.drivers.asyncpg import AsyncpgDriver, Checkout
from tests.conftest import KEYS, Database
from tests.conversations import assistant, result, texts, turn
from tests.storage.databases.test_shared_statements import queued
from tests.storage.schema.test_row_security import owned, secured

__all__ = ["owned", "secured"]

THREADS = [f"t{number}" for number in range(64)]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that the ledger sends, in order: write or read."""
    kinds: list[str] = []
    fetch, plain = Checkout.fetch, AsyncpgDriver.fetch

    def note(text: str) -> None:
        kinds.append("write" if "INSERT" in text or "UPDATE {schema}" in text else "read")

    def noting(self: Checkout, template: str, *rest: Any) -> Any:
        note(template)
        return fetch(self, template, *rest)

    def noting_plain(self: AsyncpgDriver, text: str, values: Any) -> Any:
        note(text)
        return plain(self, text, values)

    monkeypatch.setattr(Checkout, "fetch", noting)
    monkeypatch.setattr(AsyncpgDriver, "fetch", noting_plain)
    monkeypatch.setattr(append_queue, "MOST_RUNNING", 2)  # the one ahead, and one group of all the others
    monkeypatch.setattr(append_queue, "STALLED_AFTER", 3_600)  # however slow the machine is
    return kinds


@asynccontextmanager
async def known(database: Database, user: str | None = None, **options: Any) -> AsyncIterator[Ledger]:
    """A ledger that has the tips of its threads in its cache."""
    async with database.open(**options) as opened:
        view = opened if user is None else opened.user(user)
        for thread_id in ("first", *THREADS):
            await view.messages.append(thread_id, said(thread_id), create=True)
        yield view


def said(thread_id: str) -> list[ChatMessage]:
    return [assistant(f"said in {thread_id}", message_id=f"id of {thread_id}")]


def says(ledger: Ledger, thread_id: str, **options: Any) -> Coroutine[Any, Any, Appended]:
    """A new message, with an id of the caller's own."""
    return ledger.messages.append(thread_id, [assistant("goes on", message_id=f"next of {thread_id}")], **options)


@pytest.fixture(params=["plain", "encrypted", "of a user", "secured"])
def kind(request: pytest.FixtureRequest) -> tuple[str, Database]:
    if request.param == "secured":
        return "secured", Database("postgresql", request.getfixturevalue("secured"))
    return request.param, request.getfixturevalue("pg_database")


@pytest.fixture
async def ledger(kind: tuple[str, Database]) -> AsyncIterator[Ledger]:
    name, database = kind
    keys = {"encryption": KEYS} if name == "encrypted" else {}
    async with known(database, "ada" if name == "of a user" else None, **keys) as opened:
        yield opened


@pytest.mark.one_statement
async def test_a_group_without_repeats_is_one_statement(ledger: Ledger, sent: list[str]) -> None:
    done = await queued(ledger, *(says(ledger, one) for one in THREADS))
    assert [one.last_seq for one in done] == [2] * 64
    assert sent == ["write", "write"]  # of the one ahead, and of the group


@pytest.mark.one_statement
async def test_repeats_are_read_together_and_the_rest_is_written_at_once(ledger: Ledger, sent: list[str]) -> None:
    repeats = THREADS[5:60:20]
    calls = [ledger.messages.append(one, said(one)) if one in repeats else says(ledger, one) for one in THREADS]
    done = await queued(ledger, *calls)
    assert [one.replayed for one in done] == [one in repeats for one in THREADS]
    assert [done[THREADS.index(one)].messages for one in repeats] == [
        (await ledger.messages.history(one)).messages for one in repeats
    ]
    assert sent[:3] == ["write", "write", "read"]
    assert len(sent) == 3 + len(repeats)  # the histories of this test
    again = await queued(ledger, *(says(ledger, one) for one in repeats))
    assert [one.last_seq for one in again] == [2] * 3


async def test_a_repeat_has_the_result_of_its_first_call(ledger: Ledger) -> None:
    """With parts, calls and results, in the middle of the thread, and under an idempotency key."""
    first = await ledger.messages.append("t0", turn(ids="own "))
    keyed = await ledger.messages.append("t1", turn(), idempotency_key="k")
    for thread_id in ("t0", "t1"):
        await says(ledger, thread_id)
    done = await queued(
        ledger,
        ledger.messages.append("t0", turn(ids="own ")),
        ledger.messages.append("t1", turn(), idempotency_key="k"),
        says(ledger, "t2"),
    )
    for again, before in zip(done, (first, keyed), strict=False):
        assert (again.replayed, again.messages) == (True, before.messages)
        assert (again.messages[0].seq, again.last_seq, again.last_seq) == (2, 6, 6)


@pytest.mark.one_statement
async def test_refusals_cost_one_look_and_the_rest_is_written_at_once(ledger: Ledger, sent: list[str]) -> None:
    done = await queued(
        ledger,
        ledger.messages.append("t0", [result("nobody called")]),
        ledger.messages.append("t1", [assistant("another", message_id="id of t1"), assistant("new")]),
        *(says(ledger, one) for one in THREADS[2:]),
    )
    assert [type(one) for one in done if not isinstance(one, Appended)] == [RuleViolation, IdConflict]
    assert sent == ["write", "write", "read"]


@pytest.mark.one_statement
async def test_an_append_with_a_run_of_another_thread_is_refused_alone(ledger: Ledger, sent: list[str]) -> None:
    await ledger.runs.start("t0", run_id="of t0")
    sent.clear()
    done = await queued(ledger, *(says(ledger, one, run_id="of t0" if one == "t9" else None) for one in THREADS))
    assert [type(one) for one in done if not isinstance(one, Appended)] == [RunConflict]
    assert sent.count("write") <= 1 + 2 + 1
    assert len(sent) <= 1 + 2 + 1 + 2


@pytest.mark.one_statement
async def test_a_repeat_among_appends_to_one_thread(ledger: Ledger, sent: list[str]) -> None:
    batches = [[assistant(f"{n}", message_id=f"m{n}")] for n in range(62)]
    batches[20:20] = [said("t0")]
    batches[30:30] = [[result("nobody called")]]
    done = await queued(ledger, *(ledger.messages.append("t0", batch) for batch in batches))
    assert [type(one) for one in done if not isinstance(one, Appended)] == [RuleViolation]
    assert done[20].replayed
    assert texts(await ledger.messages.history("t0"))[1:] == [str(n) for n in range(62)]
    assert sent[:4] == ["write", "write", "read", "write"]
    assert len(sent) == 4 + 1  # the history


@pytest.mark.one_statement
async def test_the_same_batch_twice_in_a_group_is_stored_once(ledger: Ledger, sent: list[str]) -> None:
    calls = [says(ledger, one) for one in THREADS[:10]]
    calls += [says(ledger, "t3"), ledger.messages.append("t3", [assistant("behind")])]
    done = await queued(ledger, *calls)
    assert [one.replayed for one in done] == [False] * 10 + [True, False]
    assert texts(await ledger.messages.history("t3")) == ["said in t3", "goes on", "behind"]
    assert sent[:-1] == ["write", "write", "read", "write"]


async def test_one_new_run_for_two_threads_of_a_group_goes_to_the_first(ledger: Ledger, sent: list[str]) -> None:
    done = await queued(ledger, *(says(ledger, one, run_id="r") for one in THREADS[:2]), says(ledger, "t2"))
    assert [type(one) for one in done] == [Appended, RunConflict, Appended]
    assert (await ledger.runs.get("r")).thread_id == "t0"


async def test_a_repeat_whose_words_were_revised_is_found(ledger: Ledger) -> None:
    await ledger.messages.revise("t0", "id of t0", assistant("said otherwise"))
    await ledger.messages.append("t0", [assistant("then")])
    done = await queued(ledger, ledger.messages.append("t0", said("t0")), says(ledger, "t1"))
    assert [one.replayed for one in done] == [True, False]
    assert done[0].messages[0].text == "said otherwise"


async def test_ids_that_another_process_stores_meanwhile_undo_one_statement(
    pg_database: Database, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement did not see them when it looked, and its keys refuse it."""
    async with known(pg_database) as ledger, pg_database.open() as other:
        async with other.begin() as transaction:
            await transaction.messages.append("t5", [assistant("goes on", message_id="next of t5")])
            held = asyncio.create_task(queued(ledger, *(says(ledger, one) for one in THREADS)))
            await asyncio.sleep(0.02)
        done = await held
        assert [one.replayed for one in done] == [one == "t5" for one in THREADS]


@pytest.mark.one_statement
async def test_a_deleted_thread_is_missed_without_an_attempt_of_its_own(pg_database: Database, sent: list[str]) -> None:
    async with known(pg_database) as ledger, pg_database.open() as other:
        await other.threads.delete("t5")
        sent.clear()
        done = await queued(ledger, *(says(ledger, one) for one in THREADS))
        assert [type(one) for one in done if not isinstance(one, Appended)] == [ThreadNotFound]
        assert sent == ["write", "write", "read"]


@pytest.mark.one_statement
async def test_threads_that_another_process_moved_are_judged_anew_together(
    pg_database: Database, sent: list[str]
) -> None:
    async with known(pg_database) as ledger, pg_database.open() as other:
        for thread_id in THREADS[:3]:
            await other.messages.append(thread_id, [assistant("of another")])
        sent.clear()
        done = await queued(ledger, *(says(ledger, one) for one in THREADS))
        assert [one.last_seq for one in done] == [3] * 3 + [2] * 61
        assert sent == ["write", "write", "read", "write"]


async def test_a_user_does_not_learn_of_a_thread_of_another_user(pg_database: Database) -> None:
    async with known(pg_database) as ledger:
        await ledger.user("bob").messages.append("his", said("his"), create=True)
        await ledger.messages.append("his", [assistant("cached")])
        done = await queued(
            ledger,
            ledger.user("ada").messages.append("his", said("his")),
            ledger.user("ada").messages.append("t0", said("t0")),
            says(ledger, "t1"),
        )
        assert [type(one) for one in done] == [ThreadNotFound, ThreadNotFound, Appended]
