"""A chat history on a ledger, as LangChain calls it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable
from typing import Any

import pytest
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables.history import RunnableWithMessageHistory

from chatledger import Ledger, Payload, StorageError, ThreadNotFound
from chatledger.adapters.langchain import LedgerChatMessageHistory
from chatledger.errors import DecodeError
from tests.conftest import Database

CALLS = 2_000
SESSIONS = 4
deprecated = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")


def talk(number: int) -> list[BaseMessage]:
    call = {"name": "weather", "args": {"city": "Oslo"}, "id": f"c{number}", "type": "tool_call"}
    return [
        HumanMessage(f"How cold is Oslo? {number}"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("4 °C", tool_call_id=f"c{number}"),
        AIMessage("4 °C."),
    ]


async def test_messages_come_back_equal_and_the_first_ones_make_the_thread(ledger: Ledger) -> None:
    history = LedgerChatMessageHistory("s", ledger)
    assert await history.aget_messages() == []
    await history.aadd_messages([])
    await history.aclear()
    assert await ledger.threads.find("s") is None
    await history.aadd_messages(talk(1)[:2])
    await history.aadd_messages(talk(1)[2:])
    assert await history.aget_messages() == talk(1)
    assert (await ledger.threads.get("s")).rules == "lenient"
    await history.aclear()
    assert await history.aget_messages() == []


async def test_a_thread_reads_as_a_provider_takes_it(ledger: Ledger) -> None:
    await LedgerChatMessageHistory("s", ledger).aadd_messages(talk(1))
    chat = (await ledger.messages.prompt("s", "openai-chat")).payload
    assert [message["role"] for message in chat] == ["user", "assistant", "tool", "assistant"]
    anthropic = (await ledger.messages.prompt("s", "anthropic")).payload
    assert [message["role"] for message in anthropic["messages"]] == ["user", "assistant", "user", "assistant"]
    assert len((await ledger.messages.prompt("s", "openai-responses")).payload) == 4


async def test_turns_are_whole(ledger: Ledger) -> None:
    await LedgerChatMessageHistory("s", ledger).aadd_messages([*talk(1), *talk(2), *talk(3)])
    assert await LedgerChatMessageHistory("s", ledger, last_turns=2).aget_messages() == [*talk(2), *talk(3)]


async def test_users_are_kept_apart(ledger: Ledger) -> None:
    ada, bob = (LedgerChatMessageHistory("s", ledger, user_id=user) for user in ("ada", "bob"))
    await ada.aadd_messages(talk(1))
    assert await bob.aget_messages() == []
    with pytest.raises(ThreadNotFound):
        await bob.aadd_messages(talk(2))
    await bob.aclear()
    assert await ada.aget_messages() == talk(1)


async def test_a_live_object_is_refused_with_its_path_and_nothing_is_stored(ledger: Ledger) -> None:
    history = LedgerChatMessageHistory("s", ledger)
    with pytest.raises(DecodeError) as caught:
        await history.aadd_messages([*talk(1), ToolMessage("b", tool_call_id="c", artifact={"live": [object()]})])
    assert caught.value.path == "messages[4].data.artifact.live[0]"
    with pytest.raises(DecodeError) as caught:
        await history.aadd_messages(["text"])
    assert caught.value.path == "messages[0]"
    assert await ledger.threads.find("s") is None


async def test_a_message_that_the_framework_refuses_does_not_hide_the_others(ledger: Ledger, caplog: Any) -> None:
    history = LedgerChatMessageHistory("s", ledger)
    await history.aadd_messages(talk(1))
    await ledger.messages.append(
        "s", Payload([{"type": "event", "data": {"content": "rain", "type": "event"}}], "langchain")
    )
    await history.aadd_messages(talk(2))
    with caplog.at_level(logging.ERROR, logger="chatledger.adapters.langchain"):
        assert await history.aget_messages() == [*talk(1), *talk(2)]
    [record] = caplog.records
    assert "thread 's'" in record.message
    assert "seq 5" in record.message


async def test_a_blocking_call_in_a_running_loop_is_refused(ledger: Ledger) -> None:
    history = LedgerChatMessageHistory("s", ledger)
    for call in (lambda: history.messages, lambda: history.add_messages(talk(1)), history.clear):
        with pytest.raises(StorageError, match="await aget_messages"):
            call()
    assert await ledger.threads.find("s") is None


@deprecated
async def test_a_chain_keeps_its_history_here(ledger: Ledger) -> None:
    chain = RunnableWithMessageHistory(
        FakeListChatModel(responses=["Hello.", "Ada."]), lambda session_id: LedgerChatMessageHistory(session_id, ledger)
    )
    config: Any = {"configurable": {"session_id": "s"}}
    await chain.ainvoke("I am Ada.", config)
    await chain.ainvoke("Who am I?", config)
    messages = await LedgerChatMessageHistory("s", ledger).aget_messages()
    assert [message.content for message in messages] == ["I am Ada.", "Hello.", "Who am I?", "Ada."]


@deprecated
async def test_a_chain_without_await_keeps_its_history_here(ledger: Ledger) -> None:
    chain = RunnableWithMessageHistory(
        FakeListChatModel(responses=["Hello."]), lambda session_id: LedgerChatMessageHistory(session_id, ledger)
    )
    await asyncio.to_thread(chain.invoke, "Hi.", {"configurable": {"session_id": "s"}})
    history = LedgerChatMessageHistory("s", ledger)
    assert [message.content for message in await asyncio.to_thread(lambda: history.messages)] == ["Hi.", "Hello."]
    await asyncio.to_thread(history.add_user_message, "Well?")
    assert len(await history.aget_messages()) == 3
    await asyncio.to_thread(history.clear)
    assert await history.aget_messages() == []


async def test_sixteen_writers_lose_and_double_nothing(database: Database) -> None:
    async with database.open() as one, database.open() as other:
        ledgers = [one, other]
        await asyncio.gather(
            *(
                LedgerChatMessageHistory("s", ledgers[n % 2]).aadd_messages(talk(100 * n + k))
                for n in range(16)
                for k in (1, 2)
            )
        )
        messages = await LedgerChatMessageHistory("s", one).aget_messages()
    turns = [messages[start : start + 4] for start in range(0, len(messages), 4)]
    numbers = sorted(int(turn[0].content.split()[-1]) for turn in turns)
    assert numbers == sorted(100 * n + k for n in range(16) for k in (1, 2))
    assert all(turn == talk(int(turn[0].content.split()[-1])) for turn in turns)


# --- The same calls on LangChain's own store --------------------------------------------------------------------------


def some(chance: random.Random) -> list[Any]:
    makers = [
        lambda: HumanMessage(chance.choice(["", "Oslo?", "\x00 \ud800", "Grüße 🌍"]), id=chance.choice([None, "h"])),
        lambda: SystemMessage([{"type": "text", "text": "Be brief."}], name="ada"),
        lambda: AIMessage(
            chance.choice(["Cold.", [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, "Cold."]]),
            tool_calls=chance.choice([[], [{"name": "weather", "args": {"a": 1.5}, "id": None}]]),
            invalid_tool_calls=chance.choice([[], [{"name": None, "args": "{", "id": "x", "error": None}]]),
            usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        ),
        lambda: ToolMessage("4", tool_call_id=chance.choice(["c", ""]), status="error", artifact={"a": [1, None]}),
    ]
    return [chance.choice(makers)() for _ in range(chance.choice([0, 1, 1, 2, 4]))]


async def outcome_of(call: Awaitable[Any]) -> Any:
    try:
        found = await call
    except Exception as error:  # whatever it is, the other store has to raise the same
        return type(error)
    return list(found) if isinstance(found, list) else found


@deprecated
async def test_the_same_calls_return_the_same_as_the_frameworks_store(ledger: Ledger) -> None:
    chance = random.Random(1)
    ours = [LedgerChatMessageHistory(f"s{n}", ledger) for n in range(SESSIONS)]
    theirs = [InMemoryChatMessageHistory() for _ in range(SESSIONS)]
    for step in range(CALLS):
        at = chance.randrange(SESSIONS)
        name = chance.choices(["aadd_messages", "aget_messages", "aclear"], [60, 35, 5])[0]
        arguments = [some(chance)] if name == "aadd_messages" else []
        first, second = [await outcome_of(getattr(store[at], name)(*arguments)) for store in (ours, theirs)]
        assert first == second, (step, name)
