"""The Microsoft Agent Framework, which ships no store in a database: its files, one for each conversation."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

from agent_framework import Content, FileHistoryProvider, Message

from benchmarks.peers.peer import Framework, arguments
from benchmarks.turns import MESSAGES, Turn
from chatledger import Ledger
from chatledger.adapters.agent_framework import LedgerHistoryProvider
from chatledger.ids import new_id


class _Provider:
    items: ClassVar[int] = 4
    loads_last: ClassVar[bool] = False
    provider: Any

    async def new_thread(self) -> str:
        return new_id()

    async def ready(self, thread: str, turn: Turn) -> list[Any]:
        return _messages(turn)

    async def append(self, thread: str, ready: list[Any]) -> None:
        await self.provider.save_messages(thread, ready)

    async def load(self, thread: str) -> Sequence[Any]:
        found: Sequence[Any] = await self.provider.get_messages(thread)
        return found

    async def last(self, thread: str, count: int) -> Sequence[Any]:
        raise NotImplementedError


class FileHistories(_Provider):
    name: ClassVar[str] = "Agent Framework FileHistoryProvider"

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="chatledger-peers-")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.provider = FileHistoryProvider(Path(self._folder.name))

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls()

    async def close(self) -> None:
        self._folder.cleanup()


class LedgerHistories(_Provider):
    name: ClassVar[str] = "LedgerHistoryProvider"
    loads_last: ClassVar[bool] = True

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.provider = LedgerHistoryProvider(ledger)

    @classmethod
    async def open(cls, url: str) -> Self:
        return cls(await Ledger.open(url, migrate=True))

    async def last(self, thread: str, count: int) -> Sequence[Any]:
        turns = LedgerHistoryProvider(self._ledger, last_turns=count // MESSAGES)
        found: Sequence[Any] = await turns.get_messages(thread)
        return found

    async def history(self, thread: str) -> Sequence[Any]:
        return (await self._ledger.messages.history(thread)).messages

    async def close(self) -> None:
        await self._ledger.close()


def _messages(turn: Turn) -> list[Any]:
    """An agent saves a run at its end. Both results stand in one message."""
    user, asks, *results, answer = turn.bare
    ids = [f"af-call-{new_id()}" for _ in results]
    called = zip(arguments(asks), ids, strict=True)
    calls = [Content.from_function_call(id_, name, arguments=given, id=own) for (id_, name, given), own in called]
    answers = [
        Content.from_function_result(one.tool_call_id or "", result=one.text, id=own)
        for one, own in zip(results, ids, strict=True)
    ]
    return [
        Message("user", [user.text]),
        Message("assistant", calls, author_name="agent"),
        Message("tool", answers, author_name="agent"),
        Message("assistant", [answer.text], author_name="agent", message_id=f"msg_{new_id()}"),
    ]


AGENT_FRAMEWORK = Framework(
    name="Microsoft Agent Framework",
    postgres=[FileHistories],
    sqlite=[FileHistories],
    ours=LedgerHistories,
    calls=lambda turn: [_messages(turn)],
    dump=lambda message: json.dumps(message.to_dict()),
    parse=lambda texts: [Message.from_dict(json.loads(text)) for text in texts],
)
