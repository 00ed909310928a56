"""The window that a model has room for: `Tokens(budget)`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger import ChatMessage, ImagePart, Ledger, OpaquePart, TextPart, ThinkPart, Tokens, ToolCall, Turns
from chatledger.errors import LimitExceeded
from chatledger.models import CONTINUES
from chatledger.repositories import scope_of
from chatledger.storage.history import tokens
from chatledger.storage.history.path import load_path
from chatledger.storage.history.tokens import LARGEST, PAGE, estimate_tokens
from chatledger.storage.repositories.branches import fork_at
from tests.conftest import KEYS, Database
from tests.conversations import assistant, call, result, turn, user
from tests.windows import read


def one(_message: ChatMessage) -> int:
    return 1


async def stored(ledger: Ledger, *messages: ChatMessage, **how: Any) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", messages, rules="lenient", **how)


async def seqs(ledger: Ledger, maximum: int, **more: Any) -> list[int | None]:
    history = await read(ledger, "t", max_tokens=maximum, **{"count_tokens": one, **more})
    assert (history.previous_cursor, history.next_cursor) == (None, None)
    return [message.seq for message in history.messages]


SYSTEM = ChatMessage(role="system", content="Be brief.")
DEVELOPER = ChatMessage(role="developer", content="Call tools.")


async def test_the_newest_whole_turns_that_fit(ledger: Ledger) -> None:
    await stored(ledger, *turn(), *turn(), *turn())
    assert await seqs(ledger, 5) == [*range(11, 16)]
    assert await seqs(ledger, 9) == [*range(11, 16)]
    assert await seqs(ledger, 10) == [*range(6, 16)]
    assert await seqs(ledger, 15) == await seqs(ledger, 1_000) == [*range(1, 16)]


async def test_leading_instructions_are_kept_and_count(ledger: Ledger) -> None:
    await stored(ledger, SYSTEM, DEVELOPER, *turn(), *turn())
    assert await seqs(ledger, 7) == [1, 2, *range(8, 13)]
    assert await seqs(ledger, 11) == [1, 2, *range(8, 13)]
    assert await seqs(ledger, 12) == [*range(1, 13)]


async def test_instructions_in_the_middle_belong_to_their_turn(ledger: Ledger) -> None:
    await stored(ledger, SYSTEM, *turn(), DEVELOPER, user("?"), assistant("!"))
    assert await seqs(ledger, 4) == [1, 8, 9]


async def test_a_newest_turn_that_does_not_fit_is_refused(ledger: Ledger) -> None:
    await stored(ledger, SYSTEM, *turn(), *turn())
    with pytest.raises(LimitExceeded, match=r"5 tokens .* at least 6 are needed for the newest turn"):
        await seqs(ledger, 5)
    with pytest.raises(LimitExceeded, match=r"0 tokens .* at least 1 are needed for the leading instructions"):
        await seqs(ledger, 0)


async def test_custom_messages_cost_nothing(ledger: Ledger) -> None:
    await stored(ledger, *turn(), ChatMessage(role="custom", content="shown"), *turn())
    assert await seqs(ledger, 10) == [*range(1, 12)]


async def test_messages_before_the_first_user_message_are_a_turn(ledger: Ledger) -> None:
    await stored(ledger, SYSTEM, assistant("Hello."), *turn())
    assert await seqs(ledger, 6) == [1, *range(3, 8)]
    assert await seqs(ledger, 7) == [*range(1, 8)]


async def test_custom_messages_may_stand_among_the_instructions(ledger: Ledger) -> None:
    shown = ChatMessage(role="custom", content="shown")
    await stored(ledger, shown, SYSTEM, shown, *turn(), *turn())
    assert await seqs(ledger, 6) == [1, 2, *range(9, 14)]


async def test_an_empty_thread_fits_anywhere(ledger: Ledger) -> None:
    await stored(ledger)
    assert await seqs(ledger, 0) == []


async def test_a_thread_of_instructions_alone(ledger: Ledger) -> None:
    await stored(ledger, *[SYSTEM] * 20)
    assert await seqs(ledger, 20) == [*range(1, 21)]


async def test_a_turn_that_interrupts_calls_comes_with_the_turn_of_the_calls(ledger: Ledger) -> None:
    """The result of the first turn's call stands in the second: neither is given without the other."""
    waiting = [user("?"), assistant(calls=[call("a")]), user("Well?"), result("a"), assistant("!")]
    await stored(ledger, *turn(), *waiting)
    assert await seqs(ledger, 5) == [*range(6, 11)]
    with pytest.raises(LimitExceeded):
        await seqs(ledger, 4)


async def test_a_branch_is_read_through_its_fork(ledger: Ledger) -> None:
    await stored(ledger, SYSTEM, *turn(), *turn())
    await fork_at(scope_of(ledger), "t", 6)
    await ledger.messages.append("t", turn())
    assert await seqs(ledger, 6) == [1, *range(7, 12)]
    assert await seqs(ledger, 11) == [*range(1, 12)]
    assert await seqs(ledger, 11, branch=0) == [*range(1, 12)]


