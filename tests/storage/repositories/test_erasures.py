"""Erasing: nothing of it is left but a tombstone without words, and it does not come back."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from chatledger import Feedback, Ledger, Thread, ThreadNotFound
from chatledger.errors import Erased
from chatledger.ids import erasure_digest
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from chatledger.storage.schema.tables import metadata
from chatledger.types import Erasure, FeedbackSummary
from tests.conftest import Database
from tests.conversations import turn
from tests.storage.raw import count_rows, query

CANARY = "canary-of-ada"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
THREAD = f"{CANARY}-thread"
USER = f"{CANARY}-user"


async def fill(
    ledger: Ledger, thread_id: str = THREAD, user_id: str = USER, scores: tuple[float, ...] = (4, 5)
) -> None:
    run_id = f"run of {thread_id}"
    await ledger.user(user_id).threads.create(thread_id, title=CANARY, metadata={"note": CANARY})
    await ledger.runs.start(thread_id, run_id=run_id, agent="planner", model="m", input={"prompt": CANARY})
    await ledger.messages.append(thread_id, [*turn(), *turn()], run_id=run_id)
    for number, score in enumerate(scores):
        said = {"kwargs": {"comment": CANARY}, "author": CANARY, "user_id": f"{CANARY} of scorer {number}"}
        await ledger.feedback.record(Feedback.model_validate({"run_id": run_id, "key": "stars", "score": score} | said))


async def score_bobs(ledger: Ledger) -> None:
    """A thread of bob's with his own score and those of USER: 3, 2 and 1 on the run, and a retracted 5 on a message."""
    await fill(ledger, "of bob", "bob", ())
    (message, *_) = (await ledger.messages.history("of bob")).messages
    bobs = [Feedback(run_id="run of of bob", key="stars", score=4, user_id="bob")]
    users = [Feedback(run_id="run of of bob", key="stars", score=score, user_id=USER) for score in (3, 2, 1)]
    for one in (*bobs, *users):
        await ledger.feedback.record(one)
    about = {"message_id": message.message_id, "kwargs": {"comment": CANARY}}
    taken_back = await ledger.feedback.record(users[0].model_copy(update={"score": 5, **about}))
    await ledger.feedback.remove(taken_back.feedback_id or "")


async def everything(database: Database) -> str:
    """Every cell of every table."""
    return repr([await query(database, f"SELECT * FROM {table.name}") for table in metadata.sorted_tables])


@pytest.mark.parametrize("keep_scores", [False, True])
async def test_an_erased_thread_leaves_no_word(database: Database, ledger: Ledger, keep_scores: bool) -> None:
    await fill(ledger)
    assert CANARY in await everything(database)
    erasure = await ledger.erasures.erase(("thread", THREAD), keep_scores=keep_scores)
    left = await everything(database)
    assert CANARY not in left
    assert "Tokyo" not in left
    assert set((await count_rows(database)).values()) == {0}
    assert (erasure.kind, erasure.scores) == ("thread", 2 * keep_scores)
    assert erasure.rows["messages"] == 10
    assert erasure.rows["feedback"] == 2
    assert await ledger.erasures.find(("thread", THREAD)) == erasure
    assert (await ledger.erasures.list()).items == [erasure]


