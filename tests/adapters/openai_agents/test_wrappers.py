"""Our session below the SDK's own wrappers: compaction, which replaces a suffix, and encryption."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.extensions.memory import EncryptedSession, encrypt_session
from agents.memory import OpenAIResponsesCompactionSession
from cryptography import fernet

from chatledger import ChatMessage, Feedback, Ledger, Limits, Payload
from chatledger.adapters.openai_agents import ChatLedgerSession, UndecodableItem
from chatledger.errors import DraftLive, LimitExceeded
from tests.adapters.openai_agents.scripted import Scripted, calls, says
from tests.adapters.openai_agents.test_session import ANSWER, CALL_A, CALL_B, ITEMS, RESULT_A, RESULT_B, USER
from tests.conftest import Database

KEY = "a key of at least thirty-two characters"
SUMMARY = {"id": "cmp_1", "type": "compaction", "encrypted_content": "gBBB"}


class Client:
    """The part of the provider's client that compaction uses: it returns the summary and records its input."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self.responses = self

    async def compact(self, **given: Any) -> Any:
        self.given.append(given)
        return SimpleNamespace(output=[SUMMARY], usage=None)


@pytest.fixture
def session(ledger: Ledger) -> ChatLedgerSession:
    return ChatLedgerSession("s", ledger)


# --- The snapshot -----------------------------------------------------------------------------------------------------


async def test_a_snapshot_has_the_last_items_and_says_whether_these_are_all(session: ChatLedgerSession) -> None:
    await session.add_items(ITEMS)
    for limit in (1, 3, 6):
        found = await session._get_compaction_snapshot(limit)
        assert (found.items, found.complete) == (ITEMS[-limit:], False)
    for limit in (7, 20):
        found = await session._get_compaction_snapshot(limit)
        assert (found.items, found.complete) == (ITEMS, True)


@pytest.mark.parametrize("start", range(7))
async def test_any_suffix_can_be_replaced(session: ChatLedgerSession, ledger: Ledger, start: int) -> None:
    await session.add_items(ITEMS)
    ids = [message.message_id for message in (await ledger.messages.history("s")).messages]
    found = await session._get_compaction_snapshot(7)
    assert await found.replace_suffix(start, [SUMMARY, ANSWER])
    assert await session.get_items() == [*ITEMS[:start], SUMMARY, ANSWER]
    left = (await ledger.messages.history("s")).messages
    first_of_message = (0, 1, 1, 1, 2, 3, 4)[start]
    assert [message.message_id for message in left][:first_of_message] == ids[:first_of_message]


async def test_a_suffix_that_moved_is_not_replaced(session: ChatLedgerSession, ledger: Ledger) -> None:
    await session.add_items(ITEMS)
    found = await session._get_compaction_snapshot(3)
    assert not await found.replace_suffix(3, [SUMMARY])  # an empty suffix
    await session.add_items([USER])
    assert not await found.replace_suffix(0, [SUMMARY])
    assert await session.get_items() == [*ITEMS, USER]
    for _ in range(2):
        await session.pop_item()
    await session.add_items([ANSWER])  # the same again, and yet another item
    assert not await found.replace_suffix(0, [SUMMARY])
    assert await session.get_items() == ITEMS
    found = await session._get_compaction_snapshot(3)
    await session.add_items([USER])
    await session.pop_item()
    assert await found.replace_suffix(1, [SUMMARY])  # it is again as it was
    assert await session.get_items() == [*ITEMS[:5], SUMMARY]
    assert not await found.replace_suffix(0, [SUMMARY])
    found = await session._get_compaction_snapshot(3)
    await session.clear_session()
    assert not await found.replace_suffix(0, [SUMMARY])
    assert await ledger.threads.find("s") is None


async def test_a_recreated_thread_is_another_thread(session: ChatLedgerSession) -> None:
    await session.add_items(ITEMS)
    found = await session._get_compaction_snapshot(1)
    await session.clear_session()
    await session.add_items([USER])
    assert not await found.replace_suffix(0, [SUMMARY])
    assert await session.get_items() == [USER]


async def test_items_that_depend_on_others_have_no_snapshot(session: ChatLedgerSession, ledger: Ledger) -> None:
    chat = [
        {"role": "user", "content": "Tokyo?"},
        {"role": "assistant", "content": "", "function_call": {"name": "weather", "arguments": "{}"}},
        {"role": "function", "name": "weather", "content": "18"},
    ]
    await ledger.messages.append("s", Payload(chat, "qwen-agent"), create=True)
    assert await session._get_compaction_snapshot(3) is None


async def test_one_of_two_replacements_at_once_wins(session: ChatLedgerSession) -> None:
    await session.add_items(ITEMS)
    found = [await session._get_compaction_snapshot(3) for _ in range(4)]
    done = await asyncio.gather(*(one.replace_suffix(0, [SUMMARY]) for one in found))
    assert sorted(done) == [False, False, False, True]
    assert await session.get_items() == [*ITEMS[:4], SUMMARY]


