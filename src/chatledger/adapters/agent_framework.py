"""The history and the sessions of the Microsoft Agent Framework, kept in a ledger.

    agent = Agent(client, context_providers=[LedgerHistoryProvider(ledger, user_id="ada")])
    await agent.run("Hello", session=agent.create_session(session_id="thread-1"))

The thread is that of the session's id, and its messages are in the format `agent-framework`. A session's own state, of
which messages are no part, is a value beside the threads: `LedgerSessionStore` keeps it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from chatledger.adapters.extra import importing
from chatledger.adapters.write import append, settled
from chatledger.arguments import INT_OR_NONE, RULES, STR, STR_OR_NONE, Kind, require
from chatledger.errors import DecodeError, EncodeError, StorageError, ThreadNotFound, VersionConflict
from chatledger.formats.agent_framework import CODEC
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Mark, Newest, RulesLevel, Turns, continues
from chatledger.models.json import JsonValue
from chatledger.models.windows import Window
from chatledger.repositories.history import History

with importing("agent_framework", extra="agent-framework", name="the Microsoft Agent Framework"):
    from agent_framework import AgentSession, HistoryProvider, SessionStore
    from agent_framework._sessions import filter_new_messages

__all__ = ["LedgerHistoryProvider", "LedgerSessionStore", "UndecodableMessage"]

ATTEMPTS = 50
"""Maximum number of attempts of a save. Each time that it comes too late, another writer has stored its batch."""
_PAUSE = 0.002
"""Maximum number of seconds before the second attempt; up to 16 times as long before later ones."""
_LEDGER = Kind("a Ledger", Ledger)
_BOOL = Kind("a bool", bool)
_NAMESPACE = "agent-framework"
_VERSION = "1"
_log = logging.getLogger("chatledger.adapters")


class UndecodableMessage(DecodeError, TypeError):
    """A message that cannot be stored, because a value in it is not JSON. `path` is its place. Nothing was written."""


class LedgerHistoryProvider(HistoryProvider):  # type: ignore[misc]  # the type checker's environment lacks the framework
    """A context provider that keeps the messages of an agent's sessions in threads of the ledger.

        agent = Agent(client=client, context_providers=[LedgerHistoryProvider(ledger, user_id="ada")])

    The id of the session is the id of the thread; a run without a session uses `default_session`. Creating a provider
    reads and writes nothing. The first messages create the thread.

    With `user_id`, threads belong to that user. A thread of another user has no messages for it, and saving some raises
    ThreadNotFound.

    With `last_turns`, the agent gets the messages of that many turns, from a user's message to the next, so a call is
    never separated from its result. `skip_excluded=True` leaves out the messages that a compaction of the framework
    marked. `rules` is the level of the threads that the provider creates, and of the messages that it adds; the default
    accepts every message. The flags `load_messages`, `store_inputs`, `store_context_messages`, `store_context_from` and
    `store_outputs` are those of the framework's `HistoryProvider`.
    """

    default_session: str
    """The id of the thread for runs without a session."""
    last_turns: int | None
    """The maximum number of turns that the agent gets; None for all."""
    skip_excluded: bool
    """Whether messages that a compaction marked are left out."""

    def __init__(
        self,
        ledger: Ledger,
        source_id: str = "chatledger",
        *,
        user_id: str | None = None,
        rules: RulesLevel = "lenient",
        default_session: str = "default",
        last_turns: int | None = None,
        skip_excluded: bool = False,
        **flags: Any,
    ) -> None:
        require(_LEDGER, ledger=ledger)
        require(STR, source_id=source_id, default_session=default_session)
        require(STR_OR_NONE, user_id=user_id)
        require(RULES, rules=rules)
        require(INT_OR_NONE, last_turns=last_turns)
        require(_BOOL, skip_excluded=skip_excluded)
        super().__init__(source_id, **flags)
        self.default_session = default_session
        self.last_turns = last_turns
        self.skip_excluded = skip_excluded
        self._ledger = ledger if user_id is None else ledger.user(user_id)
        self._rules = rules

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Any]:
        """The messages of the session, in order; none if there is no thread. A message that is still being written is
        left out. So is a message that the framework refuses; the logger `chatledger.adapters` reports its seq.
        """
        try:
            history = await self._history(session_id, None if self.last_turns is None else Turns(self.last_turns))
        except ThreadNotFound:
            return []
        messages = _objects(history)
        if self.skip_excluded:
            messages = [message for message in messages if not message.additional_properties.get("_excluded", False)]
        return messages

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Any],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add the messages at the end, all or none, without those that the history already ends with: a caller may pass
        the whole history again. Reads as many messages as it is given, and one more.

        Raises UndecodableMessage, which is a TypeError, for a message that is not JSON; ThreadNotFound for a thread of
        another user; DraftLive while the message at the end is being written; and the ledger's other errors.
        """
        if messages:
            await settled(self._save(session_id, _Batch.of(messages)))

    async def _history(self, session_id: str | None, window: Window | None = None) -> History:
        return await self._ledger.messages.history(session_id or self.default_session, window)

    # --- Saving -------------------------------------------------------------------------------------------------------

    async def _save(self, session_id: str | None, batch: _Batch) -> None:
        """The end that the batch was compared with must be the one that it is appended to, so another writer in between
        means to compare again.
        """
        for attempt in count(1):
            try:
                return await self._append(session_id, batch)
            except VersionConflict:
                if attempt == ATTEMPTS:
                    raise
            except StorageError as error:
                if attempt == ATTEMPTS or not error.retryable:
                    raise
            await asyncio.sleep(random.uniform(0, _PAUSE * 2 ** min(attempt, 5)))  # noqa: S311 - it keeps no secret
        raise AssertionError("unreachable")

    async def _append(self, session_id: str | None, batch: _Batch) -> None:
        stored: Sequence[Any] = []
        expected: Mark | Literal[0] = 0  # no thread exists yet, unless another writer has just created it
        with suppress(ThreadNotFound):
            stored, expected = await self._end(session_id, len(batch.sources))
        rows = batch.rows_after(stored)
        if rows:
            thread_id = session_id or self.default_session
            await append(self._ledger, thread_id, rows, rules=self._rules, expected=expected)

    async def _end(self, session_id: str | None, size: int) -> tuple[Sequence[Any], Mark]:
        """The newest messages, one more than `size` or all, and the mark: only so does the framework tell an overlap
        from a whole history that is given again. A message of results is several rows.
        """
        newest = size + 1
        while True:
            history = await self._history(session_id, Newest(newest))
            stored = CODEC.encode(history.messages).payload
            if len(stored) > size or history.previous_cursor is None:
                return stored, history.mark
            newest *= 2


