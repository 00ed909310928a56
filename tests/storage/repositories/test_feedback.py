"""Feedback: every score is kept, a repeat is known by its key, and what counts is the latest of a target and user."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from chatledger import Feedback, InvalidArgument, Ledger
from chatledger.errors import FeedbackNotFound, IdConflict, LimitExceeded, MessageNotFound, RunNotFound
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.types import FeedbackSummary
from tests.conftest import Database
from tests.conversations import turn
from tests.storage.raw import query

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
async def t(ledger: Ledger) -> str:
    """A thread with the messages m0 … m4 of the run "r"."""
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn(ids="m"), run_id="r")
    return "t"


def stars(score: float, **fields: Any) -> Feedback:
    return Feedback(run_id="r", key="stars", score=score, **fields)


async def test_feedback_is_read_as_it_was_given(ledger: Ledger, t: str) -> None:
    given = Feedback(
        run_id="r",
        key="a key \0 \ud800",
        score=0.1,
        kwargs={"comment": "schön \0 \ud800 🌦", "nan": [math.inf, 10**30, -0.0], "": None},
        author="ada",
        source="ui",
        message_id="m1",
        feedback_id="f \0",
        created_at=NOON.astimezone(timezone(timedelta(hours=9))),
        user_id="ada \0",
        call_index=0,
    )
    assert repr(await ledger.feedback.record(given)) == repr(given)
    assert repr((await ledger.feedback.list(events=True)).items) == repr([given])


async def test_an_id_and_a_time_are_filled_in(ledger: Ledger, t: str) -> None:
    stored = await ledger.feedback.record(stars(4))
    assert stored == stars(4, feedback_id=stored.feedback_id, created_at=stored.created_at)
    assert datetime.now(UTC) - (stored.created_at or NOON) < timedelta(minutes=1)
    assert (await ledger.feedback.list(events=True)).items == [stored]


async def test_every_score_is_kept(ledger: Ledger, t: str) -> None:
    for minute, score in enumerate((4, 5, 4)):
        await ledger.feedback.record(stars(score, created_at=NOON + timedelta(minutes=minute)))
    assert [one.score for one in await ledger.feedback.list(events=True)] == [4, 5, 4]


@pytest.mark.parametrize("score", [0.0, -1.5, 1e100, 5e-324, 2**53 + 1, 0.1 + 0.2])
async def test_a_score_is_kept_to_its_last_bit(ledger: Ledger, t: str, score: float) -> None:
    await ledger.feedback.record(stars(score))
    assert (await ledger.feedback.list(events=True)).items[0].score == float(score)


@dataclass
class Rating:
    """A service's own feedback."""

    run_id: str
    key: str
    score: float
    comment: str = "not ours"


async def test_any_object_with_a_run_a_key_and_a_score_will_do(ledger: Ledger, t: str) -> None:
    stored = await ledger.feedback.record(Rating("r", "stars", 4))
    assert stored == stars(4, feedback_id=stored.feedback_id, created_at=stored.created_at)
    with pytest.raises(InvalidArgument, match=r"feedback is not valid at \.key: must not be empty"):
        await ledger.feedback.record(Rating("r", "", 4))


# --- Repeats ----------------------------------------------------------------------------------------------------------


async def test_a_repeat_with_an_idempotency_key_gives_the_first(ledger: Ledger, t: str) -> None:
    first = await ledger.feedback.record(stars(4), idempotency_key="k")
    assert await ledger.feedback.record(stars(4), idempotency_key="k") == first
    other = await ledger.feedback.record(stars(4), idempotency_key="l")
    assert other.feedback_id != first.feedback_id
    assert len(await ledger.feedback.list(events=True)) == 2


async def test_a_repeat_with_a_feedback_id_gives_the_first(ledger: Ledger, t: str) -> None:
    first = await ledger.feedback.record(stars(4, feedback_id="f"))
    assert await ledger.feedback.record(stars(4, feedback_id="f")) == first
    assert (await ledger.feedback.list(events=True)).items == [first]


