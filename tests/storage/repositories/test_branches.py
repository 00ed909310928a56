"""Branches: another line through a thread, and nothing copied for it."""

from __future__ import annotations

import asyncio

import pytest

from chatledger import ChatMessage, ImagePart, Ledger, Oldest, RuleViolation, TextPart, ThreadNotFound
from chatledger.errors import BranchNotFound, InvalidCursor
from chatledger.repositories import scope_of
from chatledger.storage.repositories.branches import fork_at
from chatledger.types import Branch
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user
from tests.storage.raw import count_rows, query

CALLS = [user("?"), assistant(calls=[call("a"), call("b")])]


async def thread(ledger: Ledger, messages: list[ChatMessage], **fields: str) -> list[ChatMessage]:
    await ledger.threads.create("t", **fields)  # type: ignore[arg-type]
    return (await ledger.messages.append("t", messages)).messages


def told(branch: Branch) -> tuple[int, int | None, int | None, int, bool]:
    return branch.branch, branch.forked_from, branch.forked_at, branch.last_seq, branch.active


# --- Forking ----------------------------------------------------------------------------------------------------------


async def test_a_fork_shares_earlier_messages_and_then_diverges(ledger: Ledger) -> None:
    first = await thread(ledger, turn())
    fork = await fork_at(scope_of(ledger), "t", 4)
    assert told(fork) == (1, 0, 4, 4, True)
    other = await ledger.messages.append("t", [assistant("rain")])
    assert (other.messages[0].seq, other.messages[0].branch) == (5, 1)
    assert (await ledger.messages.history("t")).messages == first[:4] + other.messages
    assert (await ledger.messages.history("t", branch=0)).messages == first


async def test_nothing_is_copied_at_a_fork(database: Database, ledger: Ledger) -> None:
    await thread(ledger, turn())
    before = await count_rows(database)
    await fork_at(scope_of(ledger), "t", 5)
    assert await count_rows(database) == before | {"branches": 2}


async def test_a_fork_at_0_begins_empty(ledger: Ledger) -> None:
    first = await thread(ledger, turn())
    fork = await fork_at(scope_of(ledger), "t", 0)
    assert told(fork) == (1, None, None, 0, True)
    assert (await ledger.messages.history("t")).messages == []
    stored = await ledger.messages.append("t", turn())
    assert (stored.messages[0].seq, stored.last_seq) == (1, 5)
    assert (await ledger.messages.history("t", branch=0)).messages == first


async def test_fork_returns_the_branch_as_list_does(ledger: Ledger) -> None:
    """Of a fork of a fork too: what is shared may rest on the branch that the other was forked from."""
    await thread(ledger, turn())
    made = [await fork_at(scope_of(ledger), "t", at, branch=branch) for at, branch in ((4, 0), (0, 0), (1, 1), (4, 1))]
    assert [told(fork)[:3] for fork in made] == [(1, 0, 4), (2, None, None), (3, 0, 1), (4, 0, 4)]
    listed = (await ledger.branches.list("t"))[1:]
    assert [told(fork)[:4] for fork in made] == [told(fork)[:4] for fork in listed]


async def test_a_fork_at_the_end_shares_everything(ledger: Ledger) -> None:
    first = await thread(ledger, turn())
    assert told(await fork_at(scope_of(ledger), "t", 5)) == (1, 0, 5, 5, True)
    assert (await ledger.messages.history("t")).messages == first


@pytest.mark.parametrize("at", [-1, 6, 2**70])
async def test_a_fork_beyond_the_branch_is_refused(ledger: Ledger, at: int) -> None:
    await thread(ledger, turn())
    with pytest.raises(InvalidCursor) as caught:
        await fork_at(scope_of(ledger), "t", at)
    assert (caught.value.cursor, str(caught.value)) == (at, f"cursor {at}: branch 0 ends at seq 5; fork it at 0 to 5")
    assert len(await ledger.branches.list("t")) == 1


async def test_a_fork_need_not_become_active(ledger: Ledger) -> None:
    await thread(ledger, turn())
    assert not (await fork_at(scope_of(ledger), "t", 1, activate=False)).active
    assert (await ledger.messages.append("t", [user("more")])).messages[0].branch == 0


async def test_forks_at_once_have_numbers_of_their_own(ledger: Ledger) -> None:
    await thread(ledger, turn())
    forks = await asyncio.gather(*(fork_at(scope_of(ledger), "t", 5) for _ in range(4)))
    assert sorted(fork.branch for fork in forks) == [1, 2, 3, 4]


async def test_a_branch_of_a_branch_of_a_branch_is_read_through_all_of_them(ledger: Ledger) -> None:
    path = await thread(ledger, turn() * 2)
    for at in (5, 6, 6):
        await fork_at(scope_of(ledger), "t", at)
        path = path[:at] + (await ledger.messages.append("t", [user(f"after {at}"), assistant("yes")])).messages
        assert (await ledger.messages.history("t")).messages == path
    assert [message.branch for message in path] == [0, 0, 0, 0, 0, 1, 3, 3]
    for size in (1, 2, 3, 5):
        paged = [await ledger.messages.history("t", Oldest(size, after=start), branch=3) for start in range(0, 8, size)]
        assert [message for page in paged for message in page] == path


