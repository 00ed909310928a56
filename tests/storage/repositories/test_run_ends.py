"""Runs whose drafts end: an interruption ends the run, and the provider's usage is counted."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, Oldest, Usage
from chatledger.errors import RunConflict
from chatledger.types import Run
from tests.conftest import KEYS, Database
from tests.conversations import assistant, call, result, user
from tests.formats.streams.test_storage import ENDS, USAGES
from tests.leases import pass_time
from tests.storage.repositories.test_drafts import NEVER, abandon, last, stream


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?")])
    return ledger


async def left(ledger: Ledger, *deltas: Any, **options: Any) -> None:
    """A draft of the run `r` that a dead process left behind, with an expired lease."""
    await abandon(ledger, *deltas, **{"run_id": "r", **options})
    await pass_time(ledger, 2 * NEVER)


REASON = "message 2 of branch 0 was interrupted before it was complete"


async def require_cancelled(ledger: Ledger, run_id: str = "r") -> Run:
    run = await ledger.runs.get(run_id)
    assert (run.status, run.error) == ("cancelled", REASON)
    assert run.ended_at is not None
    assert run.ended_at >= run.started_at
    assert (await ledger.runs.list(status="cancelled")).items == [run]
    return run


# --- An interruption --------------------------------------------------------------------------------------------------


async def append_behind(ledger: Ledger) -> None:
    await ledger.messages.append("t", [user("next")])


async def append_another_run_behind(ledger: Ledger) -> None:
    await ledger.messages.append("t", [user("next"), assistant("!")], run_id="another")


async def append_in_a_transaction(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        await tx.messages.append("t", [user("next")])


async def draft_behind(ledger: Ledger) -> None:
    async with stream(ledger, on_open_calls="close") as draft:
        await draft.feed("!")


async def interrupt_it(ledger: Ledger) -> None:
    (found,) = await ledger.drafts.list()
    assert await ledger.drafts.interrupt(found)


async def close_its_calls(ledger: Ledger) -> None:
    await ledger.messages.close_open_calls("t")


async def retract_before_it(ledger: Ledger) -> None:
    question = (await ledger.messages.history("t", Oldest(1))).messages[0]
    await ledger.messages.remove("t", question.message_id or "")


WAYS = [
    append_behind,
    append_another_run_behind,
    append_in_a_transaction,
    draft_behind,
    interrupt_it,
    close_its_calls,
    retract_before_it,
]


@pytest.mark.parametrize("interrupt", WAYS)
async def test_the_interruption_of_a_draft_ends_its_run(asked: Ledger, interrupt: Any) -> None:
    await left(asked, "Su")
    assert (await asked.runs.get("r")).status == "running"
    await interrupt(asked)
    assert (await asked.messages.history("t", run_id="r")).messages[0].state == "interrupted"
    await require_cancelled(asked)


async def test_a_draft_that_is_left_with_an_error_ends_its_run(asked: Ledger) -> None:
    with pytest.raises(KeyError):
        async with stream(asked, run_id="r") as draft:
            await draft.feed("Su")
            raise KeyError
    await require_cancelled(asked)


async def test_a_live_draft_that_is_cut_ends_its_run(asked: Ledger) -> None:
    async with stream(asked, run_id="r") as draft:
        await draft.feed("Su")
        await draft.flush()
        await asked.messages.append("t", [user("enough")], on_open_calls="interrupt")
        await require_cancelled(asked)
        await draft._stop()
        draft._finished = True


async def test_the_interruption_and_the_end_are_one_transaction(asked: Ledger) -> None:
    await left(asked, "Su")
    with pytest.raises(KeyError):
        async with asked.begin() as tx:
            await tx.messages.append("t", [user("next")])
            assert (await tx.runs.get("r")).status == "cancelled"
            raise KeyError
    assert (await asked.runs.get("r")).status == "running"
    assert (await last(asked)).state == "partial"


async def test_a_run_that_goes_on_behind_its_own_draft_does_not_end(asked: Ledger) -> None:
    await left(asked, "Su")
    await asked.messages.append("t", [assistant("Sunny.")], run_id="r")
    assert [one.state for one in await asked.messages.history("t")] == ["complete", "interrupted", "complete"]
    run = await asked.runs.get("r")
    assert (run.status, run.error, run.ended_at) == ("running", None, None)


@pytest.mark.parametrize("resume", [True, False])
async def test_a_run_whose_draft_is_taken_over_does_not_end(asked: Ledger, resume: bool) -> None:
    await left(asked, "Su", message_id="m")
    async with stream(asked, run_id="r", message_id="m", resume=resume) as draft:
        await draft.feed("nny.")
    assert (await asked.runs.get("r")).status == "running"
    assert (await asked.runs.finish("r", status="completed")).status == "completed"


async def test_runs_of_others_do_not_end(asked: Ledger) -> None:
    other = asked.tenant("else")
    for ledger in (asked, other):
        if ledger is other:
            await other.threads.create("t")
        await ledger.runs.start("t", run_id="bystander")
        await left(ledger, "Su")
    await asked.messages.append("t", [user("next")])
    assert [(run.run_id, run.status) for run in await asked.runs.list()] == [
        ("bystander", "running"),
        ("r", "cancelled"),
    ]
    assert {run.status for run in await other.runs.list()} == {"running"}


async def test_a_run_that_has_ended_keeps_its_end(asked: Ledger) -> None:
    await left(asked, "Su")
    ended = await asked.runs.finish("r", status="failed", error="the user left")
    await append_behind(asked)
    assert await asked.runs.get("r") == ended


async def test_the_application_has_the_last_word(asked: Ledger) -> None:
    await left(asked, "Su")
    await append_behind(asked)
    cancelled = await require_cancelled(asked)
    assert await asked.runs.finish("r", status="cancelled", error=REASON) == cancelled
    failed = await asked.runs.finish("r", status="failed", error="gone", usage=Usage(input_tokens=1))
    assert failed == await asked.runs.get("r")
    assert failed == await asked.runs.finish("r", status="failed", error="gone", usage=Usage(input_tokens=1))
    with pytest.raises(RunConflict):
        await asked.runs.finish("r", status="completed")
    await asked.runs.start("t", run_id="own")
    await asked.runs.finish("own", status="cancelled", error="stopped")
    with pytest.raises(RunConflict):
        await asked.runs.finish("own", status="completed")


async def test_the_run_of_an_encrypted_draft_ends_readably(database: Database) -> None:
    async with database.open(encryption=KEYS) as ledger:
        await ledger.threads.create("t")
        await ledger.messages.append("t", [user("?")])
        await left(ledger, "Su")
        await append_behind(ledger)
        await require_cancelled(ledger)
        assert [one.findings async for one in ledger.check()] == [[]]


# --- Usage ------------------------------------------------------------------------------------------------------------


async def say(ledger: Ledger, name: str, usage: Any, **options: Any) -> None:
    async with stream(ledger, format=name, run_id="r", **options) as draft:
        for event in ENDS[name](usage):
            await draft.feed(event)


@pytest.mark.parametrize("name", USAGES)
async def test_a_draft_gives_its_usage_to_its_run(asked: Ledger, name: str) -> None:
    given, expected = USAGES[name]
    await say(asked, name, given)
    run = await asked.runs.get("r")
    assert (run.status, run.usage) == ("running", expected)
    ended = await asked.runs.finish("r", status="completed")
    assert (ended.usage, ended.status) == (expected, "completed")
    assert await asked.runs.finish("r", status="completed") == ended


CHAT = {"prompt_tokens": 3, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1}}


async def test_the_drafts_of_a_run_are_added_up_once_each(asked: Ledger) -> None:
    for number in (1, 2):
        for _ in range(2):
            await say(asked, "openai-chat", CHAT, idempotency_key=f"k{number}")
        counted = Usage(
            input_tokens=3 * number,
            output_tokens=5 * number,
            details={"prompt_tokens_details.cached_tokens": number},
        )
        assert (await asked.runs.get("r")).usage == counted
    own = Usage(input_tokens=1, cost=Decimal("0.5"))
    assert (await asked.runs.finish("r", status="completed", usage=own)).usage == own
    await say(asked, "openai-chat", CHAT)
    assert (await asked.runs.get("r")).usage == own


async def test_an_end_whose_answer_was_lost_is_counted_once(asked: Ledger) -> None:
    async with stream(asked, format="openai-chat", run_id="r") as draft:
        for event in ENDS["openai-chat"](CHAT):
            await draft.feed(event)
        await draft._write(draft._final("complete", {}))
        draft._held = draft._before = None
        await draft.complete()
    run = await asked.runs.get("r")
    assert run.usage is not None
    assert run.usage.input_tokens == 3


async def test_a_draft_that_its_provider_gave_up_is_counted_too(asked: Ledger) -> None:
    async with stream(asked, format="openai-chat", run_id="r") as draft:
        await draft.feed({"choices": [], "usage": CHAT})
        await draft.feed({"error": {"message": "Overloaded"}})
    run = await require_cancelled(asked)
    assert run.usage == draft.usage
    ended = await asked.runs.finish("r", status="failed", error=draft.failure)
    assert (ended.usage, ended.error) == (draft.usage, "Overloaded")


@pytest.mark.parametrize("tokens", [2**63 - 1, 2**70])
async def test_a_count_beyond_all_bounds_costs_nothing(asked: Ledger, tokens: int) -> None:
    await asked.runs.start("t", run_id="r")
    await say(asked, "openai-chat", CHAT)
    before = (await asked.runs.get("r")).usage
    await say(asked, "openai-chat", {"prompt_tokens": tokens})
    assert [one.state for one in await asked.messages.history("t")] == ["complete"] * 3
    assert (await asked.runs.get("r")).usage == before


async def test_a_draft_without_a_run_or_a_count_counts_nothing(asked: Ledger) -> None:
    async with stream(asked, format="openai-chat") as draft:
        await draft.feed({"choices": [], "usage": CHAT})
    assert draft.usage is not None
    assert len(await asked.runs.list()) == 0
    async with stream(asked, run_id="r") as draft:
        await draft.feed("Sunny.")
    assert (await asked.runs.get("r")).usage is None


async def test_the_users_of_a_tenant_count_their_own(ledger: Ledger) -> None:
    bob = ledger.user("bob")
    await bob.threads.create("t")
    await say(bob, "openai-chat", CHAT)
    run = await bob.runs.get("r")
    assert run.usage is not None
    assert run == await ledger.runs.get("r")
    assert await ledger.user("ada").runs.find("r") is None


# --- A list by status -------------------------------------------------------------------------------------------------


async def read(ledger: Ledger, limit: int, **wanted: Any) -> tuple[list[str], int]:
    """The ids on all pages, and the number of pages."""
    found: list[str] = []
    page = await ledger.runs.list(limit=limit, **wanted)
    pages = 1
    while page.next_cursor is not None:
        found += [run.run_id for run in page.items]
        page = await ledger.runs.list(limit=limit, cursor=page.next_cursor, **wanted)
        pages += 1
    return found + [run.run_id for run in page.items], pages


async def made(ledger: Ledger, statuses: Sequence[str], thread_id: str = "t") -> dict[str, list[str]]:
    """The ids of new runs by status, in their order. Ids of the ledger's own have an order only to the millisecond."""
    ids: dict[str, list[str]] = {}
    for number, status in enumerate(statuses):
        run = await ledger.runs.start(thread_id, run_id=f"{thread_id} {number:02}")
        ids.setdefault(status, []).append(run.run_id)
        if status != "running":
            await ledger.runs.finish(run.run_id, status=status)  # type: ignore[arg-type]
    return ids


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_runs_are_listed_by_status(asked: Ledger, limit: int) -> None:
    await asked.threads.create("u")
    ids = await made(asked, ["running", "failed", "running", "completed", "failed", "running", "cancelled"])
    others = await made(asked, ["failed", "running"], "u")
    for status, own in ids.items():
        assert (await read(asked, limit, thread_id="t", status=status))[0] == own
        assert (await read(asked, limit, status=status))[0] == own + others.get(status, [])
    assert (await asked.tenant("else").runs.list(status="running")).items == []


