"""A draft whose process died, and drafts that take it over: the place of its message, and which writer may write it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chatledger import (
    ChatMessage,
    ImagePart,
    InvalidArgument,
    Ledger,
    Limits,
    NotFound,
    ReasoningDelta,
    StorageError,
    TextDelta,
    TextPart,
    ThinkPart,
    ToolCall,
    ToolCallDelta,
)
from chatledger.errors import DraftLive, DraftLost, LimitExceeded
from chatledger.models.deltas import Growing
from tests.checks import findings_of
from tests.conftest import Database
from tests.conversations import assistant, call, result, texts, turn, user
from tests.leases import pass_time
from tests.places import at
from tests.storage.repositories.test_drafts import NEVER, abandon, last, states, stream

ENDS = {"restart": "Sunny.", "continue": "Rain. Sunny."}


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?")])
    return ledger


async def left(ledger: Any, *deltas: Any, **options: Any) -> None:
    """A message that a dead process left behind, with an expired lease."""
    await abandon(ledger, *deltas, **{"message_id": "m", **options})
    await pass_time(ledger, 2 * NEVER)


def resumed(ledger: Any, resume: str, **options: Any) -> Any:
    return stream(ledger, **{"message_id": "m", "resume": resume == "continue", **options})


# --- The message ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resume", ENDS)
@pytest.mark.parametrize("same", [{"message_id": "m"}, {"message_id": None, "idempotency_key": "k"}])
async def test_a_draft_takes_over_in_the_same_place(asked: Ledger, resume: str, same: dict[str, Any]) -> None:
    await left(asked, "Rain. ", run_id="r", **same)
    before = await last(asked)
    async with resumed(asked, resume, run_id="r", **same) as draft:
        assert not draft.replayed
        assert draft.message.content == ("Rain. " if resume == "continue" else None)
        assert not await asked.drafts.list(abandoned_for=0)
        await draft.feed("Sun")
        await draft.flush()
        assert await last(asked) == draft.message
        await draft.feed("ny.")
    whole = await last(asked)
    assert (whole.content, whole.state, whole.run_id) == (ENDS[resume], "complete", "r")
    assert (whole.message_id, whole.seq, whole.created_at) == (before.message_id, 2, before.created_at)
    assert await states(asked) == ["complete", "complete"]
    assert await findings_of(asked, "t") == []
    await asked.messages.append("t", turn())
    for again in ENDS:
        async with resumed(asked, again, run_id="r", **same) as draft:
            await draft.feed("Snow")
        assert (draft.replayed, draft.message) == (True, whole)
    assert texts(await asked.messages.history("t"))[:2] == ["?", ENDS[resume]]


@pytest.mark.parametrize("resume", ENDS)
async def test_a_draft_without_stored_words_begins(asked: Ledger, resume: str) -> None:
    async with resumed(asked, resume) as draft:
        assert (draft.replayed, draft.message.content) == (False, None)
        await draft.feed("Sunny.")
    assert texts(await asked.messages.history("t")) == ["?", "Sunny."]


async def test_reasoning_and_parts_are_continued(asked: Ledger) -> None:
    image = ImagePart(url="https://example.org/sun.png")
    told: list[Any] = [ReasoningDelta(text="hm", signature="s"), ReasoningDelta(text="so "), "It ", image, "is "]
    await left(asked, *told)
    async with resumed(asked, "continue") as draft:
        await draft.feed(ReasoningDelta(text="it seems", signature="z"))
        await draft.feed("sunny.")
    whole = await last(asked)
    assert whole.reasoning == [ThinkPart(text="hm", signature="s"), ThinkPart(text="so it seems", signature="z")]
    assert whole.content == [TextPart(text="It "), image, TextPart(text="is sunny.")]


async def test_reasoning_that_is_a_text_is_continued(asked: Ledger) -> None:
    await left(asked, ReasoningDelta(text="Let me "))
    async with resumed(asked, "continue") as draft:
        await draft.feed(ReasoningDelta(text="see."))
        await draft.feed("Sunny.")
    whole = await last(asked)
    assert (whole.reasoning, whole.content) == ("Let me see.", "Sunny.")


@pytest.mark.parametrize("index", [None, 1])
async def test_a_call_that_was_half_streamed_is_continued(asked: Ledger, index: int | None) -> None:
    first = ToolCallDelta(index=0, id="a", name="f", arguments='{"city": "Tokyo"}')
    await left(asked, first, ToolCallDelta(index=1, id="b", name="g", arguments='{"ho'), run_id="r")
    async with resumed(asked, "continue", run_id="r") as draft:
        assert draft.message.tool_calls == [call("a", "f"), ToolCall(id="b", name="g", arguments='{"ho')]
        await draft.feed(ToolCallDelta(index=index, arguments='urs": 3}'))
    whole = await last(asked)
    assert whole.tool_calls == [call("a", "f"), ToolCall(id="b", name="g", arguments='{"hours": 3}')]
    await asked.messages.append("t", [result("a"), result("b"), assistant("!")], run_id="r")
    assert await findings_of(asked, "t") == []


@pytest.mark.parametrize("id_", ["b", None])
async def test_a_call_of_another_response_is_another_call(asked: Ledger, id_: str | None) -> None:
    await left(asked, ToolCallDelta(index=0, id=id_ and "a", name="f", arguments="{}"))
    async with resumed(asked, "continue") as draft:
        await draft.feed(ToolCallDelta(index=0, id=id_, name="g", arguments="{"))
        await draft.feed(ToolCallDelta(index=0, arguments="}"))
    calls = (await last(asked)).tool_calls
    assert calls == [ToolCall(id=id_ and "a", name="f", arguments="{}"), ToolCall(id=id_, name="g", arguments="{}")]


async def test_half_a_call_is_gone_if_the_message_starts_again(asked: Ledger) -> None:
    await left(asked, "Su", ReasoningDelta(text="hm"), ToolCallDelta(index=0, id="a", name="f", arguments='{"ci'))
    async with resumed(asked, "restart") as draft:
        await draft.feed("Sunny.")
    whole = await last(asked)
    assert (whole.content, whole.reasoning, whole.tool_calls) == ("Sunny.", None, None)
    assert await findings_of(asked, "t") == []


def chat(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


async def test_events_of_a_provider_go_on_after_the_stored_words(asked: Ledger) -> None:
    begun = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"ci'}}
    await left(asked, chat(content="It is "), chat(tool_calls=[begun]), format="openai-chat")
    async with resumed(asked, "continue", format="openai-chat") as draft:
        await draft.feed(chat(content="sunny."))
        await draft.feed(chat(tool_calls=[{"index": 0, "id": "b", "function": {"name": "f", "arguments": "{}"}}]))
    whole = await last(asked)
    assert whole.text == "It is sunny."
    assert [(one.id, one.arguments) for one in whole.tool_calls or ()] == [("a", '{"ci'), ("b", "{}")]


async def test_a_response_that_follows_no_words_is_stored_as_a_whole(asked: Ledger) -> None:
    await left(asked, format="openai-chat")
    async with resumed(asked, "continue", format="openai-chat") as draft:
        await draft.feed(chat(role="assistant", content="Sunny."))
    assert (await last(asked)).format == "openai-chat"


async def test_stored_words_count_for_the_limit(database: Database) -> None:
    async with database.open(limits=Limits(bytes=100)) as ledger:
        await ledger.threads.create("t")
        for number, (format_, event) in enumerate([(None, "x" * 51), ("openai-chat", chat(content="x" * 51))]):
            await left(ledger, "x" * 50, message_id=f"{number}")
            with pytest.raises(LimitExceeded):
                async with resumed(ledger, "continue", message_id=f"{number}", format=format_) as draft:
                    await draft.feed(event)
            assert (await last(ledger)).text == "x" * 50


@pytest.mark.parametrize(
    "message",
    [
        assistant("Su", calls=[call("a")], reasoning="hm"),
        ChatMessage(role="assistant", content=[TextPart(text="a"), TextPart(text="b", extras={"x": 1})]),
        assistant(None, calls=[ToolCall(name="f", arguments=None, extras={"x": 1})]),
    ],
)
def test_a_draft_grows_from_the_stored_message(message: ChatMessage) -> None:
    grown = Growing.after(message)
    assert grown.tool_calls(nameless=False) == message.tool_calls
    assert message.content in (grown.content(), [grown.content()])
    grown.add(TextDelta(text="!"))
    assert message.text + "!" == ChatMessage(role="assistant", content=grown.content()).text


async def test_a_partial_message_of_an_append_is_continued(asked: Ledger) -> None:
    own = assistant("Su", message_id="m", state="partial", calls=[ToolCall(id="a", name="f", arguments={"x": 1})])
    await asked.messages.append("t", [own.model_copy(update={"custom_data": {"own": 1}})])
    await pass_time(asked, NEVER)
    async with resumed(asked, "continue") as draft:
        await draft.feed("nny.")
    whole = await last(asked)
    assert (whole.text, whole.custom_data) == ("Sunny.", {"own": 1})
    assert whole.tool_calls == [ToolCall(id="a", name="f", arguments='{"x":1}')]


async def test_an_interrupted_message_is_finished(asked: Ledger) -> None:
    await left(asked, "Su")
    await asked.messages.append("t", [user("next")])
    for resume in ENDS:
        async with resumed(asked, resume) as draft:
            await draft.feed("nny")
        assert (draft.replayed, draft.message.state, draft.message.text) == (True, "interrupted", "Su")


async def test_a_draft_on_a_branch_of_its_own_is_taken_over_there(asked: Ledger) -> None:
    await asked.messages.append("t", [assistant("Rain.")])
    await left(asked, "Su", reply_to=at(1))
    await asked.branches.activate("t", 0)
    async with resumed(asked, "continue", reply_to=at(1)) as draft:
        await draft.feed("nny.")
    assert (draft.message.branch, draft.message.seq, draft.message.text) == (1, 2, "Sunny.")
    assert texts(await asked.messages.history("t", branch=1)) == ["?", "Sunny."]
    assert texts(await asked.messages.history("t", branch=0)) == ["?", "Rain."]


async def test_a_draft_is_taken_over_in_a_transaction(asked: Ledger) -> None:
    await left(asked, "Su")
    with pytest.raises(KeyError):
        async with asked.begin() as tx:
            async with resumed(tx, "continue") as draft:
                await draft.feed("nny.")
            raise KeyError
    assert ((await last(asked)).text, (await last(asked)).state) == ("Su", "partial")
    async with asked.begin() as tx, resumed(tx, "continue") as draft:
        await draft.feed("nny.")
    assert ((await last(asked)).text, (await last(asked)).state) == ("Sunny.", "complete")


@pytest.mark.parametrize("resume", ["continue", None, 1])
async def test_an_unknown_value_of_resume_is_refused(asked: Ledger, resume: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^resume must be True or False"):
        asked.messages.stream("t", resume=resume, message=ChatMessage.assistant(message_id="m"))


async def test_continuing_needs_to_know_the_message(asked: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="id or the idempotency_key"):
        asked.messages.stream("t", resume=True)


# --- Its writers ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def others(asked: Ledger, database: Database) -> AsyncIterator[list[Ledger]]:
    """The ledgers of other processes. In memory, there is only one."""
    if ":memory:" in database.url:
        yield [asked] * 2
        return
    async with database.open() as first, database.open() as second:
        yield [first, second]


@pytest.mark.parametrize("resume", ENDS)
async def test_a_live_writer_keeps_its_message(asked: Ledger, others: list[Ledger], resume: str) -> None:
    async with stream(asked, message_id="m") as writer:
        await writer.feed("Sun")
        await writer.flush()
        with pytest.raises(DraftLive) as raised:
            async with resumed(others[0], resume):
                pass
        assert raised.value.message_id == "m"
        await writer.feed("ny.")
    assert texts(await asked.messages.history("t")) == ["?", "Sunny."]


@pytest.mark.parametrize("resume", ENDS)
async def test_one_of_several_takers_wins(asked: Ledger, others: list[Ledger], resume: str) -> None:
    await left(asked, "Rain. ")
    drafts = [resumed(ledger, resume) for ledger in others * 4]
    entered = await asyncio.gather(*[draft.__aenter__() for draft in drafts], return_exceptions=True)
    (winner,) = [one for one in entered if not isinstance(one, BaseException)]
    assert [type(one) for one in entered if one is not winner] == [DraftLive] * 7
    async with asyncio.timeout(10):
        await winner.feed("Sunny.")
        await winner.complete()
    assert texts(await asked.messages.history("t")) == ["?", ENDS[resume]]


@pytest.mark.parametrize("resume", ENDS)
@pytest.mark.parametrize("end", ["feed", "flush", "complete", "interrupt"])
async def test_the_writer_that_wakes_up_stores_nothing_more(
    asked: Ledger, others: list[Ledger], resume: str, end: str
) -> None:
    writer = stream(asked, message_id="m", size=3)
    await writer.__aenter__()
    await writer.feed("Rain. ")
    await pass_time(asked, 3 * NEVER)
    async with resumed(others[0], resume) as taker:
        await taker.feed("Sun")
        await taker.flush()
        with pytest.raises(DraftLost) as lost:
            await (writer.feed("late") if end == "feed" else getattr(writer, end)())
        assert (lost.value.thread_id, lost.value.seq) == ("t", 2)
        with pytest.raises(DraftLost):
            await writer.complete()
        assert await last(asked) == taker.message
        await taker.feed("ny.")
    await writer._stop()
    assert texts(await asked.messages.history("t")) == ["?", ENDS[resume]]


async def test_a_writer_that_was_late_and_replaced_by_nobody_goes_on(asked: Ledger) -> None:
    async with stream(asked, message_id="m") as writer:
        await writer.feed("Sun")
        await writer.flush()
        await pass_time(asked, 3 * NEVER)
        await writer.feed("ny.")
        await writer.flush()
        with pytest.raises(DraftLive):
            async with resumed(asked, "continue"):
                pass
    assert texts(await asked.messages.history("t")) == ["?", "Sunny."]


async def test_a_draft_is_taken_over_as_often_as_needed(asked: Ledger) -> None:
    await left(asked, "a")
    for piece in "bcd":
        await left(asked, piece, resume=True)
    assert (await last(asked)).text == "abcd"


# --- A writer that leaves ---------------------------------------------------------------------------------------------


class ShutDown(BaseException):
    """What ends a program, such as a KeyboardInterrupt."""


async def leave(ledger: Any, *deltas: Any, **options: Any) -> Any:
    """As a process that shuts down: the draft has unwritten pieces, and an exception ends its block."""
    with pytest.raises(ShutDown):
        async with stream(ledger, **{"message_id": "m", **options}) as draft:
            for delta in deltas:
                await draft.feed(delta)
            await draft.leave()
            raise ShutDown
    return draft


@pytest.mark.parametrize("resume", ENDS)
@pytest.mark.parametrize("same", [{"message_id": "m"}, {"message_id": None, "idempotency_key": "k"}])
async def test_another_process_continues_at_once(
    asked: Ledger, others: list[Ledger], resume: str, same: dict[str, Any]
) -> None:
    await leave(asked, "Ra", "in. ", run_id="r", **same)
    before = await last(asked)
    assert (before.text, before.state) == ("Rain. ", "partial")
    assert (await asked.runs.get("r")).status == "running"
    assert [draft.seq for draft in await others[0].drafts.list(abandoned_for=0)] == [2]
    async with resumed(others[0], resume, run_id="r", **same) as draft:
        await draft.feed("Sunny.")
    whole = await last(asked)
    assert (whole.text, whole.state, whole.message_id) == (ENDS[resume], "complete", before.message_id)
    assert await findings_of(asked, "t") == []


async def test_a_message_whose_writer_left_is_interrupted_by_the_next_append(asked: Ledger) -> None:
    await leave(asked, "Rain. ")
    await asked.messages.append("t", [user("next")])
    assert await states(asked) == ["complete", "interrupted", "complete"]


async def test_a_draft_that_left_is_closed(asked: Ledger) -> None:
    draft = await leave(asked, "Rain. ")
    await draft.leave()
    for call_again in (lambda: draft.feed("more"), draft.flush, draft.complete, draft.interrupt):
        with pytest.raises(StorageError, match="not open"):
            await call_again()
    assert draft._keeper.done()
    assert (await last(asked)).text == "Rain. "


async def test_a_block_whose_draft_left_ends_quietly(asked: Ledger) -> None:
    async with stream(asked, message_id="m") as draft:
        await draft.leave()
    assert draft.message.state == "partial"
    async with resumed(asked, "continue") as draft:
        pass
    await draft.leave()
    assert (await last(asked)).state == "complete"
    async with resumed(asked, "continue") as draft:
        await draft.leave()
    assert draft.replayed


async def test_a_draft_leaves_only_once_it_is_entered(asked: Ledger) -> None:
    draft = stream(asked, message_id="m")
    with pytest.raises(StorageError, match="not open"):
        await draft.leave()
    async with draft:
        await draft.feed("Sunny.")
    assert (await last(asked)).state == "complete"


@pytest.mark.parametrize("knows", [False, True])
@pytest.mark.parametrize("taken", ["another writer", "an interruption", "a deletion"])
async def test_leaving_what_another_writer_has_changes_nothing(
    asked: Ledger, others: list[Ledger], taken: str, knows: bool
) -> None:
    writer = stream(asked, message_id="m")
    await writer.__aenter__()
    await writer.feed("Rain. ")
    await writer.flush()
    await pass_time(asked, 3 * NEVER)
    async with resumed(others[0], "continue") as taker:
        await taker.feed("Sunny.")
        if taken != "another writer":
            await taker.interrupt()
        if taken == "a deletion":
            await others[0].threads.delete("t")
        if knows:
            with pytest.raises(DraftLost):
                await writer.flush()
        await writer.leave()
        await writer.__aexit__(None, None, None)
    if taken != "a deletion":
        assert (await last(asked)).text == "Rain. Sunny."


async def test_what_is_fed_while_a_draft_leaves_is_stored_or_refused(asked: Ledger) -> None:
    stored, begun = "", asyncio.Event()
    async with stream(asked, message_id="m", size=1) as draft:

        async def feed() -> None:
            nonlocal stored
            for number in range(1_000):
                await draft.feed(f"{number} ")
                stored += f"{number} "
                begun.set()

        feeding = asyncio.create_task(feed())
        await begun.wait()
        await draft.leave()
        with pytest.raises(StorageError, match="not open"):
            await feeding
    assert (await last(asked)).text == stored


async def test_a_draft_that_cannot_be_written_is_left_all_the_same(
    asked: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(messages: Any) -> None:
        raise StorageError("away", retryable=True)

    async with stream(asked, message_id="m") as draft:
        await draft.feed("Rain. ")
        await draft.flush()
        with monkeypatch.context() as patch:
            patch.setattr(draft, "_write", fail)
            with pytest.raises(StorageError, match="away"):
                await draft.leave()
    assert (await last(asked)).state == "partial"
    with pytest.raises(DraftLive):
        await asked.messages.append("t", [user("next")])
    assert draft._keeper is not None
    assert draft._keeper.done()


# --- Tenants and users ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resume", ENDS)
async def test_nobody_takes_over_a_draft_of_another_user_or_tenant(ledger: Ledger, resume: str) -> None:
    ada, bob = ledger.user("ada"), ledger.user("bob")
    await bob.threads.create("t")
    await bob.messages.append("t", [user("?")])
    await left(bob, "Rain. ")
    for stranger in (ada, ledger.tenant("else"), ledger.tenant("else").user("bob")):
        with pytest.raises(NotFound):
            async with resumed(stranger, resume):
                pass
    assert (await last(bob)).text == "Rain. "
    assert await bob.drafts.list(abandoned_for=0) != []
    async with resumed(bob, resume) as draft:
        await draft.feed("Sunny.")
    assert (await last(bob)).text == ENDS[resume]
