"""A reader that follows a thread, as a client does: it applies each change to the messages that it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from chatledger import ChatMessage, Cursor, History, Ledger, Mark
from chatledger.repositories.history import with_draft
from chatledger.types import ThreadChange

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
            assert change.message is not None
            self.messages[seqs.index(change.seq)] = change.message
        elif change.kind == "retracted":
            self.messages = [message for message in self.messages if message.seq != change.seq]
        elif change.kind == "rewound":
            self.messages = [message for message in self.messages if (message.seq or 0) < change.seq]
        else:
            self.messages = [message for message in self.messages if (message.seq or 0) <= change.seq]

    async def hear(self, changes: AsyncGenerator[ThreadChange, None], *kinds: str) -> ThreadChange:
        """Take the next changes, which must be of these kinds, and return the last one."""
        for kind in kinds:
            async with asyncio.timeout(LONG):
                change = await anext(changes)
            assert change.kind == kind, change
            self.apply(change)
        return self.told[-1]

    async def catch_up(self, ledger: Ledger) -> None:
        """Follow from the cursor until the reader has the stored history."""
        history = await ledger.messages.history(self.thread)
        if not self.has(history):
            async with (
                asyncio.timeout(LONG),
                aclosing(ledger.messages.follow(self.thread, cursor=self.cursor)) as changes,
            ):
                async for change in changes:
                    self.apply(change)
                    if self.has(history):
                        return

    def has(self, history: History) -> bool:
        return self.messages == with_draft(history)
