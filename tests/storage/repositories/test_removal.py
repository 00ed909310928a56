"""Pop, rewind and retract: what leaves, what stays, and what a retry of an append finds then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chatledger import (
    ChatMessage,
    Draft,
    Feedback,
    InvalidArgument,
    Ledger,
    Mark,
    Put,
    RuleViolation,
    ThreadNotFound,
    Turns,
    VersionConflict,
)
from chatledger.errors import BranchNotFound, DraftLive, DraftLost, IdConflict, InvalidCursor, MessageNotFound
from chatledger.models import RulesLevel
from chatledger.models.outputs import Output
from chatledger.repositories import scope_of
from chatledger.storage.append.attempt import Attempted, attempt, attempt_locked
from chatledger.storage.append.request import make_request
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.changes.removal import rewind_to
from chatledger.storage.repositories.branches import fork_at
from chatledger.storage.repositories.outputs import add_outputs
from chatledger.types import CallPlace
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user
from tests.leases import pass_time
from tests.places import at
from tests.storage.raw import query, raw_connection

PAIR = [user("?"), assistant(calls=[call("a"), call("b")]), result("a"), result("b"), assistant("!")]


async def filled(ledger: Ledger, messages: list[ChatMessage] | None = None, **options: Any) -> list[ChatMessage]:
    await ledger.threads.create("t", **options)
    return (await ledger.messages.append("t", turn() if messages is None else messages)).messages


# --- Pop --------------------------------------------------------------------------------------------------------------


async def test_pop_gives_the_newest_message_and_then_none(ledger: Ledger) -> None:
    stored = await filled(ledger, [user("one"), assistant("two")])
    assert [await ledger.messages.pop("t") for _ in range(3)] == [stored[1], stored[0], None]
    history = await ledger.messages.history("t")
    assert (history.messages, history.last_seq) == ([], 4)  # the empty branch takes no position


async def test_messages_after_a_pop_get_later_positions(ledger: Ledger) -> None:
    stored = await filled(ledger, [user("?"), assistant("no")])
    await ledger.messages.pop("t")
    again = await ledger.messages.append("t", [assistant("yes")])
    assert (again.messages[0].seq, again.last_seq) == (4, 4)
    assert (await ledger.messages.history("t")).messages == [stored[0], *again.messages]
    thread = await ledger.threads.get("t")
    assert (thread.message_count, thread.preview) == (2, "yes")


@pytest.mark.parametrize("level", ["lenient", "strict", "ordered"])
async def test_a_popped_result_leaves_its_call_open_at_any_level(ledger: Ledger, level: RulesLevel) -> None:
    await filled(ledger, PAIR[:4], rules=level)
    await ledger.messages.pop("t")
    if level != "lenient":
        with pytest.raises(RuleViolation, match="R8"):
            await ledger.messages.append("t", [user("next")])
    again = await ledger.messages.append("t", [result("b", "late"), assistant("!")])
    assert again.messages[0].seq == 6
    assert [found for found in await findings_of(ledger, "t") if found.severity == "error"] == []


@pytest.mark.parametrize("how", ["append", "close", "transaction", "kv", "cached"])
async def test_a_call_is_answered_again_where_a_fork_still_has_its_first_result(
    database: Database, ledger: Ledger, how: str
) -> None:
    stored = await filled(ledger, [user("?"), assistant(calls=[call("a")]), result("a", "one"), assistant("!")])
    other = await ledger.messages.append("t", [assistant("?!")], reply_to=at(3))
    await ledger.branches.activate("t", 0)
    await rewind_to(scope_of(ledger), "t", 2)
    again = result("a", "two")
    if how == "append":
        await ledger.messages.append("t", [again])
    elif how == "close":
        await ledger.messages.append("t", [user("go on")], on_open_calls="close")
    elif how == "transaction":
        async with ledger.begin() as tx:
            await tx.messages.append("t", [again])
    elif how == "kv":
        await ledger.messages.append("t", [again], kv={"n": Put(1, expected=0)})
    else:
        await ledger.messages.append("t", [ChatMessage(role="custom", content="a note")])
        await ledger.messages.append("t", [again])
    history = await ledger.messages.history("t")
    answer = next(message for message in history.messages if message.role == "tool")
    linked = "SELECT branch, seq, call_branch, call_seq, call_idx FROM tool_results ORDER BY seq"
    assert await query(database, linked) == [(0, 3, 0, 2, 0), (0, answer.seq, 0, 2, 0)]  # the first one is the fork's
    fork = await ledger.messages.history("t", branch=1)
    assert fork.messages == [*stored[:3], *other.messages]
    assert fork.messages[2].answers == CallPlace(seq=2, index=0)
    view = "SELECT result_seq FROM calls"
    assert await query(database, view) == [(answer.seq,)]
    await ledger.branches.activate("t", 1)
    assert await query(database, view) == [(3,)]
    with pytest.raises(RuleViolation, match="R6"):  # the fork's link still holds the pair together
        await ledger.messages.remove("t", stored[2].message_id or "")
    await ledger.branches.activate("t", 0)
    await ledger.messages.append("t", [user("next")])
    for branch in (0, 1):
        assert [found.rule for found in await findings_of(ledger, "t", branch=branch) if found.rule != "R13"] == []


@pytest.mark.parametrize("level", ["lenient", "strict"])
@pytest.mark.parametrize("forked", [False, True])
async def test_of_eight_results_of_a_call_at_once_one_is_linked(
    database: Database, ledger: Ledger, level: RulesLevel, forked: bool
) -> None:
    """Also where the branch gave up a first result, which a fork still has."""
    await filled(ledger, [user("?"), assistant(calls=[call("a")]), result("a", "one")], rules=level)
    if forked:
        await ledger.messages.append("t", [assistant("?!")], reply_to=at(3))
        await ledger.messages.append("t", [user("?!")], reply_to=at(3), branch=0)
        await ledger.branches.activate("t", 0)
    await rewind_to(scope_of(ledger), "t", 2)
    async with database.open() as other:
        answers = [one.messages.append("t", [result("a", str(n))]) for n, one in enumerate([ledger, other] * 4)]
        done = await asyncio.gather(*answers, return_exceptions=True)
    refused = [one for one in done if isinstance(one, BaseException)]
    assert [type(one) for one in refused] == [RuleViolation] * (7 if level == "strict" else 0)
    said = [one for one in (await ledger.messages.history("t")).messages if one.role == "tool"]
    assert [[broken.rule for broken in one.violations] for one in said] == [[]] + [["R7"]] * (8 - len(refused) - 1)
    linked = await query(database, "SELECT seq FROM tool_results ORDER BY seq")
    assert linked == [*([(3,)] if forked else []), (said[0].seq,)]


async def test_popping_a_call_forgets_that_it_was_open(ledger: Ledger) -> None:
    await filled(ledger, PAIR[:2])
    await ledger.messages.pop("t")
    with pytest.raises(RuleViolation, match="R6"):
        await ledger.messages.append("t", [result("a")])
    await ledger.messages.append("t", [assistant("no tools")])


async def test_a_mark_guards_pop_and_rewind(ledger: Ledger) -> None:
    await filled(ledger)
    mark = (await ledger.messages.history("t")).mark
    await ledger.messages.append("t", [user("more")])
    with pytest.raises(VersionConflict):
        await ledger.messages.pop("t", expected=mark)
    with pytest.raises(VersionConflict):
        await rewind_to(scope_of(ledger), "t", 0, expected=mark)
    assert len(await ledger.messages.history("t")) == 6
    mark = (await ledger.branches.get("t")).mark
    assert await ledger.messages.pop("t", expected=mark) is not None
    with pytest.raises(VersionConflict):  # a pop moves the mark, and so it notices the other one
        await ledger.messages.pop("t", expected=mark)
    await fork_at(scope_of(ledger), "t", 1)
    with pytest.raises(VersionConflict, match="no longer the active branch"):
        await ledger.messages.pop("t", expected=(await ledger.branches.get("t", branch=0)).mark)


async def test_errors_of_pop_rewind_and_retract(ledger: Ledger) -> None:
    for removing in (ledger.messages.pop("t"), rewind_to(scope_of(ledger), "t", 0), ledger.messages.remove("t", "m")):
        with pytest.raises(ThreadNotFound):
            await removing
    await filled(ledger)
    with pytest.raises(BranchNotFound):
        await ledger.messages.pop("t", branch=4)
    for to in (-1, 6):
        with pytest.raises(InvalidCursor, match="rewind it to 0 to 5"):
            await rewind_to(scope_of(ledger), "t", to)
    with pytest.raises(MessageNotFound):
        await ledger.messages.remove("t", "m")
    with pytest.raises(InvalidArgument):
        await ledger.messages.pop("t", expected=Mark("no mark"))
    assert (await ledger.messages.history("t")).last_seq == 5


async def test_forty_pops_through_two_ledgers_give_forty_messages(database: Database) -> None:
    async with database.open() as one, database.open() as two:
        stored = await filled(one, [user(str(number)) for number in range(45)], rules="lenient")
        popped = await asyncio.gather(*((one, two)[number % 2].messages.pop("t") for number in range(40)))
        assert sorted(message.seq for message in popped if message and message.seq) == list(range(6, 46))
        history = await two.messages.history("t")
        assert (history.messages, history.last_seq) == (stored[:5], 85)
        assert [found.rule for found in await findings_of(one, "t") if found.rule != "R13"] == []


async def test_pops_and_appends_at_once_lose_nothing(database: Database) -> None:
    async with database.open() as one, database.open() as two:
        await one.threads.create("t", rules="lenient")
        appends = [one.messages.append("t", [user(str(number))]) for number in range(30)]
        pops = [two.messages.pop("t") for _ in range(20)]
        done = await asyncio.gather(
            *(work for pair in zip(appends, pops, strict=False) for work in pair), *appends[20:]
        )
        popped = [one for one in done if isinstance(one, ChatMessage)]
        left = (await one.messages.history("t")).messages
        assert sorted(int(message.text) for message in [*popped, *left]) == list(range(30))
        assert [found.rule for found in await findings_of(one, "t") if found.rule != "R13"] == []


async def test_600_popped_turns_make_no_branch(database: Database, ledger: Ledger) -> None:
    await filled(ledger, [user("first"), assistant("kept")])
    for _ in range(20):
        stored = await ledger.messages.append("t", [user("?"), assistant("no")] * 30)
        assert await ledger.messages.pop("t") == stored.messages[-1]
        assert await rewind_to(scope_of(ledger), "t", (stored.messages[0].seq or 0) - 1) == stored.messages[:-1]
    (branch,) = await ledger.branches.list("t")
    assert (branch.branch, branch.forked_from) == (0, None)
    assert await query(database, "SELECT lineage FROM branches") == [("[[0,1,null]]",)]
    assert texts(await ledger.messages.history("t")) == ["first", "kept"]
    assert await query(database, "SELECT count(*) FROM messages") == [(2,)]


# --- Rewind -----------------------------------------------------------------------------------------------------------


async def test_rewind_returns_the_removed_messages_in_order(ledger: Ledger) -> None:
    stored = await filled(ledger)
    assert await rewind_to(scope_of(ledger), "t", 2) == stored[2:]
    assert (await ledger.messages.history("t")).messages == stored[:2]
    assert await rewind_to(scope_of(ledger), "t", 2) == []  # nothing follows, so nothing is written
    assert (await ledger.messages.history("t")).last_seq == 6
    assert await rewind_to(scope_of(ledger), "t", 0) == stored[:2]
    assert len(await ledger.messages.history("t")) == 0


async def test_a_branch_that_shares_the_messages_keeps_them(database: Database, ledger: Ledger) -> None:
    stored = await filled(ledger)
    await fork_at(scope_of(ledger), "t", 5)
    assert await rewind_to(scope_of(ledger), "t", 1, branch=0) == stored[1:]
    assert (await ledger.messages.history("t", branch=0)).messages == stored[:1]
    assert (await ledger.messages.history("t", branch=1)).messages == stored
    assert await query(database, "SELECT lineage FROM branches ORDER BY branch") == [
        ("[[0,1,1],[0,7,null]]",),
        ("[[0,1,5],[1,6,null]]",),
    ]
    more = await ledger.messages.append("t", [assistant("again")], branch=0)
    assert (await ledger.messages.history("t", branch=0)).messages == [stored[0], *more.messages]
    await rewind_to(scope_of(ledger), "t", 0, branch=1)  # nobody has the rest now
    rows = await query(database, "SELECT branch, seq FROM messages ORDER BY seq")
    assert rows == [(0, 1), (0, 7)]
    (first, second) = await ledger.branches.list("t")
    assert (first.forked_from, second.forked_from, second.last_seq) == (None, None, 6)


async def test_rows_of_a_removed_message_are_gone_and_recorded(database: Database, ledger: Ledger) -> None:
    await filled(ledger)
    await add_outputs(scope_of(ledger), "t", [Output(branch=0, seq=2, nonce="n", mime_type="text/plain", text="x")])
    await rewind_to(scope_of(ledger), "t", 1)
    async with raw_connection(database) as run:
        for table in ("message_parts", "tool_calls", "tool_results", "outputs"):
            assert await run(f"SELECT count(*) FROM {table}") == [(0,)], table
        rows = await run("SELECT branch, seq, idx, kind, target_branch, target_seq FROM revisions ORDER BY idx")
    assert rows == [(0, 6, idx, "popped", 0, idx + 2) for idx in range(4)]
    assert (await ledger.threads.delete("t")).rows["revisions"] == 4


async def test_a_score_of_a_removed_message_keeps_its_address(database: Database, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?"), assistant("!", message_id="m")], run_id="r")
    await ledger.feedback.record(Feedback(run_id="r", key="k", score=1, message_id="m"))
    await query(database, "UPDATE feedback SET message_id = NULL")  # as an earlier release stored it
    await ledger.messages.pop("t")
    assert await query(database, "SELECT branch, seq, message_id FROM feedback") == [(0, 2, "m")]


# --- Retract ----------------------------------------------------------------------------------------------------------


async def test_a_retracted_message_leaves_every_branch(ledger: Ledger) -> None:
    stored = await filled(ledger, [user("one"), assistant("two"), user("three")])
    await fork_at(scope_of(ledger), "t", 2)
    await fork_at(scope_of(ledger), "t", 1, branch=0)
    assert await ledger.messages.remove("t", stored[1].message_id or "") == stored[1]
    assert (await ledger.messages.history("t", branch=0)).messages == [stored[0], stored[2]]
    assert (await ledger.messages.history("t", branch=1)).messages == stored[:1]
    assert [branch.last_seq for branch in await ledger.branches.list("t")] == [4, 3, 1]  # branch 2 never had it
    with pytest.raises(MessageNotFound):
        await ledger.messages.get("t", stored[1].message_id or "")


async def test_one_record_of_a_retraction_has_the_message(database: Database, ledger: Ledger) -> None:
    stored = await filled(ledger, [user("one"), assistant("two")])
    await fork_at(scope_of(ledger), "t", 2)
    await ledger.messages.remove("t", stored[0].message_id or "")
    rows = await query(database, "SELECT branch, seq, kind, body IS NULL FROM revisions ORDER BY branch")
    assert [tuple(row) for row in rows] == [(0, 3, "retracted", False), (1, 3, "retracted", True)]


@pytest.mark.parametrize("level", ["strict", "ordered"])
async def test_half_a_pair_is_refused(ledger: Ledger, level: RulesLevel) -> None:
    stored = await filled(ledger, PAIR, rules=level)
    for half in stored[1:4]:
        with pytest.raises(RuleViolation, match="R6") as caught:
            await ledger.messages.remove("t", half.message_id or "")
        assert caught.value.index == half.seq
    history = await ledger.messages.history("t")
    assert (history.messages, history.last_seq) == (stored, 5)


async def test_an_open_call_can_be_retracted(ledger: Ledger) -> None:
    stored = await filled(ledger, PAIR[:2])
    await ledger.messages.remove("t", stored[1].message_id or "")
    await ledger.messages.append("t", [assistant("no tools")])


async def test_lenient_records_what_lost_its_other_half(database: Database, ledger: Ledger) -> None:
    stored = await filled(ledger, PAIR, rules="lenient")
    await ledger.messages.remove("t", stored[2].message_id or "")
    history = (await ledger.messages.history("t")).messages
    assert [one.detail for one in history[1].violations] == ["the result of a call was retracted"]
    assert ("R6", 2) in [(one.rule, one.seq) for one in await findings_of(ledger, "t")]
    await ledger.messages.append("t", [result("a", "again")])  # its call waits again
    assert (await ledger.messages.history("t")).messages[-1].violations == []
    await ledger.messages.remove("t", stored[1].message_id or "")
    after = (await ledger.messages.history("t")).messages
    for half in after[1], after[3]:
        assert [(one.rule, one.detail) for one in half.violations] == [
            ("R6", "the call that it answered was retracted")
        ]
    assert await query(database, "SELECT count(*) FROM tool_results") == [(0,)]


async def reopened(ledger: Ledger, at: int | None = None) -> list[ChatMessage]:
    """Three turns, of which the first one loses the result of its call; a fork at `at` shares that turn."""
    stored = await filled(ledger, [*PAIR, user("??"), assistant("!!"), user("???"), assistant("!!!")], rules="lenient")
    if at is not None:
        await fork_at(scope_of(ledger), "t", at, activate=False)
    await ledger.messages.remove("t", stored[2].message_id or "")
    return stored


async def waiting(ledger: Ledger, branch: int | None = None) -> list[str]:
    return [one.detail for one in await findings_of(ledger, "t", branch=branch) if one.open]


@pytest.mark.parametrize("branch", [0, 1])
async def test_a_call_of_an_earlier_turn_waits_again(ledger: Ledger, branch: int) -> None:
    await reopened(ledger, at=7)
    assert await waiting(ledger, branch) == ["call 0 (weather) has no result"]
    answer = await ledger.messages.append("t", [result("a", "late")], branch=branch)
    assert answer.messages[0].violations == []
    assert answer.messages[0].answers == CallPlace(seq=2, index=0)
    assert await waiting(ledger, branch) == []
    assert await waiting(ledger, 1 - branch) == ["call 0 (weather) has no result"]


@pytest.mark.parametrize("how", ["pop", "rewind", "fork", "after", "retract", "close", "cached"])
async def test_a_call_that_waits_again_does_so_after_other_changes(ledger: Ledger, how: str) -> None:
    stored = await reopened(ledger)
    if how == "pop":
        await ledger.messages.pop("t")
    elif how == "rewind":
        await rewind_to(scope_of(ledger), "t", 6)
    elif how == "fork":
        await fork_at(scope_of(ledger), "t", 8)
    elif how == "after":
        await ledger.messages.append("t", [user("edited")], reply_to=at(7))
    elif how == "retract":
        await ledger.messages.remove("t", stored[5].message_id or "")
    elif how == "cached":
        await ledger.messages.append("t", [user("more"), assistant("more")])
    else:
        await ledger.messages.close_open_calls("t")
        assert (await ledger.messages.history("t")).messages[-1].tool_call_id == "a"
        return
    assert await waiting(ledger) == ["call 0 (weather) has no result"]
    assert (await ledger.messages.append("t", [result("a", "late")])).messages[0].violations == []
    page = (await ledger.messages.history("t", Turns(1))).messages
    assert page[0].seq == 1  # never without the call that its result answers
    assert await waiting(ledger) == []


@pytest.mark.parametrize("how", ["alone", "pop", "fork", "after", "copy"])
@pytest.mark.plain
async def test_a_call_beside_one_without_an_id_keeps_its_result(database: Database, ledger: Ledger, how: str) -> None:
    """If results were paired again, the result of the second call would be taken for that of the first, whose own
    result was removed.
    """
    asked = [user("?"), assistant(calls=[call(None), call(None)]), result(None, "one"), result(None, "two")]
    stored = await filled(ledger, [*asked, assistant("!")], rules="lenient")
    await ledger.messages.remove("t", stored[2].message_id or "")
    thread = "t"
    if how == "pop":
        await ledger.messages.pop("t")
    elif how == "fork":
        await fork_at(scope_of(ledger), "t", 4)
    elif how == "after":
        await ledger.messages.append("t", [assistant("?!")], reply_to=at(4))
    elif how == "copy":
        thread = (await ledger.threads.copy("t", "c")).thread_id
        await ledger.messages.pop("c")
    await ledger.messages.append(thread, [result(None, "again")])
    linked = f"SELECT m.text, r.call_idx FROM tool_results r JOIN messages m ON {_SAME} WHERE m.thread_id = '{thread}'"
    assert sorted(await query(database, linked)) == [("again", 0), ("two", 1)]


_SAME = "m.thread_id = r.thread_id AND m.branch = r.branch AND m.seq = r.seq"


async def test_each_turn_that_began_while_the_call_waits_says_so_once(ledger: Ledger) -> None:
    stored = await reopened(ledger)
    await ledger.messages.append("t", [result("a", "late")])
    late = (await ledger.messages.history("t")).messages[-1]
    await ledger.messages.append("t", [user("last")])
    await ledger.messages.remove("t", late.message_id or "")
    found = {one.text: [broken.rule for broken in one.violations] for one in await ledger.messages.history("t")}
    assert [found[text] for text in ("?", "??", "???", "last")] == [[], ["R8"], ["R8"], ["R8"]]
    assert [one.rule for one in (await ledger.messages.get("t", stored[1].message_id or "")).violations] == ["R6"]


# --- Drafts -----------------------------------------------------------------------------------------------------------


async def abandoned(ledger: Ledger) -> Draft:
    """A draft whose writer stopped so long ago that its lease is over."""
    draft = ledger.messages.stream("t")
    await draft.__aenter__()
    await draft.feed("half")
    await draft.flush()
    await draft._stop()
    await pass_time(ledger, 60)
    return draft


async def test_a_live_draft_is_not_removed(ledger: Ledger) -> None:
    stored = await filled(ledger, [user("one"), assistant("two"), user("three")])
    async with ledger.messages.stream("t") as draft:
        await draft.feed("half")
        await draft.flush()
        for removing in (
            ledger.messages.pop("t"),
            rewind_to(scope_of(ledger), "t", 1),
            ledger.messages.remove("t", stored[1].message_id or ""),
        ):
            with pytest.raises(DraftLive) as caught:
                await removing
            assert (caught.value.seq, caught.value.message_id) == (4, draft.message.message_id)
        await draft.complete()
    assert (await ledger.messages.pop("t")) == draft.message


async def test_an_abandoned_draft_is_removed_and_its_writer_learns_of_it(ledger: Ledger) -> None:
    await filled(ledger, [user("?")])
    draft = await abandoned(ledger)
    popped = await ledger.messages.pop("t")
    assert popped is not None
    assert (popped.state, popped.content) == ("partial", "half")
    with pytest.raises(DraftLost):
        await draft.complete()


async def test_a_retraction_before_an_abandoned_draft_interrupts_it(ledger: Ledger) -> None:
    stored = await filled(ledger, [user("one"), assistant("two"), user("three")])
    await abandoned(ledger)
    await ledger.messages.remove("t", stored[1].message_id or "")
    history = await ledger.messages.history("t")
    assert [(message.seq, message.state) for message in history] == [
        (1, "complete"),
        (3, "complete"),
        (4, "interrupted"),
    ]
    assert [found for found in await findings_of(ledger, "t") if found.rule in ("R2", "R10")] == []


# --- Repeats of an append ---------------------------------------------------------------------------------------------


async def removals(ledger: Ledger, stored: list[ChatMessage], how: str) -> None:
    if how == "pop":
        await ledger.messages.pop("t")
    elif how == "rewind":
        await rewind_to(scope_of(ledger), "t", (stored[0].seq or 1) - 1)
    else:
        await ledger.messages.remove("t", stored[-1].message_id or "")


@pytest.mark.parametrize("how", ["pop", "rewind", "retract"])
@pytest.mark.parametrize("other", [False, True], ids=["same ledger", "another ledger"])
async def test_a_key_finds_its_first_result_after_a_removal(database: Database, how: str, other: bool) -> None:
    async with database.open() as ledger, database.open() as second:
        await filled(ledger)
        said = [user("keyed"), assistant("answer")]
        first = await ledger.messages.append("t", said, idempotency_key="k")
        await removals(ledger, first.messages, how)
        version = (await ledger.messages.history("t")).last_seq
        for retry in range(2):
            again = await (second if other else ledger).messages.append("t", said, idempotency_key="k")
            assert again.replayed, retry
            assert (again.messages, again.messages[0].seq, again.last_seq) == (
                first.messages,
                first.messages[0].seq,
                first.last_seq,
            )
            with pytest.raises(IdConflict, match="other content"):
                await ledger.messages.append("t", [user("keyed"), assistant("else")], idempotency_key="k")
        assert (await ledger.messages.history("t")).last_seq == version
        more = await ledger.messages.append("t", [assistant("new")], idempotency_key="another")
        assert not more.replayed
        assert (await ledger.messages.append("t", [assistant("new")], idempotency_key="another")).replayed


async def test_a_key_finds_its_first_result_on_a_branch_that_knew_of_no_change(ledger: Ledger) -> None:
    await filled(ledger)
    said = [user("keyed"), assistant("answer")]
    first = await ledger.messages.append("t", said, idempotency_key="k")
    await fork_at(scope_of(ledger), "t", 5)
    await ledger.messages.append("t", [user("in the fork")])  # its tip is remembered
    await rewind_to(scope_of(ledger), "t", 5, branch=0)
    assert (await ledger.messages.append("t", said, idempotency_key="k")).messages == first.messages
    await fork_at(scope_of(ledger), "t", 5)
    assert (await ledger.messages.append("t", said, idempotency_key="k")).messages == first.messages


@pytest.mark.parametrize("to", [0, 1])
@pytest.mark.parametrize("named", [0, 1])
async def test_a_key_finds_its_first_result_for_messages_that_have_ids_too(ledger: Ledger, named: int, to: int) -> None:
    await ledger.threads.create("t")
    said = [user("keyed"), assistant("answer")]
    said[named] = said[named].model_copy(update={"message_id": "mine"})
    first = await ledger.messages.append("t", said, idempotency_key="k")
    await rewind_to(scope_of(ledger), "t", to)
    left = await ledger.messages.history("t")
    again = await ledger.messages.append("t", said, idempotency_key="k")
    assert (again.replayed, again.messages) == (True, first.messages)
    assert await ledger.messages.history("t") == left
    said[named] = said[named].model_copy(update={"content": "else"})
    with pytest.raises(IdConflict):
        await ledger.messages.append("t", said, idempotency_key="k")


@pytest.mark.parametrize("message", [None, at(1)], ids=["the end", "a message"])
async def test_a_key_finds_its_first_result_for_a_draft(ledger: Ledger, message: ChatMessage | None) -> None:
    await filled(ledger)
    async with ledger.messages.stream("t", idempotency_key="k", reply_to=message) as draft:
        await draft.feed("said")
    assert await ledger.messages.pop("t") == draft.message
    left = await ledger.messages.history("t")
    for words in ("said", "said", "else"):
        async with ledger.messages.stream("t", idempotency_key="k", reply_to=message) as again:
            await again.feed(words)
        assert (again.replayed, again.message) == (True, draft.message)
    assert await ledger.messages.history("t") == left
    await erase_at(scope_of(ledger), "t", draft.message.seq or 0)
    async with ledger.messages.stream("t", idempotency_key="k", reply_to=message) as again:
        await again.feed("said")
    assert (again.replayed, again.message.text) == (True, "[redacted]")


async def test_a_draft_that_was_removed_unfinished_starts_again_under_its_key(ledger: Ledger) -> None:
    await filled(ledger)
    lost = ledger.messages.stream("t", idempotency_key="k")
    await lost.__aenter__()
    await lost.feed("sai")
    await lost.flush()
    await lost._stop()
    await pass_time(ledger, 11)
    popped = await ledger.messages.pop("t")
    assert popped is not None
    assert popped.state == "partial"
    async with ledger.messages.stream("t", idempotency_key="k") as again:
        await again.feed("said")
    assert (again.replayed, again.message.text, again.message.message_id) == (False, "said", popped.message_id)
    await ledger.messages.pop("t")
    async with ledger.messages.stream("t", idempotency_key="k") as third:
        await third.feed("said")
    assert (third.replayed, third.message) == (True, again.message)


async def test_an_attempt_whose_acknowledgement_was_lost_is_found_though_it_was_popped(ledger: Ledger) -> None:
    await filled(ledger)
    scope = ledger.messages._scope
    request = make_request(scope.terms, "t", [user("minted")])
    first = await scope.write(lambda sql: attempt_locked(sql, request))
    await ledger.messages.pop("t")
    again = await scope.write(lambda sql: attempt(sql, request, lock=True))
    assert isinstance(again, Attempted)
    assert (again.appended.replayed, again.appended.messages) == (True, first.messages)
    assert len(await ledger.messages.history("t")) == 5


async def test_an_id_of_the_caller_is_free_again(ledger: Ledger) -> None:
    await filled(ledger)
    for key in (None, "k"):
        stored = await ledger.messages.append("t", [user("mine", message_id="m")], idempotency_key=key)
        assert not stored.replayed
        await ledger.messages.pop("t")
    await ledger.messages.append("t", [user("mine", message_id="m")])
    await fork_at(scope_of(ledger), "t", (await ledger.messages.history("t")).last_seq)
    await ledger.messages.pop("t", branch=0)
    with pytest.raises(IdConflict, match="another branch still has it"):
        await ledger.messages.append("t", [user("mine", message_id="m")], branch=0)


# --- Transactions and checks ------------------------------------------------------------------------------------------


async def test_removals_in_a_transaction(ledger: Ledger) -> None:
    stored = await filled(ledger)
    with pytest.raises(KeyError):
        async with ledger.begin() as tx:
            assert await tx.messages.pop("t") == stored[-1]
            raise KeyError
    assert (await ledger.messages.history("t")).messages == stored
    async with ledger.begin() as tx:
        await rewind_to(scope_of(tx), "t", 1)
        await tx.messages.append("t", [assistant("instead")])
    assert texts(await ledger.messages.history("t")) == [stored[0].text, "instead"]


async def test_check_finds_a_row_that_another_program_deleted(database: Database, ledger: Ledger) -> None:
    await filled(ledger, [user(str(number)) for number in range(4)], rules="lenient")
    await ledger.messages.pop("t")

    async def found() -> list[tuple[int, str]]:
        return [(one.seq, one.rule) for one in await findings_of(ledger, "t") if one.rule == "R2"]

    assert await found() == []
    await query(database, "UPDATE branches SET absent = 1")
    assert await found() == [(0, "R2")]
    await query(database, "UPDATE branches SET absent = 2")
    await query(database, "DELETE FROM messages WHERE seq = 2")
    assert await found() == [(3, "R2")]
    findings = [one async for checked in ledger.check() for one in checked.findings if one.rule == "R2"]
    assert [one.seq for one in findings] == [3]