@pytest.mark.parametrize("keep_scores", [False, True])
@pytest.mark.parametrize("kind", ["thread", "user", "tenant"])
async def test_a_dry_run_counts_what_goes_and_writes_nothing(
    database: Database, ledger: Ledger, kind: str, keep_scores: bool
) -> None:
    await fill(ledger)
    await fill(ledger, "second", scores=(1,))
    await score_bobs(ledger)
    on_own = Feedback(run_id=f"run of {THREAD}", key="stars", score=1, user_id=USER)
    await ledger.feedback.record(on_own)
    await fill(ledger.tenant("other"), "of another")
    await fork_at(scope_of(ledger), THREAD, 5)
    await ledger.messages.append(THREAD, turn())
    erase: dict[str, Callable[..., Awaitable[Erasure]]] = {
        "thread": lambda **options: ledger.erasures.erase(("thread", THREAD), **options),
        "user": lambda **options: ledger.erasures.erase(("user", USER), **options),
        "tenant": lambda **options: ledger.erasures.erase(("tenant",), **options),
    }
    before = await everything(database)
    foreseen = await erase[kind](keep_scores=keep_scores, dry_run=True)
    assert await everything(database) == before
    done = await erase[kind](keep_scores=keep_scores)
    of_the_erasure = {"erasure_id", "created_at", "subject"}  # a tenant gets its secret with its first tombstone
    assert foreseen.model_dump(exclude=of_the_erasure) == done.model_dump(exclude=of_the_erasure)
    assert foreseen.rows["threads"] == {"thread": 1, "user": 2, "tenant": 3}[kind]
    assert foreseen.rows["feedback"] == {"thread": 3, "user": 8, "tenant": 9}[kind]
    assert foreseen.scores == {"thread": 3, "user": 5, "tenant": 6}[kind] * keep_scores


async def test_a_dry_run_of_an_unknown_or_an_erased_thread_says_so(ledger: Ledger) -> None:
    with pytest.raises(ThreadNotFound):
        await ledger.erasures.erase(("thread", "never"), dry_run=True)
    await fill(ledger)
    erasure = await ledger.erasures.erase(("thread", THREAD))
    assert await ledger.erasures.erase(("thread", THREAD), dry_run=True) == erasure


async def test_erasing_again_gives_the_tombstone(ledger: Ledger) -> None:
    await fill(ledger)
    assert await ledger.erasures.erase(("thread", THREAD)) == await ledger.erasures.erase(("thread", THREAD))


async def test_erasing_an_unknown_thread_raises(ledger: Ledger) -> None:
    with pytest.raises(ThreadNotFound):
        await ledger.erasures.erase(("thread", "never"))


async def test_an_erased_thread_does_not_come_back(ledger: Ledger) -> None:
    await fill(ledger)
    thread: Thread = await ledger.threads.get(THREAD)
    await ledger.erasures.erase(("thread", THREAD))
    with pytest.raises(Erased, match="not used again"):
        await ledger.threads.create(THREAD, exist_ok=True)
    with pytest.raises(Erased):
        await load_threads(scope_of(ledger), [prepare_thread(scope_of(ledger), thread, turn())])
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
    await ledger.erasures.erase(("thread", THREAD), keep_scores=True)
    assert [await ledger.feedback.summary(**question) for question in questions] == before
    await ledger.erasures.erase(("thread", "other"))
    left = FeedbackSummary(key="stars", count=2, mean=4.5, min=4, max=5)
    assert await ledger.feedback.summary() == [left]


async def test_a_user_is_erased_with_all_threads_and_may_come_back(database: Database, ledger: Ledger) -> None:
    for n in range(5):
        await fill(ledger, f"{CANARY}-{n}")
    await fill(ledger, "other", "bob")
    erasure: Erasure = await ledger.erasures.erase(("user", USER), keep_scores=True)
    assert (erasure.kind, erasure.rows["threads"], erasure.rows["messages"], erasure.scores) == ("user", 5, 50, 10)
    assert await ledger.erasures.find(("user", USER)) == erasure
    assert [thread.thread_id for thread in await ledger.threads.list()] == ["other"]
    left = await everything(database)
    assert f"{CANARY}-" not in left
    await ledger.user(USER).threads.create("again")