async def test_the_same_key_on_another_run_is_another_score(ledger: Ledger, t: str) -> None:
    await ledger.runs.start(t, run_id="s")
    for run_id in ("r", "s"):
        await ledger.feedback.record(Feedback(run_id=run_id, key="stars", score=4), idempotency_key="k")
    assert len(await ledger.feedback.list(events=True)) == 2


@pytest.mark.parametrize(
    "other",
    [
        *({"score": 5}, {"key": "up"}, {"kwargs": {"a": 1}}, {"author": "ada"}, {"source": "ui"}, {"message_id": "m4"}),
        *({"user_id": "ada"}, {"message_id": "m1", "call_index": 0}),
    ],
)
async def test_a_repeat_with_other_content_is_a_conflict(ledger: Ledger, t: str, other: dict[str, Any]) -> None:
    first = await ledger.feedback.record(stars(4, feedback_id="f"), idempotency_key="k")
    changed = Feedback.model_validate({"run_id": "r", "key": "stars", "score": 4} | other)
    for repeat, key in ((changed, "k"), (changed.model_copy(update={"feedback_id": "f"}), None)):
        with pytest.raises(IdConflict) as caught:
            await ledger.feedback.record(repeat, idempotency_key=key)
        assert caught.value.id == "f"
    assert (await ledger.feedback.list(events=True)).items == [first]


async def test_the_same_score_sent_at_once_is_stored_once(database: Database) -> None:
    async with database.open() as one, database.open() as other:
        await one.threads.create("t")
        await one.runs.start("t", run_id="r")
        sent = [ledger.feedback.record(stars(4), idempotency_key="k") for ledger in (one, other) * 4]
        stored = await asyncio.gather(*sent)
        assert (await one.feedback.list(events=True)).items == [stored[0]]
        assert stored == [stored[0]] * 8


# --- The target -------------------------------------------------------------------------------------------------------


async def test_feedback_on_a_message_names_its_place(database: Database, ledger: Ledger, t: str) -> None:
    await fork_at(scope_of(ledger), t, 5)
    await ledger.messages.append(t, turn(ids="n"), run_id="r")
    await ledger.feedback.record(stars(4, message_id="n4"))
    places = await query(database, "SELECT thread_id, branch, seq FROM feedback")
    assert places == [("t", 1, 10)]


async def test_feedback_on_an_unknown_run_or_message_is_refused(ledger: Ledger, t: str) -> None:
    with pytest.raises(RunNotFound) as run:
        await ledger.feedback.record(Feedback(run_id="s", key="stars", score=4))
    assert run.value.run_id == "s"
    with pytest.raises(MessageNotFound) as message:
        await ledger.feedback.record(stars(4, message_id="n"))
    assert (message.value.thread_id, message.value.message_id) == ("t", "n")
    assert len(await ledger.feedback.list(events=True)) == 0


async def test_feedback_on_a_message_of_another_thread_is_refused(ledger: Ledger, t: str) -> None:
    await ledger.threads.create("u")
    await ledger.messages.append("u", turn(ids="n"))
    with pytest.raises(MessageNotFound):
        await ledger.feedback.record(stars(4, message_id="n0"))


async def test_invalid_keys_are_refused(ledger: Ledger, t: str) -> None:
    with pytest.raises(LimitExceeded):
        await ledger.feedback.record(stars(4, feedback_id="x" * 513))
    for key in ("", "x" * 513):
        with pytest.raises(LimitExceeded):
            await ledger.feedback.record(stars(4), idempotency_key=key)


async def test_feedback_on_a_call_names_it(ledger: Ledger, t: str) -> None:
    stored = await ledger.feedback.record(stars(4, message_id="m1", call_index=0))
    assert (await ledger.feedback.list(events=True)).items == [stored]
    for about in ({"message_id": "m1", "call_index": 9}, {"message_id": "m0", "call_index": 0}, {"call_index": 0}):
        with pytest.raises(InvalidArgument, match="call"):
            await ledger.feedback.record(stars(4, **about))
    with pytest.raises(MessageNotFound):
        await ledger.feedback.record(stars(4, message_id="nobody", call_index=0))
    assert (await ledger.feedback.list(events=True)).items == [stored]


