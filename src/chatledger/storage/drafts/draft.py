"""A draft: an assistant message that is stored while the model writes it.

From the moment the draft is entered, a partial message stands at the end of its branch. The draft merges the fed pieces
in memory and writes them once enough bytes or enough time have passed. So a process that dies leaves behind all but the
last interval. Each write renews the lease, without which the message counts as abandoned. If nothing is fed for a
while, a task renews the lease.

The last write holds what an append of the provider's whole response would store: the response is assembled from its
events, and read by the codec that an append uses. The writes on the way hold its texts, its reasoning and its calls, in
the places where the last write has them.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

from chatledger.arguments import DICT_OR_NONE, INT, NUMBER, require, require_between
from chatledger.errors import (
    ChatLedgerError,
    DecodeError,
    DraftLost,
    InvalidArgument,
    LimitExceeded,
    RuleViolation,
    StorageError,
)
from chatledger.models import ChatMessage, Delta, Loss, OpaquePart, Part, State, TextPart, Usage
from chatledger.models.deltas import DELTAS, Growing, size_of
from chatledger.models.json import json_problem
from chatledger.models.weight import apart
from chatledger.storage.append.draft_rows import HeldDraft
from chatledger.storage.append.request import LEASE, AppendRequest
from chatledger.storage.databases.retries import Retries
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drafts.attach import attach
from chatledger.storage.drafts.draft_write import DraftWrite
from chatledger.storage.drafts.response import load_response, response_of, with_fields
from chatledger.storage.rows.messages import EncodedMessage, bytes_of, encode_message
from chatledger.storage.schema.text import write_mark

_LONGEST = 31_536_000
"""Seconds of a year. A longer lease or interval is a mistake, and would reach beyond the calendar."""


class EventSource(Protocol):
    """The stream of a provider, whose events a draft is fed."""

    def feed(self, event: Any) -> Sequence[Delta]:
        """Take an event, and return the pieces that it adds to the message. Raises DecodeError for a value that is no
        event, and LimitExceeded.
        """
        ...

    def response(self) -> tuple[Sequence[ChatMessage], Sequence[Loss]]:
        """The messages that an append of the whole response would store, and its losses. Raises DecodeError."""
        ...

    @property
    def usage(self) -> Usage | None: ...

    @property
    def finish_reason(self) -> str | None: ...

    @property
    def failure(self) -> str | None:
        """Why the provider broke the stream off; None if it did not."""
        ...

    @property
    def unknown(self) -> Sequence[Any]:
        """The events that were not understood."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a draft is written, and how long it counts as alive."""

    interval: float = 0.25
    """The most seconds that a fed piece waits before it is written."""
    size: int = 4096
    """The bytes of fed text that are written without waiting."""
    lease: float = LEASE
    """Seconds after its last write until the draft counts as abandoned, because its process died. Longer than
    `interval`.
    """

    def __post_init__(self) -> None:
        require(NUMBER, interval=self.interval, lease=self.lease)
        require(INT, size=self.size)
        require_between(0, _LONGEST, interval=self.interval, lease=self.lease)
        if self.size < 1:
            raise InvalidArgument("size", "must not be below 1 byte")
        if self.lease <= self.interval:
            detail = f"must be longer than interval, {self.interval:g} seconds, not {self.lease:g}"
            raise InvalidArgument("lease", detail)


_FAILURE, _UNKNOWN = "failure", "unknown_events"
"""Keys of `response_metadata`."""


