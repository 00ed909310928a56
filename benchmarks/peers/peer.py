"""What is asked of a store: a thread of so many messages, one more turn, the whole of it, the last of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from benchmarks.turns import MESSAGES, BareMessage, Turn, turns


class Peer(Protocol):
    """`url` is of an empty database that nobody else uses; on SQLite, a path."""

    name: ClassVar[str]
    items: ClassVar[int]  # what a turn is loaded as
    loads_last: ClassVar[bool]

    @classmethod
    async def open(cls, url: str) -> Self: ...

    async def new_thread(self) -> Any:
        """Whatever this store knows a conversation by."""

    async def ready(self, thread: Any, turn: Turn) -> Any:
        """The turn as the store takes it; not measured."""

    async def append(self, thread: Any, ready: Any) -> None: ...

    async def load(self, thread: Any) -> Sequence[Any]:
        """All of the thread, as the objects that the store gives."""

    async def last(self, thread: Any, count: int) -> Sequence[Any]: ...

    async def close(self) -> None: ...


class Adapter(Peer, Protocol):
    """Ours, for the same framework."""

    async def history(self, thread: Any) -> Sequence[Any]:
        """The thread's messages as the ledger gives them, before the adapter makes the framework's of them."""


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework: the stores that it ships, our adapter, and how it uses either.

    `calls` gives a turn call by call as the framework hands it to its store, with new ids and a run of its own.
    `begins`: a conversation has to be made before its first message, so making it belongs to the first append.
    `dump` writes a loaded object as the framework's own stores do, and `parse` makes objects of such texts again.
    """

    name: str
    postgres: Sequence[type[Peer]]
    sqlite: Sequence[type[Peer]]
    ours: type[Adapter]
    calls: Callable[[Turn], list[list[Any]]]
    dump: Callable[[Any], str]
    parse: Callable[[Sequence[str]], Sequence[Any]]
    begins: bool = False


async def fill(peer: Peer, messages: int, *, at_once: bool = False) -> Any:
    """A new thread of so many messages, written turn by turn; `at_once` where the store has a quicker way."""
    stock = turns()
    given = [stock[number % len(stock)] for number in range(messages // MESSAGES)]
    written = getattr(peer, "written", None) if at_once else None
    thread = await (_by_turns(peer, given) if written is None else written(given))
    loaded = len(await peer.load(thread))
    if loaded != len(given) * peer.items:
        raise RuntimeError(f"{peer.name} loaded {loaded} items of {messages} messages")
    return thread


async def _by_turns(peer: Peer, given: Sequence[Turn]) -> Any:
    thread = await peer.new_thread()
    for turn in given:
        await peer.append(thread, await peer.ready(thread, turn))
    return thread


def sqlalchemy_url(url: str) -> str:
    """The URL with the asynchronous driver that SQLAlchemy is to use."""
    if url.startswith("postgresql://"):
        return url.replace("postgresql://", "postgresql+asyncpg://", 1)
    return f"sqlite+aiosqlite:///{url}"


def arguments(message: BareMessage) -> list[tuple[str, str, dict[str, Any]]]:
    """The calls of a message as (id, name, arguments)."""
    return [(call.id, call.name, json.loads(call.arguments)) for call in message.calls]