async def test_feedback_on_a_message_that_is_gone_still_names_it(database: Database, ledger: Ledger, t: str) -> None:
    stored = await ledger.feedback.record(stars(4, message_id="m4"))
    older = await ledger.feedback.record(stars(5, message_id="m1"))
    await query(database, "UPDATE feedback SET message_id = NULL WHERE score = 5")  # as an earlier release wrote it
    assert (await ledger.feedback.list(events=True)).items == [older, stored]
    await query(database, "DELETE FROM messages WHERE message_id = 'm4'")
    assert (await ledger.feedback.list(events=True)).items == [older, stored]
    assert (await ledger.feedback.list()).items == [older, stored]


# --- The scores that count --------------------------------------------------------------------------------------------


async def said_at(ledger: Ledger, minute: int, score: float, **fields: Any) -> Feedback:
    at = NOON + timedelta(minutes=minute)
    return await ledger.feedback.record(stars(score, created_at=at, **fields))


async def test_thumb_up_down_and_up_again_is_one(ledger: Ledger, t: str) -> None:
    for minute, score in enumerate((1, -1, 1)):
        await said_at(ledger, minute, score, user_id="ada", message_id="m4")
    assert await ledger.feedback.summary() == [summary("stars", 1)]
    assert await ledger.feedback.summary(events=True) == [summary("stars", 1, -1, 1)]
    assert [one.score for one in await ledger.feedback.list()] == [1]
    assert [one.score for one in await ledger.feedback.list(events=True, user_id="ada")] == [1, -1, 1]


async def test_each_target_key_and_user_counts_by_itself(ledger: Ledger, t: str) -> None:
    targets: list[dict[str, Any]] = [
        {},
        {"user_id": "ada"},
        {"message_id": "m1"},
        {"message_id": "m4"},
        {"message_id": "m1", "call_index": 0},
        {"message_id": "m1", "user_id": "ada"},
        {"message_id": "m1", "call_index": 0, "user_id": "ada"},
    ]
    for minute in range(2):
        for number, target in enumerate(targets):
            await said_at(ledger, 10 * minute + number, 10 * minute + number, **target)
    await ledger.feedback.record(Feedback(run_id="r", key="other", score=0, created_at=NOON))
    current = await ledger.feedback.list()
    assert [one.score for one in current] == [16, 15, 14, 13, 12, 11, 10, 0]
    assert [one.score for one in await ledger.feedback.list(user_id="ada")] == [16, 15, 11]
    assert [one.key for one in await ledger.feedback.list(key="other", run_id="r", thread_id="t")] == ["other"]
    assert (await ledger.feedback.list(thread_id="nowhere")).items == []
    assert len(await ledger.feedback.list(run_id=["r", "nowhere", ""])) == 8
    assert (await ledger.feedback.list(run_id=[])).items == []
    with pytest.raises(LimitExceeded, match="501"):
        await ledger.feedback.list(run_id=[str(number) for number in range(501)])
    assert (await ledger.feedback.summary(key="stars"))[0].count == 7


async def test_the_latest_counts_by_its_time_and_then_by_its_id(ledger: Ledger, t: str) -> None:
    await said_at(ledger, 5, 2, feedback_id="b")
    await said_at(ledger, 1, 3, feedback_id="z")
    await said_at(ledger, 5, 1, feedback_id="a")
    assert [one.feedback_id for one in await ledger.feedback.list()] == ["b"]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
async def test_pages_of_current_scores_give_each_once(ledger: Ledger, t: str, size: int) -> None:
    for minute in range(2):
        for user in "abcde":
            await said_at(ledger, minute, minute, user_id=user, feedback_id=f"{user}{minute}")
    page = await ledger.feedback.list(limit=size)
    read = [one.feedback_id for one in page]
    while page.next_cursor is not None:
        page = await ledger.feedback.list(limit=size, cursor=page.next_cursor)
        read += [one.feedback_id for one in page]
    assert read == ["e1", "d1", "c1", "b1", "a1"]


