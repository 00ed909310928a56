"""chatledger through its public calls: models in, models out, strict rules, and ids as the case asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from benchmarks.turns import Turn, turns
from chatledger import ChatMessage, Ledger, Newest
from chatledger.ids import new_id


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
        """With `run`, as services and adapters call: with an id for each message, and a run of the turn's own."""
        messages = turn.models if run is None else with_own_ids(turn)
        await self.ledger.messages.append(thread, messages, run_id=run)

    async def load(self, thread: str) -> list[ChatMessage]:
        return (await self.ledger.messages.history(thread)).messages

    async def last(self, thread: str, count: int) -> list[ChatMessage]:
        return (await self.ledger.messages.history(thread, Newest(count))).messages

    async def close(self) -> None:
        await self.ledger.close()


def with_own_ids(turn: Turn) -> list[ChatMessage]:
    """The messages of the turn, each with a new id of the caller's own."""
    return [one.model_copy(update={"message_id": new_id()}) for one in turn.models]