async def test_messages_without_items_stay(session: ChatLedgerSession, ledger: Ledger) -> None:
    await session.add_items(ITEMS[:4])
    await ledger.messages.append(
        "s", [ChatMessage(role="custom", content="a note", message_id="note")], rules="lenient"
    )
    await session.add_items(ITEMS[4:])
    found = await session._get_compaction_snapshot(5)
    assert (found.items, found.complete) == (ITEMS[2:], False)
    assert await found.replace_suffix(0, [SUMMARY])
    assert await session.get_items() == [*ITEMS[:2], SUMMARY]
    assert "note" in [message.message_id for message in await ledger.messages.history("s")]


async def test_an_expired_prefix_is_removed(session: ChatLedgerSession) -> None:
    old, new = (
        [{"__enc__": 1, "v": 1, "kid": "k", "payload": f"{age} {n}"} for n in range(3)] for age in ("old", "new")
    )

    def expired(item: Any) -> bool:
        return str(item.get("payload", "")).startswith("old")

    for batches in ([old, new], [[*old, *new]], [[old[0]], [old[1], old[2], new[0]], new[1:]]):
        await session.clear_session()
        for batch in batches:
            await session.add_items(batch)
        found = await session._get_compaction_snapshot(2, prune_prefix=expired)
        assert (found.items, found.complete) == (new[1:], False)
        assert await found.replace_suffix(1, [SUMMARY])
        assert await session.get_items() == [*new[:2], SUMMARY]
    await session.clear_session()
    await session.add_items([old[0], CALL_A, RESULT_A, new[0]])
    found = await session._get_compaction_snapshot(1, prune_prefix=lambda item: True)
    assert await found.replace_suffix(0, [SUMMARY])
    assert await session.get_items() == [old[0], CALL_A, RESULT_A, SUMMARY]  # what holds a call is no envelope


# --- Compaction by the Runner -----------------------------------------------------------------------------------------


def agent(*outputs: Any) -> Agent[Any]:
    return Agent(name="Assistant", model=Scripted(*outputs))


def often(context: dict[str, Any]) -> bool:
    return len(context["session_items"]) > 3


async def test_the_runner_compacts(session: ChatLedgerSession) -> None:
    client = Client()
    compacting = OpenAIResponsesCompactionSession("s", session, client=client, should_trigger_compaction=often)
    await Runner.run(agent([says("One.")]), "First", session=compacting)
    assert client.given == []
    await Runner.run(agent([says("Two.", 2)]), "Second", session=compacting)
    assert len(client.given) == 1
    assert await session.get_items() == [SUMMARY]
    await Runner.run(agent([says("Three.", 3)]), "Third", session=compacting)
    assert [item.get("type", item.get("role")) for item in await session.get_items()] == [
        "compaction",
        "user",
        "message",
    ]


async def test_the_runner_compacts_a_suffix_and_keeps_what_the_model_did_not_see(session: ChatLedgerSession) -> None:
    await session.add_items([USER, ANSWER])
    client = Client()
    compacting = OpenAIResponsesCompactionSession("s", session, client=client, should_trigger_compaction=bool)

    def newest(history: list[Any], new: list[Any]) -> list[Any]:
        return [*history[2:], *new]

    config = RunConfig(session_input_callback=newest)
    await Runner.run(agent([says("One.", 2)]), "First", session=compacting, run_config=config)
    assert await session.get_items() == [USER, ANSWER, SUMMARY]


async def test_a_manual_compaction_replaces_everything(session: ChatLedgerSession) -> None:
    await session.add_items([USER, CALL_A, CALL_B, RESULT_A, RESULT_B, ANSWER])
    client = Client()
    compacting = OpenAIResponsesCompactionSession("s", session, client=client)
    await compacting.run_compaction({"force": True, "compaction_mode": "input"})
    assert await session.get_items() == [SUMMARY]


async def test_a_manual_compaction_keeps_the_thread_its_runs_and_its_scores(
    session: ChatLedgerSession, ledger: Ledger
) -> None:
    await ledger.threads.create("s", title="Weather", metadata={"team": "a"}, rules="lenient")
    await ledger.messages.append("s", [ChatMessage(role="custom", content="a note", message_id="note")])
    await session.add_items([USER, ANSWER])
    await ledger.runs.start("s", run_id="r", agent="weather")
    score = await ledger.feedback.record(Feedback(run_id="r", key="user", score=1.0))
    before = await ledger.threads.get("s")
    compacting = OpenAIResponsesCompactionSession("s", session, client=Client())
    await compacting.run_compaction({"force": True, "compaction_mode": "input"})
    assert await session.get_items() == [SUMMARY]
    after = await ledger.threads.get("s")
    assert (after.title, after.metadata, after.created_at) == ("Weather", {"team": "a"}, before.created_at)
    assert [run.agent for run in await ledger.runs.list(thread_id="s")] == ["weather"]
    assert [one.feedback_id for one in await ledger.feedback.list(events=True, run_id="r")] == [score.feedback_id]
    assert next(one.message_id for one in await ledger.messages.history("s")) == "note"
    assert len(await ledger.branches.list("s")) == 1