async def test_since_and_until_are_about_the_score_that_counts(ledger: Ledger, t: str) -> None:
    for minute, score in enumerate((1, 2, 3)):
        await said_at(ledger, minute, score)
    later = NOON + timedelta(minutes=2)
    assert await ledger.feedback.summary(until=later) == []
    assert await ledger.feedback.summary(since=later) == [summary("stars", 3)]
    assert await ledger.feedback.summary(until=later, events=True) == [summary("stars", 1, 2)]


async def test_a_retracted_score_and_the_earlier_ones_do_not_count(ledger: Ledger, t: str) -> None:
    first, second = [await said_at(ledger, minute, minute, user_id="ada") for minute in range(2)]
    others = [await said_at(ledger, 0, 7, user_id="bob"), await said_at(ledger, 0, 8, user_id="ada", message_id="m1")]
    retracted = await ledger.feedback.remove(second.feedback_id or "")
    assert retracted == second.model_copy(update={"retracted_at": retracted.retracted_at})
    assert datetime.now(UTC) - (retracted.retracted_at or NOON) < timedelta(minutes=1)
    assert await ledger.feedback.remove(second.feedback_id or "") == retracted
    assert {one.feedback_id for one in await ledger.feedback.list()} == {one.feedback_id for one in others}
    assert await ledger.feedback.summary(user_id="ada") == [summary("stars", 8)]
    assert await ledger.feedback.summary(user_id="ada", events=True) == [summary("stars", 0, 1, 8)]
    withdrawn = {one.feedback_id for one in await ledger.feedback.list(events=True) if one.retracted_at is not None}
    assert withdrawn == {first.feedback_id, second.feedback_id}
    await said_at(ledger, 2, 5, user_id="ada")
    assert [one.score for one in await ledger.feedback.list(user_id="ada")] == [5, 8]


async def test_retracting_an_earlier_score_leaves_the_later_one(ledger: Ledger, t: str) -> None:
    first, second = [await said_at(ledger, minute, minute) for minute in range(2)]
    await ledger.feedback.remove(first.feedback_id or "")
    assert (await ledger.feedback.list()).items == [second]


async def test_an_earlier_score_that_comes_late_does_not_count_after_a_retraction(ledger: Ledger, t: str) -> None:
    said = await said_at(ledger, 5, 1)
    await ledger.feedback.remove(said.feedback_id or "")
    await said_at(ledger, 4, 1)
    assert (await ledger.feedback.list()).items == []
    assert await ledger.feedback.summary() == []


async def test_a_repeat_of_a_retracted_score_gives_it_retracted(ledger: Ledger, t: str) -> None:
    first = await ledger.feedback.record(stars(4), idempotency_key="k")
    retracted = await ledger.feedback.remove(first.feedback_id or "")
    assert await ledger.feedback.record(stars(4), idempotency_key="k") == retracted
    assert await ledger.feedback.record(retracted) == retracted
    assert (await ledger.feedback.list(events=True)).items == [retracted]


async def test_unknown_feedback_is_not_retracted(ledger: Ledger, t: str) -> None:
    stored = await ledger.feedback.record(stars(4))
    for unknown in ("nothing", ""):
        with pytest.raises(FeedbackNotFound) as caught:
            await ledger.feedback.remove(unknown)
        assert caught.value.feedback_id == unknown
    with pytest.raises(FeedbackNotFound):
        await ledger.tenant("other").feedback.remove(stored.feedback_id or "")
    assert (await ledger.feedback.list()).items == [stored]


async def test_scores_and_retractions_at_once_leave_the_latest_or_none(database: Database, t: str) -> None:
    """In any order of the calls: no retracted score, and none from before it, counts again."""
    async with database.open() as one, database.open() as other:
        for round_ in range(8):
            user = f"user {round_}"
            said = [await said_at(one, minute, minute, user_id=user) for minute in range(1, 4)]
            retractions = [ledger.feedback.remove(said[2].feedback_id or "") for ledger in (one, other)]
            early, late = said_at(other, 0, 0, user_id=user), said_at(one, 9, 9, user_id=user)
            done = await asyncio.gather(*retractions, early, late, other.feedback.remove(said[1].feedback_id or ""))
            assert done[0] == done[1]
            assert (await one.feedback.list(user_id=user)).items == [done[3]]
            await other.feedback.remove(done[3].feedback_id or "")
            assert (await one.feedback.list(user_id=user)).items == []


