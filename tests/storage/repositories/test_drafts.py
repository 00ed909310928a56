"""A message that is stored while it is streamed: what is stored when, its final form, and which writer may write it."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chatledger import (
    ChatMessage,
    Feedback,
    InvalidArgument,
    Ledger,
    Limits,
    Pace,
    ReasoningDelta,
    RuleViolation,
    StorageError,
    TextDelta,
    TextPart,
    ThinkPart,
    ToolCall,
    ToolCallDelta,
)
from chatledger.errors import DecodeError, DraftLive, DraftLost, IdConflict, LimitExceeded
from chatledger.models.json import json_problem
from chatledger.repositories import scope_of
from chatledger.repositories.history import with_draft
from chatledger.storage.append.request import make_request
from chatledger.storage.drafts import draft as drafts
from chatledger.storage.drafts.draft_write import DraftWrite
from chatledger.storage.repositories.branches import advance, fork_at
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user
from tests.leases import pass_time
from tests.places import at
from tests.windows import read as read_window

NEVER = 3_600.0
"""An interval in which nothing is written by time alone."""


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?")])
    return ledger


def stream(ledger: Any, *, message_id: str | None = None, name: str | None = None, **options: Any) -> drafts.Draft:
    """A draft that writes and expires only when a test says so, unless the options are those of another pace."""
    pace: dict[str, Any] = {"interval": NEVER, "lease": 2 * NEVER}
    pace |= {field: options.pop(field) for field in ("interval", "size", "lease") if field in options}
    message = ChatMessage.assistant(message_id=message_id, name=name)
    draft: drafts.Draft = ledger.messages.stream("t", message=message, pace=Pace(**pace), **options)
    return draft


async def last(ledger: Any, **window: Any) -> ChatMessage:
    message: ChatMessage = with_draft(await read_window(ledger, "t", **window))[-1]
    return message


async def until(read: Any, happened: Any) -> None:
    """Ask until it has happened, for ten seconds at most."""
    async with asyncio.timeout(10):
        while True:
            if happened(await read()):
                return
            await asyncio.sleep(0.005)


async def states(ledger: Ledger) -> list[str]:
    return [message.state for message in with_draft(await ledger.messages.history("t"))]


# --- Growing ----------------------------------------------------------------------------------------------------------


async def test_a_draft_grows_in_its_place_and_is_completed(asked: Ledger) -> None:
    async with stream(asked, run_id="r") as draft:
        opened = await last(asked)
        assert (opened.seq, opened.state, opened.content, opened.run_id) == (2, "partial", None, "r")
        await draft.feed("Sun")
        await draft.flush()
        assert (await last(asked)).content == "Sun"
        await draft.feed(TextDelta(text="ny."))
        whole = await draft.complete(response_metadata={"model": "m"})
    assert await last(asked) == whole
    assert (whole.content, whole.state, whole.response_metadata) == ("Sunny.", "complete", {"model": "m"})
    assert (whole.message_id, whole.created_at) == (opened.message_id, opened.created_at)
    assert await findings_of(asked, "t") == []


async def test_every_kind_of_piece_is_stored_as_it_grows(asked: Ledger) -> None:
    async with stream(asked) as draft:
        for delta in (
            ReasoningDelta(text="Let me "),
            ReasoningDelta(text="see."),
            "One moment.",
            ToolCallDelta(index=0, id="a", name="weather", arguments=""),
            ToolCallDelta(index=0, arguments='{"city": '),
            ToolCallDelta(index=1, id="b", name="time"),
            ToolCallDelta(index=0, arguments='"Tokyo"}'),
        ):
            await draft.feed(delta)
            await draft.flush()
            assert await last(asked) == draft.message
    whole = await last(asked)
    assert (whole.content, whole.reasoning) == ("One moment.", "Let me see.")
    assert whole.tool_calls == [call("a"), ToolCall(id="b", name="time")]


async def test_parts_take_the_place_of_a_text(asked: Ledger) -> None:
    signed = ReasoningDelta(text="hm", signature="s")
    async with stream(asked) as draft:
        for delta in ("a", signed, ReasoningDelta(text="so"), ThinkPart(text="th"), ThinkPart(text="ink"), "b"):
            await draft.feed(delta)
            await draft.flush()
            assert await last(asked) == draft.message
    whole = await last(asked)
    assert whole.content == [TextPart(text="a"), ThinkPart(text="think"), TextPart(text="b")]
    assert whole.reasoning == [ThinkPart(text="hm", signature="s"), ThinkPart(text="so")]


async def test_a_call_without_a_name_waits_for_it(asked: Ledger) -> None:
    async with stream(asked) as draft:
        await draft.feed(ToolCallDelta(index=0, id="a", arguments="{"))
        await draft.flush()
        assert (await last(asked)).tool_calls is None
        await draft.feed(ToolCallDelta(index=0, name="f", arguments="}"))
    assert (await last(asked)).tool_calls == [ToolCall(id="a", name="f", arguments="{}")]


async def test_calls_are_open_once_the_message_is_complete(asked: Ledger) -> None:
    async with stream(asked, run_id="r") as draft:
        await draft.feed(ToolCallDelta(id="a", name="f", arguments="{}"))
        await draft.flush()
        assert [finding.rule for finding in await findings_of(asked, "t")] == ["R10"]
    assert [finding.rule for finding in await findings_of(asked, "t")] == ["R6"]
    await asked.messages.append("t", [result("a"), assistant("!")], run_id="r")
    assert await findings_of(asked, "t") == []


async def test_text_is_written_during_a_pause(asked: Ledger) -> None:
    async with asked.messages.stream("t", pace=Pace(interval=0.01)) as draft:
        await draft.feed("Sun")
        await until(lambda: last(asked), lambda message: message.content == "Sun")


async def test_a_large_piece_is_written_at_once(asked: Ledger) -> None:
    async with stream(asked, size=100) as draft:
        await draft.feed("x" * 99)
        assert (await last(asked)).content is None
        await draft.feed("x")
        assert (await last(asked)).content == "x" * 100


async def test_a_slow_write_is_not_followed_by_another_at_once(asked: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    writes, write = 0, DraftWrite.write

    def take_long(writing: DraftWrite, *arguments: Any) -> Any:
        nonlocal writes
        writes += 1
        time.sleep(0.6)
        return write(writing, *arguments)

    async with stream(asked, interval=0.5) as draft:
        await asyncio.sleep(0.5)
        with monkeypatch.context() as patched:
            patched.setattr(DraftWrite, "write", take_long)
            for _ in range(5):
                await draft.feed("x")
        assert writes == 1
    assert (await last(asked)).content == "x" * 5


async def test_the_end_of_many_unknown_events_is_made_in_a_thread(
    asked: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_in = []

    def record(value: Any) -> Any:
        if value is not None:
            made_in.append(threading.current_thread())
        return json_problem(value)

    async with stream(asked, format="openai-chat") as draft:
        for number in range(2_000):
            await draft.feed({"new": number})
        monkeypatch.setattr(drafts, "json_problem", record)
    assert len(made_in) == 2_000
    assert threading.main_thread() not in made_in


async def test_a_draft_without_a_piece_is_an_empty_message(asked: Ledger) -> None:
    async with stream(asked):
        pass
    whole = await last(asked)
    assert (whole.content, whole.tool_calls, whole.state) == (None, None, "complete")


async def test_a_draft_in_a_transaction_is_committed_with_it(asked: Ledger) -> None:
    with pytest.raises(KeyError):
        async with asked.begin() as tx:
            async with stream(tx) as draft:
                await draft.feed("lost")
            raise KeyError
    assert texts(await asked.messages.history("t")) == ["?"]
    async with asked.begin() as tx, stream(tx, size=1) as draft:
        await draft.feed("Sun")
        assert (await last(tx)).content == "Sun"
        await draft.feed(ToolCallDelta(id="a", name="f", arguments="{}"))
    assert (await last(asked)).state == "complete"
    await asked.messages.append("t", [result("a")])


# --- How it ends ------------------------------------------------------------------------------------------------------


async def test_an_exception_interrupts_and_answers_the_calls(asked: Ledger) -> None:
    with pytest.raises(KeyError):
        async with stream(asked, run_id="r") as draft:
            await draft.feed("Su")
            await draft.feed(ToolCallDelta(id="a", name="f", arguments='{"ci'))
            raise KeyError
    history = (await asked.messages.history("t")).messages[1:]
    assert [(m.role, m.state, m.content, m.run_id) for m in history] == [
        ("assistant", "interrupted", "Su", "r"),
        ("tool", "synthetic", "interrupted", "r"),
    ]
    assert history[0].tool_calls == [ToolCall(id="a", name="f", arguments='{"ci')]
    await asked.messages.append("t", [user("next")])


async def test_a_cancellation_interrupts(asked: Ledger) -> None:
    fed = asyncio.Event()

    async def say() -> None:
        async with stream(asked) as draft:
            await draft.feed("Su")
            fed.set()
            await asyncio.sleep(NEVER)

    task = asyncio.create_task(say())
    await fed.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ((await last(asked)).state, (await last(asked)).content) == ("interrupted", "Su")
    await asked.messages.append("t", [user("next")])


async def test_a_draft_after_an_earlier_message_is_interrupted(asked: Ledger) -> None:
    await asked.messages.append("t", [assistant("Rain.")])
    with pytest.raises(KeyError):
        async with stream(asked, reply_to=at(1)) as draft:
            await draft.feed("Su")
            await draft.feed(ToolCallDelta(id="a", name="f", arguments="{}"))
            raise KeyError
    assert await states(asked) == ["complete", "interrupted", "synthetic"]
    assert await asked.drafts.list() == []


async def test_completing_twice_is_completing_once(asked: Ledger) -> None:
    async with stream(asked) as draft:
        await draft.feed("Sunny.")
        assert await draft.complete() == await draft.complete() == await draft.interrupt()
        with pytest.raises(StorageError, match="not open"):
            await draft.feed("more")
    assert await states(asked) == ["complete", "complete"]


async def test_a_draft_that_the_rules_refuse_is_interrupted(asked: Ledger) -> None:
    with pytest.raises(RuleViolation, match="R5"):
        async with stream(asked) as draft:
            await draft.feed(ToolCallDelta(index=0, id="a", name="f"))
            await draft.feed(ToolCallDelta(index=1, id="a", name="f"))
    assert await states(asked) == ["complete", "interrupted", "synthetic", "synthetic"]
    await asked.messages.append("t", [user("next")])


async def test_a_call_that_never_got_a_name_is_refused(asked: Ledger) -> None:
    with pytest.raises(RuleViolation, match="R9"):
        async with stream(asked) as draft:
            await draft.feed(ToolCallDelta(index=0, id="a", arguments="{}"))
    assert await states(asked) == ["complete", "interrupted"]


async def test_earlier_calls_of_the_turn_stay_open_when_a_draft_is_interrupted(asked: Ledger) -> None:
    await asked.messages.append("t", [assistant(calls=[call("a")])], run_id="r")
    with pytest.raises(KeyError):
        async with stream(asked, run_id="r") as draft:
            await draft.feed(ToolCallDelta(id="b", name="f", arguments="{}"))
            raise KeyError
    await asked.messages.append("t", [result("a"), user("next")])
    assert await findings_of(asked, "t") == []


async def test_a_draft_is_judged_when_it_is_entered(asked: Ledger) -> None:
    await asked.messages.append("t", [assistant(calls=[call("a")])], run_id="r")
    with pytest.raises(RuleViolation, match="R8"):
        async with stream(asked, run_id="another"):
            pass
    async with stream(asked, run_id="another", on_open_calls="close") as draft:
        await draft.feed("!")
    assert await states(asked) == ["complete", "complete", "synthetic", "complete"]


async def test_bad_pieces_are_refused_and_nothing_of_them_is_kept(database: Database) -> None:
    async with database.open(limits=Limits(bytes=100)) as ledger:
        await ledger.threads.create("t")
        async with stream(ledger) as draft:
            await draft.feed("é" * 25)
            with pytest.raises(InvalidArgument, match="delta must be a str or one of"):
                await draft.feed(7)
            with pytest.raises(DecodeError, match="before any call"):
                await draft.feed(ToolCallDelta(arguments="{}"))
            with pytest.raises(LimitExceeded):
                await draft.feed("é" * 26)
            await draft.feed("é" * 25)
        assert (await last(ledger)).content == "é" * 50


async def test_a_pace_that_cannot_be_kept_is_refused(asked: Ledger) -> None:
    for options in ({"interval": -1.0}, {"size": 0}, {"lease": 1.0, "interval": 1.0}):
        with pytest.raises(InvalidArgument, match=r"^(interval|size|lease) must"):
            stream(asked, **options)


# --- Others -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["lenient", "strict", "ordered"])
@pytest.mark.parametrize("on_open_calls", ["error", "close"])
async def test_a_live_draft_is_protected_at_every_level(
    asked: Ledger, database: Database, rules: Any, on_open_calls: Any
) -> None:
    async with stream(asked, message_id="said") as draft:
        await draft.feed("Sun")
        await draft.feed(ToolCallDelta(id="a", name="f", arguments="{}"))
        await draft.flush()
        (held,) = await asked.drafts.list()
        async with database.open() as other:
            with pytest.raises(DraftLive) as live:
                await other.messages.append("t", [user("next")], rules=rules, on_open_calls=on_open_calls)
            with pytest.raises(DraftLive):
                async with other.begin() as tx:
                    await tx.messages.append("t", [user("next")], rules=rules, on_open_calls=on_open_calls)
        await draft.feed("ny.")
    error = live.value
    assert (error.thread_id, error.branch, error.seq, error.message_id) == ("t", 0, 2, "said")
    assert abs(error.until - held.since - timedelta(seconds=2 * NEVER)) < timedelta(minutes=5)  # as this clock says
    assert texts(await asked.messages.history("t")) == ["?", "Sunny."]


async def test_a_live_draft_is_not_cut_by_closing_the_open_calls(asked: Ledger) -> None:
    async with stream(asked) as draft:
        await draft.feed(ToolCallDelta(id="a", name="f", arguments="{}"))
        await draft.flush()
        with pytest.raises(DraftLive):
            await asked.messages.close_open_calls("t")
        await draft.feed("!")
    assert await states(asked) == ["complete", "complete"]


async def test_interrupting_cuts_a_live_draft_and_closes_open_calls(asked: Ledger) -> None:
    await asked.messages.append("t", [assistant(calls=[call("a")])], run_id="r")
    with pytest.raises(DraftLost):
        async with stream(asked, run_id="r") as draft:
            await draft.feed(ToolCallDelta(id="b", name="f", arguments="{}"))
            await draft.flush()
            await asked.messages.append("t", [user("enough")], on_open_calls="interrupt")
            await draft.feed("!")
            await draft.flush()
    history = (await asked.messages.history("t")).messages
    assert [(one.role, one.state, one.tool_call_id) for one in history[1:]] == [
        ("assistant", "complete", None),
        ("assistant", "interrupted", None),
        ("tool", "synthetic", "b"),
        ("tool", "synthetic", "a"),
        ("user", "complete", None),
    ]
    assert await findings_of(asked, "t") == []


async def test_a_draft_may_interrupt_the_live_draft_of_another(asked: Ledger) -> None:
    with pytest.raises(DraftLost):
        async with stream(asked) as first:
            async with stream(asked, on_open_calls="interrupt") as second:
                await second.feed("mine")
            await first.feed("!")
            await first.flush()
    assert await states(asked) == ["complete", "interrupted", "complete"]


@pytest.mark.parametrize("on_open_calls", ["error", "close", "interrupt"])
async def test_an_append_of_nothing_leaves_a_live_draft_alone(asked: Ledger, on_open_calls: Any) -> None:
    async with stream(asked) as draft:
        await draft.feed("Sun")
        nothing = await asked.messages.append("t", [], on_open_calls=on_open_calls)
        assert (nothing.last_seq, nothing.messages) == (2, [])
        await draft.feed("ny.")
    assert texts(await asked.messages.history("t")) == ["?", "Sunny."]


async def test_an_append_that_waited_for_its_turn_does_not_take_a_draft_for_abandoned(asked: Ledger) -> None:
    """The draft was written after the append was asked for, by more than its lease."""
    async with stream(asked, lease=NEVER + 1) as draft:
        request = make_request(asked._scope.terms, "t", [user("next")])
        waited = replace(request, now=request.now - timedelta(seconds=NEVER + 1))
        with pytest.raises(DraftLive):
            await asked._scope.append(waited)
        await draft.feed("!")
    assert await states(asked) == ["complete", "complete"]


async def test_a_live_draft_renews_its_lease_where_nothing_is_fed(asked: Ledger) -> None:
    async with asked.messages.stream("t", pace=Pace(interval=0.01, lease=0.3)):
        (first,) = await asked.drafts.list()
        await until(asked.drafts.list, lambda found: found[0].since > first.since)
        assert await asked.drafts.list(abandoned_for=0) == []


async def test_a_draft_that_was_interrupted_by_others_is_lost(asked: Ledger) -> None:
    with pytest.raises(DraftLost) as lost:
        async with stream(asked) as draft:
            await draft.feed("Sun")
            await draft.flush()
            await asked.messages.append("t", [user("enough")], on_open_calls="interrupt")
            await draft.feed("ny.")
    assert (lost.value.thread_id, lost.value.branch, lost.value.seq) == ("t", 0, 2)
    assert texts(await asked.messages.history("t")) == ["?", "Sun", "enough"]
    assert await states(asked) == ["complete", "interrupted", "complete"]


async def test_a_draft_whose_thread_is_deleted_is_lost(asked: Ledger) -> None:
    with pytest.raises(DraftLost):
        async with stream(asked) as draft:
            await asked.threads.delete("t")
            await draft.feed("!")
            await draft.flush()


async def test_a_renewed_stamp_does_not_disturb_a_draft(asked: Ledger) -> None:
    async with stream(asked) as draft:
        for text in ("Sun", "ny", "."):
            await advance(scope_of(asked), "t", (await asked.branches.get("t")).mark)
            await draft.feed(text)
            await draft.flush()
    assert (await last(asked)).content == "Sunny."


async def test_a_draft_is_beside_the_messages_and_never_among_them(asked: Ledger) -> None:
    async with stream(asked) as draft:
        await draft.feed("Sun")
        await draft.flush()
        windows: list[dict[str, Any]] = [{}, {"newest": 5}, {"limit": 5}, {"last_turns": 1}]
        for window in windows:
            page = await read_window(asked, "t", **window)
            assert (texts(page), page.draft and page.draft.text) == (["?"], "Sun")
        assert (await asked.messages.history("t")).last_seq == 2
        seen = [message.seq async for message in asked.messages.iterate("t")]
        assert seen == [1]
        wire = (await asked.messages.history("t")).encode("openai-chat")
        assert wire.payload == [{"role": "user", "content": "?"}]
    assert texts(await asked.messages.history("t")) == ["?", "Sun"]


# --- Abandoned --------------------------------------------------------------------------------------------------------


async def abandon(ledger: Ledger, *deltas: Any, ago: float = NEVER, **options: Any) -> None:
    """A partial message as a process leaves it that died so long ago."""
    draft = stream(ledger, lease=ago + 1.0, interval=ago, **options)
    await draft.__aenter__()
    for delta in deltas:
        await draft.feed(delta)
    await draft.flush()
    await draft._stop()


async def test_a_strict_append_behind_an_abandoned_partial_interrupts_it(asked: Ledger) -> None:
    await abandon(asked, "Su", ToolCallDelta(id="a", name="f", arguments='{"ci'))
    with pytest.raises(DraftLive):
        await asked.messages.append("t", [user("next")])
    await pass_time(asked, NEVER + 1)
    stored = await asked.messages.append("t", [user("next", message_id="n")])
    assert (stored.messages[0].seq, stored.last_seq) == (4, 4)
    assert await states(asked) == ["complete", "interrupted", "synthetic", "complete"]
    assert (await asked.messages.append("t", [user("next", message_id="n")])).replayed


async def test_closing_the_open_calls_interrupts_an_abandoned_partial(asked: Ledger) -> None:
    await abandon(asked, "Su")
    await pass_time(asked, NEVER + 1)
    assert (await asked.messages.close_open_calls("t")).last_seq == 2
    assert await states(asked) == ["complete", "interrupted"]
    await asked.messages.append("t", [user("next")])


async def test_lenient_rules_answer_the_calls_of_an_abandoned_partial_as_strict_ones_do(asked: Ledger) -> None:
    await abandon(asked, ToolCallDelta(id="a", name="f", arguments="{}"))
    await pass_time(asked, NEVER + 1)
    await asked.messages.append("t", [user("next")], rules="lenient")
    assert await states(asked) == ["complete", "interrupted", "synthetic", "complete"]
    assert await findings_of(asked, "t") == []


async def test_a_partial_message_of_the_future_is_abandoned(asked: Ledger) -> None:
    """A clock that was set back a day must not protect it for that day."""
    await abandon(asked, "Su")
    await pass_time(asked, -86_400)
    await asked.messages.append("t", [user("next")])
    assert await states(asked) == ["complete", "interrupted", "complete"]


async def test_an_append_of_nothing_leaves_an_abandoned_partial_alone(asked: Ledger) -> None:
    await abandon(asked, "Su")
    await pass_time(asked, NEVER + 1)
    await asked.messages.append("t", [])
    assert await states(asked) == ["complete", "partial"]


async def test_abandoned_partials_are_found_and_interrupted_from_anywhere(asked: Ledger, database: Database) -> None:
    await abandon(asked, "Su", ToolCallDelta(id="a", name="f"))
    async with database.open() as other:
        assert await other.drafts.list(abandoned_for=0) == []
        assert await other.drafts.list(abandoned_for=60) == []
        await pass_time(asked, NEVER + 1)
        (found,) = await other.drafts.list(abandoned_for=0)
        assert [found] == await other.drafts.list(abandoned_for=timedelta(seconds=NEVER))
        assert [found] == await other.drafts.list()
        assert (found.thread_id, found.branch, found.seq) == ("t", 0, 2)
        assert found.message_id == (await last(asked)).message_id
        assert timedelta(seconds=NEVER) < datetime.now(UTC) - found.since < timedelta(seconds=NEVER + 60)
        assert await other.tenant("else").drafts.list() == []
        assert not await other.tenant("else").drafts.interrupt(found)
        assert await other.drafts.interrupt(found)
        assert not await other.drafts.interrupt(found)
        assert await other.drafts.list() == []
    assert await states(asked) == ["complete", "interrupted", "synthetic"]
    await asked.messages.append("t", [user("next")])


async def test_a_partial_that_was_written_since_it_was_listed_is_not_interrupted(asked: Ledger) -> None:
    async with stream(asked) as draft:
        (found,) = await asked.drafts.list()
        await draft.feed("!")
        await draft.flush()
        assert not await asked.drafts.interrupt(found)
    assert await states(asked) == ["complete", "complete"]


async def test_partials_of_other_branches_are_found(asked: Ledger) -> None:
    await fork_at(scope_of(asked), "t", 1)
    await asked.branches.activate("t", 0)
    async with stream(asked, branch=1) as draft:
        await draft.feed("on another line")
        await draft.flush()
        assert [(found.branch, found.seq) for found in await asked.drafts.list()] == [(1, 2)]
        await asked.messages.append("t", [user("meanwhile")])
    assert (await last(asked, branch=1)).content == "on another line"


async def test_an_imported_partial_message_counts_as_abandoned(ledger: Ledger) -> None:
    thread = (await ledger.threads.create("other")).model_copy(update={"thread_id": "t"})
    await load_threads(
        scope_of(ledger), [prepare_thread(scope_of(ledger), thread, [user("?"), assistant("Su", state="partial")])]
    )
    assert [found.seq for found in await ledger.drafts.list(abandoned_for=0)] == [2]
    await ledger.messages.append("t", [user("next")])
    assert await states(ledger) == ["complete", "interrupted", "complete"]


# --- Completing by an append ------------------------------------------------------------------------------------------

PARTIAL = assistant("Su", message_id="m", state="partial", calls=[call("x")])
WHOLE = assistant("Sunny.", message_id="m", calls=[call("a"), call("b")], reasoning="hm")


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a transaction"])
async def test_an_append_completes_the_partial_message_of_its_id(asked: Ledger, inside: bool) -> None:
    await asked.messages.append("t", [PARTIAL], run_id="r")
    if inside:
        async with asked.begin() as tx:
            stored = await tx.messages.append("t", [WHOLE], run_id="r")
    else:
        stored = await asked.messages.append("t", [WHOLE], run_id="r")
    assert (stored.messages[0].seq, stored.last_seq, stored.last_seq, stored.replayed) == (2, 2, 2, False)
    assert stored.messages == [await last(asked)]
    assert (await last(asked)).tool_calls == WHOLE.tool_calls
    assert (await asked.messages.append("t", [WHOLE], run_id="r")).replayed
    await asked.messages.append("t", [result("a"), result("b"), assistant("!")], run_id="r")
    assert await findings_of(asked, "t") == []


async def test_a_message_that_shrinks_leaves_no_rows_behind(asked: Ledger) -> None:
    parts = [TextPart(text="a"), ThinkPart(text="b"), TextPart(text="c")]
    long = assistant(None, message_id="m", state="partial", calls=[call("a"), call("b")])
    await asked.messages.append("t", [long.model_copy(update={"content": parts, "reasoning": "hm"})])
    await asked.messages.append("t", [assistant("short", message_id="m")])
    whole = await last(asked)
    assert (whole.content, whole.reasoning, whole.tool_calls) == ("short", None, None)
    deleted = await asked.threads.delete("t")
    assert (deleted.rows.get("message_parts", 0), deleted.rows.get("tool_calls", 0)) == (0, 0)


async def test_a_partial_message_can_be_given_as_interrupted(asked: Ledger) -> None:
    await asked.messages.append("t", [assistant("Su", message_id="m", state="partial")])
    await asked.messages.append("t", [assistant("Sun", message_id="m", state="interrupted")])
    assert [(m.content, m.state) for m in await asked.messages.history("t")] == [
        ("?", "complete"),
        ("Sun", "interrupted"),
    ]
    await asked.messages.append("t", [user("next")])


@pytest.mark.parametrize(
    "another",
    [
        WHOLE.model_copy(update={"role": "user", "tool_calls": None}),
        WHOLE.model_copy(update={"run_id": "another"}),
        WHOLE.model_copy(update={"tool_call_id": "x"}),
    ],
    ids=["role", "run", "result"],
)
async def test_completing_with_another_role_run_or_call_is_a_conflict(asked: Ledger, another: ChatMessage) -> None:
    await asked.messages.append("t", [PARTIAL], run_id="r")
    with pytest.raises(IdConflict, match="is stored as a partial message with another"):
        await asked.messages.append("t", [another], run_id="r")
    assert (await last(asked)).state == "partial"


async def test_completing_is_judged(asked: Ledger) -> None:
    await asked.messages.append("t", [PARTIAL])
    with pytest.raises(RuleViolation, match="R5"):
        await asked.messages.append("t", [assistant(message_id="m", calls=[call("a"), call("a")])])
    with pytest.raises(IdConflict):
        await asked.messages.append("t", [WHOLE, user("and more")])
    assert (await last(asked)).content == "Su"


async def test_the_same_partial_again_is_a_replay(asked: Ledger) -> None:
    await asked.messages.append("t", [PARTIAL])
    assert (await asked.messages.append("t", [PARTIAL])).replayed
    with pytest.raises(IdConflict):
        await asked.messages.append("t", [PARTIAL.model_copy(update={"content": "Sun"})])


async def test_a_draft_may_bring_its_id(asked: Ledger) -> None:
    async with stream(asked, message_id="mine", name="bot") as draft:
        await draft.feed("!")
    assert ((await last(asked)).message_id, (await last(asked)).name) == ("mine", "bot")


async def test_feedback_on_a_partial_message_stays(asked: Ledger) -> None:
    async with stream(asked, run_id="r", message_id="m") as draft:
        given = await asked.feedback.record(Feedback(run_id="r", key="stars", score=4, message_id="m"))
        await draft.feed("!")
    assert (await asked.feedback.list(events=True, run_id="r")).items == [given]
    assert given.message_id == (await last(asked)).message_id


async def test_turns_go_on_behind_a_finished_draft(asked: Ledger) -> None:
    for number in range(3):
        async with stream(asked, run_id=f"r{number}") as draft:
            await draft.feed(f"{number}")
        await asked.messages.append("t", turn())
    assert await states(asked) == ["complete"] * 19


# --- A retry ----------------------------------------------------------------------------------------------------------

SAME = [{"message_id": "m"}, {"idempotency_key": "k"}]


@pytest.mark.parametrize("same", SAME, ids=["id", "key"])
async def test_a_draft_of_a_finished_message_is_a_replay(asked: Ledger, same: dict[str, Any]) -> None:
    async with stream(asked, run_id="r", **same) as first:
        await first.feed("Sun")
    assert not first.replayed
    await asked.messages.append("t", turn())
    before = await asked.messages.history("t")
    async with stream(asked, run_id="r", **same) as again:
        await again.feed("Rain")
        await again.flush()
    assert again.replayed
    assert again.message == await again.complete() == await again.interrupt() == first.message
    assert await asked.messages.history("t") == before


async def test_a_draft_of_an_interrupted_message_is_a_replay(asked: Ledger) -> None:
    async with stream(asked, message_id="m") as first:
        await first.feed("Sun")
        await first.interrupt()
    async with stream(asked, message_id="m") as again:
        pass
    assert (again.replayed, again.message.state, again.message.text) == (True, "interrupted", "Sun")


async def test_the_id_of_a_message_of_another_role_is_a_conflict(asked: Ledger) -> None:
    (question,) = (await asked.messages.history("t")).messages
    with pytest.raises(IdConflict, match="other content"):
        async with stream(asked, message_id=question.message_id):
            pass


@pytest.mark.parametrize("same", SAME, ids=["id", "key"])
async def test_a_draft_of_a_message_that_is_still_written_is_refused(asked: Ledger, same: dict[str, Any]) -> None:
    async with stream(asked, **same) as first:
        await first.feed("Sun")
        await first.flush()
        with pytest.raises(DraftLive) as raised:
            async with stream(asked, **same):
                pass
        assert (raised.value.seq, raised.value.message_id) == (2, first.message.message_id)
        await first.feed("!")
    assert (await last(asked)).text == "Sun!"


@pytest.mark.parametrize("same", SAME, ids=["id", "key"])
async def test_a_draft_starts_an_abandoned_message_again(asked: Ledger, same: dict[str, Any]) -> None:
    call_delta = ToolCallDelta(index=0, id="c", name="f", arguments="{}")
    await abandon(asked, "Rain", call_delta, **same)
    await pass_time(asked, 2 * NEVER)
    async with stream(asked, **same) as draft:
        assert (draft.replayed, draft.message.state, draft.message.content) == (False, "partial", None)
        assert not await asked.drafts.list(abandoned_for=0)
        await draft.feed("Sun")
    whole = await last(asked)
    assert (whole.seq, whole.text, whole.tool_calls, whole.state) == (2, "Sun", None, "complete")
    assert whole == draft.message


async def test_a_draft_of_another_run_does_not_take_an_abandoned_message(asked: Ledger) -> None:
    await abandon(asked, "Rain", message_id="m", run_id="one")
    await pass_time(asked, 2 * NEVER)
    with pytest.raises(IdConflict, match="another run_id"):
        async with stream(asked, message_id="m", run_id="other"):
            pass
    assert (await last(asked)).text == "Rain"


async def test_a_draft_that_was_replaced_writes_nothing_more(asked: Ledger) -> None:
    first = stream(asked, message_id="m")
    await first.__aenter__()
    await first.feed("Rain")
    await first.flush()
    await pass_time(asked, 3 * NEVER)
    async with stream(asked, message_id="m") as second:
        await second.feed("Sun")
        await second.flush()
        with pytest.raises(DraftLost):
            await first.feed(" late")
            await first.complete()
        await first._stop()
        await second.feed("ny")
    assert (await last(asked)).text == "Sunny"


async def test_a_draft_may_cut_a_live_one_of_its_id(asked: Ledger) -> None:
    with pytest.raises(DraftLost):
        async with stream(asked, message_id="m") as first:
            await first.feed("Rain")
            await first.flush()
            async with stream(asked, message_id="m", on_open_calls="interrupt") as second:
                await second.feed("Sun")
    assert (await last(asked)).text == "Sun"


async def test_the_lease_of_a_draft_begins_when_it_is_entered(asked: Ledger) -> None:
    draft = stream(asked, lease=0.3, interval=0.1)
    await asyncio.sleep(0.4)
    async with draft:
        assert not await asked.drafts.list(abandoned_for=0)


async def test_a_finish_that_is_under_way_takes_no_more_pieces(asked: Ledger) -> None:
    draft = stream(asked)
    async with draft:
        finish = asyncio.create_task(draft.complete())
        await asyncio.sleep(0)  # it runs up to its write
        with pytest.raises(StorageError, match="not open"):
            await draft.feed("late")
        await finish


@pytest.mark.parametrize("fields", [{"response_metadata": "x"}, {"custom_data": {1: 2}}])
async def test_fields_of_an_end_that_are_not_json_are_refused(asked: Ledger, fields: Any) -> None:
    async with stream(asked) as draft:
        with pytest.raises(InvalidArgument, match=next(iter(fields))):
            await draft.complete(**fields)
        await draft.complete(response_metadata={"a": 1})
    assert (await last(asked)).response_metadata == {"a": 1}


@pytest.mark.parametrize("failed", [False, True])
async def test_an_end_is_tried_again_while_the_database_is_away(
    asked: Ledger, monkeypatch: pytest.MonkeyPatch, failed: bool
) -> None:
    draft = stream(asked, format="openai-chat")
    async with draft:
        await draft.feed({"choices": [{"index": 0, "delta": {"content": "Sun"}}]})
        if failed:
            await draft.feed({"error": {"message": "Overloaded"}})
        write, away = draft._write, [StorageError("away", retryable=True)] * 2

        async def sometimes(messages: Any) -> None:
            if away:
                raise away.pop()
            await write(messages)

        monkeypatch.setattr(draft, "_write", sometimes)
        await draft.complete()
    assert ((await last(asked)).text, (await last(asked)).state) == ("Sun", "interrupted" if failed else "complete")


async def test_an_interruption_whose_answer_was_lost_finds_what_it_stored(asked: Ledger) -> None:
    async with stream(asked) as draft:
        await draft.feed("Sun")
        await draft._write(draft._final("interrupted", {}))
        draft._held = draft._before = None
        assert (await draft.interrupt()).state == "interrupted"


async def test_a_replayed_draft_has_the_failure_of_the_first(asked: Ledger) -> None:
    for _ in range(2):
        async with stream(asked, format="openai-chat", message_id="m") as draft:
            await draft.feed({"error": {"message": "Overloaded"}})
        assert draft.failure == "Overloaded"
    assert draft.replayed
