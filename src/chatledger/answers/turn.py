"""A turn: one attempt of an answer, for the agent that makes it.

An agent runs from the top at each attempt. What an earlier attempt stored is read from the thread and returned, so it
is not made again: the log is the state.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from chatledger.answers.leases import begin_tools, note_progress
from chatledger.answers.pause import Decision, PendingCall, Place, begin_call, decisions_of, pause
from chatledger.answers.stored import StoredAnswer
from chatledger.answers.tools import ERASED, UNKNOWN, Call, Pending, read_arguments, result_of
from chatledger.arguments import BOOL, NUMBER, require, require_between
from chatledger.errors import (
    ChatLedgerError,
    DraftLost,
    ModelFailed,
    RuleViolation,
    RunLost,
    StorageError,
    VersionConflict,
)
from chatledger.ids import derived_id, new_stamp
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Newest, Oldest, Run, Tokens, ToolCall, Turns
from chatledger.repositories.history import Prompt, PromptFormat
from chatledger.repositories.messages import MessageRepository
from chatledger.rules import Writer
from chatledger.storage.append.request import AppendRequest, make_request
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drafts.draft import Draft, Pace, break_off, mark_of
from chatledger.storage.schema.text import encode_key

Agent: TypeAlias = Callable[["Turn"], Awaitable[None]]
"""Replayed from the top by every attempt: what it asked and called before is read from the thread, not done again. The
number and the order of its `ask`s must be the same each time.
"""
_Model: TypeAlias = Callable[[Prompt], AsyncIterator[Any]]

_LONGEST = 86_400
"""Seconds of a day."""


class Paused(BaseException):
    """Ends the attempt of an answer that has paused. No agent catches it by mistake."""


class WentOn(BaseException):
    """Ends the attempt of an answer after whose last message somebody else appended."""


@dataclass(frozen=True, slots=True)
class _PlacedCall:
    place: Place
    call: ToolCall
    erased: bool
    """Whether its message was erased, and with it the arguments."""


class Turn:
    """One attempt of an answer. The agent gets it."""

    ledger: Ledger
    """The ledger of the thread's owner, whoever serves."""
    run: Run
    """The run of the answer, as it was when this attempt took it up."""
    thread_id: str
    """The thread of the question."""
    question: ChatMessage
    """The message that is answered."""

    def __init__(
        self, ledger: Ledger, scope: Scope, answer: StoredAnswer, question: ChatMessage, mark: str | None
    ) -> None:
        self.ledger = ledger
        self.run = answer.run
        self.thread_id = answer.run.thread_id
        self.question = question
        self._scope = scope
        self._answer = answer
        self._messages = MessageRepository(scope)
        self._mark = mark
        self._last = question.seq or 0
        self._steps = 0
        self._response: Sequence[ChatMessage] = ()
        self._fresh = self._open_calls = False
        self._progress = not answer.attempts  # nothing to set back
        self._draft_open: Draft | None = None

    # --- Asking

    async def ask(
        self,
        model: _Model,
        *,
        format: PromptFormat | None = None,  # noqa: A002 - the word of the tables and of the command line
        window: Turns | Tokens | Newest | None = None,
        resume: bool = False,
    ) -> ChatMessage:
        """The model's next message: the stored one if an earlier attempt finished it, else what `model(prompt)`
        streams, which is stored while it comes.

            message = await turn.ask(lambda prompt: stream(prompt.payload), format="openai-chat")

        With `format`, the prompt is in that format and the model yields the provider's events; without, the prompt is
        in openai-chat and the model yields texts and deltas, as `Draft.feed` takes them. `window` is that of
        `messages.prompt`.

        An attempt that took the answer over begins an unfinished message again. With `resume=True` it goes on with
        the stored text, if the message is only a text so far: `prompt.history.draft.text` has it, and the model yields
        what follows.

        Raises ModelFailed if the model raises or its provider breaks the stream off: the message is stored as
        interrupted, and the agent may ask again.
        """
        require(BOOL, resume=resume)
        key, self._steps = f"{self.run.run_id}/{self._steps}", self._steps + 1
        draft = await self._open(key, format, resume=resume)
        if draft.replayed:
            return self._answered(draft)
        try:
            await self._stream(draft, model, format, window)
        except (asyncio.CancelledError, DraftLost, RunLost, StorageError):  # another attempt may go on with the message
            with suppress(ChatLedgerError):
                await draft.leave()
            raise
        except ChatLedgerError:
            await draft.__aexit__(*sys.exc_info())
            raise
        except Exception as error:
            await self._fail(draft, error)
        await self._note_progress()
        return self._answered(draft)

    async def _open(self, key: str, format: PromptFormat | None, *, resume: bool) -> Draft:  # noqa: A002
        while True:
            if self._mark is None:
                await self._refresh()
            draft = self._draft_open = self._draft(key, format, resume=resume)
            try:
                await draft.__aenter__()
            except VersionConflict:
                self._mark = None
                continue
            begun = draft.message
            if draft.replayed or not resume or (begun.reasoning is None and not begun.tool_calls):
                return draft
            await draft.leave()  # half a call cannot be continued
            resume = False

    def _draft(self, key: str, format: PromptFormat | None, *, resume: bool) -> Draft:  # noqa: A002
        from chatledger.formats.streams import ResponseEvents

        request = self._request([ChatMessage(role="assistant", state="partial")], key, expected=self._mark)
        pace = Pace()
        request = replace(request, draft=Writer(new_stamp()), lease=pace.lease, continues=resume)
        source = None if format is None else ResponseEvents(format, limit=self._scope.limits.bytes)
        return Draft(self._scope, request, pace=pace, source=source)

    async def _stream(
        self,
        draft: Draft,
        model: _Model,
        format: PromptFormat | None,  # noqa: A002
        window: Turns | Tokens | Newest | None,
    ) -> None:
        begun = draft.message.text or ""
        prompt = await self._messages.prompt(
            self.thread_id, format or "openai-chat", window, branch=self._answer.branch
        )
        events: Any = model(prompt)
        async for event in await events if inspect.isawaitable(events) else events:
            await draft.feed(event)
            if not self._progress and begun and len(draft.message.text or "") > len(begun):
                await self._note_progress()
        await draft.complete()

    async def _fail(self, draft: Draft, error: Exception) -> None:
        """Store the message as interrupted. Raises ModelFailed."""
        reason = type(error).__name__  # its text may quote the request
        await break_off(draft, reason)
        await self._note_progress()
        self._draft_open, self._mark = None, None
        self._follow(draft.messages)
        raise ModelFailed(reason) from error

    def _answered(self, draft: Draft) -> ChatMessage:
        """Raises ModelFailed if the message was broken off."""
        self._draft_open, self._response, self._fresh = None, draft.messages, not draft.replayed
        self._mark = mark_of(draft)
        self._open_calls = any(message.tool_calls for message in draft.messages)
        self._follow(draft.messages)
        last = draft.messages[-1]
        if last.state == "interrupted":
            raise ModelFailed(draft.failure or "it was interrupted")
        return next((message for message in draft.messages if message.tool_calls), last)

    # --- Calling tools

    async def call_tools(
        self, run_tool: Callable[[Call], Any], *, again: bool = True, timeout: float | None = None
    ) -> Sequence[ChatMessage]:
        """The results of the calls of the last message: the stored ones, and those of the tools, which run now, all at
        once. Each result is stored as it comes. A blocking function runs in a thread.

            await turn.call_tools(run_tool)     # async def run_tool(call: Call) -> str

        The tool returns a text or a message; an exception, or more than `timeout` seconds, becomes an error result. If
        an earlier attempt may have begun a tool, it runs once more, with the same `idempotency_key`; with `again=False`
        it does not, and its result says that nobody knows whether it ran. A tool that raises Pending pauses the answer.
        """
        require(BOOL, again=again)
        if timeout is not None:
            require(NUMBER, timeout=timeout)
            require_between(0, _LONGEST, timeout=timeout)
        calls = [
            _PlacedCall((message.branch or 0, message.seq or 0, index), call, _is_erased(message))
            for message in self._response
            for index, call in enumerate(message.tool_calls or ())
        ]
        stored = {} if self._fresh or not calls else await self._results(calls)
        while missing := [call for call in calls if call.place not in stored]:
            stored |= await self._run_tools(missing, run_tool, again=again, timeout=timeout)
            if len(stored) < len(calls):
                stored |= await self._results(calls)
        results = [stored[call.place] for call in calls]
        self._follow(results)
        self._open_calls = False
        return results

    async def _results(self, calls: Sequence[_PlacedCall]) -> dict[Place, ChatMessage]:
        """The stored results, read from the calls on: only a window with its call says which one a result answers."""
        self._mark = None
        wanted, first = {call.place for call in calls}, min(call.place[1] for call in calls)
        count = 2 * len(calls) + len(self._response)
        history = await self._messages.history(
            self.thread_id, Oldest(count, after=first - 1), branch=self._answer.branch
        )
        branch_of = {call.place[1]: call.place[0] for call in calls}
        results: dict[Place, ChatMessage] = {}
        for message in history.messages:
            if message.answers is not None:
                place = (branch_of.get(message.answers.seq, -1), message.answers.seq, message.answers.index)
                if place in wanted:
                    results[place] = message
        return results

    async def _run_tools(
        self, missing: Sequence[_PlacedCall], run_tool: Callable[[Call], Any], *, again: bool, timeout: float | None
    ) -> dict[Place, ChatMessage]:
        message_id = self._response[0].message_id or ""
        begun = self._answer.tools_of == message_id
        decisions: dict[Place, Decision] = {}
        if begun:
            decided = await self._scope.read(lambda sql: decisions_of(sql, self._scope.tenant, *self._answer.names))
            decisions = {call.place: call for call in decided}
        else:
            await self._scope.write(lambda sql: begin_tools(sql, self._scope.tenant, self._answer, message_id))
        self._answer = replace(self._answer, tools_of=message_id)
        stored: dict[Place, ChatMessage] = {}
        waiting: list[PendingCall] = []
        turn = asyncio.Lock()

        async def finish(placed: _PlacedCall) -> None:
            decision = decisions.get(placed.place)
            approved = decision is not None and decision.decision == "approved"
            started = decision.begun if decision is not None else begun
            call = Call(
                call_id=placed.call.id or "",
                name=placed.call.name or "",
                arguments=read_arguments(placed.call.arguments),
                idempotency_key=derived_id("call", self._answer.secret, *map(str, placed.place)),
                again=started,
                approved=approved,
            )
            if placed.erased or (started and not again):
                result = ChatMessage(role="tool", content=ERASED if placed.erased else UNKNOWN, is_error=True)
            else:
                if approved:
                    await self._begin_call(placed.place)
                try:
                    result = await result_of(run_tool, call, timeout)
                except Pending as pending:
                    waiting.append(PendingCall(placed.place, pending.reason))
                    return
            async with turn:  # one after the other, since each moves the branch
                stored[placed.place] = await self._store(placed, result)

        try:
            async with asyncio.TaskGroup() as group:
                for placed in missing:
                    group.create_task(finish(placed))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        if waiting:
            terms = self._scope.terms
            if await self._scope.write(lambda sql: pause(sql, terms, self._answer, waiting), moves=self._answer_thread):
                raise Paused
        return stored

    async def _begin_call(self, place: Place) -> None:
        await self._scope.write(lambda sql: begin_call(sql, self._scope.tenant, self._answer, place))

    async def _store(self, placed: _PlacedCall, result: ChatMessage) -> ChatMessage:
        branch, seq, index = placed.place
        key = f"{self.run.run_id}/{branch}/{seq}/{index}"
        message = result.model_copy(update={"role": "tool", "tool_call_id": placed.call.id})
        try:
            appended = await self._scope.append(self._request([message], key))
        except RuleViolation:  # perhaps somebody closed the call, and the conversation went on
            await self._refresh()
            raise
        self._mark = appended.mark
        await self._note_progress()
        return appended.messages[0]

    # --- Where it stands

    def _request(self, messages: list[ChatMessage], key: str, *, expected: str | None = None) -> AppendRequest:
        request = make_request(
            self._scope.terms,
            self.thread_id,
            messages,
            run_id=self.run.run_id,
            branch=self._answer.branch,
            expected=expected,
            idempotency_key=key,
        )
        return replace(request, fence=self._answer.fence)

    @property
    def _answer_thread(self) -> str:
        return encode_key(self.thread_id, "thread_id")

    async def _note_progress(self) -> None:
        """The attempt stored something: the next one is the first of its row."""
        if not self._progress:
            self._progress = True
            await self._scope.write(lambda sql: note_progress(sql, self._scope.tenant, self._answer))

    def _follow(self, messages: Sequence[ChatMessage]) -> None:
        """The answer goes on behind these messages."""
        self._last = max([self._last, *(message.seq or 0 for message in messages)])

    async def _refresh(self) -> None:
        """The branch moved. Raises WentOn if somebody else's message follows."""
        history = await self._messages.history(self.thread_id, Newest(1), branch=self._answer.branch)
        latest = history.messages[-1:] if history.draft is None else [history.draft]
        if any((message.seq or 0) > self._last and message.run_id != self.run.run_id for message in latest):
            raise WentOn
        self._mark = history.mark


def draft_of(turn: Turn) -> Draft | None:
    """The message that the attempt writes now."""
    return turn._draft_open  # noqa: SLF001


def has_open_calls(turn: Turn) -> bool:
    """Whether the last message has calls without results."""
    return turn._open_calls  # noqa: SLF001


def _is_erased(message: ChatMessage) -> bool:
    return any(violation.rule == "R11" for violation in message.violations)
