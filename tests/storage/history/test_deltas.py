"""A follower with deltas: what a reader has is told by the cursor alone, and other words come whole."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import Any
from zlib import crc32

import pytest

from chatledger import ChatMessage, Cursor, Ledger, TextPart, ThinkPart, ToolCall
from chatledger.errors import InvalidCursor
from chatledger.storage.follow.follow_cursor import Position
from chatledger.storage.follow.words import Words, pieces_after, words_of
from chatledger.storage.schema.text import to_microseconds
from tests.conversations import user
from tests.following import Reader

MESSAGE = ChatMessage(
    role="assistant",
    content=[TextPart(text="It is sunny."), TextPart(text="Take a hat.")],
    reasoning=[ThinkPart(text="They ask.", signature="s")],
    tool_calls=[ToolCall(id="a", name="weather", arguments='{"city":')],
)


def test_a_message_of_many_parts_comes_whole_and_its_cursor_stays_short() -> None:
    """A cursor goes in a header, which a server takes only up to a size."""
    parts = [TextPart(text="x" * 100_000)] * 201
    known = {count: words_of(MESSAGE.model_copy(update={"content": parts[:count]})) for count in (190, 201)}
    longest = max(len(Position(0, 9, 9, 1, (9, words), ()).write("t")) for words in known.values())
    assert longest < 1_000
    assert pieces_after(MESSAGE.model_copy(update={"content": parts[:190]}), known[190]) == []
    assert pieces_after(MESSAGE.model_copy(update={"content": parts}), known[201]) is None


async def test_a_cursor_of_an_older_release_goes_on(ledger: Ledger) -> None:
    """It says less of the message that was being written, which comes whole once."""
    thread = await ledger.threads.create("t")
    assert thread.created_at is not None
    await ledger.messages.append("t", [user("?")])
    async with ledger.messages.stream("t") as draft:
        await draft.feed("It is")
        await draft.flush()
        reader = await Reader.of(ledger, "t")
        created = to_microseconds(thread.created_at)
        head = struct.pack(">BIIqqqqI", 1, crc32(b"t"), 0, 2, 2, created, 2, 12345)
        reader.cursor = Cursor(urlsafe_b64encode(head).decode().rstrip("="))
        async with aclosing(ledger.messages.follow("t", cursor=reader.cursor, deltas=True)) as changes:
            await reader.hear(changes, "grown")
        await draft.feed(" sunny.")
    await reader.catch_up(ledger, deltas=True)
    assert [(change.kind, change.pieces is None) for change in reader.told] == [("grown", True), ("completed", False)]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("another beginning", {"content": [TextPart(text="Is it sunny?"), TextPart(text="Take a hat.")]}),
        ("a shorter text", {"content": [TextPart(text="It is sunny."), TextPart(text="Take")]}),
        ("one text less", {"content": [TextPart(text="It is sunny.")]}),
        ("a part in place of a text", {"content": [ThinkPart(text="It is sunny."), TextPart(text="Take a hat.")]}),
        ("no signature", {"reasoning": [ThinkPart(text="They ask.")]}),
        ("another signature", {"reasoning": [ThinkPart(text="They ask.", signature="t")]}),
        ("the call of another id", {"tool_calls": [ToolCall(id="b", name="weather", arguments='{"city":')]}),
        ("arguments as an object", {"tool_calls": [ToolCall(id="a", name="weather", arguments={"city": "Tokyo"})]}),
    ],
)
def test_words_that_do_not_go_on_come_whole(name: str, other: dict[str, Any]) -> None:
    assert pieces_after(MESSAGE, words_of(MESSAGE)) == []
    assert pieces_after(MESSAGE.model_copy(update=other), words_of(MESSAGE)) is None


def cursor(parts: int, shared: Sequence[tuple[int, int]] = ()) -> str:
    """Of a reader that has so many texts of 20,000 characters."""
    words = Words(tuple(20_000 << 4 for _ in range(parts)), 2**32 - 1)
    return Position(0, 1_000_000, 1_000_000, 2**32 - 1, (1_000_000, words), tuple(shared)).write("a thread")


def test_a_cursor_is_short() -> None:
    assert len(cursor(1)) <= 28
    assert max(len(cursor(parts + 1)) - len(cursor(parts)) for parts in range(1, 30)) <= 6
    branches = [(number, 1_000_000) for number in range(1, 30)]
    lengths = [len(cursor(1, branches[:count])) for count in range(30)]
    assert max(after - before for before, after in pairwise(lengths)) <= 6


@pytest.mark.parametrize(
    "position",
    [
        Position(0, 0, 0, 0, None, ()),
        Position(3, 7, 9, 2**32 - 1, None, ((0, 5), (1, 2**40))),
        Position(0, 7, 7, 1, (7, None), ()),
        Position(0, 7, 8, 1, (3, Words((), 1)), ((2, 3),)),
        Position(0, 7, 7, 1, (7, Words((0, 12, 2**40), 2**32 - 1)), ()),
    ],
)
def test_a_cursor_is_read_as_it_was_written(position: Position) -> None:
    written = position.write("t")
    assert Position.read(written, "t") == position
    with pytest.raises(InvalidCursor, match="another thread"):
        Position.read(written, "u")


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[:8],
        lambda packed: packed[:-1],
        lambda packed: packed + b"\x01",
        lambda packed: packed + b"\xff" * 12,
        lambda packed: b"\x03" + packed[1:],
    ],
)
def test_a_damaged_cursor_is_refused(damage: Callable[[bytes], bytes]) -> None:
    written = Position(0, 300, 300, 1, (300, Words((64,), 5)), ((1, 300),)).write("t")
    packed = damage(urlsafe_b64decode(written + "=" * (-len(written) % 4)))
    with pytest.raises(InvalidCursor):
        Position.read(urlsafe_b64encode(packed).decode().rstrip("="), "t")
