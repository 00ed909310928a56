"""The chat histories of LangChain, kept in a ledger.

    history = LedgerChatMessageHistory("thread-1", ledger, user_id="ada")
    await history.aadd_messages([HumanMessage("Hello")])

The thread is that of the session's id. Each message is one message of the thread, in the format `langchain`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from chatledger.adapters.extra import importing
from chatledger.adapters.write import append, settled
from chatledger.arguments import INT_OR_NONE, RULES, STR, STR_OR_NONE, Kind, require
from chatledger.errors import DecodeError, EncodeError, StorageError, ThreadNotFound
from chatledger.formats.langchain.codec import CODEC, as_model
from chatledger.formats.wire.plain import dumped, require_json
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, RulesLevel, Turns

with importing("langchain_core", extra="langchain", name="LangChain"):
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import BaseMessage

__all__ = ["LedgerChatMessageHistory"]

T = TypeVar("T")
LOG = logging.getLogger("chatledger.adapters.langchain")
_LEDGER = Kind("a Ledger", Ledger)


class LedgerChatMessageHistory(BaseChatMessageHistory):  # type: ignore[misc]  # without the framework it is Any
    """The chat history of the session `session_id`, for `RunnableWithMessageHistory` and programs that keep a history
    themselves. Creating one reads and writes nothing. The first messages create the thread.

        history = LedgerChatMessageHistory("thread-1", ledger, user_id="ada", last_turns=20)
        await history.aadd_messages([HumanMessage("Hello")])

    With `user_id`, the thread belongs to that user. A thread of another user has no messages for it, and adding some
    raises ThreadNotFound. With `last_turns`, reading returns at most that many turns at the end, each from a user's
    message to the next, so no call is separated from its result. `rules` is the level of the thread that the history
    creates, and of the messages that it adds; the default accepts every message.

    The calls without `await` raise StorageError in a running event loop.
    """

    session_id: str
    """The id of the thread."""

    def __init__(
        self,
        session_id: str,
        ledger: Ledger,
        *,
        user_id: str | None = None,
        last_turns: int | None = None,
        rules: RulesLevel = "lenient",
    ) -> None:
        require(STR, session_id=session_id)
        require(_LEDGER, ledger=ledger)
        require(STR_OR_NONE, user_id=user_id)
        require(INT_OR_NONE, last_turns=last_turns)
        require(RULES, rules=rules)
        # The base class does nothing but warn that it is deprecated.
        self.session_id = session_id
        self._ledger = ledger if user_id is None else ledger.user(user_id)
        self._last_turns = last_turns
        self._rules = rules

    async def aget_messages(self) -> list[BaseMessage]:
        """The messages in order; none if there is no thread. A message that is still being written is left out.

        A message that langchain-core refuses is left out too, and the logger `chatledger.adapters.langchain` gets an
        error with its seq.
        """
        try:
            window = None if self._last_turns is None else Turns(self._last_turns)
            history = await self._ledger.messages.history(self.session_id, window)
        except ThreadNotFound:
            return []
        models = []
        for message, source in zip(history, CODEC.encode(history.messages).payload, strict=True):
            try:
                models.append(as_model(source, f"seq {message.seq}"))
            except EncodeError as error:
                LOG.error("thread %r: %s", self.session_id, error)
        return models

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end, all or none. Creates the thread if it does not exist, also after `aclear`.

        Raises DecodeError with the path of a value that is not JSON, ThreadNotFound for a thread of another user,
        DraftLive while the message at the end is being written, and the ledger's other errors.
        """
        if messages:
            await settled(append(self._ledger, self.session_id, decoded(messages), rules=self._rules))

    async def aclear(self) -> None:
        """Delete the thread for good, with its messages, runs and feedback. Does nothing if it does not exist."""
        await settled(self._delete())

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages, as `aget_messages` returns them, without `await`."""
        return _waited(self.aget_messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages as `aadd_messages` does, without `await`."""
        _waited(lambda: self.aadd_messages(messages))

    def clear(self) -> None:
        """Delete the thread as `aclear` does, without `await`."""
        _waited(self.aclear)

    async def _delete(self) -> None:
        with suppress(ThreadNotFound):
            await self._ledger.threads.delete(self.session_id)


def decoded(messages: Sequence[BaseMessage]) -> list[ChatMessage]:
    """The messages as ChatMessages. Raises DecodeError with the path of a value that is not JSON, at every level of the
    rules: lenient rules would keep a live object as its text.
    """
    payload = [_dict_of(message, f"messages[{index}]") for index, message in enumerate(messages)]
    require_json(payload, "messages")
    return CODEC.decode(payload, rules="lenient").messages


def _dict_of(message: BaseMessage, path: str) -> dict[str, Any]:
    """`message_to_dict`, with the path of a message that cannot be dumped."""
    if not isinstance(message, BaseMessage):
        raise DecodeError(path, f"a message of LangChain is expected, not {type(message).__name__}")
    return {"type": message.type, "data": dumped(message, path, lambda model_dump: model_dump())}


def _waited(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the work in an event loop of its own, and wait for it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    raise StorageError(
        "a blocking call in a running event loop would stop the loop: await aget_messages, aadd_messages or aclear, or "
        "make the call in another thread"
    )
