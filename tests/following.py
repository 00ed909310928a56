"""A reader that follows a thread, as a client does: it applies each change to the messages that it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from chatledger import ChatMessage, Cursor, History, Ledger, Mark, TextPart, ThinkPart, ToolCall
from chatledger.repositories.history import with_draft
from chatledger.types import Piece, ThreadChange

LONG = 30
"""Seconds after which a change that does not come is a failure."""


@dataclass
class Reader:
    """A client's copy of a thread. `told` are the changes that it applied; it continues at `cursor`."""

    thread: str
    messages: list[ChatMessage] = field(default_factory=list)
    cursor: Cursor | Mark | None = None
    told: list[ThreadChange] = field(default_factory=list)

    @classmethod
    async def of(cls, ledger: Ledger, thread: str) -> Reader:
        history = await ledger.messages.history(thread)
        return cls(thread, [*with_draft(history)], history.mark)

    def copy(self) -> Reader:
        """Another process with the same messages and the same cursor."""
        return Reader(self.thread, list(self.messages), self.cursor)

    def apply(self, change: ThreadChange) -> None:
        """Refuses a message that comes twice or too late, and another form of one that the reader lacks."""
        assert change.thread_id == self.thread
        self.told.append(change)
        self.cursor = change.cursor
        seqs = [message.seq for message in self.messages]
        if change.kind == "appended":
            assert change.message is not None
            assert not seqs or (seqs[-1] or 0) < change.seq, "a message came twice, or too late"
            self.messages.append(change.message)
        elif change.kind in ("grown", "completed", "revised"):
            at = seqs.index(change.seq)
            message = change.message
            if change.pieces is not None:
                message = grown(self.messages[at], change.message, change.pieces)
            assert message is not None
            self.messages[at] = message
        elif change.kind == "retracted":
            self.messages = [message for message in self.messages if message.seq != change.seq]
        elif change.kind == "rewound":
            self.messages = [message for message in self.messages if (message.seq or 0) < change.seq]
        elif change.kind == "activated":
            self.messages = [message for message in self.messages if (message.seq or 0) <= change.seq]
        else:
            assert change.kind in ("abandoned", "run")

    async def hear(self, changes: AsyncGenerator[ThreadChange, None], *kinds: str) -> ThreadChange:
        """Take the next changes, which must be of these kinds, and return the last one."""
        for kind in kinds:
            async with asyncio.timeout(LONG):
                change = await anext(changes)
            assert change.kind == kind, change
            self.apply(change)
        return self.told[-1]

    async def catch_up(self, ledger: Ledger, *, deltas: bool = False) -> None:
        """Follow from the cursor until the reader has the stored history."""
        history = await ledger.messages.history(self.thread)
        if not self.has(history):
            async with (
                asyncio.timeout(LONG),
                aclosing(ledger.messages.follow(self.thread, cursor=self.cursor, deltas=deltas)) as changes,
            ):
                async for change in changes:
                    self.apply(change)
                    if self.has(history):
                        return

    def has(self, history: History) -> bool:
        return self.messages == with_draft(history)


def grown(message: ChatMessage, rest: ChatMessage | None, pieces: Sequence[Piece]) -> ChatMessage:
    """The message with these pieces, as a client puts them together, and with what `rest` has beside words."""
    words: dict[str, Any] = {name: getattr(message, name) for name in ("content", "reasoning", "tool_calls")}
    for piece in pieces:
        name, _, index = piece.at.partition(".")
        if not index:
            (part,) = words[name] if isinstance(words[name], list) else [None]
            words[name] = (words[name] or "" if part is None else part.text) + piece.text
            continue
        if isinstance(words[name], str):
            words[name] = [TextPart(text=words[name]) if name == "content" else ThinkPart(text=words[name])]
        words[name] = list(words[name] or ())
        _put(words[name], int(index), piece)
    rest = rest or message
    return rest.model_copy(update={name: value or getattr(rest, name) for name, value in words.items()})


def _put(values: list[Any], index: int, piece: Piece) -> None:
    if index == len(values):
        values.append(piece.part or piece.call)
        return
    value = values[index]
    if isinstance(value, ToolCall):
        assert not isinstance(value.arguments, dict)
        values[index] = value.model_copy(update={"arguments": (value.arguments or "") + piece.text})
    else:
        signed = {"signature": piece.signature} if piece.signature is not None else {}
        values[index] = value.model_copy(update={"text": value.text + piece.text, **signed})