async def test_the_returned_turns_plus_one_are_read(sqlite_database: Any) -> None:
    async with sqlite_database.open() as ledger:
        await stored(ledger, *[message for n in range(200) for message in (user(f"{n}"), assistant("!"))])
        counted: list[int | None] = []

        def count(message: ChatMessage) -> int:
            counted.append(message.seq)
            return 1

        assert await seqs(ledger, 20, count_tokens=count) == [*range(381, 401)]
        assert counted == [*range(400, 379, -1)]


async def test_a_long_turn_is_read_in_larger_pages(ledger: Ledger) -> None:
    replies = [assistant(f"{n}") for n in range(PAGE + LARGEST)]
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("a"), assistant("b"), user("c")])
    for first in range(0, len(replies), 1_000):
        await ledger.messages.append("t", replies[first : first + 1_000])
    assert await seqs(ledger, len(replies) + 1) == [*range(3, len(replies) + 4)]


async def test_an_error_of_the_counter_reaches_the_caller(ledger: Ledger) -> None:
    await stored(ledger, *turn())
    with pytest.raises(ZeroDivisionError):
        await seqs(ledger, 5, count_tokens=lambda _message: 1 // 0)
    assert await seqs(ledger, 5) == [*range(1, 6)]


async def test_a_model_view_of_the_turns_that_fit(ledger: Ledger) -> None:
    await stored(ledger, SYSTEM, *turn(), user("?"), assistant(calls=[call("a")]))
    viewed = await ledger.messages.prompt("t", "openai-chat", Tokens(3, one))
    assert [wire["role"] for wire in viewed.payload] == ["system", "user", "assistant", "tool"]
    assert [repair.code for repair in viewed.repairs] == ["open-call"]


def test_tokens_are_estimated_by_characters() -> None:
    assert estimate_tokens(user("")) == 0
    assert estimate_tokens(user("12345")) == 2
    parts = [TextPart(text="1234"), ThinkPart(text="5678"), ImagePart(data="A" * 4_000)]
    assert estimate_tokens(ChatMessage(role="assistant", content=[*parts, OpaquePart(value=[1])], reasoning="9")) == 3
    calls = [ToolCall(name="f", arguments='{"a":1}'), ToolCall(name="f", arguments={"a": 1}), ToolCall(name="f")]
    assert estimate_tokens(assistant(calls=calls)) == -(-(8 + 8 + 3) // 4)


@settings(max_examples=20)
@given(
    turns=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=6),
    leading=st.lists(st.integers(0, 9), max_size=2),
    maximum=st.integers(0, 60),
)
async def test_any_window_is_the_longest_end_that_fits(
    turns: list[list[int]], leading: list[int], maximum: int
) -> None:
    messages = [SYSTEM.model_copy(update={"content": str(cost)}) for cost in leading]
    for costs in turns:
        messages += [user(str(costs[0])), *(assistant(str(cost)) for cost in costs[1:])]
    expected = [n for n in range(len(turns) + 1) if sum(leading) + sum(map(sum, turns[n:])) <= maximum]
    async with Ledger.open("sqlite:///:memory:") as ledger:
        await stored(ledger, *messages)
        if not expected or (turns and expected[0] == len(turns)):
            with pytest.raises(LimitExceeded):
                await seqs(ledger, maximum, count_tokens=lambda message: int(message.text))
        else:
            skipped = sum(map(len, turns[: expected[0]]))
            found = await seqs(ledger, maximum, count_tokens=lambda message: int(message.text))
            assert found == [*range(1, len(leading) + 1), *range(len(leading) + skipped + 1, len(messages) + 1)]


async def test_a_page_of_long_messages_holds_eight_mebibytes(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Media cost no tokens, so the tokens alone do not bound what is read at once."""
    read: list[int] = []
    load = load_path

    def noted(*given: Any) -> list[ChatMessage]:
        found = load(*given)
        read.append(sum(len(message.model_dump_json()) for message in found))
        return found

    image = ImagePart(mime_type="image/png", data="A" * 3_000_000)
    await stored(ledger, SYSTEM, *(ChatMessage(role="user", content=[image]) for _ in range(9)))
    monkeypatch.setattr(tokens, "load_path", noted)
    for maximum, first in ((2, 10), (6, 6), (100, 1)):
        read.clear()
        assert (await seqs(ledger, maximum))[1:] == [*range(max(first, 2), 11)]
        assert max(read) <= tokens.BYTES + 10_000
        assert sum(read) <= (11 - first + 3 + 2) * 3_001_000
    monkeypatch.setattr(tokens, "BYTES", 1_000)
    assert await seqs(ledger, 100) == [*range(1, 11)]
    assert len(read) > 10


@pytest.mark.parametrize("length", [10, 100_000])
async def test_turns_of_encrypted_messages_are_found_whatever_their_residual(
    database: Database, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    async with database.open(encryption=KEYS) as ledger:
        grouped = [user("?", residual={CONTINUES: True, "more": "x" * length}) for _ in range(2)]
        await stored(ledger, user("1", residual={"more": "x" * length}), user("2"), *grouped, user("3"))
        turns = {size: [one.seq for one in await ledger.messages.history("t", Turns(size))] for size in (1, 2, 3)}
        assert turns == {1: [5], 2: [2, 3, 4, 5], 3: [1, 2, 3, 4, 5]}
