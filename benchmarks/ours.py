"""chatledger through its public calls: models in, models out, strict rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from benchmarks.turns import Turn, turns
from chatledger import ChatMessage, Ledger, Newest


class Chatledger:
    name = "chatledger"

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls(await Ledger.open(url))

    async def meet(self, threads: Mapping[int, Sequence[str]]) -> None:
        """Remember their tips, as whoever writes to a thread does: an empty one is made, others are appended to."""
        for length, own in threads.items():
            for thread in own:
                if length:
                    await self.append(thread, turns()[0])
                else:
                    await self.ledger.threads.delete(thread)
                    await self.ledger.threads.create(thread)

    async def append(self, thread: str, turn: Turn, run: str | None = None) -> None:
        await self.ledger.messages.append(thread, turn.models, run_id=run)

    async def load(self, thread: str) -> list[ChatMessage]:
        return (await self.ledger.messages.history(thread)).messages

    async def last(self, thread: str, count: int) -> list[ChatMessage]:
        return (await self.ledger.messages.history(thread, Newest(count))).messages

    async def close(self) -> None:
        await self.ledger.close()