class Draft:
    """An assistant message that is stored while the model writes it. `messages.stream` makes one. Enter it, feed it,
    and leave it: a normal exit completes the message, an exception or a cancellation marks it interrupted.
    """

    messages: Sequence[ChatMessage]
    """The draft's message as it was last stored, and the messages that follow it if the response is more than one
    message. An interruption marks the last of them.
    """
    replayed: bool
    """Whether an earlier draft had stored the message already. This draft then ignores the pieces that it is fed."""
    losses: Sequence[Loss]
    """The values of the provider's response that could not be stored as they came, as in `messages.append`. Empty until
    the draft is finished.
    """

    def __init__(self, scope: Scope, request: AppendRequest, *, pace: Pace, source: EventSource | None = None) -> None:
        self._scope = scope
        self._request = request
        self.messages: Sequence[ChatMessage] = [request.whole(0)]
        self.replayed = False
        self.losses: Sequence[Loss] = ()
        self._pace = pace
        self._source = source
        self._only_events = source is not None
        self._growing = Growing()
        self._lock = asyncio.Lock()  # one write at a time
        self._fed = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._failure: ChatLedgerError | None = None
        self._held: HeldDraft | None = None
        self._before: EncodedMessage | None = None
        self._unwritten = self._bytes = 0
        self._tried_at = 0.0
        self._finishing = self._finished = False

    # --- Its life

    async def __aenter__(self) -> Self:
        self._request = replace(self._request, now=datetime.now(UTC))  # the lease begins now
        self.messages = await self._open()
        if self.message.state != "partial":
            first, tenant = self.message, self._request.tenant
            self.messages = await self._scope.read(lambda sql: load_response(sql, tenant, first))
            self.replayed = self._finished = True
            return self
        self._opened = self.message
        self._before = encode_message(self.message)
        self._growing = Growing.after(self.message)
        if self._growing != Growing():
            self._only_events = False
            self._bytes = bytes_of([self._before]) - bytes_of(self._request.rows)
        self._tried_at = time.monotonic()
        self._keeper = asyncio.create_task(self._keep())
        return self

    async def _open(self) -> Sequence[ChatMessage]:
        request = self._request
        if request.draft is None or not request.draft.holder:
            return (await self._scope.append(request)).messages
        message, self._held, lease = await self._scope.write(lambda sql: attach(sql, request, request.ids[0]))
        self._request = replace(request, lease=lease)
        return [message]

    @property
    def token(self) -> str:
        """With it, `messages.attach` goes on with the draft in another process. It is no permission, and is stored
        nowhere but in the lease. Keep it secret all the same.
        """
        return "" if self._request.draft is None else f"{self._request.draft.token:016x}"

    @property
    def offset(self) -> int:
        """How much the draft was fed: the place of the next piece. After `flush`, all of it is stored. It counts each
        character of a text and of a call's arguments, and 1 for each call, signature and whole part.
        """
        return (Growing.after(self.message) if self.replayed else self._growing).length

    @property
    def message(self) -> ChatMessage:
        """The draft's message as it was last stored. In a draft that continues an abandoned one, it has the stored
        content as soon as the draft is entered.
        """
        return self.messages[0]

    @property
    def usage(self) -> Usage | None:
        """The tokens that the provider counted so far; None if it did not report any. If the draft has a run, its end
        adds them to the run's usage.
        """
        return None if self._source is None else self._source.usage

    @property
    def finish_reason(self) -> str | None:
        """The provider's word for why the response ended; None if it sent none yet."""
        return None if self._source is None else self._source.finish_reason

    @property
    def failure(self) -> str | None:
        """Why the provider broke the stream off; None if it did not. The message then ends `interrupted`, with this
        text as `failure` in its `response_metadata`. A replayed draft has the stored text.
        """
        if self.replayed:
            failure: str | None = (self.messages[-1].response_metadata or {}).get(_FAILURE)
            return failure
        return None if self._source is None else self._source.failure

    @property
    def unknown(self) -> Sequence[Any]:
        """The events that the draft did not understand, whole and in their order. A chat completion adds
        `{"joined": key}` for each unknown key that came in different pieces, which were joined. Those that are JSON are
        stored with the message, as `unknown_events` in its `response_metadata`.
        """
        return () if self._source is None else self._source.unknown

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

    async def feed(self, delta: Delta | Any, *, offset: int | None = None) -> None:
        """Add a text, a TextDelta, ReasoningDelta or ToolCallDelta, or a whole part to the message. A draft with a
        `format` also takes an event of that format's stream, and raises DecodeError for a value that is no event. An
        event that it does not understand is kept in `unknown`; an event that reports a failure sets `failure`.

        `offset` is the place of a piece, as `draft.offset` was before it. What is there is dropped, so pieces may
        be sent again, and be cut at other places. The name of a call then comes with its first piece, and its `index`
        counts the calls from 0. An event has no place.

        The call writes if at least `size` bytes were fed, or `interval` seconds have passed, since the last write, and
        else returns at once. If the database is away for a moment, the next piece tries again. Raises DraftLost if
        another writer has, completed or interrupted the message, LimitExceeded if it grows beyond `limits.bytes`, and
        InvalidArgument for a value that is no delta, and for an `offset` beyond the end.
        """
        if self.replayed:
            return
        self._require_open()
        if offset is not None:
            require(INT, offset=offset)
            size_of(delta)
            delta = self._growing.rest(delta, offset)
            if delta is None:
                return
        if self._source is None or isinstance(delta, DELTAS):
            self._only_events = False
            self._add(delta)
        else:
            self._feed_event(self._source, delta)
        now = time.monotonic()
        due = now - self._tried_at >= self._pace.interval
        if self._unwritten and (due or (self._unwritten >= self._pace.size and self._failure is None)):
            await self._write_or_wait()
        else:
            self._fed.set()

    async def flush(self) -> None:
        """Write all fed pieces now. Raises DraftLost and StorageError."""
        if self.replayed:
            return
        self._require_open()
        async with self._lock:
            await self._write([self._so_far()])

    async def complete(
        self, *, response_metadata: dict[str, Any] | None = None, custom_data: dict[str, Any] | None = None
    ) -> ChatMessage:
        """Store the message as complete and return it. It has no content if nothing was fed. Its calls are open from
        now on. A second call returns the same message. If the provider broke the stream off, the message is stored as
        interrupted instead. `response_metadata` and `custom_data` are added to those of the draft's own message.

        Leaving the draft does this too. Raises InvalidArgument, RuleViolation as an append of the whole message would,
        DraftLost, and StorageError if the database stays away until the time limit of the ledger; the message then
        stays partial.
        """
        require(DICT_OR_NONE, response_metadata=response_metadata, custom_data=custom_data)
        fields = {"response_metadata": response_metadata, "custom_data": custom_data}
        for name, added in fields.items():
            if (problem := json_problem(added)) is not None:
                raise InvalidArgument(name, f"is not JSON at {problem[0]}: {problem[1]}")
        state: State = "complete" if self.failure is None else "interrupted"
        given_fields = {name: value for name, value in fields.items() if value is not None}
        return await self._finish(state, given_fields, timeout=self._scope.timeout)

    async def interrupt(self) -> ChatMessage:
        """Store the message so far, marked as interrupted, and return it. Its calls get synthetic results. If the
        response so far is several messages, the last one is marked. Raises DraftLost and StorageError.
        """
        return await self._finish("interrupted", {}, timeout=0)

    async def leave(self) -> None:
        """Write all fed pieces and end the lease, without an end of the message: it stays partial, and a draft with its
        id or key takes it over at once, in any process. This draft is closed then, and leaving the block does nothing.
        A service does this when it shuts down.

        Does nothing if another writer has the message already, or if the draft is finished. Raises StorageError if the
        database is away; the message then stays this draft's until its lease is over.
        """
        try:
            async with self._lock:
                if not self._finished:
                    self._failure = None  # the write finds out anew whose the message is
                    self._require_open()
                    self._finished = True  # whatever becomes of the write, leaving the block interrupts nothing
                    self._request = replace(self._request, lease=0.0)
                    await self._write([self._so_far()])
        except DraftLost:
            pass
        finally:
            await self._stop()

    # --- What it holds

    def _feed_event(self, source: EventSource, event: Any) -> None:
        for delta in source.feed(event):
            with suppress(DecodeError):  # the writes on the way can do without it, the response has it
                self._add(delta)

    def _add(self, delta: Delta) -> None:
        added = size_of(delta)
        if not self._only_events and self._bytes + added > self._scope.limits.bytes:
            raise LimitExceeded("bytes of a draft", self._bytes + added, self._scope.limits.bytes)
        self._growing.add(delta)
        self._bytes += added
        self._unwritten += max(added, 1)

    def _grown(self, state: State) -> ChatMessage:
        """The message with all that was fed."""
        return self._growing.on(self._opened, state)

    def _so_far(self) -> ChatMessage:
        """The message as a write on the way stores it. Its parts stand where the end will have them, so whoever follows
        it only sees it grow: the response so far is read by the codec that reads the end. A call is taken as it was
        fed, since a provider sends `{}` before the arguments. An opaque part is stored when the next one begins, since
        until then it changes. Of a response that is several messages, this one holds all until the end, so that a
        process that dies leaves all of it.
        """
        grown = self._grown("partial")
        decoded, _ = self._decoded() or ((), ())
        if not decoded or decoded[0].role != grown.role:
            return grown
        first, content = decoded[0], decoded[0].content
        if len(decoded) > 1:
            content = [part for message in decoded for part in _parts_of(message.content)]
        if isinstance(content, list) and content and isinstance(content[-1], OpaquePart):
            content = content[:-1] or None
        return grown.model_copy(update={"content": content, "reasoning": first.reasoning})

    def _decoded(self) -> tuple[Sequence[ChatMessage], Sequence[Loss]] | None:
        """The messages of the response so far, and its losses. None if more was fed than its events, or if they cannot
        be read.
        """
        if self._source is None or not self._only_events:
            return None
        try:
            return self._source.response()
        except DecodeError:
            return None

    def _final(self, state: State, fields: dict[str, Any]) -> list[ChatMessage]:
        """The messages to be stored in the end. The last one has the state, all before it are complete."""
        *complete, last = with_fields(self._response(state), fields)
        if notes := self._notes():
            last = last.model_copy(update={"response_metadata": {**(last.response_metadata or {}), **notes}})
        return [*complete, last.model_copy(update={"state": state})]

    def _response(self, state: State) -> list[ChatMessage]:
        """The messages that an append of the whole response would store, if the draft was fed with nothing but the
        response's events. Otherwise all that was fed, after what was stored, as one message.
        """
        response = self._decoded()
        if response is None:
            return [self._grown(state)]
        decoded, self.losses = response
        return response_of(self._opened, decoded)

    def _notes(self) -> dict[str, Any]:
        """The notes that tell a reader of a stream that failed, or that the draft did not understand."""
        unknown = [event for event in self.unknown if json_problem({_UNKNOWN: [event]}) is None]
        notes = {_FAILURE: self.failure, _UNKNOWN: unknown}
        return {name: value for name, value in notes.items() if value}

    def _require_open(self) -> None:
        if self._failure is not None and not _may_pass(self._failure):
            raise self._failure
        if self._finishing or self._finished or self._keeper is None:
            detail = "enter it with `async with`, and feed it before it is finished or left"
            raise StorageError(f"this draft is not open: {detail}")

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
                    await self._write([self._so_far()])
            self._failure = None
        except ChatLedgerError as error:
            self._failure = error
            if asyncio.current_task() is not self._keeper and not _may_pass(error):
                raise

    async def _finish(self, state: State, fields: dict[str, Any], *, timeout: float) -> ChatMessage:
        """Write the end, and try again for `timeout` seconds while the database is away."""
        async with self._lock:
            if self._finished and self.message.state != "partial":
                return self.message
            self._require_open()
            self._finishing = True  # the end is written as it is now: nothing more can be fed
            try:
                await self._write_end(await apart(lambda: self._final(state, fields), self.unknown), Retries(timeout))
            finally:
                self._finishing = False
            self._finished = True
        await self._stop()
        return self.message

    async def _write_end(self, messages: Sequence[ChatMessage], retries: Retries) -> None:
        while True:
            try:
                await self._write(messages)
                return
            except StorageError as error:
                if not error.retryable or not await retries.next():
                    raise

    async def _write(self, messages: Sequence[ChatMessage]) -> None:
        """Write the draft's message as it is now, and those that follow it. Until the outcome is known, the content of
        the row counts as unknown. The interval begins at the end, so that a long message is not written all the time.
        """
        self._tried_at = time.monotonic()
        unwritten, held, before = self._unwritten, self._held, self._before
        self._held = self._before = None
        ends = messages[-1].state != "partial"
        usage = self.usage if ends and self._opened.run_id is not None else None
        writing = DraftWrite(self._request, self._opened, messages, usage=usage)
        single = messages[-1].state != "interrupted" and usage is None
        moves = self._request.thread
        done = await self._scope.write(lambda sql: writing.write(sql, held, before), moves=moves, single=single)
        self._held, self._before, self.messages = done
        self._unwritten, self._tried_at = self._unwritten - unwritten, time.monotonic()

    async def _stop(self) -> None:
        keeper = self._keeper
        if keeper is not None and not keeper.done() and keeper is not asyncio.current_task():
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)


