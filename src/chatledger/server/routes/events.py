"""The changes of a thread as server-sent events."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Annotated, Any, NamedTuple

from anyio import CancelScope
from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request

from chatledger.errors import ChatLedgerError
from chatledger.models import ThreadChange
from chatledger.models.windows import Cursor
from chatledger.server.answers.event_stream import COMMENT, PING, EventStream, event_of
from chatledger.server.answers.json_response import to_json
from chatledger.server.callers.request_cookies import PlainRoute
from chatledger.server.paths import ThreadId
from chatledger.server.problems import body_of
from chatledger.server.state import Mine, Shared, State, Who
from chatledger.server.watch import Watch, watching

router = APIRouter(tags=["events"], route_class=PlainRoute)
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
    if state.streams[caller] >= state.limits.caller_streams or state.streams.total() >= state.limits.streams:
        detail = "the server has as many open event streams as it allows, in all or of one caller; try again later"
        raise HTTPException(503, detail, {"Retry-After": "5"})
    state.streams[caller] += 1
    try:
        yield stream
    finally:
        state.streams -= Counter([caller])  # which also drops a caller without streams


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


async def _events(request: Request, state: State, stream: _Stream) -> AsyncGenerator[bytes, None]:
    end = asyncio.get_running_loop().time() + state.limits.stream_seconds
    yield f": connected\nid: {stream.start}\nretry: {_RETRY}\n\n".encode()
    try:
        async with (
            aclosing(stream.changes) as changes,
            watching(request) as watch,
            aclosing(_with_pauses(lambda: _next(changes, state, watch, end))) as events,
        ):
            async for change in events:
                yield COMMENT if change is None else await state.encoded.of(change, deltas=stream.deltas).read()
        if watch.problem is not None:
            yield event_of(to_json(watch.problem).encode(), event="problem")
    except ChatLedgerError as error:  # the status is sent already
        yield event_of(to_json(body_of(error)).encode(), event="problem")


async def _with_pauses(
    following: Callable[[], Coroutine[Any, Any, ThreadChange | None]],
) -> AsyncGenerator[ThreadChange | None, None]:
    """The changes, and None whenever there was none for a while."""
    while True:
        waiting = asyncio.create_task(following())
        try:
            while not (await asyncio.wait([waiting], timeout=PING))[0]:
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
    """The next change; None when the server drains, the time of the stream is over, or its caller is another one."""
    if watch.ended:  # a change that is read already comes without a wait
        return None
    try:
        async with asyncio.timeout_at(0 if state.draining else end) as wait:
            state.waits.add(wait)
            try:
                with watch.waiting(wait):
                    return await anext(changes)
            finally:
                state.waits.discard(wait)
    except TimeoutError:
        if not wait.expired():
            raise
        return None
