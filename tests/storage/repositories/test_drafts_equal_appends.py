"""However a message is cut into pieces, what is stored in the end is what an append of the whole stores, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatledger import (
    ChatMessage,
    ImagePart,
    Ledger,
    Pace,
    ReasoningDelta,
    TextDelta,
    TextPart,
    ThinkPart,
    ToolCall,
    ToolCallDelta,
)
from chatledger.repositories.history import with_draft
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.rows.messages import CALL_COLUMNS, MESSAGE_COLUMNS, PART_COLUMNS
from tests.conversations import user
from tests.storage.rows.test_messages import KEYS, NUMBERS, OBJECT, QUICKLY, TEXT, maybe

Delta = Any


@dataclass(frozen=True)
class Told:
    """A message, the pieces that tell it in an order of their own, and after which of them it is written."""

    whole: ChatMessage
    deltas: list[Delta]
    written: set[int]


@st.composite
def cuts(draw: st.DrawFn, text: str) -> list[str]:
    """Cut anywhere, also between the halves of a surrogate pair, and into nothing."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[first:last] for first, last in zip([0, *places], [*places, len(text)], strict=True)]


@st.composite
def interleaved(draw: st.DrawFn, lines: list[list[Delta]]) -> list[Delta]:
    """Pieces of several lines, each line in its own order."""
    lines, mixed = [line for line in map(list, lines) if line], []
    while lines:
        line = draw(st.sampled_from(lines))
        mixed.append(line.pop(0))
        lines = [line for line in lines if line]
    return mixed


@st.composite
def reasonings(draw: st.DrawFn) -> tuple[Any, list[Delta]]:
    """Thoughts with a signature, and one that may have none."""
    signed = draw(st.lists(st.tuples(TEXT, KEYS), max_size=2))
    thoughts = [*signed, *draw(st.lists(st.tuples(TEXT, maybe(KEYS)), max_size=1))]
    deltas = []
    for text, signature in thoughts:
        *begun, end = draw(cuts(text))
        deltas += [ReasoningDelta(text=piece) for piece in begun] + [ReasoningDelta(text=end, signature=signature)]
    if not thoughts or (len(thoughts) == 1 and thoughts[0][1] is None):
        return (thoughts[0][0] if thoughts else None), deltas
    return [ThinkPart(text=text, signature=signature) for text, signature in thoughts], deltas


@st.composite
def contents(draw: st.DrawFn) -> tuple[Any, list[Delta]]:
    kinds = draw(st.lists(st.sampled_from(["text", "image", "think"]), max_size=3))
    kinds = [kind for index, kind in enumerate(kinds) if kind == "image" or index == 0 or kind != kinds[index - 1]]
    parts: list[Any] = []
    deltas: list[Delta] = []
    for kind in kinds:
        if kind == "image":
            parts.append(draw(st.builds(ImagePart, url=TEXT)))
            deltas.append(parts[-1])
            continue
        text = draw(TEXT)
        parts.append(TextPart(text=text) if kind == "text" else ThinkPart(text=text))
        pieces = draw(cuts(text))
        deltas += [_text(draw, piece) if kind == "text" else ThinkPart(text=piece) for piece in pieces]
    if [part.kind for part in parts] == ["text"]:
        return parts[0].text, deltas
    return parts or None, deltas


def _text(draw: st.DrawFn, piece: str) -> Delta:
    return draw(st.sampled_from([piece, TextDelta(text=piece), TextPart(text=piece)]))


@st.composite
def calls(draw: st.DrawFn, index: int) -> tuple[ToolCall, list[Delta]]:
    arguments = draw(maybe(TEXT | st.just('{"city": "Tōkyō \ud83d\ude00"}')))
    one = ToolCall(id=f"{index}{draw(TEXT)}", name=draw(KEYS), arguments=arguments, extras=draw(maybe(OBJECT)))
    first = ToolCallDelta(index=index, id=one.id, name=one.name, extras=one.extras)
    pieces = [] if arguments is None else draw(cuts(arguments))
    return one, [first, *(ToolCallDelta(index=index, arguments=piece) for piece in pieces)]


@st.composite
def told(draw: st.DrawFn) -> Told:
    content, said = draw(contents())
    reasoning, thought = draw(reasonings())
    called = [draw(calls(index)) for index in range(draw(st.integers(0, 2)))]
    whole = ChatMessage(
        role="assistant", content=content, reasoning=reasoning, tool_calls=[one for one, _ in called] or None
    )
    first_pieces = [deltas[0] for _, deltas in called]  # calls begin in the order of their indexes
    rest = draw(interleaved([deltas[1:] for _, deltas in called]))
    deltas = draw(interleaved([said, thought, [*first_pieces, *rest]]))
    return Told(whole, deltas, draw(st.sets(st.integers(0, len(deltas)))))


PAIR = ChatMessage(role="assistant", content="\ud83d\ude00\0", reasoning="\ude00\ud83d")
HALVES = ["\ud83d", ReasoningDelta(text="\ude00"), "\ude00", ReasoningDelta(text="\ud83d"), "\0"]


@QUICKLY
@given(told=told())
@example(told=Told(PAIR, HALVES, set(range(5))))
@example(told=Told(PAIR, HALVES, set()))
@pytest.mark.plain
async def test_pieces_are_stored_as_the_whole(ledger: Ledger, told: Told) -> None:
    own = ledger.tenant(f"told {next(NUMBERS)}")
    for thread_id in ("pieces", "whole"):
        await own.threads.create(thread_id)
        await own.messages.append(thread_id, [user("?")])
    async with own.messages.stream("pieces", run_id="r of pieces", pace=Pace(interval=3_600, lease=7_200)) as draft:
        for index, delta in enumerate(told.deltas):
            await draft.feed(delta)
            if index in told.written:
                await draft.flush()
                assert with_draft(await own.messages.history("pieces"))[-1] == draft.message
    await own.messages.append("whole", [told.whole], run_id="r of whole")
    assert await rows(own, "pieces") == await rows(own, "whole")
    assert with_draft(await own.messages.history("pieces"))[-1] == draft.message


NOT_COMPARED = {"message_id", "created_at", "run_id"}
COLUMNS = {
    "branches": ("last_seq", "last_role", "partial_seq"),
    "messages": tuple(name for name in MESSAGE_COLUMNS if name not in NOT_COMPARED),
    "message_parts": PART_COLUMNS,
    "tool_calls": CALL_COLUMNS,
}


async def rows(ledger: Ledger, thread_id: str) -> list[list[tuple[Any, ...]]]:
    """The rows of the tables as stored, and the open calls, which name the run."""

    def read(sql: ReadSql) -> list[list[tuple[Any, ...]]]:
        place = {"tenant": ledger._scope.tenant.key, "thread": thread_id}
        where = "WHERE tenant_id = :tenant AND thread_id = :thread"
        found = [
            sorted(map(tuple, sql.fetch(f"SELECT {', '.join(names)} FROM {{schema}}{table} {where}", place)), key=repr)
            for table, names in COLUMNS.items()
        ]
        (waiting,) = sql.fetch(f"SELECT open_calls FROM {{schema}}branches {where}", place)
        return [*found, [((waiting[0] or "").replace(f"r of {thread_id}", "r"),)]]

    return await ledger._scope.read(read, snapshot=True)