async def test_retractions_cross_and_wait_for_each_other(pg_database: Database) -> None:
    """Two transactions retract two scores of a run, in opposite order. The later one waits."""
    async with pg_database.open() as one, pg_database.open() as other:
        await one.threads.create("t")
        await one.messages.append("t", turn(ids="m"), run_id="r")
        said = [(await said_at(one, 0, 1, user_id=user)).feedback_id or "" for user in "ab"]
        retracted = asyncio.Event()

        async def crosswise() -> None:
            async with other.begin() as tx:
                await tx.feedback.remove(said[1])
                retracted.set()
                await tx.feedback.remove(said[0])

        async with one.begin() as tx:
            await tx.feedback.remove(said[0])
            crossing = asyncio.create_task(crosswise())
            async with asyncio.timeout(60):
                while not (retracted.is_set() or await query(pg_database, _WAITING)):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await tx.feedback.remove(said[1])
        await crossing
        assert (await one.feedback.list()).items == []


_WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def test_a_retraction_while_its_thread_is_deleted_finds_it_or_not(database: Database, t: str) -> None:
    async with database.open() as one, database.open() as other:
        said = [await said_at(one, 0, 1, user_id=user) for user in "abcdef"]
        retracting = [other.feedback.remove(each.feedback_id or "") for each in said]
        deleted, *outcomes = await asyncio.gather(one.threads.delete(t), *retracting, return_exceptions=True)
        assert not isinstance(deleted, BaseException)
        assert {type(outcome) for outcome in outcomes} <= {Feedback, FeedbackNotFound}
        assert (await one.feedback.list(events=True)).items == []


