"""Answers that come as one long request while the model writes them: a piece a line, or a provider's events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from chatledger.errors import ChatLedgerError, InvalidArgument
from chatledger.models import ChatMessage, Delta
from chatledger.models.base import Text
from chatledger.models.weight import in_thread
from chatledger.server.answers.headers import ExpectedState, IdempotencyKey
from chatledger.server.answers.sizes import Name
from chatledger.server.callers.chosen_ids import chooses, refuse_chosen, require_own_runs
from chatledger.server.deadline import take_time
from chatledger.server.json_route import json_router
from chatledger.server.paths import ThreadId, api_path
from chatledger.server.problems import ProblemResponse, body_of, body_of_request, problem_of_http
from chatledger.server.requests.bodies import LostValue
from chatledger.server.requests.body_limit import FULL
from chatledger.server.requests.json_request import InvalidBody, read_body
from chatledger.server.routes.drafts import LONGEST_LEASE, EndedDraft, OfKind, delta_of
from chatledger.server.shares import HeldBytes, enter, leave
from chatledger.server.state import OfUser, Shared, State, Who
from chatledger.server.watch import WaitOver, Watch, waiting_until, watching
from chatledger.storage.append.request import LEASE, OnOpenCalls
from chatledger.storage.drafts.draft import Draft, Pace, break_off
from chatledger.storage.drafts.posts import LONGEST_RENEWED

router = json_router(prefix="/threads/{thread_id}/drafts", tags=["drafts"])
LINE = 1024 * 1024
"""Maximum bytes of a line, and of an event."""
_SIZE = 1024 * 1024
"""Bytes that are written without waiting. A write takes time by the length of the whole message, and here the client
says how fast they come; so most writes wait for the interval.
"""
_LARGE = 1 << 13
"""Bytes of a line that is read in a thread, so that the event loop goes on."""
_TURN = 100
"""Lines after which the event loop has a turn."""
_TEXTS, _OTHERS = TypeAdapter[Any](Text), TypeAdapter[Any](OfKind)
_LINES, _EVENTS = "application/x-ndjson", "text/event-stream"
_GOES_ON = (None, "in_progress", "queued")
"""The words of a provider for a response that has not ended. Whoever pipes a stream that breaks sends a whole body."""
_DONE = b"[DONE]"
"""The last event of some providers, which is no JSON."""
_TEXT = {"schema": {"type": "string"}}


@router.post(
    "/upload",
    status_code=201,
    responses={200: {"model": EndedDraft, "description": "The message was finished already."}},
    response_model=EndedDraft,
    openapi_extra={"requestBody": {"required": True, "content": {_LINES: _TEXT, _EVENTS: _TEXT}}},
)
async def upload_draft(
    ledger: OfUser,
    caller: Who,
    state: Shared,
    request: Request,
    thread_id: ThreadId,
    response: Response,
    idempotency_key: IdempotencyKey,
    expected: ExpectedState,
    format: Annotated[  # noqa: A002
        str | None, Query(description="The provider's format, if the body has the events of its stream.")
    ] = None,
    message_id: Annotated[str | None, Query(description="The id; made if there is none.")] = None,
    name: Annotated[Name | None, Query(description="The name of the assistant.")] = None,
    run_id: Annotated[str | None, Query(description="The run; created if it does not exist.")] = None,
    branch: Annotated[int | None, Query(ge=0, description="The branch; the active one by default.")] = None,
    reply_to: Annotated[str | None, Query(description="The id of the question.")] = None,
    on_open_calls: Annotated[OnOpenCalls, Query(description="As of an append.")] = "error",
    lease: Annotated[
        float, Query(ge=1, le=LONGEST_LEASE, description="Seconds of silence until others may take over.")
    ] = LEASE,
    resume: Annotated[bool, Query(description="Go on with the words of an abandoned draft.")] = False,
    create: Annotated[bool, Query(description="Create the thread if there is none.")] = False,
) -> Any:
    """Write an answer while its model does, in one request. The body is a piece of a draft a line, or, with `format`,
    an event of a provider's stream a line; a `text/event-stream` has them as the provider sends them. Its end completes
    the message. A client that is silent for the lease gets a 408, and one that is gone none: the draft is left then,
    and the same request with its key or id goes on at once. A body that does not fit ends the message as interrupted.
    """
    refuse_chosen(state.ids, caller, create=create)
    if not chooses(state.ids, caller):
        await require_own_runs(ledger, [run_id])
    lines = _Lines.of(request.headers.get("content-type", ""))
    draft = ledger.messages.stream(
        thread_id,
        format=format,
        message=ChatMessage(role="assistant", message_id=message_id, name=name),
        create=create,
        run_id=run_id,
        idempotency_key=idempotency_key,
        expected=expected,
        branch=branch,
        reply_to=reply_to,
        on_open_calls=on_open_calls,
        resume=resume,
        pace=Pace(size=_SIZE, lease=lease),
    )
    leave(request)
    take_time(request)
    with state.stream_of(caller):
        async with watching(request) as watch:
            chunks = _chunks(request, state, watch, lease)
            with closing(state.bodies.begin(request.scope)) as held:
                problem = await _Upload(draft, lines, chunks, held, of_provider=format is not None).write()
        await enter(request)  # an answer that nobody reads fills the memory
    response.headers["Location"] = api_path("threads", thread_id, "messages", draft.message.message_id)
    if problem is not None:
        return ProblemResponse(problem, {"Retry-After": "1"} if problem["status"] == 503 else {})
    if draft.replayed:
        response.status_code = 200
    lost = [LostValue(**asdict(loss)) for loss in draft.losses]
    return EndedDraft.model_construct(state=draft.messages[-1].state, messages=list(draft.messages), losses=lost)


class BodyLeft(Exception):
    """The request ends before its body does, and whoever sends it again goes on. `problem`: why."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.problem = body_of_request(status, kind, detail)


