"""The sessions of the OpenAI Agents SDK, kept in a ledger.

    session = ChatLedgerSession("thread-1", ledger, user_id="ada")
    await Runner.run(agent, "Hello", session=session)

The thread is that of the session's id. The SDK's items are those of the Responses API, so they are stored in the format
`openai-responses`: one message for what the assistant thinks, says and calls in one breath, one for each other item. A
message may so hold several items, and the methods here count, cut and remove items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any, Literal, TypeAlias

from chatledger.adapters.extra import importing
from chatledger.adapters.write import append, append_within, in_transaction, settled
from chatledger.arguments import RULES, STR, STR_OR_NONE, Kind, require
from chatledger.errors import DecodeError, DraftLive, InvalidCursor, NothingToSend, ThreadNotFound
from chatledger.formats import get_codec
from chatledger.formats.history import prompt
from chatledger.formats.openai_responses import as_items
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Cursor, Newest, Oldest, RulesLevel, Turns
from chatledger.models.base import copy_with
from chatledger.models.windows import Window
from chatledger.repositories import scope_of
from chatledger.repositories.history import History
from chatledger.storage.changes.removal import rewind_to
from chatledger.transaction import Transaction

with importing("agents", extra="openai-agents", name="the OpenAI Agents SDK"):
    from agents.memory.session import _CompactionSnapshot
    from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit

__all__ = ["ChatLedgerSession", "Item", "UndecodableItem"]

FORMAT = "openai-responses"
Item: TypeAlias = Any
"""An item as the SDK has it, a dict (`TResponseInputItem`)."""
_LEDGER = Kind("a Ledger", Ledger)
_WINDOW = Kind("'items' or 'turns'", words=("items", "turns"))
_VIEW = Kind("'stored' or 'model'", words=("stored", "model"))
_ALL = 2**31 - 1
"""The limit with which the SDK asks for all items."""
_PAGE = 200
_KEPT = ("message_id", "run_id", "created_at", "name", "is_error", "response_metadata", "custom_data", "state")
"""The fields of a message that stay when its last items are removed."""


class UndecodableItem(DecodeError, TypeError):
    """An item cannot be stored, because it is not a JSON object. `path` is its place. Nothing was written."""


class ChatLedgerSession:
    """A session of the SDK that is kept in the thread `session_id` of the ledger. Creating one reads and writes
    nothing. The first items create the thread.

        session = ChatLedgerSession("thread-1", ledger, user_id="ada")
        result = await Runner.run(agent, "Hello", session=session)

    With `user_id`, the thread belongs to that user. A thread of another user has no items for it, and adding some
    raises ThreadNotFound.

    A limit counts items. With `window="turns"` it counts turns, from a user's message to the next, and so never
    separates a call from its result. With `view="model"`, `get_items` returns items that OpenAI accepts, for instance
    with a result for each call; the thread does not change. `rules` is the level of the thread that the session
    creates, and of the items that it adds. The SDK repairs its items when it reads them, so the default accepts every
    item.
    """

    session_id: str
    """The id of the thread."""
    session_settings: SessionSettings | None
    """The SDK's settings, with the default limit of `get_items`."""

    def __init__(
        self,
        session_id: str,
        ledger: Ledger,
        *,
        user_id: str | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        window: Literal["items", "turns"] = "items",
        view: Literal["stored", "model"] = "stored",
        rules: RulesLevel = "lenient",
    ) -> None:
        require(STR, session_id=session_id)
        require(_LEDGER, ledger=ledger)
        require(STR_OR_NONE, user_id=user_id)
        require(_WINDOW, window=window)
        require(_VIEW, view=view)
        require(RULES, rules=rules)
        self.session_id = session_id
        self.session_settings = (
            SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        )
        self._ledger = ledger if user_id is None else ledger.user(user_id)
        self._window = window
        self._view = view
        self._rules = rules

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items in order, or the last `limit` of them. The default limit is that of the session's settings. 0
        returns none. A negative number returns all, and so does None without a limit in the settings. A session without
        a thread has no items. A message that is still being written is left out.
        """
        wanted: int | None = resolve_session_limit(limit, self.session_settings)
        if wanted == 0:
            return []
        try:
            if wanted is None or not 0 < wanted < _ALL:
                return (await self._read()).items
            if self._window == "turns":
                return (await self._read(Turns(wanted))).items
            return await self._last_items(wanted)
        except ThreadNotFound:
            return []

    async def add_items(self, items: Sequence[Item]) -> None:
        """Add items at the end, all or none. Creates the thread if it does not exist, also after `clear_session`.

        Raises UndecodableItem, which is a TypeError, for items that are not JSON objects; ThreadNotFound for a thread
        of another user; DraftLive while the message at the end is being written; and the ledger's other errors.
        """
        if not items:
            return
        messages = self._decode(items)
        await settled(append(self._ledger, self.session_id, messages, rules=self._rules))

    async def pop_item(self) -> Any:
        """Remove the newest item and return it; None if there is none. Several callers at once each get another item.

        If the newest message has further items, they stay, in a message with the same id. The removed item is no longer
        in the conversation; `ledger.messages.revisions` keeps it until it is redacted or erased. Raises DraftLive while
        that message is being written.
        """
        return await settled(self._pop())

    async def clear_session(self) -> None:
        """Delete the thread for good, with its messages, runs and feedback. Does nothing if it does not exist."""
        await settled(self._delete())

    # --- Reading ------------------------------------------------------------------------------------------------------

    async def _read(self, window: Window | None = None) -> _ReadItems:
        history = await self._ledger.messages.history(self.session_id, window)
        items = _accepted(history) if self._view == "model" else _items(history.messages)
        return _ReadItems(items, history.previous_cursor is None)

    async def _last_items(self, count: int) -> list[Item]:
        """Nearly every message has an item or more; a custom one, which no model sees, has none."""
        newest = count
        while True:
            read = await self._read(Newest(newest))
            if len(read.items) >= count or read.is_all:
                return read.items[-count:]
            newest *= 2

    def _decode(self, items: Sequence[Item]) -> list[ChatMessage]:
        try:
            return get_codec(FORMAT).decode(list(items), rules=self._rules).messages
        except DecodeError as error:
            raise UndecodableItem(error.path, error.detail) from error

    # --- Removing -----------------------------------------------------------------------------------------------------

    async def _pop(self) -> Any:
        try:
            return await in_transaction(self._ledger, self._pop_within)
        except (ThreadNotFound, _NoItem):
            return None

    async def _pop_within(self, transaction: Transaction) -> Item:
        """Pop the newest message, which locks the branch, so that no other caller pops the same one. Put back the
        messages without an item, and the rest of the message of the newest item.
        """
        back: list[ChatMessage] = []
        while (last := await transaction.messages.pop(self.session_id)) is not None:
            items = await self._items_of_last(transaction, last)
            if items:
                back = [*self._shortened(last, items[:-1]), *back]
                await append_within(transaction, self.session_id, back, rules=self._rules)
                return items[-1]
            back.insert(0, _anew(last, last))
        raise _NoItem

    async def _items_of_last(self, transaction: Transaction, last: ChatMessage) -> list[Item]:
        """The items of the message that was popped. Of another format, a result is written like the call before it."""
        before = []
        if last.format != FORMAT:
            before = (await transaction.messages.history(self.session_id, Newest(1))).messages
        return _items([*before, last])[len(_items(before)) :]

    def _shortened(self, message: ChatMessage, items: Sequence[Item]) -> list[ChatMessage]:
        """The message with the first of its items: one message, or several of another format's. None for no items."""
        messages = self._decode(items)
        return [_anew(row, message) for row in messages[:1]] + messages[1:]

    async def _delete(self) -> None:
        with suppress(ThreadNotFound):
            await self._ledger.threads.delete(self.session_id)

    # --- Compaction ---------------------------------------------------------------------------------------------------

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[Item], bool] | None = None
    ) -> Any:  # _CompactionSnapshot | None
        """The last items, for the SDK's OpenAIResponsesCompactionSession, which then replaces a suffix of them. None if
        the items of a message depend on those around it; the SDK then replaces the whole history, or nothing.

        `replace_suffix` returns False, with nothing written, if the suffix is not what it was at the snapshot.
        """
        newest: int | None = limit
        while True:
            try:
                window = None if newest is None else Newest(newest)
                history = await self._ledger.messages.history(self.session_id, window)
            except ThreadNotFound:
                return _CompactionSnapshot([], True, _nothing_to_replace)
            places = [
                _ItemPlace(idx, n, item)
                for idx, message in enumerate(history)
                for n, item in enumerate(_items([message]))
            ]
            if len(places) >= limit or history.previous_cursor is None:
                break
            newest = None
        if [place.item for place in places] != _items(history.messages):
            return None
        complete = history.previous_cursor is None and len(places) <= limit
        places = places[-limit:]

        async def replace_suffix(start: int, output: list[Item]) -> bool:
            if not places[start:]:
                return False
            first = places[start]
            suffix = _Suffix(history.messages[first.index :], first.number, self._decode(output))
            try:
                await settled(in_transaction(self._ledger, lambda tx: self._replace(tx, suffix, prune_prefix)))
            except (_Moved, ThreadNotFound, InvalidCursor, DraftLive):
                return False
            return True

        return _CompactionSnapshot([place.item for place in places], complete, replace_suffix)

    async def _replace(self, transaction: Transaction, suffix: _Suffix, expired: Callable[[Item], bool] | None) -> None:
        cut, *others = suffix.messages
        removed = await rewind_to(scope_of(transaction), self.session_id, (cut.seq or 1) - 1)
        if [_identity(message) for message in removed] != [_identity(message) for message in suffix.messages]:
            raise _Moved
        head = _items([cut])[: suffix.first]
        if expired is not None and await self._prune(transaction, expired):
            head = list(dropwhile(expired, head))
        without_items = [message for message in others if not _items([message])]
        back = [*self._shortened(cut, head), *(_anew(message, message) for message in without_items)]
        await append_within(transaction, self.session_id, [*back, *suffix.output], rules=self._rules)

    async def _atomic_replace_items(self, items: list[Item]) -> bool:
        """Replace the whole history, for a compaction that is forced. The thread stays, with its title, its metadata,
        its runs and its scores, and messages without an item stay as well. Returns False, with nothing written, if a
        subclass stores items in its own way; the SDK then clears the session and adds the items.
        """
        if type(self).add_items is not ChatLedgerSession.add_items:
            return False
        messages = self._decode(items)
        await settled(in_transaction(self._ledger, lambda tx: self._replace_all(tx, messages)))
        return True

    async def _replace_all(self, transaction: Transaction, messages: list[ChatMessage]) -> None:
        removed: Sequence[ChatMessage] = []
        with suppress(ThreadNotFound):
            removed = await transaction.messages.rewind(self.session_id, None)
        back = [_anew(message, message) for message in removed if not _items([message])]
        await append_within(transaction, self.session_id, [*back, *messages], rules=self._rules, create=True)

    async def _prune(self, transaction: Transaction, expired: Callable[[Item], bool]) -> bool:
        """Retract the messages at the beginning, and of the next one the first items, as long as they are expired.
        Returns whether nothing is left. A call or a result ends it, because it would part a pair.
        """
        after: Cursor | None = None
        while True:
            page = await transaction.messages.history(self.session_id, Oldest(_PAGE, after=after))
            for message in page:
                items = _items([message])
                left = list(dropwhile(expired, items))
                if message.tool_calls or message.role == "tool" or left == items:
                    return False
                assert message.message_id is not None
                if left:
                    (shorter,) = self._decode(left)
                    await transaction.messages.revise(self.session_id, message.message_id, shorter)
                    return False
                await transaction.messages.remove(self.session_id, message.message_id)
            if page.next_cursor is None:
                return True
            after = page.next_cursor