@pytest.mark.parametrize("keep_scores", [False, True])
async def test_the_feedback_of_an_erased_user_on_other_threads_goes_too(
    database: Database, ledger: Ledger, keep_scores: bool
) -> None:
    await fill(ledger, scores=())
    await score_bobs(ledger)
    before = await ledger.feedback.summary()
    erasure = await ledger.erasures.erase(("user", USER), keep_scores=keep_scores)
    assert (erasure.rows["threads"], erasure.rows["feedback"], erasure.scores) == (1, 4, keep_scores)
    assert [one.user_id for one in await ledger.feedback.list(events=True)] == ["bob"]
    assert CANARY not in repr([await query(database, f"SELECT * FROM {name}") for name in ("feedback", "erasures")])
    assert (await ledger.feedback.summary() == before) == keep_scores
    assert len((await ledger.messages.history("of bob")).messages) == 10


async def test_an_interrupted_erasure_of_a_user_is_finished_by_another(database: Database, ledger: Ledger) -> None:
    await fill(ledger, scores=())
    await score_bobs(ledger)
    await ledger.erasures.erase(("thread", THREAD))  # as far as the first came
    erasure = await ledger.erasures.erase(("user", USER), keep_scores=True)
    assert (erasure.rows["feedback"], erasure.scores) == (4, 1)
    again = await ledger.erasures.erase(("user", USER), keep_scores=True)
    assert (again.rows["feedback"], again.scores) == (0, 0)
    stars = FeedbackSummary(key="stars", count=2, mean=2.5, min=1, max=4)
    assert await ledger.feedback.summary() == [stars]


async def test_only_scores_that_count_are_kept_of_a_thread(ledger: Ledger) -> None:
    await score_bobs(ledger)
    before = await ledger.feedback.summary()
    erasure = await ledger.erasures.erase(("thread", "of bob"), keep_scores=True)
    assert (erasure.rows["feedback"], erasure.scores) == (5, 2)
    assert await ledger.feedback.summary() == before
    assert await ledger.feedback.summary(events=True) == before
    assert await ledger.feedback.summary(user_id="bob") == []


async def test_users_who_score_each_other_are_erased_at_once(database: Database, ledger: Ledger) -> None:
    """Erasures, deletions and scores of the same runs wait for each other and for nothing else."""
    users = [f"user {number}" for number in range(4)]
    for user in users:
        await fill(ledger, f"thread of {user}", user, ())
    said = [
        Feedback(run_id=f"run of thread of {owner}", key="stars", score=1, user_id=user)
        for owner in users
        for user in users
    ]
    stored = [await ledger.feedback.record(one) for one in said]
    async with database.open() as other:
        outcomes = await asyncio.gather(
            *(one.erasures.erase(("user", user)) for one, user in zip((ledger, other) * 2, users, strict=True)),
            *(other.feedback.remove(one.feedback_id or "") for one in stored),
            return_exceptions=True,
        )
    assert {type(outcome).__name__ for outcome in outcomes} <= {"Erasure", "Feedback", "FeedbackNotFound"}
    assert (await ledger.feedback.list(events=True)).items == []


async def test_a_tenant_is_erased_and_no_other(ledger: Ledger) -> None:
    acme, other = ledger.tenant("acme"), ledger.tenant("other")
    for one in (acme, other):
        await fill(one)
    erasure = await acme.erasures.erase(("tenant",))
    assert (erasure.kind, erasure.rows["threads"]) == ("tenant", 1)
    assert len(await acme.threads.list()) == 0
    assert (await other.messages.history(THREAD)).last_seq == 10
    assert await other.erasures.find(("thread", THREAD)) is None
    assert len((await other.erasures.list()).items) == 0


async def test_no_append_survives_an_erasure_at_the_same_time(database: Database, ledger: Ledger) -> None:
    await fill(ledger)
    async with database.open() as second:
        appends = [second.messages.append(THREAD, turn()) for _ in range(10)]
        outcomes = await asyncio.gather(*appends, ledger.erasures.erase(("thread", THREAD)), return_exceptions=True)
    assert {type(outcome).__name__ for outcome in outcomes} <= {"Appended", "ThreadNotFound", "Erasure"}
    assert set((await count_rows(database)).values()) == {0}