async def test_a_fork_of_an_inactive_branch_shares_that_one(ledger: Ledger) -> None:
    first = await thread(ledger, turn())
    await fork_at(scope_of(ledger), "t", 0)
    fork = await fork_at(scope_of(ledger), "t", 5, branch=0)
    assert told(fork) == (2, 0, 5, 5, True)
    assert (await ledger.messages.history("t")).messages == first


# --- Activating, listing, appending -----------------------------------------------------------------------------------


async def test_activate_chooses_the_branch_of_calls_that_name_none(ledger: Ledger) -> None:
    await thread(ledger, turn())
    fork = await fork_at(scope_of(ledger), "t", 0)
    activated = await ledger.branches.activate("t", 0)
    assert told(activated) == (0, None, None, 5, True)
    assert (await ledger.messages.history("t")).branch == 0
    assert (await ledger.threads.get("t")).active_branch == 0
    left = await ledger.branches.get("t", 1)
    assert left.mark != fork.mark  # so that no append to "the active branch" lands on it
    assert left == fork.model_copy(update={"active": False, "mark": left.mark})
    assert await ledger.branches.list("t") == [activated, left]


async def test_branches_are_listed_in_the_order_in_which_they_were_made(ledger: Ledger) -> None:
    await thread(ledger, turn())
    await fork_at(scope_of(ledger), "t", 5)
    await ledger.messages.append("t", [user("a")])
    await fork_at(scope_of(ledger), "t", 6)
    await fork_at(scope_of(ledger), "t", 4, branch=0)
    listed = [told(branch) for branch in await ledger.branches.list("t")]
    assert listed == [
        (0, None, None, 5, False),
        (1, 0, 5, 6, False),
        (2, 1, 6, 6, False),
        (3, 0, 4, 4, True),
    ]


async def test_an_inactive_branch_can_be_appended_to(ledger: Ledger) -> None:
    first = await thread(ledger, turn())
    await fork_at(scope_of(ledger), "t", 0)
    more = await ledger.messages.append("t", [user("more")], branch=0)
    assert more.messages[0].seq == 6
    assert (await ledger.messages.history("t", branch=0)).messages == first + more.messages
    assert (await ledger.messages.history("t")).messages == []


async def test_unknown_branches_are_not_found(ledger: Ledger) -> None:
    await thread(ledger, turn())
    for number in (1, -1, 2**31, 2**70):
        with pytest.raises(BranchNotFound):
            await fork_at(scope_of(ledger), "t", 1, branch=number)
        with pytest.raises(BranchNotFound):
            await ledger.branches.activate("t", number)
        with pytest.raises(BranchNotFound):
            await ledger.messages.append("t", [user("a")], branch=number)
        with pytest.raises(BranchNotFound):
            await ledger.messages.close_open_calls("t", reason="gone", branch=number)
    assert len(await ledger.branches.list("t")) == 1


async def test_unknown_threads_have_no_branches(ledger: Ledger) -> None:
    with pytest.raises(ThreadNotFound):
        await fork_at(scope_of(ledger), "nowhere", 0)
    with pytest.raises(ThreadNotFound):
        await ledger.branches.activate("nowhere", 0)
    with pytest.raises(ThreadNotFound):
        await ledger.branches.list("nowhere")


async def test_the_list_of_threads_shows_the_active_branch(ledger: Ledger) -> None:
    await thread(ledger, turn())
    await fork_at(scope_of(ledger), "t", 1)
    await ledger.messages.append("t", [assistant("rain")])
    (listed,) = await ledger.threads.list()
    assert (listed.active_branch, listed.message_count, listed.preview) == (1, 2, "rain")


async def test_the_list_of_threads_shows_the_preview_of_a_fork_without_messages_of_its_own(ledger: Ledger) -> None:
    await thread(ledger, turn())
    await fork_at(scope_of(ledger), "t", 1)
    (listed,) = await ledger.threads.list()
    assert (listed.message_count, listed.preview) == (1, turn()[0].text)


# --- Calls across a fork ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [2, 3])
async def test_a_fork_that_would_leave_calls_open_is_refused(ledger: Ledger, at: int) -> None:
    await thread(ledger, turn())
    with pytest.raises(RuleViolation, match="R8") as caught:
        await fork_at(scope_of(ledger), "t", at)
    assert (caught.value.rule, caught.value.index) == ("R8", at)
    assert len(await ledger.branches.list("t")) == 1


async def test_a_lenient_thread_may_be_forked_while_calls_are_open(ledger: Ledger) -> None:
    await thread(ledger, turn(), rules="lenient")
    await fork_at(scope_of(ledger), "t", 3)  # one result of two
    stored = await ledger.messages.append("t", [result("call_0", "rain")], rules="strict")
    assert stored.messages[0].violations == []
    with pytest.raises(RuleViolation, match="R7"):
        await ledger.messages.append("t", [result("call_0", "again")], rules="strict")


