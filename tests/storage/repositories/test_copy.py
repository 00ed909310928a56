"""A path of a thread as a thread of its own, to share it or to go on from it."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from chatledger import (
    ChatMessage,
    Feedback,
    ImagePart,
    InvalidArgument,
    Ledger,
    RuleViolation,
    StorageError,
    TextPart,
    ThreadNotFound,
)
from chatledger.errors import BranchNotFound, Erased, IdConflict, LimitExceeded, MessageNotFound
from chatledger.repositories import scope_of
from chatledger.storage.changes import copy
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.history import path
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user
from tests.places import at
from tests.storage.raw import count_rows, query

PICTURE = user("", message_id="p").model_copy(
    update={"content": [TextPart(text="This:"), ImagePart(url="https://example.org/a.png")]}
)


@pytest.fixture
async def source(ledger: Ledger) -> Ledger:
    """Two branches that share a turn, with a run and a score."""
    await ledger.user("ada").threads.create("s", title="Weather", metadata={"b": 1, "a": None}, rules="lenient")
    await ledger.messages.append("s", [*turn(ids="m"), PICTURE, assistant("Nice.", reasoning="hm")], run_id="r")
    await ledger.messages.append("s", [user("edited"), assistant("yes")], reply_to=at(5))
    await ledger.feedback.record(Feedback(run_id="r", key="stars", score=5))
    return ledger


def bare(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    """The fields that a copy keeps."""
    return [message.model_dump(exclude={"thread_id", "branch", "seq", "run_id"}) for message in messages]


async def test_a_copy_is_the_path_as_a_thread_of_its_own(database: Database, source: Ledger) -> None:
    original = await source.threads.get("s")
    thread = await source.threads.copy("s", "c")
    found = await source.messages.history("c")
    assert bare(found.messages) == bare((await source.messages.history("s")).messages)
    assert [(one.seq, one.branch, one.run_id) for one in found.messages] == [(n, 0, None) for n in range(1, 8)]
    assert thread == await source.threads.get("c")
    for name in ("user_id", "title", "metadata", "rules", "kind", "message_count"):
        assert getattr(thread, name) == getattr(original, name)
    assert (thread.created_at > original.created_at, thread.active_branch) == (True, 0)
    assert len(await source.branches.list("c")) == 1
    rows = await query(database, "SELECT branch, seq, call_branch, call_seq FROM tool_results WHERE thread_id = 'c'")
    assert sorted(rows) == [(0, 3, 0, 2), (0, 4, 0, 2)]
    assert not await findings_of(source, "c")


async def test_any_branch_is_copied_up_to_any_message(source: Ledger) -> None:
    stored = (await source.messages.history("s", branch=0)).messages
    whole = bare(stored)
    for end in (1, 5, 6, 7, None):
        thread = await source.threads.copy("s", branch=0, until=None if end is None else stored[end - 1], title=None)
        assert (thread.title, thread.message_count) == (None, 7 if end is None else end)
        assert bare((await source.messages.history(thread.thread_id)).messages) == whole[:end]
        assert (
            await source.messages.append(thread.thread_id, [], on_open_calls="close")
        ).last_seq == thread.message_count


async def test_the_copy_goes_on_by_itself(source: Ledger) -> None:
    await source.threads.copy("s", "c")
    before = await source.messages.history("s")
    assert (await source.messages.append("c", [user("on")], run_id="r of c")).messages[0].seq == 8
    await source.messages.append("c", [assistant("other")], reply_to="m0")
    await erase_at(scope_of(source), "c", 1)
    assert await source.messages.history("s") == before
    await source.threads.delete("s")
    assert texts(await source.messages.history("c", branch=0))[-2:] == ["yes", "on"]


async def test_the_source_keeps_its_runs_and_scores(source: Ledger, database: Database) -> None:
    before = await count_rows(database)
    await source.threads.copy("s", "c")
    after = await count_rows(database)
    grown = {table: after[table] - before[table] for table in before if after[table] != before[table]}
    assert grown == {
        "threads": 1, "branches": 1, "messages": 7, "tool_calls": 2, "tool_results": 2,
    }  # fmt: skip
    assert (await source.runs.get("r")).thread_id == "s"


async def test_a_call_without_a_result_waits_in_the_copy_too(ledger: Ledger) -> None:
    await ledger.threads.create("s")
    await ledger.messages.append("s", [user("?"), assistant(calls=[call("a"), call("b")]), result("a")])
    [_, calls, _] = (await ledger.messages.history("s")).messages
    for until, missing in ((None, ["b"]), (calls, ["a", "b"])):
        thread = await ledger.threads.copy("s", until=until)
        with pytest.raises(RuleViolation, match="R8"):
            await ledger.messages.append(thread.thread_id, [user("no")])
        with pytest.raises(RuleViolation, match="R6"):
            await ledger.messages.append(thread.thread_id, [result("c")])
        await ledger.messages.append(thread.thread_id, [*map(result, missing), assistant("done")])
        assert not await findings_of(ledger, thread.thread_id)


async def test_recorded_violations_and_redactions_are_kept(ledger: Ledger) -> None:
    await ledger.threads.create("s", rules="lenient")
    await ledger.messages.append("s", [user("?"), assistant(calls=[call("a")]), user("!"), result("x"), user("secret")])
    await erase_at(scope_of(ledger), "s", 5)
    await ledger.threads.copy("s", "c")
    found = (await ledger.messages.history("c")).messages
    assert [[one.rule for one in message.violations] for message in found] == [[], [], ["R8"], ["R6"], ["R8", "R11"]]
    assert bare(found) == bare((await ledger.messages.history("s")).messages)


async def test_a_message_that_is_still_written_is_not_copied(ledger: Ledger, database: Database) -> None:
    await ledger.threads.create("s")
    asked = (await ledger.messages.append("s", [user("?")])).messages[0]
    async with ledger.messages.stream("s") as draft:
        before = await count_rows(database)
        with pytest.raises(RuleViolation, match=r"seq 2 breaks R10: .*copy the thread up to seq 1"):
            await ledger.threads.copy("s", "c")
        assert await count_rows(database) == before
        assert (await ledger.threads.copy("s", "c", until=asked)).message_count == 1
        await draft.feed("x")


REFUSED: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"source": "none"}, ThreadNotFound),
    ({"branch": 7}, BranchNotFound),
    ({"until": "nobody's"}, MessageNotFound),
    ({"until": user("of no thread", message_id="nobody's")}, MessageNotFound),
    ({"until": user("of no thread")}, InvalidArgument),
    ({"thread_id": "s"}, IdConflict),
    ({"thread_id": "x" * 600}, LimitExceeded),
    ({"until": 1}, InvalidArgument),
    ({"title": 1}, InvalidArgument),
]


@pytest.mark.parametrize(("given", "error"), REFUSED, ids=str)
async def test_a_refused_copy_leaves_nothing(
    database: Database, source: Ledger, given: dict[str, Any], error: type[Exception]
) -> None:
    before = await count_rows(database)
    with pytest.raises(error):
        await source.threads.copy(**{"source": "s", "thread_id": "c", **given})
    assert await count_rows(database) == before
    with pytest.raises(ThreadNotFound):
        await source.threads.get("c")


async def test_an_erased_id_is_not_used_again(source: Ledger) -> None:
    await source.threads.create("gone")
    await source.erasures.erase(("thread", "gone"))
    with pytest.raises(Erased):
        await source.threads.copy("s", "gone")


async def test_a_copy_in_a_transaction_is_undone_with_it(source: Ledger) -> None:
    with pytest.raises(KeyError):
        async with source.begin() as tx:
            await tx.threads.copy("s", "c")
            raise KeyError
    async with source.begin() as tx:
        with pytest.raises(IdConflict):
            await tx.threads.copy("s", "s")
        await tx.threads.copy("s", "c")
        await tx.messages.append("c", [user("on")])
    assert (await source.threads.get("c")).message_count == 8


async def test_a_long_thread_is_copied_in_bounded_memory(ledger: Ledger) -> None:
    """Longer than an append may be, in pages that end inside a turn."""
    await ledger.threads.create("s")
    for _ in range(3):
        await ledger.messages.append("s", turn() * 180)
    tracemalloc.start()
    thread = await ledger.threads.copy("s", "c")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert thread.message_count == 2_700
    assert peak < 12_000_000
    copied = [message async for message in ledger.messages.iterate("c")]
    assert bare(copied) == bare([message async for message in ledger.messages.iterate("s")])
    assert not await findings_of(ledger, "c")


async def test_the_first_append_to_a_copy_needs_no_preflight(source: Ledger) -> None:
    await source.threads.copy("s", "c")
    database: Any = source._scope.database
    assert ("default", "c", None) in database._tips._seen
    assert (await source.messages.append("c", [user("on")])).messages[0].seq == 8


async def test_positions_without_a_message_are_closed(source: Ledger, database: Database) -> None:
    await query(database, "DELETE FROM messages WHERE thread_id = 's' AND branch = 1 AND seq = 6")
    await query(database, "UPDATE branches SET absent = 1 WHERE thread_id = 's' AND branch = 1")
    await source.threads.copy("s", "c")
    assert [(one.seq, one.text) for one in (await source.messages.history("c")).messages][-1] == (6, "yes")
    assert await query(database, "SELECT last_seq, absent FROM branches WHERE thread_id = 'c'") == [(6, 0)]


async def test_messages_that_are_removed_meanwhile_end_the_copy(
    pg_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removed by another connection, after the copy read a page."""
    load_path = path.load_path

    def then_remove(*given: Any) -> list[ChatMessage]:
        page = load_path(*given)
        removing = "UPDATE branches SET absent = 2 WHERE thread_id = 's'"
        thread = threading.Thread(target=asyncio.run, args=(query(pg_database, removing),))
        thread.start()
        thread.join()
        return page

    async with pg_database.open() as ledger:
        await ledger.threads.create("s")
        await ledger.messages.append("s", turn())
        monkeypatch.setattr(copy, "load_path", then_remove)
        with pytest.raises(StorageError, match="changed or removed while it was copied") as caught:
            await ledger.threads.copy("s", "c")
        assert caught.value.retryable
        assert await ledger.threads.find("c") is None


