"""Threads: made once, listed by activity, owned by whom they were made for, deleted with all they hold."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from chatledger import Feedback, InvalidArgument, Ledger, RuleViolation, Thread, ThreadNotFound, VersionConflict
from chatledger.errors import IdConflict, InvalidCursor, LimitExceeded
from chatledger.repositories import scope_of
from chatledger.storage.check import branch as check
from chatledger.storage.databases.scope import Scope
from chatledger.storage.lists.thread_list import find_threads
from chatledger.storage.repositories import threads
from chatledger.storage.repositories.branches import fork_at
from tests.conftest import Database
from tests.conversations import assistant, call, result, turn, user
from tests.reasons import about
from tests.storage.raw import count_rows, query
from tests.views import of_user

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


async def listed(ledger: Ledger, *, user_id: str | None = None, **options: Any) -> list[str]:
    return [thread.thread_id for thread in await of_user(ledger, user_id).threads.list(**options)]


# --- Making and finding -----------------------------------------------------------------------------------------------


async def test_a_thread_is_found_as_it_was_made(ledger: Ledger) -> None:
    made = await ledger.user("ada\0").threads.create(
        "user:42/x \0 \ud800",
        title="Wetter \0 \udfff 🌦",
        metadata={"b": [1e2, -0.0, 10**30], "a": {"": "\ud800"}},
        rules="lenient",
        created_at=NOON,
    )
    assert made == Thread(
        thread_id="user:42/x \0 \ud800",
        title="Wetter \0 \udfff 🌦",
        user_id="ada\0",
        metadata={"b": [1e2, -0.0, 10**30], "a": {"": "\ud800"}},
        rules="lenient",
        created_at=NOON,
        active_at=NOON,
    )
    assert await ledger.threads.get("user:42/x \0 \ud800") == made
    assert repr(await ledger.threads.find("user:42/x \0 \ud800")) == repr(made)


async def test_an_id_is_made_for_a_thread_without_one(ledger: Ledger) -> None:
    first, second = await ledger.threads.create(), await ledger.threads.create()
    assert first.thread_id != second.thread_id
    assert await ledger.threads.get(first.thread_id) == first


async def test_a_date_is_kept_as_a_moment(ledger: Ledger) -> None:
    there = NOON.astimezone(timezone(timedelta(hours=9)))
    assert (await ledger.threads.create("t", created_at=there)).created_at == NOON
    with pytest.raises(InvalidArgument, match="created_at is not valid"):
        await ledger.threads.create("u", created_at=datetime(2024, 5, 1))  # noqa: DTZ001 - that is the case


async def test_a_thread_that_exists_is_not_made_again(ledger: Ledger) -> None:
    made = await ledger.threads.create("t", title="first")
    with pytest.raises(IdConflict) as caught:
        await ledger.threads.create("t", title="second")
    assert caught.value.id == "t"
    assert await ledger.threads.get("t") == made


async def test_exist_ok_gives_the_thread_as_it_is(ledger: Ledger) -> None:
    made = await ledger.user("ada").threads.create("t", title="first")
    assert await ledger.user("ada").threads.create("t", title="second", exist_ok=True) == made
    assert await ledger.threads.create("t", exist_ok=True) == made
    assert (await ledger.threads.create("u", title="new", exist_ok=True)).title == "new"


async def test_exist_ok_does_not_give_a_thread_of_another_user(ledger: Ledger) -> None:
    await ledger.user("ada").threads.create("t")
    await ledger.threads.create("nobodys")
    for thread_id in ("t", "nobodys"):
        with pytest.raises(ThreadNotFound):
            await ledger.user("bob").threads.create(thread_id, exist_ok=True)
    assert (await ledger.threads.get("t")).user_id == "ada"
    assert (await ledger.threads.get("nobodys")).user_id is None


async def test_a_thread_created_by_many_at_once_is_created_once(database: Database) -> None:
    async with database.open() as one, database.open() as other:
        made = await asyncio.gather(*(ledger.threads.create("t", exist_ok=True) for ledger in (one, other) * 8))
        assert len({thread.created_at for thread in made}) == 1
        assert (await one.messages.append("t", turn())).last_seq == 5


async def test_get_raises_where_find_gives_none(ledger: Ledger) -> None:
    await ledger.user("ada").threads.create("t")
    assert (await ledger.user("ada").threads.get("t")).thread_id == "t"
    for thread_id, user_id in (("t", "bob"), ("nowhere", None), ("T", None)):
        assert await of_user(ledger, user_id).threads.find(thread_id) is None
        with pytest.raises(ThreadNotFound) as caught:
            await of_user(ledger, user_id).threads.get(thread_id)
        assert caught.value.thread_id == thread_id


async def test_a_thread_shows_the_count_and_preview_of_its_active_branch(ledger: Ledger) -> None:
    await ledger.threads.create("t", created_at=NOON)
    stored = await ledger.messages.append("t", turn())
    found = await ledger.threads.get("t")
    assert (found.message_count, found.preview) == (5, "It is sunny in both.")
    assert found.created_at == NOON
    assert abs(found.active_at - (stored.messages[0].created_at or NOON)) <= timedelta(seconds=1)


# --- Changing ---------------------------------------------------------------------------------------------------------


async def test_update_changes_only_the_given_fields(ledger: Ledger) -> None:
    made = await ledger.user("ada").threads.create("t", title="a", metadata={"k": 1}, rules="lenient")
    assert await ledger.threads.update("t") == made
    assert await ledger.threads.update("t", title="b") == made.model_copy(update={"title": "b", "version": 1})
    cleared = await ledger.threads.update("t", title=None, metadata=None, rules=None)
    assert cleared == made.model_copy(update={"title": None, "metadata": None, "rules": None, "version": 2})
    assert await ledger.threads.get("t") == cleared


async def test_the_owner_is_never_cleared(ledger: Ledger) -> None:
    await ledger.user("ada").threads.create("t")
    with pytest.raises(TypeError):
        await ledger.threads.update("t", user_id=None)  # type: ignore[call-arg]
    await ledger.threads.update("t", title="x", metadata={}, rules="lenient")
    await ledger.threads.create("t", exist_ok=True)
    assert (await ledger.user("ada").threads.get("t")).user_id == "ada"


async def test_update_refuses_invalid_values(ledger: Ledger) -> None:
    made = await ledger.threads.create("t")
    for wrong in ({"rules": "loose"}, {"metadata": {"a": object()}}, {"title": 7}):
        with pytest.raises(InvalidArgument):
            await ledger.threads.update("t", **wrong)
    assert await ledger.threads.get("t") == made
    with pytest.raises(ThreadNotFound):
        await ledger.threads.update("nowhere", title="x")


async def test_each_update_raises_the_revision(ledger: Ledger) -> None:
    made = await ledger.threads.create("t", title="a", metadata={"b": {"x": 1}, "a": 1})
    assert made.version == 0
    renamed = await ledger.threads.update("t", title="b", expected=made.version)
    assert (renamed.version, renamed.title) == (1, "b")
    with pytest.raises(VersionConflict, check=about("thread")) as caught:
        await ledger.threads.update("t", title="c", expected=made.version)
    assert (caught.value.thread_id, caught.value.expected, caught.value.actual) == ("t", 0, 1)
    assert await ledger.threads.update("t", expected=1) == renamed
    merged = await ledger.threads.update("t", metadata={"c": None, "b": {"y": 2}}, merge=True, expected=1)
    assert list((merged.metadata or {}).items()) == [("b", {"y": 2}), ("a", 1), ("c", None)]
    assert await ledger.threads.get("t") == merged
    assert (await ledger.threads.list()).items == [merged]
    cleared = await ledger.threads.update("t", metadata=None)
    assert (cleared.metadata, cleared.version) == (None, 3)
    assert (await ledger.threads.update("t", metadata={"n": 1}, merge=True)).metadata == {"n": 1}
    for wrong in ({}, {"metadata": None}, {"title": "x"}):
        with pytest.raises(InvalidArgument, match="merge needs metadata, the keys to set"):
            await ledger.threads.update("t", merge=True, **wrong)


async def test_no_merge_of_metadata_undoes_another(database: Database, ledger: Ledger) -> None:
    """Through two ledgers, as two processes would, while others rename the thread and write to it."""
    await ledger.threads.create("t", metadata={"kept": True}, rules="lenient")
    async with database.open() as other:

        async def merge(writer: int) -> None:
            for number in range(20):
                await (ledger, other)[writer % 2].threads.update("t", metadata={f"{writer} {number}": 1}, merge=True)

        async def rename() -> None:
            for number in range(20):
                await ledger.threads.update("t", title=str(number))
                await other.threads.update("t", rules=("strict", "lenient")[number % 2])
                await other.messages.append("t", turn())

        await asyncio.gather(rename(), *map(merge, range(16)))
    found = await ledger.threads.get("t")
    wanted = {f"{writer} {number}" for writer in range(16) for number in range(20)}
    assert set(found.metadata or {}) == {"kept"} | wanted
    assert (found.title, found.rules, found.message_count, found.version) == (
        "19",
        "lenient",
        20 * len(turn()),
        16 * 20 + 40,
    )


async def test_of_updates_that_expect_a_revision_one_wins(database: Database, ledger: Ledger) -> None:
    await ledger.threads.create("t")

    async def race(racer: int, expected: int) -> bool:
        try:
            await (ledger, other)[racer % 2].threads.update("t", title=str(racer), expected=expected)
        except VersionConflict:
            return False
        return True

    async with database.open() as other:
        for number in range(20):
            won = await asyncio.gather(*(race(racer, number) for racer in range(8)))
            assert won.count(True) == 1
            found = await ledger.threads.get("t")
            assert (found.title, found.version) == (str(won.index(True)), number + 1)


async def test_stricter_rules_are_checked_on_every_branch_first(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", [*turn(), result("orphan")])
    await fork_at(scope_of(ledger), "t", 5)
    with pytest.raises(RuleViolation) as caught:
        await ledger.threads.update("t", rules="strict", title="x")
    assert (caught.value.rule, caught.value.index) == ("R6", 6)
    kept = await ledger.threads.get("t")
    assert (kept.rules, kept.title) == ("lenient", None)


async def test_stricter_rules_keep_no_writer_waiting(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages are judged before the write, which only looks whether the branches are the same."""
    judged: list[str] = []
    judge = check.judge_level

    def judging(sql: Any, *given: Any) -> Any:
        judged.append(type(sql).__name__)
        return judge(sql, *given)

    monkeypatch.setattr(check, "judge_level", judging)
    monkeypatch.setattr(threads, "judge_level", judging)
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", turn())
    await ledger.threads.update("t", rules="strict")
    assert judged == ["ReadSql"]