@dataclass(frozen=True, slots=True)
class _ReadItems:
    """The items of a window, and whether it reaches back to the first message."""

    items: list[Item]
    is_all: bool


class _NoItem(Exception):
    """The thread has no item. The error ends the transaction, so that the popped messages stay."""


class _Moved(Exception):
    """The suffix has changed. The error ends the transaction, so that no part of the suffix is replaced."""


@dataclass(frozen=True, slots=True)
class _ItemPlace:
    """An item, and where it stands: the index of its message in a history, and its number in that message."""

    index: int
    number: int
    item: Item


@dataclass(frozen=True, slots=True)
class _Suffix:
    """The messages at the end of a history, from item `first` of the first message on, and their replacement."""

    messages: Sequence[ChatMessage]
    first: int
    output: list[ChatMessage]


async def _nothing_to_replace(start: int, output: list[Item]) -> bool:
    return False


def _accepted(history: History) -> list[Item]:
    """The items that OpenAI accepts; none if a repair leaves nothing, as of messages that no model sees."""
    try:
        payload, _ = prompt(FORMAT, history.messages, "dicts")
    except NothingToSend:
        return []
    return as_items(payload)


def _items(messages: Sequence[ChatMessage]) -> list[Item]:
    """The items of messages as they are stored."""
    return as_items(get_codec(FORMAT).encode(messages).payload)


def _identity(message: ChatMessage) -> tuple[str | None, list[Item]]:
    return message.message_id, _items([message])


def _anew(message: ChatMessage, stored: ChatMessage) -> ChatMessage:
    """The message as one to append, with the id and the other fields of the stored one that its items do not tell."""
    fields = {name: getattr(stored, name) for name in _KEPT}
    if stored.state == "partial":  # its writer abandoned it
        fields["state"] = "interrupted"
    return copy_with(message, {**fields, **dict.fromkeys(("thread_id", "branch", "seq")), "violations": []})