async def test_a_replacement_is_stored_whole_or_not_at_all(database: Database) -> None:
    async with database.open(limits=Limits(bytes=1000)) as ledger:
        session = ChatLedgerSession("s", ledger)
        await session.add_items(ITEMS)
        with pytest.raises(UndecodableItem):
            await session._atomic_replace_items([SUMMARY, 7])
        with pytest.raises(LimitExceeded):
            await session._atomic_replace_items([SUMMARY | {"encrypted_content": "x" * 1000}])
        assert await session.get_items() == ITEMS
        assert await session._atomic_replace_items([])
        assert await session.get_items() == []
        assert await ledger.threads.find("s") is not None
        assert await session._atomic_replace_items([SUMMARY])
        assert await session.get_items() == [SUMMARY]


async def test_a_replacement_waits_for_no_draft_and_creates_a_missing_thread(
    session: ChatLedgerSession, ledger: Ledger
) -> None:
    assert await session._atomic_replace_items([SUMMARY])
    async with ledger.messages.stream("s") as draft:
        await draft.feed("So")
        await draft.flush()
        with pytest.raises(DraftLive):
            await session._atomic_replace_items([USER])
    assert (await session.get_items())[0] == SUMMARY


async def test_a_session_that_stores_its_items_in_another_way_is_cleared_and_filled_by_itself(ledger: Ledger) -> None:
    class Marked(ChatLedgerSession):
        async def add_items(self, items: Any) -> None:
            await super().add_items([{**item, "mark": 1} for item in items])

    marked = Marked("s", ledger)
    await marked.add_items([USER, ANSWER])
    compacting = OpenAIResponsesCompactionSession("s", marked, client=Client())
    await compacting.run_compaction({"force": True, "compaction_mode": "input"})
    assert await marked.get_items() == [{**SUMMARY, "mark": 1}]


# --- Encryption -------------------------------------------------------------------------------------------------------


async def test_encrypted_envelopes_are_kept(session: ChatLedgerSession, ledger: Ledger) -> None:
    encrypted = EncryptedSession("s", session, KEY)
    await Runner.run(agent([says("One.")]), "First", session=encrypted)
    await encrypted.add_items(ITEMS)
    assert (await encrypted.get_items())[2:] == ITEMS
    assert await encrypted.get_items(3) == ITEMS[-3:]
    assert all(item.keys() == {"__enc__", "v", "kid", "payload"} for item in await session.get_items())
    stored = await ledger.messages.history("s")
    assert "Tokyo" not in repr(stored.messages)
    for item in reversed(ITEMS):
        assert await encrypted.pop_item() == item
    assert len(await encrypted.get_items()) == 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds to add to the time that the SDK's cipher sees."""
    real, ahead = time.time, [0.0]
    monkeypatch.setattr(fernet, "time", SimpleNamespace(time=lambda: real() + ahead[0]))
    monkeypatch.setattr(encrypt_session, "time", SimpleNamespace(time=lambda: real() + ahead[0]))
    return ahead


async def test_an_encrypted_session_is_compacted_and_expired_envelopes_go(
    session: ChatLedgerSession, clock: list[float]
) -> None:
    client = Client()
    inner = OpenAIResponsesCompactionSession("s", session, client=client, should_trigger_compaction=often)
    encrypted = EncryptedSession("s", inner, KEY, ttl=60)
    await encrypted.add_items([USER, ANSWER])
    clock[0] = 120
    await Runner.run(agent([says("One.")]), "First", session=encrypted)
    assert client.given == []
    await Runner.run(agent([says("Two.", 2)]), "Second", session=encrypted)
    assert len(client.given) == 1
    assert await encrypted.get_items() == [SUMMARY]
    assert len(await session.get_items()) == 1


async def test_a_run_with_a_tool_that_is_interrupted_leaves_a_session_that_goes_on(session: ChatLedgerSession) -> None:
    """The call without a result is stored, and the SDK drops it when it reads."""

    @function_tool(failure_error_function=None)  # type: ignore[untyped-decorator]
    def fails() -> str:
        raise RuntimeError("broken")

    broken = Agent(name="Assistant", tools=[fails], model=Scripted([calls("fails", "{}")]))
    with pytest.raises(Exception, match="broken"):
        await Runner.run(broken, "First", session=session)
    after = agent([says("Fine.")])
    await Runner.run(after, "Second", session=session)
    assert after.model.asked[0][-1]["content"] == "Second"
