"""The calls of `ledger.answers`, where agents run."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

from chatledger.answers.pause import Resumption, resume, waiting_calls
from chatledger.answers.start import Beginning, start_answer
from chatledger.answers.stop import stop_answer
from chatledger.answers.stored import NOBODY, StoredAnswer, find_answer
from chatledger.answers.turn import Agent, draft_of
from chatledger.answers.worker import Worker, Working
from chatledger.errors import ChatLedgerError, InvalidArgument, RunNotFound, StorageError
from chatledger.ids import derived_id, new_id
from chatledger.models import ChatMessage, Cursor, Mark, NewThread, Run, ThreadChange
from chatledger.models.base import refusing
from chatledger.models.json import JsonValue
from chatledger.models.secrets import masked
from chatledger.repositories.answers import Answer
from chatledger.repositories.messages import MessageRepository, read_after
from chatledger.storage.append.request import ANSWER, After, make_request
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.follow.follow_cursor import read_start
from chatledger.storage.follow.follower import changes_until_now
from chatledger.storage.follow.reported import Reported
from chatledger.storage.history.places import MESSAGE, At, read_place
from chatledger.storage.history.window_request import Window
from chatledger.storage.repositories.find import get_message
from chatledger.storage.schema.text import encode_key, write_mark

_PAUSES = (0.1, 0.25, 0.5)
"""Seconds between two looks at a run that another process works on."""


def serving(
    scope: Scope,
    agents: Mapping[str, Agent],
    lease: float,
    most: int,
    attempts: int,
    longest_pause: timedelta | None,
    all_tenants: bool,
) -> AbstractAsyncContextManager[None]:
    if scope.guard is None:
        raise StorageError("a transaction runs no agents: serve through the ledger")
    return _serve(scope, Worker(scope, agents, lease, most, attempts, longest_pause, all_tenants))


@asynccontextmanager
async def _serve(scope: Scope, worker: Worker) -> AsyncIterator[None]:
    guard = scope.guard
    assert guard is not None
    guard.reading()  # raises if the ledger is closed
    guard.workers.append(worker)
    keeper = asyncio.create_task(worker.keep())
    try:
        yield
    finally:
        guard.workers.remove(worker)
        await worker.end([keeper])
        await asyncio.shield(worker.leave())


async def begin(
    scope: Scope,
    thread_id: str,
    question: ChatMessage | str | None,
    *,
    agent: str | None,
    idempotency_key: str | None,
    reply_to: ChatMessage | str | None,
    alternative_to: ChatMessage | str | None,
    stops: bool,
    create: bool | NewThread,
    metadata: Mapping[str, JsonValue] | None,
) -> Answer:
    asked = ChatMessage.user(question) if isinstance(question, str) else question
    place = _place(thread_id, asked, reply_to, alternative_to)
    agent = _agent(scope, agent)
    key = new_id() if idempotency_key is None else idempotency_key
    request = make_request(
        scope.terms,
        thread_id,
        [] if asked is None else [asked],
        idempotency_key=f"{key}/question",
        after=place if isinstance(place, After) else None,
        create=create,
    )
    with refusing():
        run = Run(
            run_id=ANSWER + derived_id("answer", scope.tenant.name, thread_id, key),
            thread_id=thread_id,
            agent=agent,
            metadata=None if metadata is None else masked(dict(metadata)),
            started_at=datetime.now(UTC),
        )
    worker = await _free_worker(scope, agent)
    beginning = Beginning(
        run=run,
        secret=secrets.token_hex(16),
        question=request,
        reply_to=None if isinstance(place, After) else place,
        worker_id=NOBODY if worker is None else worker.worker_id,
        stops=stops,
        key=idempotency_key,
    )
    stored, question_stored, mark, replayed = await scope.write(
        lambda sql: start_answer(sql, scope.terms, beginning), moves=request.thread
    )
    if worker is not None and not replayed:
        worker.work(scope, stored, question_stored, mark)
    elif not replayed or (stored.is_open and stored.paused_at is None):
        _wake(scope)
    return await _shown(scope, stored, question_stored, replayed=replayed)


def _agent(scope: Scope, agent: str | None) -> str:
    if agent is not None:
        encode_key(agent, "agent")
        return agent
    served = {name for worker in _workers(scope) for name in worker.agents}
    if len(served) != 1:
        serves = f"serves {', '.join(sorted(served))}" if served else "serves no agents"
        raise InvalidArgument("agent", f"is needed: this process {serves}")
    return served.pop()


async def _free_worker(scope: Scope, agent: str) -> Worker | None:
    """A worker of this process and this loop that serves the agent and has a free place."""
    for worker in _workers(scope):
        if worker.serves(scope, agent) and worker.is_here and worker.free > 0 and await worker.hold():
            return worker
    return None


def _wake(scope: Scope) -> None:
    for worker in _workers(scope):
        worker.wake()


async def get(scope: Scope, run_id: str) -> Answer:
    tenant = scope.tenant

    def read(sql: ReadSql) -> tuple[StoredAnswer, ChatMessage] | None:
        stored = find_answer(sql, tenant, run_id)
        if stored is None:
            return None
        return stored, get_message(sql, Window.of(tenant, stored.run.thread_id), stored.question_id)

    answered = await scope.read(read, snapshot=True)
    if answered is None:
        raise RunNotFound(run_id)
    return await _shown(scope, *answered, replayed=True)


async def stop(scope: Scope, run_id: str) -> Run:
    stored = await scope.read(lambda sql: find_answer(sql, scope.tenant, run_id))
    if stored is None:
        raise RunNotFound(run_id)
    here = _working(scope, run_id)
    for working in here:
        draft = None if working.turn is None else draft_of(working.turn)
        if draft is not None:
            with suppress(ChatLedgerError):  # the pieces that wait to be written
                await draft.flush()
    thread = encode_key(stored.run.thread_id, "thread_id")
    ended = await scope.write(lambda sql: stop_answer(sql, scope.terms, run_id), moves=thread)
    _wake(scope)  # a worker of another loop finds that it lost the answer
    for working in here:
        if working.task is not None:
            working.task.cancel()
            await asyncio.wait([working.task], timeout=1.0)
    return ended


async def decide(
    scope: Scope,
    run_id: str,
    results: Mapping[str, ChatMessage],
    approve: Sequence[str],
    refuse: Mapping[str, str | None],
) -> Answer:
    resumption = Resumption(results, approve, refuse)
    stored = await scope.read(lambda sql: find_answer(sql, scope.tenant, run_id))
    if stored is None:
        raise RunNotFound(run_id)
    thread = encode_key(stored.run.thread_id, "thread_id")
    await scope.write(lambda sql: resume(sql, scope.terms, run_id, resumption), moves=thread)
    _wake(scope)
    return await get(scope, run_id)


async def _shown(scope: Scope, stored: StoredAnswer, question: ChatMessage, *, replayed: bool) -> Answer:
    thread = encode_key(stored.run.thread_id, "thread_id")
    mark = write_mark(thread, stored.branch, question.seq or 0, 0)
    waiting: Mapping[str, str | None] = {}
    if stored.paused_at is not None:
        waiting = await scope.read(lambda sql: waiting_calls(sql, scope.tenant, *stored.names))
    return Answer(scope, stored.run, question, mark, replayed, waiting)


async def wait_for(scope: Scope, run_id: str) -> Run:
    """Raises RunNotFound."""
    number = 0
    while True:
        stored = await scope.read(lambda sql: find_answer(sql, scope.tenant, run_id))
        if stored is None:
            raise RunNotFound(run_id)
        if not stored.is_open or stored.paused_at is not None:
            return stored.run
        tasks = [working.task for working in _working(scope, run_id) if working.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
        else:
            await asyncio.sleep(_PAUSES[min(number, len(_PAUSES) - 1)])
        number += 1


async def follow_run(
    scope: Scope, run: Run, cursor: Cursor | Mark, *, deltas: bool
) -> AsyncGenerator[ThreadChange, None]:
    ended = asyncio.create_task(wait_for(scope, run.run_id))
    changes = MessageRepository(scope).follow(run.thread_id, cursor=cursor, deltas=deltas)
    coming: asyncio.Task[ThreadChange] | None = None
    states: dict[str | None, tuple[str | None, Mapping[str, str | None] | None]] = {}
    try:
        while True:
            coming = coming or asyncio.create_task(_next(changes))
            await asyncio.wait({ended, coming}, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                change, coming = coming.result(), None
                cursor = change.cursor
                if change.kind == "run":
                    states[change.run_id] = change.status, change.waiting
                yield change
            elif ended.done():
                ended.result()
                break
    finally:
        tasks = [task for task in (ended, coming) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # a web server may cancel this too; then they end alone
        await changes.aclose()
    window = Window.of(scope.tenant, run.thread_id)
    reported = Reported().naming(encode_key(run.run_id, "run_id")) if deltas else None  # no message may name it
    async with aclosing(changes_until_now(scope, window, read_start(cursor, window.thread), reported)) as rest:
        async for change in rest:
            if change.kind != "run" or states.get(change.run_id) != (change.status, change.waiting):
                yield change


def _workers(scope: Scope) -> Sequence[Worker]:
    return () if scope.guard is None else scope.guard.workers


def _working(scope: Scope, run_id: str) -> list[Working]:
    """The attempt at the answer, if a worker of this loop makes it: a task is of its own loop."""
    attempts = [worker.find(scope, run_id) for worker in _workers(scope) if worker.is_here]
    return [working for working in attempts if working is not None]


async def _next(changes: AsyncGenerator[ThreadChange, None]) -> ThreadChange:
    return await anext(changes)


def _place(
    thread_id: str,
    asked: ChatMessage | None,
    reply_to: ChatMessage | str | None,
    alternative_to: ChatMessage | str | None,
) -> After | At:
    """Where the question is stored, or the stored question that gets another answer. Raises InvalidArgument."""
    after = read_after(thread_id, reply_to, alternative_to)
    if asked is not None:
        return after
    if reply_to is None:
        raise InvalidArgument("question", "is needed, or reply_to=question for another answer to a stored question")
    return read_place(thread_id, reply_to, MESSAGE, named="reply_to")
