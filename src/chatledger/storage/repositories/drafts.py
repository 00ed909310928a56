"""A draft: an assistant message that is stored while the model writes it.

From the moment the draft is entered, a partial message stands at the end of its branch. The draft merges the fed pieces
in memory and writes them once enough bytes or enough time have passed. So a process that dies leaves behind all but the
last interval. Each write renews the lease, without which the message counts as abandoned. If nothing is fed for a
while, a task renews the lease.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

from chatledger.arguments import DICT_OR_NONE, require
from chatledger.errors import (
    ChatLedgerError,
    DecodeError,
    DraftLost,
    IdConflict,
    InvalidArgument,
    LimitExceeded,
    RuleViolation,
    StorageError,
)
from chatledger.ids import new_stamp
from chatledger.models import ChatMessage, Delta, RulesLevel, State
from chatledger.models.base import refusing
from chatledger.models.deltas import DELTAS, Growing, size_of
from chatledger.rules import Lease, Tip, complete, grow
from chatledger.storage.append.partial import Held, PartialKey, PartialWrite, find_held, write_partial
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.databases.retries import Retries
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.path import load_range
from chatledger.storage.repositories.partials import interrupt_partial
from chatledger.storage.rows.messages import EncodedMessage, encode_message

INTERVAL = 0.25
"""The most seconds that a fed piece waits before it is written."""
SIZE = 4096
"""The bytes of fed text that are written without waiting."""
_ATTEMPTS = 4
"""Attempts of a write. Other writes to the branch, such as outputs, move its stamp too; more in a row are unlikely."""


class EventSource(Protocol):
    """The stream of a provider, which a draft is fed with event by event."""

    def feed(self, event: Any) -> Iterable[Delta]:
        """What the event adds to the message. Raises DecodeError for a value that is no event."""
        ...

    def messages(self, rules: RulesLevel) -> Sequence[ChatMessage]:
        """The messages that an append of the whole response would store. Raises DecodeError."""
        ...

    @property
    def failure(self) -> str | None:
        """Why the provider gave the stream up; None while it did not."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    interval: float = INTERVAL
    size: int = SIZE

    def __post_init__(self) -> None:
        if self.interval < 0:
            raise InvalidArgument("interval", "must not be below 0 seconds")
        if self.size < 1:
            raise InvalidArgument("size", "must not be below 1 byte")


_DECODED = ("content", "reasoning", "tool_calls", "response_metadata", "custom_data", "format", "residual")


