"""The four methods of a session, as the SDK calls them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from agents.memory import SessionSettings

from chatledger import (
    ChatLedgerError,
    ChatMessage,
    InvalidArgument,
    Ledger,
    Limits,
    Pace,
    Payload,
    TextDelta,
    ThreadNotFound,
    ToolCallDelta,
)
from chatledger.adapters.openai_agents import ChatLedgerSession, UndecodableItem
from chatledger.errors import DraftLive
from tests.conftest import Database
from tests.leases import pass_time

USER = {"role": "user", "content": "Tokyo or Lima?"}
THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
CALL_A = {"id": "fc_1", "type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"city": "Tokyo"}'}
CALL_B = {"id": "fc_2", "type": "function_call", "call_id": "b", "name": "weather", "arguments": '{"city": "Lima"}'}
RESULT_A = {"type": "function_call_output", "call_id": "a", "output": "25"}
RESULT_B = {"type": "function_call_output", "call_id": "b", "output": "19"}
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Tokyo.", "annotations": [], "logprobs": []}],
}
ITEMS: list[Any] = [USER, THOUGHT, CALL_A, CALL_B, RESULT_A, RESULT_B, ANSWER]


@pytest.fixture
def session(ledger: Ledger) -> ChatLedgerSession:
    return ChatLedgerSession("s", ledger)


# --- Reading ----------------------------------------------------------------------------------------------------------


async def test_a_session_without_a_thread_has_no_items(session: ChatLedgerSession, ledger: Ledger) -> None:
    assert [await session.get_items(limit) for limit in (None, 0, 3, -1)] == [[], [], [], []]
    assert await session.pop_item() is None
    await session.clear_session()
    await session.add_items([])
    assert await ledger.threads.find("s") is None


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_items_come_back_however_they_were_split(session: ChatLedgerSession, size: int) -> None:
    for start in range(0, len(ITEMS), size):
        await session.add_items(ITEMS[start : start + size])
    assert await session.get_items() == ITEMS
    assert [list(item) for item in await session.get_items()] == [list(item) for item in ITEMS]
    for limit in range(1, 10):
        assert await session.get_items(limit) == ITEMS[-limit:]
    assert await session.get_items(-2) == ITEMS
    assert await session.get_items(0) == []
    for huge in (2**31 - 1, 2**70):
        assert await session.get_items(huge) == ITEMS


async def test_the_settings_have_a_limit(ledger: Ledger) -> None:
    for settings in (SessionSettings(limit=2), {"limit": 2}):
        session = ChatLedgerSession("s", ledger, session_settings=settings)
        await session.clear_session()
        await session.add_items(ITEMS)
        assert await session.get_items() == ITEMS[-2:]
        assert await session.get_items(3) == ITEMS[-3:]
        session.session_settings = None
        assert await session.get_items() == ITEMS


async def test_a_window_of_turns_keeps_calls_with_their_results(ledger: Ledger) -> None:
    session = ChatLedgerSession("s", ledger, window="turns", session_settings={"limit": 1})
    await session.add_items([*ITEMS, {"role": "user", "content": "And now?"}, CALL_A, RESULT_A])
    assert [item.get("type") for item in await session.get_items()] == [None, "function_call", "function_call_output"]
    assert await session.get_items(2) == [*ITEMS, {"role": "user", "content": "And now?"}, CALL_A, RESULT_A]
    assert (await session.get_items(0), len(await session.get_items(-1))) == ([], 10)


async def test_the_model_view_has_a_result_for_each_call(ledger: Ledger) -> None:
    await ChatLedgerSession("s", ledger).add_items([USER, CALL_A])
    session = ChatLedgerSession("s", ledger, view="model")
    assert [item.get("type") for item in await session.get_items()] == [None, "function_call", "function_call_output"]
    assert await ChatLedgerSession("s", ledger).get_items() == [USER, CALL_A]
    await session.clear_session()
    await ledger.messages.append("s", [ChatMessage(role="custom", content="a note")], create=True)
    assert await session.get_items() == await session.get_items(1) == []
    await session.add_items([USER])
    await ledger.messages.append("s", [ChatMessage(role="custom", content="another note")])
    assert await session.get_items() == await session.get_items(1) == [USER]


async def test_messages_of_other_origin_are_items_too(session: ChatLedgerSession, ledger: Ledger) -> None:
    await ledger.messages.append("s", Payload("Tokyo?", "openai-responses"), create=True)
    assert await session.get_items() == [{"role": "user", "content": "Tokyo?"}]
    await ledger.messages.append(
        "s", [ChatMessage(role="custom", content="a note"), ChatMessage(role="assistant", content="18.")]
    )
    await ledger.messages.append("s", [ChatMessage(role="custom", content="another note")])
    both = [{"role": "user", "content": "Tokyo?"}, {"role": "assistant", "content": "18."}]
    assert await session.get_items() == both
    assert await session.get_items(1) == both[1:]
    await session.clear_session()
    await ledger.messages.append(
        "s", Payload({"instructions": "Be brief.", "input": "Hi"}, "openai-responses"), create=True
    )
    both = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert await session.get_items() == both
    assert await ChatLedgerSession("s", ledger, view="model").get_items() == both
    await session.clear_session()
    await ledger.messages.append("s", Payload("Tokyo?", "openai-responses"), create=True)
    assert await ChatLedgerSession("s", ledger, view="model").get_items() == [{"role": "user", "content": "Tokyo?"}]


# --- Writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        ("a text", "input[1]"),
        ({"role": "user", "content": object()}, "input[1].content"),
        ({"role": "user", "content": [{"type": "input_text", "text": b"x"}]}, "input[1].content[0].text"),
    ],
)
async def test_undecodable_items_are_a_type_error_and_nothing_is_stored(
    session: ChatLedgerSession, ledger: Ledger, bad: Any, path: str
) -> None:
    with pytest.raises(TypeError) as caught:
        await session.add_items([USER, bad])
    assert isinstance(caught.value, UndecodableItem)
    assert isinstance(caught.value, ChatLedgerError)
    assert caught.value.path == path
    assert await ledger.threads.find("s") is None


async def test_a_batch_may_be_larger_than_an_append(database: Database) -> None:
    async with database.open(limits=Limits(messages=10)) as ledger:
        session = ChatLedgerSession("s", ledger)
        many = [{"role": "user", "content": str(number)} for number in range(35)]
        await session.add_items(many)
        await session.add_items(many)
        assert await session.get_items() == many * 2
        with pytest.raises(TypeError):
            await session.add_items([*many, "no item"])
        assert len(await session.get_items()) == 70


async def test_bytes_beyond_the_limit_are_refused_whole(database: Database) -> None:
    async with database.open(limits=Limits(bytes=1000)) as ledger:
        session = ChatLedgerSession("s", ledger)
        with pytest.raises(ChatLedgerError, match="bytes of an append"):
            await session.add_items([USER, {"role": "user", "content": "x" * 2000}])
        assert await ledger.threads.find("s") is None


async def test_the_thread_is_lenient_unless_another_level_is_asked_for(ledger: Ledger) -> None:
    await ChatLedgerSession("lenient", ledger).add_items([CALL_A, USER])
    assert (await ledger.threads.get("lenient")).rules == "lenient"
    strict = ChatLedgerSession("strict", ledger, rules="strict")
    with pytest.raises(ChatLedgerError, match="R8"):
        await strict.add_items([CALL_A, USER])
    assert await ledger.threads.find("strict") is None
    await strict.add_items([USER])
    assert (await ledger.threads.get("strict")).rules == "strict"


async def test_a_session_cleared_elsewhere_is_made_again(database: Database) -> None:
    async with database.open() as one, database.open() as other:
        here, there = ChatLedgerSession("s", one), ChatLedgerSession("s", other)
        await here.add_items(ITEMS)
        await there.clear_session()
        assert await here.get_items() == []
        await there.add_items([USER])
        await there.clear_session()
        await here.add_items([ANSWER])
        assert await there.get_items() == [ANSWER]


async def test_clear_deletes_runs_and_feedback(session: ChatLedgerSession, ledger: Ledger) -> None:
    await session.add_items([USER])
    await ledger.messages.append("s", [ChatMessage(role="assistant", content="Hi")], run_id="r")
    await session.clear_session()
    assert await ledger.threads.find("s") is None
    assert (await ledger.threads.count()) == 0


@pytest.mark.parametrize(
    "wrong",
    [{"session_id": 1}, {"ledger": "l.db"}, {"user_id": 1}, {"window": "words"}, {"view": "x"}, {"rules": "loose"}],
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any]) -> None:
    given = {"session_id": "s", "ledger": None, **wrong}
    with pytest.raises(InvalidArgument):
        ChatLedgerSession(given.pop("session_id"), given.pop("ledger"), **given)


# --- Popping ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7])
async def test_items_are_popped_one_by_one(session: ChatLedgerSession, ledger: Ledger, size: int) -> None:
    for start in range(0, len(ITEMS), size):
        await session.add_items(ITEMS[start : start + size])
    for left in range(len(ITEMS), 0, -1):
        assert await session.pop_item() == ITEMS[left - 1]
        assert await session.get_items() == ITEMS[: left - 1]
    assert await session.pop_item() is None
    assert await ledger.threads.find("s") is not None
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS


async def test_the_rest_of_a_popped_message_keeps_its_identity(session: ChatLedgerSession, ledger: Ledger) -> None:
    await session.add_items(ITEMS[:4])
    before = (await ledger.messages.history("s")).messages[-1]
    assert await session.pop_item() == CALL_B
    after = (await ledger.messages.history("s")).messages[-1]
    assert (after.message_id, after.created_at) == (before.message_id, before.created_at)
    assert [call.id for call in after.tool_calls or ()] == ["a"]
    await session.add_items([RESULT_A])
    assert (await ledger.messages.history("s")).messages[-1].violations == []
    assert before.message_id is not None
    kept = await ledger.messages.revisions("s", before.message_id)
    assert [change.message and len(change.message.tool_calls or ()) for change in kept] == [2]


async def test_a_pop_looks_past_messages_without_items(session: ChatLedgerSession, ledger: Ledger) -> None:
    note = ChatMessage(role="custom", content="a note", message_id="note")
    await session.add_items([USER, CALL_A])
    await ledger.messages.append("s", [note], rules="lenient")
    assert await session.pop_item() == CALL_A
    assert await session.pop_item() == USER
    version = (await ledger.messages.history("s")).last_seq
    assert await session.pop_item() is None
    history = await ledger.messages.history("s")
    assert ([message.message_id for message in history], history.last_seq) == (["note"], version)


async def test_a_pop_returns_what_was_read_of_another_format(session: ChatLedgerSession, ledger: Ledger) -> None:
    chat = [
        {"role": "user", "content": "Tokyo?"},
        {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}},
        {"role": "function", "name": "weather", "content": "18"},
        {"role": "assistant", "content": "18.", "reasoning_content": "easy"},
    ]
    await ledger.messages.append("s", Payload(chat, "qwen-agent"), create=True)
    items = await session.get_items()
    assert len(items) == 5
    popped = [await session.pop_item() for _ in items]
    assert popped[2:] == items[2::-1]
    assert [item["type"] if "type" in item else item["role"] for item in popped] == [
        item["type"] if "type" in item else item["role"] for item in reversed(items)
    ]


async def test_forty_concurrent_pops_give_forty_different_items(database: Database) -> None:
    async with database.open() as one, database.open() as other:
        calls = [{**CALL_A, "id": f"fc_{number}", "call_id": f"c{number}"} for number in range(20)]
        items = [*({"role": "user", "content": str(number)} for number in range(22)), *calls]
        await ChatLedgerSession("s", one).add_items(items)
        sessions = [ChatLedgerSession("s", (one, other)[number % 2]) for number in range(40)]
        async with asyncio.timeout(60):
            popped = await asyncio.gather(*(session.pop_item() for session in sessions))
        assert sorted(map(repr, popped)) == sorted(map(repr, items[2:]))
        assert await sessions[0].get_items() == items[:2]


async def test_a_message_being_written_is_left_to_its_writer(session: ChatLedgerSession, ledger: Ledger) -> None:
    await session.add_items(ITEMS)
    found = await session._get_compaction_snapshot(7)
    async with ledger.messages.stream("s") as draft:
        await draft.feed(TextDelta(text="Lima, "))
        assert await session.get_items() == ITEMS
        assert await session.get_items(1) == [ANSWER]
        for write in (session.add_items([USER]), session.pop_item()):
            with pytest.raises(DraftLive):
                await write
        assert not await found.replace_suffix(0, [USER])
        await draft.feed(TextDelta(text="then."))
    assert await session.pop_item() == {"role": "assistant", "content": "Lima, then."}
    assert await session.get_items() == ITEMS


async def test_a_pop_interrupts_an_abandoned_message(database: Database) -> None:
    """Its writer died in the middle of two calls."""
    async with database.open() as ledger:
        session = ChatLedgerSession("s", ledger)
        await session.add_items([USER])
        draft = ledger.messages.stream("s", pace=Pace(size=1))
        await draft.__aenter__()
        for number in range(2):
            await draft.feed(ToolCallDelta(id=f"c{number}", name="weather", arguments="{}"))
        await pass_time(ledger, 60)
        assert await session.get_items() == [USER]
        assert (await session.pop_item())["call_id"] == "c1"
        last = (await ledger.messages.history("s")).messages[-1]
        assert (last.state, [call.id for call in last.tool_calls or ()]) == ("interrupted", ["c0"])


# --- Users ------------------------------------------------------------------------------------------------------------


async def test_two_users_are_kept_apart(ledger: Ledger) -> None:
    ada, bob = (ChatLedgerSession("s", ledger, user_id=user) for user in ("ada", "bob"))
    await ada.add_items(ITEMS)
    assert await bob.get_items() == await bob.get_items(3) == []
    assert await bob.pop_item() is None
    await bob.clear_session()
    with pytest.raises(ThreadNotFound):
        await bob.add_items([USER])
    assert await ada.get_items() == ITEMS
    assert (await ledger.threads.get("s")).user_id == "ada"
    with pytest.raises(ThreadNotFound):
        await bob.add_items([USER] * 2000)
    assert (await bob._get_compaction_snapshot(5)).items == []
    assert await ChatLedgerSession("s", ledger.user("ada")).get_items() == ITEMS


# --- Cancellation and concurrency -------------------------------------------------------------------------------------


async def test_a_cancelled_caller_waits_for_the_outcome(session: ChatLedgerSession) -> None:
    writes: list[tuple[Callable[[], Coroutine[Any, Any, Any]], list[Any]]] = [
        (lambda: session.add_items(ITEMS), ITEMS),
        (session.pop_item, ITEMS[:-1]),
        (session.clear_session, []),
    ]
    for write, outcome in writes:
        task = asyncio.ensure_future(write())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await session.get_items() == outcome


async def test_sixteen_writers_through_two_ledgers_lose_nothing(database: Database) -> None:
    async with database.open() as one, database.open() as other:

        async def write(writer: int) -> None:
            session = ChatLedgerSession("s", (one, other)[writer % 2])
            for turn in range(6):
                pair = f"{writer}-{turn}"
                await session.add_items(
                    [
                        {"role": "user", "content": pair},
                        {**CALL_A, "call_id": pair},
                        {**RESULT_A, "call_id": pair},
                    ]
                )

        async with asyncio.timeout(120):
            await asyncio.gather(*map(write, range(16)))
        items = await ChatLedgerSession("s", one).get_items()
        batches = [items[start : start + 3] for start in range(0, len(items), 3)]
        names = [(batch[0]["content"], batch[1]["call_id"], batch[2]["call_id"]) for batch in batches]
        assert all(len(set(name)) == 1 for name in names)  # none torn
        assert sorted(name[0] for name in names) == sorted(f"{w}-{t}" for w in range(16) for t in range(6))
        for writer in range(16):
            own = [name[0] for name in names if name[0].startswith(f"{writer}-")]
            assert own == [f"{writer}-{turn}" for turn in range(6)]