async def test_nobody_deletes_the_source_meanwhile(pg_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another connection asks for the lock of a deletion after the copy read a page, and does not get it."""
    load_path = path.load_path
    refused: list[BaseException] = []

    def then_lock(*given: Any) -> list[ChatMessage]:
        page = load_path(*given)

        async def lock() -> None:
            with pytest.raises(asyncpg.LockNotAvailableError) as caught:
                await query(pg_database, "SELECT 1 FROM threads WHERE thread_id = 's' FOR UPDATE NOWAIT")
            refused.append(caught.value)

        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, lock()).result(timeout=60)
        return page

    async with pg_database.open() as ledger:
        await ledger.threads.create("s")
        await ledger.messages.append("s", turn())
        monkeypatch.setattr(copy, "load_path", then_lock)
        await ledger.threads.copy("s", "c")
    assert len(refused) == 1


async def test_a_source_that_is_deleted_meanwhile_is_copied_whole_or_not_at_all(ledger: Ledger) -> None:
    for number in range(5):
        await ledger.threads.create("s")
        await ledger.messages.append("s", turn() * 100)
        copied, _ = await asyncio.gather(
            ledger.threads.copy("s", f"c{number}"), ledger.threads.delete("s"), return_exceptions=True
        )
        if isinstance(copied, ThreadNotFound):
            assert await ledger.threads.find(f"c{number}") is None
        else:
            assert (await ledger.threads.get(f"c{number}")).message_count == 500
            assert len((await ledger.messages.history(f"c{number}")).messages) == 500


async def test_the_copy_is_new_activity(source: Ledger) -> None:
    thread = await source.threads.copy("s")
    assert abs(thread.active_at - thread.created_at) < timedelta(seconds=1)
    assert (await source.threads.list()).items[0].thread_id == thread.thread_id
