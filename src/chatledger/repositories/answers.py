"""Answers that outlive the request: a question, and the run that answers it in whichever process lives.

What runs agents is an annex, `chatledger.answers`, which a call imports when it needs it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from types import NoneType
from typing import Any, Literal

from chatledger.annexes import load
from chatledger.arguments import (
    BOOL,
    INT,
    NUMBER,
    STR,
    STR_OR_NONE,
    Kind,
    require,
    require_between,
    require_items,
)
from chatledger.errors import InvalidArgument, LimitExceeded
from chatledger.models import ChatMessage, Cursor, Mark, NewThread, Run, ThreadChange
from chatledger.models.json import JsonValue
from chatledger.storage.databases.scope import Scope
from chatledger.storage.schema.text import encode_key

_AGENTS = Kind("a mapping of names to agents", Mapping)
_QUESTION = Kind("a ChatMessage, a text or None", ChatMessage, str, NoneType)
_MESSAGE_OR_NONE = Kind("a ChatMessage, its id or None", ChatMessage, str, NoneType)
_METADATA = Kind("a mapping or None", Mapping, NoneType)
_WHEN_LIVE = Kind("'error' or 'stop'", words=("error", "stop"))
_CREATE = Kind("True, False or a NewThread", bool, NewThread)
_PAUSE = Kind("a timedelta or None", timedelta, NoneType)
_RESULTS = Kind("a mapping of call ids to results, or None", Mapping, NoneType)
_RESULT = Kind("a text or a ChatMessage", str, ChatMessage)
_SHORTEST, _LONGEST = 0.1, 3_600.0
"""The bounds of a lease in seconds."""
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Answer:
    """The run that answers a question, wherever it runs. `answers.start` and `answers.get` return it."""

    _scope: Scope = field(repr=False)
    run: Run
    """The run as it was when this was returned."""
    question: ChatMessage
    """The message that is answered."""
    mark: Mark
    """The place right behind the question. Follow from here to get the whole answer."""
    replayed: bool
    """Whether an earlier call with the same key began it."""
    waiting: Mapping[str, str | None]
    """The calls for which the answer is paused, by their ids, and why the tool waits. Empty if it is not paused."""

    async def wait(self) -> Run:
        """The run, once it has ended or paused. Raises RunNotFound if the run or its thread was deleted."""
        wait_for = load("chatledger.answers.calls:wait_for", "Answer.wait")
        run: Run = await wait_for(self._scope, self.run.run_id)
        return run

    def follow(self, *, cursor: Cursor | Mark | None = None, deltas: bool = True) -> AsyncGenerator[ThreadChange, None]:
        """Yield the changes of the thread since the question, or after a `cursor`, until the run has ended or paused.
        Arguments and changes are those of `messages.follow`.
        """
        require(STR_OR_NONE, cursor=cursor)
        require(BOOL, deltas=deltas)
        follow_run = load("chatledger.answers.calls:follow_run", "Answer.follow")
        changes: AsyncGenerator[ThreadChange, None] = follow_run(
            self._scope, self.run, cursor or self.mark, deltas=deltas
        )
        return changes


class AnswerRepository:
    """The answers that outlive the request: `ledger.answers`, and `tx.answers` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def serve(
        self,
        agents: Mapping[str, Callable[[Any], Awaitable[None]]],
        *,
        lease: float = 5.0,
        most: int = 100,
        attempts: int = 10,
        longest_pause: timedelta | None = None,
        all_tenants: bool = False,
    ) -> AbstractAsyncContextManager[None]:
        """Run agents in this process while the block lasts: for what it starts itself, and for what another process
        left.

            async with ledger.answers.serve({"support": support}):
                ...

        A process that dies leaves its answers to another one, which takes each up within about 1.3 leases (`lease` in
        seconds). At the end of the block its answers are left, and another process goes on at once. `most` is the
        number of answers at the same time. After `attempts` in a row that stored nothing, an answer fails.
        `longest_pause` ends answers that wait for longer. With `all_tenants`, the process serves every tenant of the
        database.

        One row is written and one look made each quarter of a lease, for all answers of the process; an idle process
        only looks. An agent must not block the event loop for a lease. Raises TenantOnly on a user's ledger.
        """
        require(_AGENTS, agents=agents)
        require(NUMBER, lease=lease)
        require_between(_SHORTEST, _LONGEST, lease=lease)
        require(INT, most=most, attempts=attempts)
        for name, number in {"most": most, "attempts": attempts}.items():
            if not 1 <= number <= _MOST:
                raise LimitExceeded(name, number, _MOST)
        require(_PAUSE, longest_pause=longest_pause)
        require(BOOL, all_tenants=all_tenants)
        for name, agent in agents.items():
            require(STR, agents=name)
            encode_key(name, "agents")
            if not callable(agent):
                raise InvalidArgument("agents", f"has no function under {name!r}")
        self._scope.refuse_view("answers.serve")
        serving = load("chatledger.answers.calls:serving", "answers.serve")
        options = (float(lease), most, attempts, longest_pause, all_tenants)
        block: AbstractAsyncContextManager[None] = serving(self._scope, dict(agents), *options)
        return block

    async def start(
        self,
        thread_id: str,
        question: ChatMessage | str | None = None,
        *,
        agent: str | None = None,
        idempotency_key: str | None = None,
        reply_to: ChatMessage | str | None = None,
        alternative_to: ChatMessage | str | None = None,
        when_live: Literal["error", "stop"] = "error",
        create: bool | NewThread = False,
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> Answer:
        """Store a question, and the run that answers it, in one transaction, and return at once. An agent answers in a
        process that serves it, perhaps this one.

            answer = await ledger.answers.start(thread_id, "Tokyo?", agent="weather", idempotency_key=request_id)
            async for change in answer.follow():
                ...

        A text is a question of the user. `alternative_to=question` asks in other words, on a branch beside it; without
        `question`, `reply_to=question` asks for another answer to a stored question. `agent` may be left out in a
        process that serves one. `create` is that of `messages.append`, `metadata` that of the run.

        The same `idempotency_key` in a thread is the same answer: a retry returns it, and a question in other words
        is an IdConflict. While another answer of the thread has not ended, the call raises RunLive; with
        `when_live="stop"` it ends that one in the same transaction.

        Raises what `messages.append` raises, RunLive, IdConflict, MessageNotFound and InvalidArgument.
        """
        require(STR, thread_id=thread_id)
        require(_QUESTION, question=question)
        require(STR_OR_NONE, agent=agent, idempotency_key=idempotency_key)
        require(_WHEN_LIVE, when_live=when_live)
        require(_METADATA, metadata=metadata)
        require(_MESSAGE_OR_NONE, reply_to=reply_to, alternative_to=alternative_to)
        require(_CREATE, create=create)
        begin = load("chatledger.answers.calls:begin", "answers.start")
        answer: Answer = await begin(
            self._scope,
            thread_id,
            question,
            agent=agent,
            idempotency_key=idempotency_key,
            reply_to=reply_to,
            alternative_to=alternative_to,
            stops=when_live == "stop",
            create=create,
            metadata=metadata,
        )
        return answer

    async def get(self, run_id: str) -> Answer:
        """The answer with that run. Raises RunNotFound, also for a run that answers no question."""
        require(STR, run_id=run_id)
        answer: Answer = await load("chatledger.answers.calls:get", "answers.get")(self._scope, run_id)
        return answer

    async def stop(self, run_id: str) -> Run:
        """End the answer as `cancelled`, whichever process works on it, and return its run. Nothing of it is written
        once this has returned: what it streamed so far stays, marked as interrupted, and its open calls get results
        that say so. A tool that runs is cancelled within a beat. An answer that has ended stays as it is.

        Raises RunNotFound.
        """
        require(STR, run_id=run_id)
        run: Run = await load("chatledger.answers.calls:stop", "answers.stop")(self._scope, run_id)
        return run

    async def resume(
        self,
        run_id: str,
        results: Mapping[str, str | ChatMessage] | None = None,
        *,
        approve: Sequence[str] = (),
        refuse: Mapping[str, str | None] | Sequence[str] = (),
    ) -> Answer:
        """Decide about calls for which the answer is paused, by their ids. It goes on once each of them is decided.

        `results` close calls with what they returned. A call in `approve` is run by the next attempt, with
        `Call.approved`. One in `refuse` gets an error result, with the reason if a mapping gives one. All of them are
        stored, or none.

        The same decision again changes nothing. Another one about the same call, one about a call whose message was
        revised or removed since, and a new one after the answer ended are RunConflicts. Raises RunNotFound, and
        InvalidArgument for a call that an open answer never waited for.
        """
        require(STR, run_id=run_id)
        require(_RESULTS, results=results)
        require_items(STR, approve=approve)
        if not isinstance(refuse, Mapping):
            require_items(STR, refuse=refuse)
        reasons: dict[str, str | None] = dict(refuse) if isinstance(refuse, Mapping) else dict.fromkeys(refuse)
        for call_id, reason in reasons.items():
            require(STR, refuse=call_id)
            require(STR_OR_NONE, refuse=reason)
        messages: dict[str, ChatMessage] = {}
        for call_id, result in (results or {}).items():
            require(STR, results=call_id)
            require(_RESULT, results=result)
            messages[call_id] = ChatMessage(role="tool", content=result) if isinstance(result, str) else result
        decide = load("chatledger.answers.calls:decide", "answers.resume")
        answer: Answer = await decide(self._scope, run_id, messages, tuple(approve), reasons)
        return answer