@pytest.mark.parametrize("change", ["append", "revise", "remove", "fork"])
async def test_a_thread_that_changes_before_its_rules_is_judged_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    await ledger.threads.create("t", rules="lenient")
    sent = await ledger.messages.append("t", [*turn(), user("a"), assistant("b")])
    read, changed, judged = Scope.read, list[str](), list[str]()
    judge = check.judge_level

    def judging(*given: Any) -> Any:
        judged.append("again")
        return judge(*given)

    async def changing(self: Scope, work: Any, **options: Any) -> Any:
        found = await read(self, work, **options)
        if not changed:
            changed.append(change)
            await changes[change]()
        return found

    changes: dict[str, Any] = {
        "append": lambda: ledger.messages.append("t", [result("orphan")]),
        "revise": lambda: ledger.messages.revise("t", sent.messages[-1], assistant("c")),
        "remove": lambda: ledger.messages.remove("t", sent.messages[-1]),
        "fork": lambda: ledger.branches.fork("t", at=sent.messages[-1].message_id),
    }
    monkeypatch.setattr(check, "judge_level", judging)
    with monkeypatch.context() as patch:
        patch.setattr(Scope, "read", changing)
        if change == "append":
            with pytest.raises(RuleViolation, match="R6"):
                await ledger.threads.update("t", rules="strict")
        else:
            assert (await ledger.threads.update("t", rules="strict")).rules == "strict"
    assert judged == ["again"]


