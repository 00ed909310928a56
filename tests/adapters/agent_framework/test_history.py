"""The history provider, called as the framework calls it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from agent_framework import Content, Message

from chatledger import ChatMessage, Ledger, Payload
from chatledger.adapters.agent_framework import LedgerHistoryProvider, UndecodableMessage
from chatledger.errors import InvalidArgument, ThreadNotFound
from tests.conftest import Database


def user(text: str) -> Message:
    return Message("user", [text])


def dumped(messages: list[Message]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in messages]


TURN = [
    user("Tokyo?"),
    Message("assistant", [Content.from_function_call("a", "weather"), Content.from_function_call("b", "tides")]),
    Message("tool", [Content.from_function_result("a", result="18"), Content.from_function_result("b", result="low")]),
    Message("assistant", ["18, low."], message_id="m1"),
]


@pytest.fixture
def history(ledger: Ledger) -> LedgerHistoryProvider:
    return LedgerHistoryProvider(ledger)


async def test_messages_come_back_as_they_were(history: LedgerHistoryProvider) -> None:
    assert await history.get_messages("s") == []
    await history.save_messages("s", [])
    assert await history.get_messages("s") == []
    await history.save_messages("s", TURN)
    await history.save_messages("s", [user("And Rome?")])
    assert dumped(await history.get_messages("s")) == dumped([*TURN, user("And Rome?")])


async def test_a_run_without_a_session_has_the_default_one(ledger: Ledger) -> None:
    history = LedgerHistoryProvider(ledger, default_session="nobody")
    await history.save_messages(None, TURN)
    assert dumped(await history.get_messages(None)) == dumped(TURN)
    assert (await ledger.threads.get("nobody")).rules == "lenient"


async def test_a_history_that_is_given_again_is_stored_once(history: LedgerHistoryProvider) -> None:
    await history.save_messages("s", TURN)
    await history.save_messages("s", [*TURN, user("And Rome?")])
    await history.save_messages("s", [TURN[-1], user("And Rome?"), Message("assistant", ["20."])])
    assert dumped(await history.get_messages("s")) == dumped([*TURN, user("And Rome?"), Message("assistant", ["20."])])
    await history.save_messages("q", [user("Yes")])
    await history.save_messages("q", [user("Yes")])  # a word that somebody says twice
    assert len(await history.get_messages("q")) == 2


async def test_saving_reads_no_more_than_the_batch_and_one(history: LedgerHistoryProvider, ledger: Ledger) -> None:
    for number in range(40):
        await history.save_messages("s", [user(f"{number}")])
    asked: list[Any] = []
    read = history._history

    async def counted(*arguments: Any, **options: Any) -> Any:
        found = await read(*arguments, **options)
        asked.append(len(found.messages))
        return found

    history._history = counted  # type: ignore[method-assign]
    await history.save_messages("s", [user("a"), user("b")])
    assert asked == [3]


async def test_last_turns_and_excluded_messages(ledger: Ledger) -> None:
    hidden = Message("assistant", ["old"], additional_properties={"_excluded": True})
    await LedgerHistoryProvider(ledger).save_messages("s", [user("1"), hidden, *TURN])
    assert dumped(await LedgerHistoryProvider(ledger, last_turns=1).get_messages("s")) == dumped(TURN)
    left = await LedgerHistoryProvider(ledger, skip_excluded=True).get_messages("s")
    assert dumped(left) == dumped([user("1"), *TURN])


@pytest.mark.parametrize("given", [{"rules": "loose"}, {"last_turns": "2"}, {"user_id": 1}, {"skip_excluded": 1}])
async def test_wrong_arguments_are_named(ledger: Ledger, given: Any) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(given))):
        LedgerHistoryProvider(ledger, **given)
    with pytest.raises(TypeError):
        LedgerHistoryProvider(ledger, flag=True)


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (Message("user", ["a"], additional_properties={"client": {"open": object()}}), "client.open"),
        (
            Message("user", [Content("text", text="a", additional_properties={"lock": object()})]),
            "contents[0].additional_properties.lock",
        ),
        (Message("assistant", [Content.from_function_call("c", "run", arguments={"at": object()})]), "arguments.at"),
    ],
)
async def test_a_live_object_is_refused_with_its_path(
    history: LedgerHistoryProvider, ledger: Ledger, message: Message, path: str
) -> None:
    with pytest.raises(UndecodableMessage, match=r"\$\[1\]") as raised:
        await history.save_messages("s", [user("before"), message])
    assert isinstance(raised.value, TypeError)
    assert path in raised.value.path
    assert await ledger.threads.find("s") is None


async def test_a_message_that_the_framework_refuses_hides_no_other(
    history: LedgerHistoryProvider, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    await history.save_messages("s", TURN)
    odd = {"type": "message", "role": "user", "contents": [{"type": "text", "text": "a"}], "unknown": 1}
    await ledger.messages.append("s", Payload([odd], "agent-framework"))
    await history.save_messages("s", [user("after")])
    with caplog.at_level(logging.ERROR, logger="chatledger.adapters"):
        assert dumped(await history.get_messages("s")) == dumped([*TURN, user("after")])
    assert "seq 6" in caplog.text


async def test_messages_of_other_formats_are_part_of_the_history(
    history: LedgerHistoryProvider, ledger: Ledger
) -> None:
    await history.save_messages("s", [user("1")])
    await ledger.messages.append("s", [ChatMessage(role="assistant", content="2")])
    await history.save_messages("s", [Message("assistant", ["2"]), user("3")])
    assert [message.text for message in await history.get_messages("s")] == ["1", "2", "3"]


async def test_a_batch_may_be_larger_than_an_append(database: Database) -> None:
    async with database.open() as ledger:
        history = LedgerHistoryProvider(ledger)
        many = [user(str(number)) for number in range(1_500)]
        await history.save_messages("s", many)
        await history.save_messages("s", [*many, *[Message("assistant", [str(number)]) for number in range(1_100)]])
        assert len(await history.get_messages("s")) == 2_600


async def test_two_users_are_kept_apart(ledger: Ledger) -> None:
    ada, bob = (LedgerHistoryProvider(ledger, user_id=name) for name in ("ada", "bob"))
    await ada.save_messages("s", TURN)
    assert await bob.get_messages("s") == []
    for batch in ([user("mine")], [user("mine")] * 1_200):
        with pytest.raises(ThreadNotFound):
            await bob.save_messages("s", batch)
    assert dumped(await ada.get_messages("s")) == dumped(TURN)
    assert (await ledger.threads.get("s")).user_id == "ada"


async def test_a_cancelled_caller_waits_for_the_outcome(history: LedgerHistoryProvider) -> None:
    task = asyncio.ensure_future(history.save_messages("s", TURN))
    for _ in range(2):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await history.get_messages("s")) == 4


async def test_sixteen_writers_through_two_ledgers_lose_nothing(database: Database) -> None:
    async with database.open() as one, database.open() as other:

        async def write(writer: int) -> None:
            history = LedgerHistoryProvider((one, other)[writer % 2])
            for turn in range(5):
                name = f"{writer}-{turn}"
                call = Message("assistant", [Content.from_function_call(name, "weather")])
                result = Message("tool", [Content.from_function_result(name, result=name)])
                await history.save_messages("s", [user(name), call, result])

        async with asyncio.timeout(120):
            await asyncio.gather(*map(write, range(16)))
        stored = await LedgerHistoryProvider(one).get_messages("s")
        batches = [stored[start : start + 3] for start in range(0, len(stored), 3)]
        names = [(ask.text, call.contents[0].call_id, result.contents[0].result) for ask, call, result in batches]
        assert all(len(set(name)) == 1 for name in names)  # none torn
        assert sorted(name[0] for name in names) == sorted(f"{w}-{t}" for w in range(16) for t in range(5))
        for writer in range(16):
            own = [name[0] for name in names if name[0].startswith(f"{writer}-")]
            assert own == [f"{writer}-{turn}" for turn in range(5)]


@pytest.mark.parametrize("before", [[], [user("Hello")]], ids=["new thread", "thread"])
async def test_the_same_batch_from_several_writers_at_once_is_stored_once(
    database: Database, before: list[Message]
) -> None:
    async with database.open() as one, database.open() as other:
        writers = [LedgerHistoryProvider((one, other)[number % 2]) for number in range(8)]
        await writers[0].save_messages("s", before)
        async with asyncio.timeout(60):
            await asyncio.gather(*(writer.save_messages("s", TURN) for writer in writers))
        assert dumped(await writers[0].get_messages("s")) == dumped([*before, *TURN])