# --- Listing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
async def test_pages_give_every_score_once_though_times_are_equal(ledger: Ledger, t: str, size: int) -> None:
    for number in range(7):
        at = NOON + timedelta(minutes=number // 4)
        await ledger.feedback.record(stars(number, feedback_id=f"f{number}", created_at=at))
    page = await ledger.feedback.list(events=True, limit=size)
    read = [one.score for one in page]
    while page.next_cursor is not None:
        page = await ledger.feedback.list(events=True, limit=size, cursor=page.next_cursor)
        read += [one.score for one in page]
    assert read == [6, 5, 4, 3, 2, 1, 0]


async def test_feedback_is_listed_by_run_and_by_thread(ledger: Ledger, t: str) -> None:
    await ledger.threads.create("u")
    for thread_id, run_id in ((t, "s"), ("u", "v")):
        await ledger.runs.start(thread_id, run_id=run_id)
    for minute, run_id in enumerate(("r", "s", "v")):
        at = NOON + timedelta(minutes=minute)
        await ledger.feedback.record(Feedback(run_id=run_id, key="stars", score=1, created_at=at))

    async def runs(**chosen: Any) -> list[str]:
        return [one.run_id for one in await ledger.feedback.list(events=True, **chosen)]

    assert await runs() == ["v", "s", "r"]
    assert await runs(thread_id="t") == ["s", "r"]
    assert await runs(run_id="s") == ["s"]
    assert await runs(run_id="s", thread_id="u") == []
    assert await runs(thread_id="nowhere") == []


# --- Summary ----------------------------------------------------------------------------------------------------------


async def scored(ledger: Ledger) -> None:
    """Three runs of two agents and two models, one score an hour from NOON on."""
    await ledger.threads.create("t")
    runs = (("r1", "a", "m"), ("r2", "a", "n"), ("r3", None, "m"))
    for run_id, agent, model in runs:
        await ledger.runs.start("t", run_id=run_id, agent=agent, model=model)
    scores = (("r1", "stars", 4), ("r1", "stars", 5), ("r2", "stars", 1), ("r3", "stars", 2), ("r3", "up", -0.5))
    for hour, (run_id, key, score) in enumerate(scores):
        at, of_user = NOON + timedelta(hours=hour), "ada" if hour else None
        given = Feedback(run_id=run_id, key=key, score=score, created_at=at, user_id=of_user)
        await ledger.feedback.record(given)


def summary(key: str, *scores: float) -> FeedbackSummary:
    count = len(scores)
    return FeedbackSummary(key=key, count=count, mean=sum(scores) / count, min=min(scores), max=max(scores))


async def test_a_summary_reports_each_key(ledger: Ledger) -> None:
    assert await ledger.feedback.summary() == []
    await scored(ledger)
    assert await ledger.feedback.summary() == [summary("stars", 4, 5, 1, 2), summary("up", -0.5)]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"key": "up"}, [summary("up", -0.5)]),
        ({"key": "unknown"}, []),
        ({"agent": "a"}, [summary("stars", 4, 5, 1)]),
        ({"model": "m"}, [summary("stars", 4, 5, 2), summary("up", -0.5)]),
        ({"agent": "a", "model": "n"}, [summary("stars", 1)]),
        ({"run_id": "r1"}, [summary("stars", 4, 5)]),
        ({"thread_id": "t", "key": "up"}, [summary("up", -0.5)]),
        ({"thread_id": "unknown"}, []),
        ({"user_id": "ada"}, [summary("stars", 5, 1, 2), summary("up", -0.5)]),
        ({"user_id": "ada", "run_id": "r3", "key": "stars"}, [summary("stars", 2)]),
        ({"agent": "unknown"}, []),
        ({"since": NOON + timedelta(hours=1)}, [summary("stars", 5, 1, 2), summary("up", -0.5)]),
        ({"until": NOON + timedelta(hours=1)}, [summary("stars", 4)]),
        ({"since": NOON + timedelta(hours=1), "until": NOON + timedelta(hours=3)}, [summary("stars", 5, 1)]),
        ({"until": (NOON + timedelta(hours=1)).astimezone(timezone(timedelta(hours=-7)))}, [summary("stars", 4)]),
        ({"key": "stars", "model": "m", "since": NOON + timedelta(hours=2)}, [summary("stars", 2)]),
    ],
)
async def test_a_summary_selects_scores(
    ledger: Ledger, chosen: dict[str, Any], expected: list[FeedbackSummary]
) -> None:
    await scored(ledger)
    assert await ledger.feedback.summary(**chosen) == expected


async def test_a_summary_does_not_guess_a_zone(ledger: Ledger) -> None:
    naive = datetime(2024, 5, 1)  # noqa: DTZ001 - that is the case
    for chosen in ({"since": naive}, {"until": naive}):
        with pytest.raises(InvalidArgument, match="is not valid"):
            await ledger.feedback.summary(**chosen)  # type: ignore[arg-type]


async def test_keys_with_other_bytes_are_other_keys(ledger: Ledger, t: str) -> None:
    for key in ("stars", "Stars", "stars\0", "\ue000stars"):
        await ledger.feedback.record(Feedback(run_id="r", key=key, score=1))
    told = [one.key for one in await ledger.feedback.summary()]
    assert sorted(told) == sorted(["stars", "Stars", "stars\0", "\ue000stars"])


async def test_the_scores_view_shows_feedback_with_its_run(database: Database, ledger: Ledger) -> None:
    await scored(ledger)
    shown = "SELECT tenant_id, thread_id, run_id, agent, model, key, score FROM scores ORDER BY created_at"
    assert await query(database, shown) == [
        ("default", "t", "r1", "a", "m", "stars", 4.0),
        ("default", "t", "r1", "a", "m", "stars", 5.0),
        ("default", "t", "r2", "a", "n", "stars", 1.0),
        ("default", "t", "r3", None, "m", "stars", 2.0),
        ("default", "t", "r3", None, "m", "up", -0.5),
    ]
    first = "SELECT created_at FROM scores ORDER BY created_at LIMIT 1"
    noon = NOON if database.kind == "postgresql" else "2024-05-01T12:00:00.000000Z"
    assert await query(database, first) == [(noon,)]
