"""Messages that follow an earlier one: another answer, an edited question, and the retries of both."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chatledger import (
    ChatMessage,
    InvalidArgument,
    Ledger,
    Pace,
    Payload,
    RuleViolation,
    ThreadNotFound,
    VersionConflict,
)
from chatledger.errors import (
    BranchNotFound,
    DraftLive,
    IdConflict,
    LimitExceeded,
    MessageNotFound,
    RunConflict,
)
from chatledger.repositories import scope_of
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.repositories.alternatives import alternatives_of
from chatledger.storage.repositories.branches import fork_at
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user
from tests.leases import pass_time
from tests.places import at
from tests.storage.raw import count_rows, query

Q1, A1, Q2, A2 = user("?", message_id="q1"), assistant("!", message_id="a1"), user("??"), assistant("!!")


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    """Two questions with their answers: version 4 of branch 0."""
    await ledger.threads.create("t")
    await ledger.messages.append("t", [Q1, A1, Q2, A2])
    return ledger


async def told(ledger: Ledger) -> list[tuple[int, int | None, int, bool]]:
    return [(one.branch, one.forked_at, one.last_seq, one.active) for one in await ledger.branches.list("t")]


# --- Another answer, another question ---------------------------------------------------------------------------------


async def test_another_answer_is_one_call(database: Database, asked: Ledger) -> None:
    before = await count_rows(database)
    again = await asked.messages.append("t", [assistant("other")], reply_to=at(3), idempotency_key="again")
    assert (again.messages[0].seq, again.last_seq, again.replayed, again.messages[0].branch) == (4, 4, False, 1)
    assert texts(await asked.messages.history("t")) == ["?", "!", "??", "other"]
    assert texts(await asked.messages.history("t", branch=0)) == ["?", "!", "??", "!!"]
    assert await told(asked) == [(0, None, 4, False), (1, 3, 4, True)]
    assert await count_rows(database) == before | {"branches": 2, "messages": 5}
    assert (await asked.messages.append("t", [user("on")], expected=again.mark)).messages[0].seq == 5


async def test_an_edited_question_follows_the_message_before_it(asked: Ledger) -> None:
    edited = await asked.messages.append("t", [user("edited"), assistant("!!!")], reply_to="a1")
    assert (edited.messages[0].seq, edited.last_seq) == (3, 4)
    assert texts(await asked.messages.history("t")) == ["?", "!", "edited", "!!!"]


async def test_the_very_first_message_has_an_alternative_too(asked: Ledger) -> None:
    await asked.messages.append("t", [user("first")], alternative_to=at(1))
    assert texts(await asked.messages.history("t")) == ["first"]
    assert await told(asked) == [(0, None, 4, False), (1, None, 1, True)]
    assert (await asked.messages.append("t", [assistant("yes")], reply_to=at(1, branch=1))).messages[0].seq == 2
    assert len(await told(asked)) == 2


async def test_an_append_after_the_last_message_is_a_plain_append(asked: Ledger) -> None:
    for after in (4, 5):
        await asked.messages.append("t", [user("next")], reply_to=at(after))
    last = await asked.messages.append("t", [user("last", message_id="end")])
    assert (await asked.messages.append("t", [user("by id")], reply_to="end")).messages[0].seq == last.last_seq + 1
    assert await told(asked) == [(0, None, 8, True)]


async def test_the_payload_of_a_format_follows_a_message_too(asked: Ledger) -> None:
    payload = [{"role": "assistant", "content": "as a dict"}]
    await asked.messages.append("t", Payload(payload, "openai-chat"), reply_to=at(1))
    assert texts(await asked.messages.history("t")) == ["?", "as a dict"]


async def test_a_named_branch_is_shared_and_the_active_one_is_left(asked: Ledger) -> None:
    await asked.messages.append("t", [assistant("1")], reply_to=at(1))
    mark = (await asked.branches.get("t")).mark
    kept = (await asked.branches.get("t", branch=0)).mark
    await asked.messages.append("t", [assistant("2")], reply_to=at(3), branch=0)
    assert texts(await asked.messages.history("t")) == ["?", "!", "??", "2"]
    assert await told(asked) == [(0, None, 4, False), (1, 1, 2, False), (2, 3, 4, True)]
    with pytest.raises(VersionConflict):
        await asked.messages.append("t", [user("next")], expected=mark)
    assert (await asked.messages.append("t", [user("next")], branch=0, expected=kept)).messages[0].seq == 5
    assert (await asked.messages.append("t", [user("next")], branch=1)).messages[0].seq == 3
    assert (await asked.messages.append("t", [user("next")])).messages[0].branch == 2


async def test_a_branch_of_a_branch_of_a_branch_shares_what_all_of_them_share(asked: Ledger) -> None:
    for after in (4, 5, 5, 2):
        first, then = (assistant(f"after {after}"), user("and?")) if after == 5 else (user(f"after {after}"), A1)
        await asked.messages.append("t", [first], reply_to=at(after))
        await asked.messages.append("t", [then.model_copy(update={"message_id": None})])
    assert texts(await asked.messages.history("t")) == ["?", "!", "after 2", "!"]
    assert texts(await asked.messages.history("t", branch=0)) == ["?", "!", "??", "!!", "after 4", "!"]
    assert texts(await asked.messages.history("t", branch=2)) == ["?", "!", "??", "!!", "after 4", "after 5", "and?"]
    assert await told(asked) == [(0, None, 6, False), (1, 5, 7, False), (2, 5, 7, False), (3, 2, 4, True)]
    assert not await findings_of(asked, "t")


async def test_two_threads_have_branches_of_their_own(asked: Ledger) -> None:
    await asked.threads.create("u")
    await asked.messages.append("u", [Q2, A2])
    await asked.messages.append("u", [assistant("other")], reply_to=at(1))
    assert await told(asked) == [(0, None, 4, True)]


async def test_a_new_branch_is_activity(database: Database, asked: Ledger) -> None:
    long_ago = "1" if database.kind == "sqlite" else "'1999-01-01'"
    await query(database, f"UPDATE threads SET active_at = {long_ago}")
    await asked.messages.append("t", [assistant("other")], reply_to=at(1))
    thread = await asked.threads.get("t")
    assert (thread.active_at > thread.created_at, thread.active_branch) == (True, 1)


async def test_a_run_of_the_new_messages_is_made_or_refused(asked: Ledger) -> None:
    await asked.messages.append("t", [assistant("other")], reply_to=at(1), run_id="r")
    assert (await asked.runs.get("r")).thread_id == "t"
    await asked.threads.create("u")
    await asked.runs.start("u", run_id="of u")
    with pytest.raises(RunConflict):
        await asked.messages.append("t", [assistant("!")], reply_to=at(1), run_id="of u")
    assert len(await told(asked)) == 2


# --- Refused ----------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Any, type[Exception], str]] = [
    (at(5), MessageNotFound, "thread 't' has no message at seq 5 on branch 0"),
    (at(3, branch=1), BranchNotFound, "thread 't' has no branch 1"),
    ("gone", MessageNotFound, "thread 't' has no message 'gone'"),
    (True, InvalidArgument, "must be a ChatMessage or its id, not bool"),
    ("", LimitExceeded, "must not be empty"),
    (3, InvalidArgument, "must be a ChatMessage or its id, not int"),
    (user("new"), InvalidArgument, "is a message that no call returned"),
]


@pytest.mark.parametrize("where", ["reply_to", "alternative_to"])
@pytest.mark.parametrize(("message", "error", "said"), REFUSED, ids=range(len(REFUSED)))
async def test_an_unknown_place_is_refused(
    asked: Ledger, database: Database, message: Any, error: type[Exception], said: str, where: str
) -> None:
    before, named = await count_rows(database), {where: message}
    for messages in ([user("next")], []):
        with pytest.raises(error) as caught:
            await asked.messages.append("t", messages, **named)
        assert said in str(caught.value)
    with pytest.raises(error):
        await asked.messages.append("t", Payload([{"role": "user", "content": "x"}], "openai-chat"), **named)
    with pytest.raises(error):
        await asked.messages.stream("t", **named).__aenter__()
    assert await count_rows(database) == before


async def test_a_message_of_another_branch_is_not_on_this_one(asked: Ledger) -> None:
    await asked.messages.append("t", [assistant("other", message_id="b2")], reply_to=at(3))
    with pytest.raises(MessageNotFound) as caught:
        await asked.messages.append("t", [user("next")], branch=0, reply_to="b2")
    assert str(caught.value) == "thread 't' has no message 'b2' on branch 0; the message is on branch 1"
    await asked.messages.append("t", [user("next")], reply_to="b2")


async def test_an_unknown_thread_or_branch_is_reported_first(asked: Ledger) -> None:
    for message in (at(1), "a1"):
        with pytest.raises(ThreadNotFound):
            await asked.messages.append("none", [user("?")], reply_to=message)
        with pytest.raises(BranchNotFound):
            await asked.messages.append("t", [user("?")], reply_to=message, branch=7)


async def test_an_empty_batch_makes_no_branch(asked: Ledger) -> None:
    nothing = await asked.messages.append("t", [], reply_to=at(1), on_open_calls="interrupt")
    assert (nothing.last_seq, nothing.mark) == (4, (await asked.branches.get("t")).mark)
    assert len(await told(asked)) == 1


# --- Retries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("branch", [None, 0])
@pytest.mark.parametrize("message", [at(1), "q1"], ids=["by place", "by id"])
async def test_a_retry_gives_the_first_result_and_activates_nothing(
    database: Database, asked: Ledger, branch: int | None, message: Any
) -> None:
    more: dict[str, Any] = {"reply_to": message, "branch": branch}
    by_key = await asked.messages.append("t", [assistant("k")], idempotency_key="k", **more)
    by_id = await asked.messages.append("t", [assistant("i", message_id="i")], **more)
    stored = await told(asked)
    assert [one[:2] for one in stored] == [(0, None), (1, 1), (2, 1)]
    for active in (2, 0, 1):
        await asked.branches.activate("t", active)
        before = await told(asked)
        for messages, first, key in (([assistant("k")], by_key, "k"), ([assistant("i", message_id="i")], by_id, None)):
            async with database.open() as other:
                for ledger in (asked, other):
                    again = await ledger.messages.append("t", messages, idempotency_key=key, **more)
                    assert (again.replayed, again.messages) == (True, first.messages)
        assert await told(asked) == before


async def test_the_retry_of_a_plain_append_after_the_end_is_no_branch(asked: Ledger) -> None:
    first = await asked.messages.append("t", [user("on")], reply_to=at(4), idempotency_key="k")
    await asked.messages.append("t", [assistant("yes")])
    again = await asked.messages.append("t", [user("on")], reply_to=at(4), idempotency_key="k")
    assert (again.replayed, again.messages) == (True, first.messages)
    assert len(await told(asked)) == 1


async def test_the_same_id_with_other_content_is_a_conflict(asked: Ledger, database: Database) -> None:
    await asked.messages.append("t", [assistant("i", message_id="i"), user("j", message_id="j")], reply_to=at(1))
    before = await count_rows(database)
    odd: list[list[ChatMessage]] = [
        [assistant("another", message_id="i"), user("j", message_id="j")],
        [assistant("i", message_id="i"), user("new", message_id="new")],
        [user("j", message_id="j"), assistant("i", message_id="i")],
        [assistant("i", message_id="i"), user("??", message_id="q1")],
    ]
    for active in (1, 0):
        await asked.branches.activate("t", active)
        for messages in odd:
            with pytest.raises(IdConflict):
                await asked.messages.append("t", messages, reply_to=at(1))
    assert await count_rows(database) == before


async def test_a_message_does_not_follow_itself(asked: Ledger) -> None:
    with pytest.raises(MessageNotFound):
        await asked.messages.append("t", [user("x", message_id="x")], reply_to="x")
    assert (await asked.messages.append("t", [A1], reply_to="a1")).replayed


async def test_eight_calls_with_one_key_make_one_branch(asked: Ledger, database: Database) -> None:
    async with database.open() as other:
        calls = [
            ledger.messages.append("t", [assistant("k")], reply_to=at(3), idempotency_key="k")
            for ledger in (asked, other)
            for _ in range(4)
        ]
        done = await asyncio.gather(*calls)
    assert sorted(one.replayed for one in done) == [False] + [True] * 7
    assert await told(asked) == [(0, None, 4, False), (1, 3, 4, True)]


async def test_two_keys_make_two_branches_of_which_the_later_is_active(asked: Ledger, database: Database) -> None:
    async with database.open() as other:
        calls = [
            ledger.messages.append("t", [assistant(key)], reply_to=at(3), branch=branch, idempotency_key=key)
            for branch in (None, 0)
            for ledger, key in ((asked, f"a{branch}"), (other, f"b{branch}"))
        ]
        await asyncio.gather(*calls)
    assert await told(asked) == [(0, None, 4, False), *[(n, 3, 4, n == 4) for n in (1, 2, 3, 4)]]


async def test_forks_and_appends_after_a_message_run_beside_each_other(asked: Ledger, database: Database) -> None:
    """From an inactive branch, a fork that activates nothing may take the same number."""
    await asked.messages.append("t", [assistant("1")], reply_to=at(1))
    async with database.open() as other:
        for _ in range(6):
            await asyncio.gather(
                *(fork_at(scope_of(other), "t", 2, branch=0, activate=False) for _ in range(2)),
                *(asked.messages.append("t", [assistant("x")], reply_to=at(3), branch=0) for _ in range(2)),
                other.messages.append("t", [user("beside")], branch=0),
            )
    numbers = [one[0] for one in await told(asked)]
    assert numbers == list(range(2 + 6 * 4))
    assert sum(one[3] for one in await told(asked)) == 1


# --- Under a mark -----------------------------------------------------------------------------------------------------


async def test_a_branch_that_moved_since_the_mark_is_a_conflict(asked: Ledger) -> None:
    mark = (await asked.branches.get("t")).mark
    await asked.messages.append("t", [user("meanwhile")])
    with pytest.raises(VersionConflict):
        await asked.messages.append("t", [assistant("other")], reply_to=at(3), expected=mark)
    mark = (await asked.branches.get("t")).mark
    other = [assistant("other")]
    stored = await asked.messages.append("t", other, reply_to=at(3), expected=mark, idempotency_key="k")
    assert (await asked.messages.append("t", other, reply_to=at(3), expected=mark, idempotency_key="k")).replayed
    with pytest.raises(VersionConflict):
        await asked.messages.append("t", [assistant("yet another")], reply_to=at(3), expected=mark)
    await asked.messages.append("t", [assistant("yet another")], reply_to=at(3), expected=stored.mark)
    with pytest.raises(VersionConflict):
        await asked.messages.append("t", [assistant("!")], reply_to=at(3), expected=0)


async def test_the_mark_of_the_branch_that_is_left_is_stale(asked: Ledger) -> None:
    mark = (await asked.branches.get("t")).mark
    await asked.messages.append("t", [assistant("other")], reply_to=at(3))
    for branch in (None, 0):
        with pytest.raises(VersionConflict):
            await asked.messages.append("t", [user("next")], expected=mark, branch=branch)


async def test_a_ledger_that_remembers_the_branch_that_was_left_appends_to_the_new_one(
    asked: Ledger, database: Database
) -> None:
    async with database.open() as other:
        await other.messages.append("t", [user("warm")])
        await asked.messages.append("t", [assistant("other")], reply_to=at(1))
        assert (await other.messages.append("t", [user("next")])).messages[0].branch == 1


async def test_writers_with_one_mark_make_one_branch(asked: Ledger, database: Database) -> None:
    mark = (await asked.branches.get("t")).mark
    async with database.open() as other:
        calls = [
            ledger.messages.append("t", [assistant(str(number))], reply_to=at(1), expected=mark)
            for ledger in (asked, other)
            for number in range(4)
        ]
        done = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(one, VersionConflict) for one in done) == 7
    assert len(await told(asked)) == 2


async def test_only_one_of_a_branch_and_an_append_with_one_mark_is_stored(asked: Ledger, database: Database) -> None:
    async with database.open() as other:
        for number in range(10):
            mark = (await other.messages.append("t", [user(f"{number}"), assistant("!")])).mark
            calls = [
                asked.messages.append("t", [assistant("other")], reply_to=at(1), expected=mark),
                other.messages.append("t", [user("next"), assistant("!")], expected=mark),
            ]
            done = await asyncio.gather(*calls, return_exceptions=True)
            assert sum(isinstance(one, VersionConflict) for one in done) == 1


# --- The rules at the cut ---------------------------------------------------------------------------------------------


async def test_the_rules_judge_on_the_message_that_is_followed(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn())
    with pytest.raises(RuleViolation) as caught:
        await ledger.messages.append("t", [user("no")], reply_to=at(2))
    assert (caught.value.rule, caught.value.index) == ("R8", 0)
    with pytest.raises(RuleViolation, match="R7"):
        await ledger.messages.append("t", [result("call_1")], reply_to=at(3))
    assert len(await told(ledger)) == 1
    closed = await ledger.messages.append("t", [user("no")], reply_to=at(3), on_open_calls="close", idempotency_key="k")
    history = await ledger.messages.history("t")
    assert [message.state for message in history.messages] == ["complete"] * 3 + ["synthetic", "complete"]
    again = await ledger.messages.append("t", [user("no")], reply_to=at(3), on_open_calls="close", idempotency_key="k")
    assert (again.replayed, again.messages) == (True, closed.messages)
    await ledger.messages.append("t", [result("call_0", "rain"), result("call_1", "fog")], reply_to=at(2))
    assert [message.text for message in (await ledger.messages.history("t")).messages][2:] == ["rain", "fog"]
    assert not await findings_of(ledger, "t")


async def test_a_call_from_an_earlier_turn_is_still_known_to_wait(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a")]), user("??"), user("???"), user("on")])
    stored = await ledger.messages.append("t", [result("a")], reply_to=at(4))
    assert stored.messages[0].violations == []
    with pytest.raises(RuleViolation, match="R8"):
        await ledger.messages.append("t", [user("no")], reply_to=at(3), rules="strict")


# --- Drafts -----------------------------------------------------------------------------------------------------------


async def test_a_draft_is_the_first_message_of_the_new_branch(asked: Ledger) -> None:
    async with asked.messages.stream("t", reply_to=at(3), message=ChatMessage.assistant(message_id="d")) as draft:
        assert await told(asked) == [(0, None, 4, False), (1, 3, 4, True)]
        await draft.feed("streamed")
    assert texts(await asked.messages.history("t")) == ["?", "!", "??", "streamed"]
    for branch in (None, 0):
        async with asked.messages.stream(
            "t", reply_to=at(3), branch=branch, message=ChatMessage.assistant(message_id="d")
        ) as again:
            assert (again.replayed, again.message.text) == (True, "streamed")
    assert len(await told(asked)) == 2


@pytest.mark.parametrize("branch", [None, 0])
async def test_an_abandoned_draft_is_started_again_in_its_place(asked: Ledger, branch: int | None) -> None:
    dead = asked.messages.stream("t", reply_to=at(3), idempotency_key="k", branch=branch)
    await dead.__aenter__()
    await dead._stop()
    with pytest.raises(DraftLive):
        await asked.messages.stream("t", reply_to=at(3), idempotency_key="k", branch=branch).__aenter__()
    await pass_time(asked, 60)
    async with asked.messages.stream("t", reply_to=at(3), idempotency_key="k", branch=branch) as draft:
        await draft.feed("anew")
    assert texts(await asked.messages.history("t")) == ["?", "!", "??", "anew"]
    assert len(await told(asked)) == 2


async def test_another_answer_may_begin_while_the_first_one_is_written(asked: Ledger) -> None:
    await asked.messages.append("t", [user("and?")])
    async with asked.messages.stream("t", pace=Pace(interval=0)) as first:
        await first.feed("one")
        async with asked.messages.stream("t", reply_to=at(5)) as second:
            await second.feed("two")
        await first.feed(" more")
    assert texts(await asked.messages.history("t"))[-1] == "two"
    assert texts(await asked.messages.history("t", branch=0))[-1] == "one more"


async def test_a_message_being_written_is_not_shared(asked: Ledger) -> None:
    async with asked.messages.stream("t", message=ChatMessage.assistant(message_id="d")) as draft:
        for message in (at(5), "d"):
            with pytest.raises(DraftLive):
                await asked.messages.append("t", [user("next")], reply_to=message)
        await draft.feed("x")
    assert len(await told(asked)) == 1


# --- In a transaction -------------------------------------------------------------------------------------------------


async def test_a_transaction_stores_the_branch_whole_or_not_at_all(asked: Ledger) -> None:
    with pytest.raises(KeyError):
        async with asked.begin() as tx:
            await tx.messages.append("t", [assistant("gone")], reply_to=at(3))
            raise KeyError
    assert len(await told(asked)) == 1
    async with asked.begin() as tx:
        with pytest.raises(MessageNotFound):
            await tx.messages.append("t", [assistant("no")], reply_to=at(9))
        await tx.messages.append("t", [assistant("one")], reply_to=at(3))
        await tx.messages.append("t", [assistant("two")], reply_to=at(3), branch=0, idempotency_key="k")
        assert (
            await tx.messages.append("t", [assistant("two")], reply_to=at(3), branch=0, idempotency_key="k")
        ).replayed
        await tx.messages.append("t", [user("on")])
    assert texts(await asked.messages.history("t")) == ["?", "!", "??", "two", "on"]
    assert await told(asked) == [(0, None, 4, False), (1, 3, 4, False), (2, 3, 5, True)]


# --- Positions without a message --------------------------------------------------------------------------------------


async def remove(database: Database, *seqs: int, taken: int = 0) -> None:
    """As if these messages of branch 0 were removed, which took positions at its end."""
    for seq in seqs:
        await query(database, f"DELETE FROM messages WHERE branch = 0 AND seq = {seq}")
    more = len(seqs) + taken
    sets = f"absent = coalesce(absent, 0) + {more}, last_seq = last_seq + {taken}, stamp = 7"
    await query(database, f"UPDATE branches SET {sets} WHERE branch = 0")


async def test_a_position_without_a_message_is_refused(asked: Ledger, database: Database) -> None:
    await remove(database, 2, taken=1)
    with pytest.raises(MessageNotFound, match="seq 2 on branch 0"):
        await asked.messages.append("t", [user("next")], reply_to=at(2))
    await asked.messages.append("t", [user("edited")], reply_to=at(3))
    assert texts(await asked.messages.history("t")) == ["?", "??", "edited"]
    assert await query(database, "SELECT absent FROM branches ORDER BY branch") == [(2,), (1,)]


async def test_the_last_message_is_the_end_though_a_change_took_a_later_position(
    asked: Ledger, database: Database
) -> None:
    await remove(database, 4, taken=1)
    for seq in (3, 6, 7):
        await asked.messages.append("t", [user("next")], reply_to=at(seq))
    assert await told(asked) == [(0, None, 8, True)]
    await asked.messages.append("t", [user("after the gap")], reply_to=at(3))
    assert texts(await asked.messages.history("t")) == ["?", "!", "??", "after the gap"]
    assert await query(database, "SELECT absent FROM branches ORDER BY branch") == [(2,), (0,)]


async def test_calls_behind_a_gap_are_known_by_their_own_positions(ledger: Ledger, database: Database) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?"), assistant("!"), assistant(calls=[call("a")]), result("a"), user("x")])
    await remove(database, 2, taken=1)
    await ledger.messages.append("t", [result("a", "again"), assistant("done")], reply_to=at(3))
    links = await query(database, "SELECT seq, call_branch, call_seq FROM tool_results WHERE branch = 1")
    assert links == [(4, 0, 3)]


async def test_after_a_pop_and_a_rewind_the_batch_follows_the_remaining_messages(asked: Ledger) -> None:
    """And what was popped is not stored again by a retry."""
    made = await asked.messages.append("t", [assistant("k")], reply_to=at(3), idempotency_key="k")
    assert (await asked.messages.pop("t")) == made.messages[0]
    for _ in range(2):
        assert (await asked.messages.append("t", [assistant("k")], reply_to=at(3), idempotency_key="k")).replayed
    assert texts(await asked.messages.history("t")) == ["?", "!", "??"]
    await asked.messages.append("t", [assistant("plain")], reply_to=at(3))
    assert len(await told(asked)) == 2
    await rewind_to(scope_of(asked), "t", 1)
    await asked.messages.append("t", [assistant("end")], reply_to="q1")
    assert texts(await asked.messages.history("t")) == ["?", "end"]
    assert len(await told(asked)) == 2
    await asked.messages.append("t", [assistant("branch")], reply_to=at(1))
    assert texts(await asked.messages.history("t")) == ["?", "branch"]
    found = await alternatives_of(scope_of(asked), "t", 2)
    assert [(one.message.text, one.branch) for one in found] == [("!", 0), ("end", 1), ("branch", 2)]
    assert not await findings_of(asked, "t")
    assert (await asked.threads.copy("t", branch=1)).message_count == 2
