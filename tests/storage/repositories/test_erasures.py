"""Erasing: nothing of it is left but a tombstone without words, and it does not come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chatledger import Erased, Erasure, Feedback, FeedbackSummary, Ledger, Thread, ThreadNotFound
from chatledger.storage.schema.tables import metadata
from tests.conftest import Database
from tests.conversations import turn
from tests.storage.raw import count_rows, query

CANARY = "canary-of-ada"
THREAD = f"{CANARY}-thread"
USER = f"{CANARY}-user"


async def fill(
    ledger: Ledger, thread_id: str = THREAD, user_id: str = USER, scores: tuple[float, ...] = (4, 5)
) -> None:
    run_id = f"run of {thread_id}"
    await ledger.threads.create(thread_id, user_id=user_id, title=CANARY, metadata={"note": CANARY})
    await ledger.runs.start(thread_id, run_id=run_id, agent="planner", model="m", input={"prompt": CANARY})
    await ledger.messages.append(thread_id, [*turn(), *turn()], run_id=run_id)
    for score in scores:
        kwargs = {"comment": CANARY}
        await ledger.feedback.record(Feedback(run_id=run_id, key="stars", score=score, kwargs=kwargs, author=CANARY))


async def everything(database: Database) -> str:
    """Every cell of every table."""
    return repr([await query(database, f"SELECT * FROM {table.name}") for table in metadata.sorted_tables])


@pytest.mark.parametrize("keep_scores", [False, True])
async def test_an_erased_thread_leaves_no_word(database: Database, ledger: Ledger, keep_scores: bool) -> None:
    await fill(ledger)
    assert CANARY in await everything(database)
    erasure = await ledger.erasures.erase_thread(THREAD, keep_scores=keep_scores)
    left = await everything(database)
    assert CANARY not in left
    assert "Tokyo" not in left
    assert set((await count_rows(database)).values()) == {0}
    assert (erasure.kind, erasure.scores) == ("thread", 2 * keep_scores)
    assert erasure.rows["messages"] == 10
    assert erasure.rows["feedback"] == 2
    assert await ledger.erasures.find_thread(THREAD) == erasure
    assert (await ledger.erasures.list()).items == [erasure]


@pytest.mark.parametrize("keep_scores", [False, True])
@pytest.mark.parametrize("kind", ["thread", "user", "tenant"])
async def test_a_dry_run_counts_what_goes_and_writes_nothing(
    database: Database, ledger: Ledger, kind: str, keep_scores: bool
) -> None:
    await fill(ledger)
    await fill(ledger, "second", scores=(1,))
    await fill(ledger, "of bob", "bob")
    await fill(ledger.tenant("other"), "of another")
    await ledger.branches.fork(THREAD, 5)
    await ledger.messages.append(THREAD, turn())
    erase: dict[str, Callable[..., Awaitable[Erasure]]] = {
        "thread": lambda **options: ledger.erasures.erase_thread(THREAD, **options),
        "user": lambda **options: ledger.erasures.erase_user(USER, **options),
        "tenant": ledger.erasures.erase_tenant,
    }
    before = await everything(database)
    foreseen = await erase[kind](keep_scores=keep_scores, dry_run=True)
    assert await everything(database) == before
    done = await erase[kind](keep_scores=keep_scores)
    of_the_erasure = {"erasure_id", "created_at"}
    assert foreseen.model_dump(exclude=of_the_erasure) == done.model_dump(exclude=of_the_erasure)
    assert foreseen.rows["threads"] == {"thread": 1, "user": 2, "tenant": 3}[kind]


async def test_a_dry_run_of_an_unknown_or_an_erased_thread_says_so(ledger: Ledger) -> None:
    with pytest.raises(ThreadNotFound):
        await ledger.erasures.erase_thread("never", dry_run=True)
    await fill(ledger)
    erasure = await ledger.erasures.erase_thread(THREAD)
    assert await ledger.erasures.erase_thread(THREAD, dry_run=True) == erasure


async def test_erasing_again_gives_the_tombstone(ledger: Ledger) -> None:
    await fill(ledger)
    assert await ledger.erasures.erase_thread(THREAD) == await ledger.erasures.erase_thread(THREAD)


async def test_erasing_an_unknown_thread_raises(ledger: Ledger) -> None:
    with pytest.raises(ThreadNotFound):
        await ledger.erasures.erase_thread("never")


async def test_an_erased_thread_does_not_come_back(ledger: Ledger) -> None:
    await fill(ledger)
    thread: Thread = await ledger.threads.get(THREAD)
    await ledger.erasures.erase_thread(THREAD)
    with pytest.raises(Erased, match="not used again"):
        await ledger.threads.create(THREAD, exist_ok=True)
    with pytest.raises(Erased):
        await ledger.threads.load([ledger.threads.prepare(thread, turn())])
    with pytest.raises(ThreadNotFound):
        await ledger.messages.append(THREAD, turn())
    async with ledger.begin() as tx:
        with pytest.raises(Erased):
            await tx.threads.create(THREAD)


async def test_kept_scores_stay_in_the_summary(ledger: Ledger) -> None:
    await fill(ledger)
    await fill(ledger, "other", "bob", (1,))
    questions: list[dict[str, Any]] = [{}, {"key": "stars"}, {"agent": "planner", "model": "m"}, {"agent": "nobody"}]
    before = [await ledger.feedback.summary(**question) for question in questions]
    await ledger.erasures.erase_thread(THREAD, keep_scores=True)
    assert [await ledger.feedback.summary(**question) for question in questions] == before
    await ledger.erasures.erase_thread("other")
    left = FeedbackSummary(key="stars", count=2, mean=4.5, min=4, max=5)
    assert await ledger.feedback.summary() == [left]


async def test_a_user_is_erased_with_all_threads_and_may_come_back(database: Database, ledger: Ledger) -> None:
    for n in range(5):
        await fill(ledger, f"{CANARY}-{n}")
    await fill(ledger, "other", "bob")
    erasure: Erasure = await ledger.erasures.erase_user(USER, keep_scores=True)
    assert (erasure.kind, erasure.rows["threads"], erasure.rows["messages"], erasure.scores) == ("user", 5, 50, 10)
    assert await ledger.erasures.find_user(USER) == erasure
    assert [thread.thread_id for thread in await ledger.threads.list()] == ["other"]
    left = await everything(database)
    assert f"{CANARY}-" not in left
    await ledger.threads.create("again", user_id=USER)


async def test_a_tenant_is_erased_and_no_other(ledger: Ledger) -> None:
    acme, other = ledger.tenant("acme"), ledger.tenant("other")
    for one in (acme, other):
        await fill(one)
    erasure = await acme.erasures.erase_tenant()
    assert (erasure.kind, erasure.rows["threads"]) == ("tenant", 1)
    assert len(await acme.threads.list()) == 0
    assert (await other.messages.history(THREAD)).version == 10
    assert await other.erasures.find_thread(THREAD) is None
    assert len((await other.erasures.list()).items) == 0


async def test_no_append_survives_an_erasure_at_the_same_time(database: Database, ledger: Ledger) -> None:
    await fill(ledger)
    async with database.open() as second:
        appends = [second.messages.append(THREAD, turn()) for _ in range(10)]
        outcomes = await asyncio.gather(*appends, ledger.erasures.erase_thread(THREAD), return_exceptions=True)
    assert {type(outcome).__name__ for outcome in outcomes} <= {"Appended", "ThreadNotFound", "Erasure"}
    assert set((await count_rows(database)).values()) == {0}


async def test_the_list_pages_newest_first(ledger: Ledger) -> None:
    for n in range(5):
        await ledger.threads.create(f"t{n}")
        await ledger.erasures.erase_thread(f"t{n}")
    first = await ledger.erasures.list(limit=2)
    second = await ledger.erasures.list(limit=9, cursor=first.next_cursor)
    found = [await ledger.erasures.find_thread(f"t{n}") for n in range(5)]
    assert [*first, *second] == found[::-1]