async def test_stricter_rules_ignore_violations_that_they_only_report(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    broken = [user("a"), user("b"), assistant(calls=[call("x", arguments="{")])]
    await ledger.messages.append("t", broken)
    assert (await ledger.threads.update("t", rules="strict")).rules == "strict"
    with pytest.raises(RuleViolation, match="R13"):
        await ledger.threads.update("t", rules="ordered")
    with pytest.raises(RuleViolation, match="R8"):
        await ledger.messages.append("t", [user("c")])


# --- Listing ----------------------------------------------------------------------------------------------------------


async def test_threads_are_listed_newest_activity_first(ledger: Ledger) -> None:
    for number in range(4):
        await ledger.threads.create(f"t{number}", created_at=NOON + timedelta(minutes=number))
    await ledger.messages.append("t1", turn())
    assert await listed(ledger) == ["t1", "t3", "t2", "t0"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
async def test_pages_give_every_thread_once_though_times_are_equal(ledger: Ledger, size: int) -> None:
    async with ledger.begin() as tx:
        for number in range(7):
            await tx.threads.create(f"t{number}\0", created_at=NOON + timedelta(minutes=number // 4))
    read: list[str] = []
    cursor: str | None = None
    while True:
        page = await ledger.threads.list(limit=size, cursor=cursor)
        assert len(page) <= size
        read += [thread.thread_id for thread in page]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert read == [f"t{number}\0" for number in (6, 5, 4, 3, 2, 1, 0)]


async def test_a_user_is_shown_their_own_threads(ledger: Ledger) -> None:
    for number, user_id in enumerate(("ada", "bob", None, "ada")):
        await of_user(ledger, user_id).threads.create(f"t{number}", created_at=NOON + timedelta(minutes=number))
    assert await listed(ledger, user_id="ada") == ["t3", "t0"]
    assert await listed(ledger, user_id="nobody") == []
    first = await ledger.user("ada").threads.list(limit=1)
    assert await listed(ledger, user_id="ada", limit=1, cursor=first.next_cursor) == ["t0"]


@pytest.mark.parametrize("cursor", ["", "x", "W10", "WzEsMl0", "WyJhIiwiYiJd", "ä", "W" * 10_000])
async def test_an_invalid_cursor_is_refused(ledger: Ledger, cursor: str) -> None:
    for list_ in (ledger.threads.list, ledger.feedback.list, ledger.runs.list):
        with pytest.raises(InvalidCursor) as caught:
            await list_(cursor=cursor)
        assert caught.value.cursor == cursor


@pytest.mark.parametrize("limit", [0, -1, 1_001])
async def test_pages_of_no_size_are_refused(ledger: Ledger, limit: int) -> None:
    for list_ in (ledger.threads.list, ledger.feedback.list, ledger.runs.list):
        with pytest.raises(LimitExceeded):
            await list_(limit=limit)


# --- Deleting ---------------------------------------------------------------------------------------------------------


async def fill(ledger: Ledger, thread_id: str) -> None:
    """Rows in every table: a fork, parts, calls with results, two runs, and feedback on a run and on a message."""
    await ledger.threads.create(thread_id)
    run_id = f"run of {thread_id}"
    stored = await ledger.messages.append(thread_id, [*turn(), assistant("", reasoning="hm")], run_id=run_id)
    await ledger.runs.start(thread_id, run_id=f"other {run_id}")
    await fork_at(scope_of(ledger), thread_id, 5)
    await ledger.feedback.record(Feedback(run_id=run_id, key="stars", score=4))
    await ledger.feedback.record(Feedback(run_id=run_id, key="up", score=1, message_id=stored.messages[4].message_id))


async def test_deleting_counts_what_it_removes_and_removes_nothing_else(database: Database, ledger: Ledger) -> None:
    await fill(ledger, "t")
    await fill(ledger, "kept")
    kept = await count_rows(database, "WHERE tenant_id = 'default'")
    deleted = await ledger.threads.delete("t")
    rows = {
        "threads": 1,
        "branches": 2,
        "runs": 2,
        "run_leases": 0,
        "run_decisions": 0,
        "messages": 6,
        "message_parts": 1,
        "tool_calls": 2,
        "tool_results": 2,
        "feedback": 2,
        "agents": 0,
        "outputs": 0,
        "revisions": 0,
        "kv": 0,
    }
    assert (deleted.rows, deleted.total) == (rows, 18)
    assert await count_rows(database) == {name: number - rows[name] for name, number in kept.items()}
    assert await query(database, "SELECT DISTINCT thread_id FROM messages") == [("kept",)]
    assert [one.run_id for one in await ledger.feedback.list(events=True)] == ["run of kept"] * 2


async def test_a_deleted_thread_is_gone_and_its_id_free(ledger: Ledger) -> None:
    await fill(ledger, "t")
    await ledger.threads.delete("t")
    assert await ledger.threads.find("t") is None
    assert await ledger.runs.find("run of t") is None
    with pytest.raises(ThreadNotFound):
        await ledger.threads.delete("t")
    await ledger.threads.create("t")
    assert (await ledger.messages.append("t", turn(), run_id="run of t")).messages[0].seq == 1


async def test_appends_during_a_deletion_are_stored_or_find_no_thread(database: Database, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    appends = [ledger.messages.append("t", turn(), run_id=f"r{n}") for n in range(8)]
    outcomes = await asyncio.gather(*appends, ledger.threads.delete("t"), return_exceptions=True)
    assert {type(outcome).__name__ for outcome in outcomes} <= {"Appended", "ThreadNotFound", "Deleted"}
    assert sum((await count_rows(database)).values()) == 0


async def test_many_threads_are_found_by_their_ids(ledger: Ledger) -> None:
    names = [f"t{number}" for number in range(700)]
    for name in (*names[::200], "with \x00 and \ud800"):
        await ledger.threads.create(name, title=name)
    await ledger.tenant("other").threads.create(names[1])
    found = await find_threads(scope_of(ledger), [*names, "with \x00 and \ud800", "", "k" * 513])
    assert {name: thread.title for name, thread in found.items()} == {
        name: name for name in (*names[::200], "with \x00 and \ud800")
    }
    assert await find_threads(scope_of(ledger), []) == {}