async def test_a_page_of_a_status_reads_a_bounded_number_of_runs(
    asked: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await made(asked, ["completed"] * 4 + ["running"] + ["completed"] * 4 + ["running"] * 2)
    monkeypatch.setattr("chatledger.storage.repositories.runs._SCANNED", 3)
    first = await asked.runs.list(status="running")
    assert first.items == []
    assert first.next_cursor is not None
    assert await read(asked, 50, status="running") == (ids["running"], 4)
    assert (await read(asked, 1, status="running"))[0] == ids["running"]
    assert await read(asked, 50, status="failed") == ([], 4)


async def test_a_user_lists_the_own_runs_of_a_status(ledger: Ledger) -> None:
    for name in ("ada", "bob"):
        await ledger.user(name).threads.create(name)
        await made(ledger.user(name), ["running", "failed"], name)
    assert [run.thread_id for run in await ledger.user("bob").runs.list(status="running")] == ["bob"]
    assert len(await ledger.runs.list(status="running")) == 2


async def test_runs_left_by_crashes_are_found_and_ended(asked: Ledger) -> None:
    """As a service does when it starts: the abandoned drafts first, then the runs that are still running."""
    await left(asked, "Su")
    await made(asked, ["running", "completed"])
    for partial in await asked.drafts.list(abandoned_for=0):
        await asked.drafts.interrupt(partial)
    for run in await asked.runs.list(status="running"):
        await asked.runs.finish(run.run_id, status="failed", error="the process died")
    assert (await asked.runs.list(status="running")).items == []
    assert [run.status for run in await asked.runs.list(thread_id="t")].count("failed") == 1


async def test_calls_of_an_interrupted_draft_belong_to_its_run(asked: Ledger) -> None:
    await asked.messages.append("t", [ChatMessage(role="assistant", tool_calls=[call("a")])], run_id="r")
    await left(asked, "Su")
    await asked.messages.append("t", [result("a")], run_id="r")
    assert (await asked.runs.get("r")).status == "running"
