"""The changes of a thread as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.responses import Response

from chatledger.errors import ChatLedgerError
from chatledger.models import ThreadChange
from chatledger.models.windows import Cursor
from chatledger.server.answers.event_stream import COMMENT, PING, EventStream, event_of
from chatledger.server.answers.json_response import to_json
from chatledger.server.callers.request_cookies import PlainRoute
from chatledger.server.changes import behind, next_change, until_ended, with_end, with_pauses
from chatledger.server.paths import RunId, ThreadId
from chatledger.server.problems import body_of
from chatledger.server.state import Mine, Shared, State, Who
from chatledger.server.watch import watching

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
            yield _Stream(start, until_ended(ledger, answer, start, following), True)
            return
        async with aclosing(answer.follow(cursor=start)) as rest:
            first = await anext(rest, None)
            if known and (first is None or first.kind in ("abandoned", "run")):  # states, which a follower repeats
                yield None
            else:
                yield _Stream(start, with_end(ledger, answer, start, behind(first, rest)), True)


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


# --- The events -------------------------------------------------------------------------------------------------------


async def _events(request: Request, state: State, stream: _Stream) -> AsyncGenerator[bytes, None]:
    end = asyncio.get_running_loop().time() + state.limits.stream_seconds
    yield f": connected\nid: {stream.start}\nretry: {_RETRY}\n\n".encode()
    try:
        async with (
            aclosing(stream.changes) as changes,
            watching(request) as watch,
            aclosing(with_pauses(lambda: next_change(changes, state, watch, end), PING)) as events,
        ):
            async for change in events:
                yield COMMENT if change is None else await state.encoded.of(change, deltas=stream.deltas).read()
        if watch.problem is not None:
            yield event_of(to_json(watch.problem).encode(), event="problem")
    except ChatLedgerError as error:  # the status is sent already
        yield event_of(to_json(body_of(error)).encode(), event="problem")