async def test_a_call_can_be_answered_on_each_branch(database: Database, ledger: Ledger) -> None:
    await thread(ledger, CALLS, rules="lenient")
    await fork_at(scope_of(ledger), "t", 2)
    for branch in (0, 1):
        answered = await ledger.messages.append("t", [result("b"), result("a")], branch=branch, rules="strict")
        assert [message.violations for message in answered.messages] == [[], []]
    links = "SELECT branch, seq, call_branch, call_seq, call_idx FROM tool_results ORDER BY branch, seq"
    assert await query(database, links) == [(0, 3, 0, 2, 1), (0, 4, 0, 2, 0), (1, 3, 0, 2, 1), (1, 4, 0, 2, 0)]


async def test_a_fork_knows_calls_that_waited_before_its_turn_began(ledger: Ledger) -> None:
    """Lenient lets a user message in while calls are open; they are still open on the fork."""
    await thread(ledger, [*CALLS, result("a"), user("never mind"), assistant("ok")], rules="lenient")
    await fork_at(scope_of(ledger), "t", 5)
    (late,) = (await ledger.messages.append("t", [result("b")])).messages
    assert late.violations == []


async def test_open_calls_of_the_other_branch_do_not_matter(ledger: Ledger) -> None:
    await thread(ledger, CALLS)
    await fork_at(scope_of(ledger), "t", 1)
    await ledger.messages.append("t", [assistant("no need"), user("and now?")])
    with pytest.raises(RuleViolation, match="R8"):
        await ledger.messages.append("t", [user("and now?")], branch=0)


async def test_closing_open_calls_on_a_fork_leaves_the_other_branch_open(ledger: Ledger) -> None:
    await thread(ledger, CALLS, rules="lenient")
    await fork_at(scope_of(ledger), "t", 2)
    closed = await ledger.messages.close_open_calls("t", reason="gone")
    assert texts(await ledger.messages.history("t")) == ["?", "", "gone", "gone"]
    assert closed.last_seq == 4
    assert [finding.seq for finding in await findings_of(ledger, "t", branch=0) if finding.open] == [2, 2]


async def test_a_fork_after_a_partial_message_is_refused(ledger: Ledger) -> None:
    await thread(ledger, [user("?"), assistant("on", state="partial")])
    with pytest.raises(RuleViolation):
        await fork_at(scope_of(ledger), "t", 2)
    assert (await fork_at(scope_of(ledger), "t", 1)).last_seq == 1


# --- The view ---------------------------------------------------------------------------------------------------------


@pytest.mark.plain
async def test_the_transcript_shows_the_active_branch_with_its_shared_messages(
    database: Database, ledger: Ledger
) -> None:
    await thread(ledger, turn())
    await fork_at(scope_of(ledger), "t", 1)
    parts = [TextPart(text="ra"), ImagePart(url="u"), TextPart(text="in")]
    answers = [assistant(calls=[call("a", "map"), call("b", "sky")]), result("b"), result("a")]
    await ledger.messages.append("t", [*answers, ChatMessage(role="assistant", content=parts, name="bot")], run_id="r")
    shown = "SELECT thread_id, seq, role, name, text, tool_names, run_id FROM transcript ORDER BY seq"
    assert await query(database, shown) == [
        ("t", 1, "user", None, turn()[0].text, None, None),
        ("t", 2, "assistant", None, None, "map, sky", "r"),
        ("t", 3, "tool", None, "sunny", None, "r"),
        ("t", 4, "tool", None, "sunny", None, "r"),
        ("t", 5, "assistant", "bot", "rain", None, "r"),
    ]
    await ledger.branches.activate("t", 0)
    assert [row[4] for row in await query(database, shown)] == [
        turn()[0].text,
        None,
        "sunny",
        "sunny",
        "It is sunny in both.",
    ]


async def test_the_call_of_a_shared_part_is_answered_on_a_fork_of_a_fork(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a")])])
    await fork_at(scope_of(ledger), "t", 2)
    await ledger.messages.append("t", [result("a")])
    await fork_at(scope_of(ledger), "t", 2, branch=1)
    stored = await ledger.messages.append("t", [result("a")])
    assert (stored.messages[0].branch, stored.messages[0].violations) == (2, [])


async def test_a_partial_message_is_not_shared(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="lenient")
    await ledger.messages.append("t", [user("?"), assistant("Su", state="partial")])
    with pytest.raises(RuleViolation, match="R10"):
        await fork_at(scope_of(ledger), "t", 2)


async def test_a_thread_whose_id_must_be_escaped_is_forked(ledger: Ledger) -> None:
    name = "t\0\ud800"
    own = ledger.tenant("a\0")
    await own.threads.create(name)
    await own.messages.append(name, turn())
    await fork_at(scope_of(own), name, 5)
    assert [branch.branch for branch in await own.branches.list(name)] == [0, 1]
    assert (await own.branches.activate(name, 0)).active