async def test_the_list_pages_newest_first(ledger: Ledger) -> None:
    for n in range(5):
        await ledger.threads.create(f"t{n}")
        await ledger.erasures.erase(("thread", f"t{n}"))
    first = await ledger.erasures.list(limit=2)
    second = await ledger.erasures.list(limit=9, cursor=first.next_cursor)
    found = [await ledger.erasures.find(("thread", f"t{n}")) for n in range(5)]
    assert [*first, *second] == found[::-1]


# --- Tombstones are keyed by a secret of the tenant -------------------------------------------------------------------


async def test_tombstones_cannot_be_guessed_from_ids_alone_and_differ_between_tenants(
    database: Database, ledger: Ledger
) -> None:
    erased = []
    for owner in (ledger, ledger.tenant("other")):
        await fill(owner)
        erased.append(await owner.erasures.erase(("user", USER)))
    subjects = {row[0] for row in await query(database, "SELECT subject FROM erasures")}
    assert len(subjects) == 4
    assert subjects.isdisjoint({erasure_digest("user", USER), erasure_digest("thread", THREAD)})
    secrets = [row[0] for row in await query(database, "SELECT tombstone_secret FROM tenants")]
    assert len({*secrets}) == 2
    key = bytes(byte ^ 0x36 for byte in bytes.fromhex(secrets[0][:64]))
    code = hmac.new(key, erasure_digest("user", USER).encode(), "sha256").hexdigest()
    assert code in {erased[0].subject, erased[1].subject}
    assert await ledger.erasures.find(("user", USER)) == erased[0]


@pytest.mark.parametrize("keyed", [False, True], ids=["no secret", "a secret"])
async def test_tombstones_of_earlier_releases_are_still_found(database: Database, ledger: Ledger, keyed: bool) -> None:
    await fill(ledger)
    await ledger.erasures.erase(("user", USER))
    await query(database, f"UPDATE erasures SET subject = '{erasure_digest('user', USER)}' WHERE kind = 'user'")
    await query(database, f"UPDATE erasures SET subject = '{erasure_digest('thread', THREAD)}' WHERE kind = 'thread'")
    if not keyed:
        await query(database, "UPDATE tenants SET tombstone_secret = NULL")
    await refused(ledger, THREAD)
    assert await ledger.erasures.find(("user", USER)) is not None
    found = await ledger.erasures.find(("thread", THREAD))
    assert await ledger.erasures.erase(("thread", THREAD)) == found


async def refused(ledger: Ledger, thread_id: str) -> None:
    """Each way to create the thread is refused."""
    thread = Thread(thread_id=thread_id, created_at=NOW, active_at=NOW)
    with pytest.raises(Erased):
        await ledger.threads.create(thread_id)
    with pytest.raises(Erased):
        await ledger.messages.append(thread_id, turn(), create=True)
    with pytest.raises(Erased):
        async with ledger.begin() as tx:
            await tx.messages.append(thread_id, turn(), create=True)
    with pytest.raises(Erased):
        await load_threads(scope_of(ledger), [prepare_thread(scope_of(ledger), thread, turn())])


async def test_erasing_the_tenant_keeps_its_secret_and_its_tombstones(database: Database, ledger: Ledger) -> None:
    await fill(ledger)
    await ledger.erasures.erase(("thread", THREAD))
    secret = await query(database, "SELECT tombstone_secret FROM tenants")
    await ledger.erasures.erase(("tenant",))
    assert await query(database, "SELECT tombstone_secret FROM tenants") == secret
    await refused(ledger, THREAD)


async def test_erasures_at_once_make_one_secret(database: Database, ledger: Ledger) -> None:
    names = [f"thread {number}" for number in range(8)]
    for name in names:
        await ledger.threads.create(name)
    async with database.open() as other:
        one = [(ledger, other)[number % 2].erasures.erase(("thread", name)) for number, name in enumerate(names)]
        await asyncio.gather(*one)
    assert len(await query(database, "SELECT tombstone_secret FROM tenants")) == 1
    for name in names:
        await refused(ledger, name)
