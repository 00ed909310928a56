"""The changes of a thread as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Annotated, Any, NamedTuple

from anyio import CancelScope
from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.responses import Response

from chatledger.errors import ChatLedgerError
from chatledger.ledger import Ledger
from chatledger.models import ThreadChange
from chatledger.models.windows import Cursor
from chatledger.repositories.answers import Answer
from chatledger.server.answers.event_stream import COMMENT, PING, EventStream, event_of
from chatledger.server.answers.json_response import to_json
from chatledger.server.callers.request_cookies import PlainRoute
from chatledger.server.paths import RunId, ThreadId
from chatledger.server.problems import body_of
from chatledger.server.state import Mine, Shared, State, Who
from chatledger.server.watch import WaitOver, Watch, waiting_until, watching

router = APIRouter(tags=["events"], route_class=PlainRoute)
_IDLE = 2.0
"""Seconds without a change, after which the stream of an answer asks whether it has ended."""
_RETRY = 1_000
"""Milliseconds after which a browser reconnects."""


class _Stream(NamedTuple):
    """The cursor after which a stream starts, the changes since, and whether a draft comes in pieces."""

    start: str
    changes: AsyncGenerator[ThreadChange]
    deltas: bool


async def _open(
    ledger: Mine,
    thread_id: ThreadId,
    state: Shared,
    caller: Who,
    cursor: Annotated[
        str | None, Query(description="The mark of the messages that the client has, or the cursor of a change.")
    ] = None,
    deltas: Annotated[
        bool,
        Query(
            description="Send the pieces that a message grows by, in UTF-8, in place of the whole message; and"
            " the states of drafts and runs."
        ),
    ] = False,
    last_event_id: Annotated[str | None, Header(description="The id of the last event; a browser sends it.")] = None,
) -> AsyncIterator[_Stream]:
    """Runs before the response begins, so a missing thread is a 404 and a wrong cursor a 400. Counts the streams."""
    await ledger.threads.get(thread_id)
    start = Cursor(last_event_id or cursor or (await ledger.branches.get(thread_id)).mark)
    stream = _Stream(start, ledger.messages.follow(thread_id, cursor=start, deltas=deltas), deltas)
    with state.stream_of(caller):
        yield stream


@router.get("/threads/{thread_id}/events", status_code=200, response_class=EventStream)
async def follow_thread(request: Request, state: Shared, stream: Annotated[_Stream, Depends(_open)]) -> EventStream:
    """Each change of the active branch, once and in order, whichever process writes it. The name of an event is the
    kind of the change, its data a ThreadChange, and its id the cursor after the change. The first event has only an id,
    the cursor after which the stream starts. With `deltas`, the data has the `seq`, and the `message`, `message_id` or
    `branch` that the kind needs; a message that grows comes as `pieces`, and one that is completed as the last of them
    beside the other fields of the message. Two more events tell states: `abandoned`, that nobody writes a message any
    more, and `run`, the `run_id` of a run and its `status`; a stream tells the present ones when it begins. The stream
    ends when the server stops, after an hour, or up to 15 seconds after the token changed. Then connect again with the
    last id, to this server or another one. A stream whose token was withdrawn ends with an event `problem`, as one
    whose thread is gone.
    """
    return EventStream(_events(request, state, stream))


# --- An answer --------------------------------------------------------------------------------------------------------


async def _open_answer(
    ledger: Mine,
    run_id: RunId,
    state: Shared,
    caller: Who,
    cursor: Annotated[
        str | None, Query(description="The cursor of the last event that the client has; else all since the question.")
    ] = None,
    last_event_id: Annotated[str | None, Header(description="The id of the last event; a browser sends it.")] = None,
) -> AsyncIterator[_Stream | None]:
    """None if the answer has ended and the client has all of it."""
    answer = await ledger.answers.get(run_id)
    known = last_event_id or cursor
    start = Cursor(known or answer.mark)
    following = ledger.messages.follow(answer.run.thread_id, cursor=start, deltas=True)  # raises for a wrong cursor
    with state.stream_of(caller):
        if answer.run.ended_at is None:
            yield _Stream(start, _until_ended(ledger, answer, start, following), True)
            return
        async with aclosing(answer.follow(cursor=start)) as rest:
            first = await anext(rest, None)
            if known and (first is None or first.kind in ("abandoned", "run")):  # states, which a follower repeats
                yield None
            else:
                yield _Stream(start, _with_end(ledger, answer, start, _behind(first, rest)), True)


@router.get(
    "/answers/{run_id}/events",
    status_code=200,
    response_class=EventStream,
    tags=["answers"],
    responses={204: {"description": "The answer has ended, and the client has all of it: do not connect again."}},
)
async def follow_answer(
    request: Request, state: Shared, stream: Annotated[_Stream | None, Depends(_open_answer)]
) -> Response:
    """The changes of the thread since the question, as with `deltas`, until the answer has ended: the last event is
    `run`, with its outcome. While the answer is paused the stream waits.
    """
    return Response(status_code=204) if stream is None else EventStream(_events(request, state, stream))


async def _until_ended(
    ledger: Ledger, answer: Answer, place: Cursor, following: AsyncGenerator[ThreadChange]
) -> AsyncGenerator[ThreadChange]:
    """The changes after the place, until the answer has ended. A follower tells how the newest runs of the active
    branch end. In a silence this asks whether the run has ended, which may be another one.
    """
    run_id = answer.run.run_id
    async with aclosing(following), aclosing(_with_pauses(lambda: _anext(following), _IDLE)) as changes:
        async for change in changes:
            if change is not None:
                place = change.cursor
                yield change
                if change.kind == "run" and change.run_id == run_id and change.status not in ("running", "paused"):
                    return
            elif (await ledger.runs.get(run_id)).ended_at is not None:
                break
    async with aclosing(_with_end(ledger, answer, place, answer.follow(cursor=place))) as rest:
        async for change in rest:
            yield change


async def _with_end(
    ledger: Ledger, answer: Answer, place: Cursor, rest: AsyncGenerator[ThreadChange]
) -> AsyncGenerator[ThreadChange]:
    """The changes after the place, and how the run ended, which a follower of another branch does not tell."""
    run_id, has_ended = answer.run.run_id, False
    async with aclosing(rest):
        async for change in rest:
            place, has_ended = change.cursor, change.kind == "run" and change.run_id == run_id
            yield change
    if not has_ended:
        run, question = await ledger.runs.get(run_id), answer.question
        at = {"thread_id": run.thread_id, "branch": question.branch or 0, "seq": question.seq or 0}
        yield ThreadChange(kind="run", cursor=place, run_id=run_id, status=run.status, **at)


async def _behind(first: ThreadChange | None, rest: AsyncGenerator[ThreadChange]) -> AsyncGenerator[ThreadChange]:
    if first is not None:
        yield first
    async for change in rest:
        yield change


async def _anext(changes: AsyncGenerator[ThreadChange]) -> ThreadChange | None:
    return await anext(changes, None)


# --- The events -------------------------------------------------------------------------------------------------------


async def _events(request: Request, state: State, stream: _Stream) -> AsyncGenerator[bytes, None]:
    end = asyncio.get_running_loop().time() + state.limits.stream_seconds
    yield f": connected\nid: {stream.start}\nretry: {_RETRY}\n\n".encode()
    try:
        async with (
            aclosing(stream.changes) as changes,
            watching(request) as watch,
            aclosing(_with_pauses(lambda: _next(changes, state, watch, end), PING)) as events,
        ):
            async for change in events:
                yield COMMENT if change is None else await state.encoded.of(change, deltas=stream.deltas).read()
        if watch.problem is not None:
            yield event_of(to_json(watch.problem).encode(), event="problem")
    except ChatLedgerError as error:  # the status is sent already
        yield event_of(to_json(body_of(error)).encode(), event="problem")


async def _with_pauses(
    following: Callable[[], Coroutine[Any, Any, ThreadChange | None]], seconds: float
) -> AsyncGenerator[ThreadChange | None, None]:
    """The changes, and None whenever there was none for so long."""
    while True:
        waiting = asyncio.create_task(following())
        try:
            while not (await asyncio.wait([waiting], timeout=seconds))[0]:
                yield None
        finally:
            waiting.cancel()
            with CancelScope(shield=True):  # what it waits for ends before the follower does
                await asyncio.wait([waiting])
        change = waiting.result()
        if change is None:
            return
        yield change


async def _next(changes: AsyncGenerator[ThreadChange], state: State, watch: Watch, end: float) -> ThreadChange | None:
    """The next change; None at the end, when the server drains or the time is over, or for another caller."""
    if watch.ended:  # a change that is read already comes without a wait
        return None
    try:
        async with waiting_until(end, state, watch):
            return await anext(changes, None)
    except WaitOver:
        return None