class Draft:
    """Made by `ledger.stream`. Enter it, feed it, and leave it: a normal exit completes the message, an exception or a
    cancellation marks it interrupted. `message` is the message as it was last stored.
    """

    def __init__(self, scope: Scope, request: AppendRequest, *, pace: Pace, source: EventSource | None = None) -> None:
        self._scope = scope
        self._request = request
        self.message = request.whole(0)
        self._pace = pace
        self._source = source
        self._only_events = source is not None
        self._growing = Growing()
        self._lock = asyncio.Lock()  # one write at a time
        self._fed = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._failure: ChatLedgerError | None = None
        self._held: Held | None = None
        self._before: EncodedMessage | None = None
        self._unwritten = self._bytes = 0
        self._tried_at = 0.0
        self._finished = False

    # --- Its life

    async def __aenter__(self) -> Self:
        appended = await self._scope.append(self._request)
        (self.message,) = appended.messages
        if self.message.state != "partial":
            raise IdConflict(self.message.message_id or "", self.message.seq, "is stored already, and whole")
        self._opened = self.message
        self._before = encode_message(self.message)
        self._tried_at = time.monotonic()
        self._keeper = asyncio.create_task(self._keep())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._finished:
                return
            if error is None:
                await self._complete_or_interrupt()
            else:
                with suppress(ChatLedgerError):  # the caller should see the first error, which caused the exit
                    await asyncio.shield(self.interrupt())
        finally:
            await self._stop()

    async def _complete_or_interrupt(self) -> None:
        try:
            await self.complete()
        except RuleViolation:
            with suppress(ChatLedgerError):
                await self.interrupt()
            raise

    async def feed(self, delta: Delta | Any) -> None:
        """Add a text, a TextDelta, ReasoningDelta or ToolCallDelta, or a whole part to the message. A draft with a
        `format` also takes an event of that format's stream. It raises DecodeError for anything else, and for an event
        that says that the stream failed.

        Writes if `size` bytes have come, or `interval` seconds have passed, since the last write. If the database is
        away for a moment, the next piece tries again. Raises DraftLost if someone else completed or interrupted the
        message, LimitExceeded if it grows beyond `limits.bytes`, and InvalidArgument for a value that is no delta.
        """
        self._require_open()
        if self._source is None or isinstance(delta, DELTAS):
            self._only_events = False
            self._add(delta)
        else:
            for one in self._source.feed(delta):
                self._add(one)
            if self._source.failure is not None:
                raise DecodeError("$", f"the provider gave the stream up: {self._source.failure}")
        now = time.monotonic()
        due = now - self._tried_at >= self._pace.interval
        if self._unwritten and (due or (self._unwritten >= self._pace.size and self._failure is None)):
            await self._write_or_wait()
        else:
            self._fed.set()

    async def flush(self) -> None:
        """Write all fed pieces now."""
        self._require_open()
        async with self._lock:
            await self._write("partial")

    async def complete(
        self, *, response_metadata: dict[str, Any] | None = None, custom_data: dict[str, Any] | None = None
    ) -> ChatMessage:
        """Store the message as complete and return it. It has no content if nothing was fed. Its calls are open from
        now on. A second call returns the same.

        Raises InvalidArgument, RuleViolation as an append of the whole message would, DraftLost, and StorageError if
        the database stays away until the time limit of the ledger; the message then stays partial.
        """
        fields = {"response_metadata": response_metadata, "custom_data": custom_data}
        require(DICT_OR_NONE, **fields)
        with refusing():
            ChatMessage(role="assistant", response_metadata=response_metadata, custom_data=custom_data)
        return await self._finish("complete", {name: value for name, value in fields.items() if value is not None})

    async def interrupt(self) -> ChatMessage:
        """Store the message so far, marked as interrupted. Its calls get synthetic results. Raises DraftLost."""
        return await self._finish("interrupted", {})

    # --- What it holds

    def _add(self, delta: Delta) -> None:
        added = size_of(delta)
        if self._bytes + added > self._scope.limits.bytes:
            raise LimitExceeded("bytes of a draft", self._bytes + added, self._scope.limits.bytes)
        self._growing.add(delta)
        self._bytes += added
        self._unwritten += max(added, 1)

    def _grown(self, state: State) -> ChatMessage:
        """The message with all that was fed. A call that has no name yet cannot be stored; only `complete`
        includes it.
        """
        fields = {
            "content": self._growing.content(),
            "reasoning": self._growing.reasoning(),
            "tool_calls": self._growing.tool_calls(nameless=state == "complete"),
            "state": state,
        }
        grown = self._opened.model_copy(update={name: value for name, value in fields.items() if value is not None})
        return self._as_appended(grown) if state == "complete" else grown

    def _as_appended(self, grown: ChatMessage) -> ChatMessage:
        """The message as an append of the whole response would store it, if that is one message and the draft was fed
        with nothing but the response's events.
        """
        if self._source is None or not self._only_events:
            return grown
        try:
            decoded = self._source.messages(self._request.rules or self._request.default_rules)
        except DecodeError:
            return grown
        if len(decoded) != 1 or decoded[0].role != "assistant":
            return grown
        return grown.model_copy(update={name: getattr(decoded[0], name) for name in _DECODED})

    def _require_open(self) -> None:
        if self._failure is not None and not _may_pass(self._failure):
            raise self._failure
        if self._finished or self._keeper is None:
            raise StorageError("this draft is not open: enter it with `async with`, and feed it before it is finished")

    # --- Writing

    async def _keep(self) -> None:
        """Write the pieces that were fed before a pause, and renew the lease in a long pause."""
        while self._failure is None or _may_pass(self._failure):
            renews_at = self._tried_at + self._request.lease / 3
            if not self._unwritten and self._failure is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(renews_at - time.monotonic()):
                        await self._fed.wait()
            if self._unwritten or self._failure is not None:
                await asyncio.sleep(max(self._tried_at + self._pace.interval - time.monotonic(), 0.001))
            if self._unwritten or self._failure is not None or time.monotonic() >= renews_at:
                await self._write_or_wait()
            self._fed.clear()

    async def _write_or_wait(self) -> None:
        """Write, and remember the error. The draft tries again after a temporary error; its next call raises
        any other.
        """
        try:
            async with self._lock:
                if not self._finished:
                    await self._write("partial")
            self._failure = None
        except ChatLedgerError as error:
            self._failure = error
            if asyncio.current_task() is not self._keeper and not _may_pass(error):
                raise

    async def _finish(self, state: State, fields: dict[str, Any]) -> ChatMessage:
        async with self._lock:
            if self._finished:
                return self.message
            self._require_open()
            retries = Retries(self._scope.timeout)
            while True:
                try:
                    await self._write(state, fields)
                    break
                except StorageError as error:
                    if not error.retryable or state != "complete" or not await retries.next():
                        raise
            self._finished = True
        await self._stop()
        return self.message

    async def _write(self, state: State, fields: dict[str, Any] | None = None) -> None:
        """Write all that was fed until now. Until the outcome is known, the content of the row counts as unknown."""
        self._tried_at = time.monotonic()
        unwritten, message = self._unwritten, self._grown(state).model_copy(update=fields or {})
        held, before = self._held, self._before
        self._held = self._before = None
        writing = _Writing(self._request, self._opened, message)
        done = await self._scope.write(lambda sql: writing.write(sql, held, before), single=state != "interrupted")
        self._held, self._before, self.message = done
        self._unwritten -= unwritten

    async def _stop(self) -> None:
        keeper = self._keeper
        if keeper is not None and not keeper.done() and keeper is not asyncio.current_task():
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Writing:
    """One write of a draft, where the database runs it. `opened` is the message as it was opened, `message` as it is
    now.
    """

    request: AppendRequest
    opened: ChatMessage
    message: ChatMessage

    def write(
        self, sql: Sql, held: Held | None, before: EncodedMessage | None
    ) -> tuple[Held, EncodedMessage, ChatMessage]:
        """The new tip of the branch, the new content of the row, and the message as stored. Raises DraftLost."""
        if self.message.state == "interrupted":
            return self._interrupt(sql, held, before)
        encoded = encode_message(self.message)
        for _ in range(_ATTEMPTS):
            held = held or find_held(sql, self._key)
            if held is None:
                return self._found_whole(sql, encoded)
            done = self._attempt(sql, held, encoded, before)
            if done is not None:
                return done
            held = before = None
        raise StorageError(f"the branch moved under each of {_ATTEMPTS} attempts", retryable=True)

    def _attempt(
        self, sql: Sql, held: Held, encoded: EncodedMessage, before: EncodedMessage | None
    ) -> tuple[Held, EncodedMessage, ChatMessage] | None:
        now, stamp, message = datetime.now(UTC), new_stamp(), self.message
        branch, broken = self._key.branch, tuple(self.opened.violations)
        if message.state == "partial":
            tip = grow(held.tip, message, branch=branch)._replace(lease=Lease(now, self.request.lease))
        else:
            level = self.request.rules or held.rules or self.request.default_rules
            tip, broken = complete(held.tip, message, branch=branch, level=level, opened=broken)
        write = PartialWrite(self._key, held.stamp, stamp, tip, encoded, before, message.state, broken, now)
        if not write_partial(sql, write):
            return None
        return Held(tip, stamp, held.rules), encoded, message.model_copy(update={"violations": list(broken)})

    def _interrupt(
        self, sql: Sql, held: Held | None, before: EncodedMessage | None
    ) -> tuple[Held, EncodedMessage, ChatMessage]:
        """Write all that was fed; then mark the message as interrupted and answer its calls."""
        partial = replace(self, message=self.message.model_copy(update={"state": "partial"}))
        held, encoded, message = partial.write(sql, held, before)
        if not interrupt_partial(sql, self.request, self._key):
            raise self._lost()
        return held, encoded, message.model_copy(update={"state": "interrupted"})

    def _found_whole(self, sql: Sql, encoded: EncodedMessage) -> tuple[Held, EncodedMessage, ChatMessage]:
        """The message is no longer partial. That is fine if an earlier attempt, whose answer was lost, completed it."""
        key = self._key
        stored = load_range(sql, key.tenant, key.thread, key.branch, key.seq, key.seq)
        if not stored or stored[0].state != self.message.state or encode_message(stored[0]) != encoded:
            raise self._lost()
        return Held(Tip(), 0, None), encoded, stored[0]

    def _lost(self) -> DraftLost:
        return DraftLost(self.request.thread_id, self._key.branch, self._key.seq)

    @property
    def _key(self) -> PartialKey:
        branch, seq = self.opened.branch or 0, self.opened.seq or 0
        return PartialKey(self.request.tenant, self.request.thread, branch, seq, self.request.message_ids[0])


def _may_pass(error: ChatLedgerError) -> bool:
    return isinstance(error, StorageError) and error.retryable