# --- Messages ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Batch:
    """Messages to save: as dicts, and the rows of each."""

    sources: list[Any]
    rows: list[list[ChatMessage]]

    @classmethod
    def of(cls, messages: Sequence[Any]) -> _Batch:
        """Raises UndecodableMessage."""
        try:
            decoded = CODEC.decode(list(messages), rules="lenient")
        except DecodeError as error:
            raise UndecodableMessage(error.path, error.detail) from error
        for loss in decoded.losses:
            raise UndecodableMessage(loss.path, "it is no JSON, so it would not come back: dump it, or take it out")
        rows: list[list[ChatMessage]] = []
        for row in decoded.messages:
            if continues(row):
                rows[-1].append(row)
            else:
                rows.append([row])
        return cls(CODEC.encode(decoded.messages).payload, rows)

    def rows_after(self, stored: Sequence[Any]) -> list[ChatMessage]:
        """The rows of the messages that the end of the history does not have yet, as the framework finds them."""
        new = filter_new_messages(
            [_Dumped.of(message) for message in stored], [_Dumped.of(message) for message in self.sources]
        )
        return [row for rows in self.rows[len(self.rows) - len(new) :] for row in rows]


@dataclass(frozen=True, slots=True)
class _Dumped:
    """As much of a message as the framework compares, without making its objects."""

    role: str
    message_id: str | None
    contents: list[_Content]

    @classmethod
    def of(cls, source: Any) -> _Dumped:
        return cls(source["role"], source.get("message_id"), [_Content(content) for content in source["contents"]])


