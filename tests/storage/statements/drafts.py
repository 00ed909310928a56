"""Shapes of what a draft, a message that is being streamed, sends."""

from __future__ import annotations

from datetime import UTC, datetime

from chatledger import Pace, ReasoningDelta, Thread, ToolCallDelta
from chatledger.repositories import scope_of
from chatledger.storage.repositories.bulk import load_threads, prepare_thread
from tests.conversations import assistant, user
from tests.storage.statements.scene import Scene

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
WHEN_TOLD = Pace(interval=3_600, lease=7_200)
"""A draft that writes only when it is flushed."""


async def draft_begin(scene: Scene) -> None:
    """a draft begins: it stores a partial message with its lease."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", user("?"), create=True)
        draft = ledger.messages.stream("t", pace=WHEN_TOLD)
        with scene.sending():
            await draft.__aenter__()
        await draft.__aexit__(None, None, None)


async def draft_extend(scene: Scene) -> None:
    """a draft writes what it was fed since its last write, here text."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", user("?"), create=True)
        async with ledger.messages.stream("t", pace=WHEN_TOLD) as draft:
            await draft.feed("Sun")
            await draft.flush()
            await draft.feed("ny")
            with scene.sending():
                await draft.flush()


async def draft_extend_parts(scene: Scene) -> None:
    """a draft writes reasoning and the beginning of a call."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", user("?"), create=True)
        async with ledger.messages.stream("t", pace=WHEN_TOLD) as draft:
            await draft.feed("Sun")
            await draft.flush()
            await draft.feed(ReasoningDelta(text="hm"))
            await draft.feed(ToolCallDelta(index=0, name="f", arguments="{}"))
            with scene.sending():
                await draft.flush()


async def draft_finish(scene: Scene) -> None:
    """a draft ends: it writes the rest, and its message is complete."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", user("?"), create=True)
        async with ledger.messages.stream("t", pace=WHEN_TOLD) as draft:
            await draft.feed("Sun")
            await draft.flush()
            await draft.feed("ny")
            with scene.sending():
                await draft.complete()


async def draft_finish_run(scene: Scene) -> None:
    """a draft of a run ends with the usage that the provider reported: it is added to that of the run."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", user("?"), create=True, run_id="r")
        async with ledger.messages.stream("t", run_id="r", format="openai-chat", pace=WHEN_TOLD) as draft:
            await draft.feed({"choices": [], "usage": {"prompt_tokens": 3}})
            with scene.sending():
                await draft.complete()


async def draft_take_over(scene: Scene) -> None:
    """a draft takes the place of one that nobody writes any more."""
    async with scene.open() as ledger:
        left = assistant("Sun", state="partial", message_id="m")
        thread = Thread(thread_id="t", created_at=NOON, active_at=NOON)
        await load_threads(scope_of(ledger), [prepare_thread(scope_of(ledger), thread, [user("?"), left])])
        draft = ledger.messages.stream("t", message=assistant(message_id="m"), pace=WHEN_TOLD)
        with scene.sending():
            await draft.__aenter__()
        await draft.__aexit__(None, None, None)


async def draft_interrupt_by_append(scene: Scene) -> None:
    """an append interrupts the message that another draft is writing."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", user("?"), create=True)
        draft = await ledger.messages.stream("t", pace=WHEN_TOLD).__aenter__()
        await draft.feed("Sun")
        await draft.flush()
        with scene.sending():
            await ledger.messages.append("t", user("Stop."), on_open_calls="interrupt", rules="lenient")


async def drafts_list(scene: Scene) -> None:
    """`drafts.list` asks for the messages that are being written."""
    async with scene.open() as ledger:
        await ledger.messages.append("t", assistant("Sun", state="partial"), create=True)
        with scene.sending():
            await ledger.drafts.list(abandoned_for=0)