_TOKEN = re.compile(r"[0-7][0-9a-f]{15}")


def read_token(token: str) -> int:
    """Raises InvalidArgument, which does not repeat the text."""
    if _TOKEN.fullmatch(token) is None:
        raise InvalidArgument("token", "is not the token of a draft")
    return int(token, 16)


def mark_of(draft: Draft) -> str | None:
    """The mark of the branch as the draft's last write left it; None if that is not known."""
    held, request = draft._held, draft._request  # noqa: SLF001
    if held is None or draft.replayed or draft.message.state == "interrupted":
        return None
    return write_mark(request.thread, draft.message.branch or 0, held.tip.last_seq, held.stamp)


async def open_for_others(draft: Draft) -> None:
    """Enter the draft, and leave it to whoever has its token: its lease is not renewed here. Raises as entering it."""
    await draft.__aenter__()
    await draft._stop()  # noqa: SLF001


async def break_off(draft: Draft, reason: str) -> None:
    """End the message as one whose provider broke off for this reason. Raises as `Draft.interrupt`."""
    fields = {"response_metadata": {_FAILURE: reason}}
    await draft._finish("interrupted", fields, timeout=0)  # noqa: SLF001


def _parts_of(content: str | Sequence[Part] | None) -> Sequence[Part]:
    return [TextPart(text=content)] if isinstance(content, str) else content or ()


def _may_pass(error: ChatLedgerError) -> bool:
    return isinstance(error, StorageError) and error.retryable