@dataclass
class _Upload:
    """A draft, and the lines that fill it."""

    draft: Draft
    lines: _Lines
    chunks: AsyncIterator[bytes]
    held: HeldBytes
    of_provider: bool
    opened: bool = False

    async def write(self) -> dict[str, Any] | None:
        """The problem, with what is stored, if the body did not come whole. Raises as entering the draft."""
        try:
            await self._fill()
            return None
        except BodyLeft as left:
            problem = left.problem
        except HTTPException as error:
            problem = {**problem_of_http(error).problem, "line": self.lines.number}
        except ChatLedgerError as error:
            if not self.opened:
                raise
            problem = {**body_of(error), "line": self.lines.number}
        draft = self.draft
        return {**problem, "message_id": draft.message.message_id, "offset": draft.offset, "state": _state_of(draft)}

    async def _fill(self) -> None:
        async with self.draft as draft:
            self.opened = True
            try:
                if not draft.replayed:
                    await self._feed(draft)
                    goes_on = draft.finish_reason in _GOES_ON and not self.lines.done
                    if self.of_provider and draft.failure is None and goes_on:
                        await break_off(draft, "the body ended before the provider's response did")
            except ClientDisconnect:
                await asyncio.shield(draft.leave())
                raise BodyLeft(503, "Busy", "the client is gone") from None
            except BodyLeft:
                await asyncio.shield(draft.leave())
                raise

    async def _feed(self, draft: Draft) -> None:
        clock = asyncio.get_running_loop().time
        offset, grew_at = draft.offset, clock()
        async for chunk in self.chunks:
            for text in self.lines.add(chunk):
                await self._feed_line(draft, text)
            if draft.offset != offset:
                offset, grew_at = draft.offset, clock()
            elif clock() - grew_at > LONGEST_RENEWED.total_seconds():
                raise BodyLeft(409, "DraftSilent", "nothing new came for 10 minutes; send the request again to go on")
        for text in self.lines.rest():
            await self._feed_line(draft, text)

    async def _feed_line(self, draft: Draft, text: bytes) -> None:
        if self.lines.number % _TURN == 0:
            await asyncio.sleep(0)
        if not text:
            return
        value = read_body(text) if len(text) < _LARGE else await in_thread(lambda: read_body(text))
        before = draft.offset
        await draft.feed(value if self.of_provider else _piece(value))
        if not self.held.take((draft.offset - before) or len(text)):  # an event that adds no text is kept whole
            raise BodyLeft(503, "Busy", FULL)