@dataclass(frozen=True, slots=True)
class _Content:
    source: JsonValue

    def to_dict(self) -> JsonValue:
        return self.source


def _objects(history: History) -> list[Any]:
    """The messages of a history, without those that the framework refuses."""
    try:
        return list(CODEC.as_models(CODEC.encode(history.messages).payload))
    except EncodeError:
        return [message for group in _groups(history.messages) for message in _objects_of(group)]


def _groups(rows: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    groups: list[list[ChatMessage]] = []
    for row in rows:
        if groups and continues(row):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _objects_of(group: Sequence[ChatMessage]) -> list[Any]:
    try:
        return list(CODEC.as_models(CODEC.encode(group).payload))
    except EncodeError as error:
        _log.error("thread %r, seq %s: %s", group[0].thread_id, group[0].seq, error)
        return []


# --- Sessions ---------------------------------------------------------------------------------------------------------


with warnings.catch_warnings():
    # The framework calls its session store experimental at the first subclass. A program that only keeps messages here
    # should not hear it, and the page says it.
    warnings.simplefilter("ignore")

    class _SessionStore(SessionStore):  # type: ignore[misc]  # as above
        pass


class LedgerSessionStore(_SessionStore):
    """Snapshots of sessions, as `AgentSession.to_dict` writes them, in the values of a ledger (`ledger.kv`). With
    `user_id` they belong to that user; a user's ledger needs it.

        store = LedgerSessionStore(ledger, user_id="ada")

    If a LedgerHistoryProvider keeps the messages, they are not part of the snapshot, and outlive its deletion.
    """

    def __init__(self, ledger: Ledger, *, user_id: str | None = None) -> None:
        require(_LEDGER, ledger=ledger)
        require(STR_OR_NONE, user_id=user_id)
        super().__init__()
        self._ledger = ledger if user_id is None else ledger.user(user_id)
        self._scope = ("tenant", _NAMESPACE) if user_id is None else ("user", user_id, _NAMESPACE)

    async def get(self, session_id: str) -> Any:
        """The session, as a new object; None if there is none. Raises ValueError for an empty id, for a
        snapshot of an unknown version, and for a state that the framework cannot restore.
        """
        self.validate_session_id(session_id)
        value = await self._ledger.kv.get(self._scope, session_id)
        if value is None:
            return None
        snapshot = value.value
        if not isinstance(snapshot, dict) or snapshot.get("version") != _VERSION:
            raise ValueError("the snapshot of this session is not of a version that this release knows")
        return AgentSession.from_dict(snapshot)

    async def set(self, session_id: str, session: Any) -> None:
        """Store the session under the id; the last writer wins.

        Raises, with nothing written, ValueError for an empty id and for a number that is not finite, and TypeError for
        a value that no codec of the framework dumps, each with its path, and for a subclass of AgentSession.
        """
        self.validate_session_id(session_id)
        if type(session) is not AgentSession:
            raise TypeError(
                f"an AgentSession is expected, not {type(session).__name__}: a subclass would not come back"
            )
        snapshot = {**session.to_dict(), "version": _VERSION}
        _require_durable(snapshot["service_session_id"], "service_session_id")
        _require_durable(snapshot["state"], "state")
        await settled(self._ledger.kv.put(self._scope, session_id, snapshot))

    async def delete(self, session_id: str) -> None:
        """Delete the session, if there is one. Its messages stay: `ledger.threads.delete` deletes them."""
        self.validate_session_id(session_id)
        await settled(self._ledger.kv.delete(self._scope, session_id))


def _require_durable(value: Any, path: str) -> None:
    """Raises ValueError and TypeError for what JSON cannot hold."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path} must be a finite number")
    if isinstance(value, dict):
        for key, child in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{path} has a key of type {type(key).__name__}, and JSON has texts alone")
            _require_durable(child, f"{path}.{key}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _require_durable(child, f"{path}[{index}]")
    elif value is not None and type(value) not in (str, int, float, bool):
        raise TypeError(
            f"{path} is of type {type(value).__name__}, which is no JSON: call register_state_type with a codec for it"
        )