def _state_of(draft: Draft) -> str:
    return draft.messages[-1].state


def _piece(value: Any) -> Delta:
    try:
        return delta_of((_TEXTS if isinstance(value, str) else _OTHERS).validate_python(value))
    except ValidationError as error:
        raise InvalidBody.of([{**mistake, "loc": ("body", *mistake["loc"])} for mistake in error.errors()]) from None


# --- The body ---------------------------------------------------------------------------------------------------------


async def _chunks(request: Request, state: State, watch: Watch, lease: float) -> AsyncIterator[bytes]:
    """The body as it comes. Raises BodyLeft, and ClientDisconnect."""
    clock = asyncio.get_running_loop().time
    over, body = clock() + state.limits.stream_seconds, request.stream()
    while not watch.ended and not state.draining and clock() < over:
        try:
            async with waiting_until(min(clock() + lease, over), state, watch):
                chunk = await anext(body, b"")
        except WaitOver:
            break
        if not chunk:
            return
        yield chunk
    if watch.problem is not None:
        left = BodyLeft(401, "Unauthenticated", "")
        left.problem = watch.problem
        raise left
    if state.draining or watch.ended:
        raise BodyLeft(503, "Busy", "this server ends the connection; send the request again to go on")
    if clock() >= over:
        detail = f"the body took more than {state.limits.stream_seconds:g} seconds; send the request again to go on"
        raise BodyLeft(408, "SlowBody", detail)
    raise BodyLeft(408, "SlowBody", f"nothing came for the lease, {lease:g} seconds; send the request again to go on")


@dataclass
class _Lines:
    """The JSON texts of a body, in time linear in its length. `number` counts its lines from 1."""

    of_events: bool
    number: int = 0
    done: bool = False
    """Whether the provider's last event came."""
    _begun: list[bytes] = field(default_factory=list)
    """The pieces of a line whose end has not come."""
    _event: list[bytes] = field(default_factory=list)
    """The lines of an event whose end has not come."""
    _begun_size: int = 0
    _event_size: int = 0

    @classmethod
    def of(cls, content_type: str) -> _Lines:
        kind = content_type.partition(";")[0].strip().lower()
        if kind not in (_LINES, _EVENTS):
            raise InvalidArgument("Content-Type", f"must be {_LINES} or {_EVENTS}, not {kind[:100]!r}")
        return cls(kind == _EVENTS)

    def add(self, chunk: bytes) -> Iterator[bytes]:
        """For each line that ends in the chunk, the text that ends with it, or nothing. Raises HTTPException for one of
        more than LINE bytes.
        """
        first, *others = chunk.split(b"\n")
        self._keep(first)
        for following in others:
            yield self._end_line()
            self._keep(following)

    def rest(self) -> Iterator[bytes]:
        """The text of a last line without an end. An event without an end is none."""
        if not self.of_events:
            yield self._end_line()

    def _keep(self, piece: bytes) -> None:
        self._begun.append(piece)
        self._begun_size += len(piece)
        if self._begun_size + self._event_size > LINE:
            self.number += 1
            raise HTTPException(413, f"a line, or an event, has more than {LINE:,} bytes")

    def _end_line(self) -> bytes:
        line = b"".join(self._begun).removesuffix(b"\r")
        self._begun.clear()
        self._begun_size = 0
        self.number += 1
        if self.of_events and line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._event.append(value.removeprefix(b" "))
                self._event_size += len(line)
            return b""
        text = b"\n".join(self._event) if self.of_events else line
        self._event.clear()
        self._event_size = 0
        self.done = self.done or text == _DONE
        return b"" if text == _DONE else text.strip()
