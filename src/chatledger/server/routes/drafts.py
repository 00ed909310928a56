"""Answers that a client writes while its model does, in any language. A token and an offset make each request safe to
repeat, at any process of the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import BaseModel, Field

from chatledger.errors import InvalidArgument
from chatledger.ledger import Ledger
from chatledger.models import (
    AudioPart,
    ChatMessage,
    Delta,
    FilePart,
    ImagePart,
    Loss,
    NewThread,
    Payload,
    ReasoningDelta,
    RulesLevel,
    TextPart,
    ThinkPart,
    ToolCallDelta,
    VideoPart,
)
from chatledger.models.base import Text
from chatledger.models.json import Json, JsonObject
from chatledger.models.weight import apart
from chatledger.repositories import scope_of
from chatledger.repositories.payloads import read_messages
from chatledger.server.answers.headers import ExpectedState, IdempotencyKey
from chatledger.server.answers.sizes import Name, require_small
from chatledger.server.callers.chosen_ids import chooses, refuse_chosen, require_own_runs
from chatledger.server.json_route import json_router
from chatledger.server.paths import MessageId, ThreadId, api_path
from chatledger.server.problems import problem
from chatledger.server.requests.bodies import Body, LostValue, ThreadFields, Whole
from chatledger.server.state import Mine, OfUser, Shared, Who
from chatledger.storage.append.request import LEASE, OnOpenCalls
from chatledger.storage.drafts.draft import Pace, open_for_others
from chatledger.storage.drafts.posts import Asked, DraftEnd, Pieces, Post, Posted

router = json_router(prefix="/threads/{thread_id}/drafts", tags=["drafts"])
LONGEST_LEASE = 300
MOST_PIECES = 1_000
_REFUSED = {
    "offset": ("OffsetMoved", "the draft has another length, which is `offset`; send what follows it"),
    "silent": ("DraftSilent", "nothing new came for 10 minutes, so the lease ends; a new piece renews it again"),
}


class NewDraft(Body):
    """An assistant message that grows."""

    message_id: str | None = Field(None, description="The id; made if there is none.")
    name: Name | None = Field(None, description="The name of the assistant.")
    run_id: str | None = Field(None, description="The run; created if it does not exist.")
    branch: Whole | None = Field(None, description="The branch; null: the active one.")
    reply_to: str | None = Field(None, description="The id of the question.")
    on_open_calls: OnOpenCalls = Field("error", description="As of an append.")
    rules: RulesLevel | None = Field(None, description="As of an append.")
    lease: float = Field(LEASE, ge=1, le=LONGEST_LEASE, description="Seconds of silence until others may take over.")
    resume: bool = Field(False, description="Go on with the words of an abandoned draft.")
    create: bool | ThreadFields = Field(False, description="As of an append.")


class OpenedDraft(BaseModel):
    """A draft and its place."""

    token: str = Field(repr=False, description="A secret to send with each piece; empty if `replayed`.")
    offset: int = Field(description="The place of the next piece.")
    replayed: bool = Field(description="Whether the message was finished already.")
    message: ChatMessage = Field(description="The stored message.")


class ReasoningPiece(Body):
    """A piece of reasoning."""

    kind: Literal["reasoning"] = Field(description="`reasoning`.")
    text: Text = Field("", description="The text to add.")
    signature: Text | None = Field(None, description="The signature, which ends it.")


class CallPiece(Body):
    """A piece of a tool call. The first one of a call has its name."""

    kind: Literal["call"] = Field(description="`call`.")
    index: Whole | None = Field(None, description="The number of the call, from 0.")
    id: Text | None = Field(None, description="The provider's id of the call.")
    name: Text | None = Field(None, description="The name of the tool.")
    arguments: Text | None = Field(None, description="The text to add.")
    extras: JsonObject | None = Field(None, description="Further fields.")


Media = TextPart | ThinkPart | ImagePart | AudioPart | VideoPart | FilePart
OfKind = Annotated[ReasoningPiece | CallPiece | Media, Field(discriminator="kind")]
SentPiece = Text | OfKind


class NewPieces(Body):
    """Pieces of a draft, of which the first begins at `offset`."""

    token: str = Field(repr=False, description="The token of the draft.")
    offset: Whole = Field(description="The `offset` of an earlier answer.")
    pieces: list[SentPiece] = Field(max_length=MOST_PIECES, description="What comes there. None renews the lease.")


class GrownDraft(BaseModel):
    """How far a draft is stored."""

    offset: int = Field(description="The place of the next piece.")
    state: str = Field(description="The state of the message.")


class Interruption(Body):
    """The draft to interrupt."""

    token: str = Field(repr=False, description="The token of the draft.")
    offset: Whole | None = Field(None, description="The stored `offset`; null for any.")


class Completion(Interruption):
    """The draft to complete."""

    response_metadata: JsonObject | None = Field(None, description="Keys to add to the message's own.")
    custom_data: JsonObject | None = Field(None, description="Keys to add to the message's own.")
    payload: Json | None = Field(None, description="The provider's whole response, in place of the pieces.")
    format: str | None = Field(None, description="The format of the payload.")


class EndedDraft(BaseModel):
    """A finished draft."""

    state: str = Field(description="The state of the last message.")
    messages: list[ChatMessage] = Field(description="The message, and what follows it in a response.")
    losses: list[LostValue] = Field([], description="What could not be stored as it came.")


@router.post(
    "", status_code=201, responses={200: {"model": OpenedDraft, "description": "The message was finished already."}}
)
async def open_draft(
    ledger: OfUser,
    caller: Who,
    state: Shared,
    thread_id: ThreadId,
    body: NewDraft,
    response: Response,
    idempotency_key: IdempotencyKey,
    expected: ExpectedState,
) -> OpenedDraft:
    """Open an answer that grows. A repeat with its key or id is a 409 `DraftLive` until its lease ends, and then takes
    the message over.
    """
    refuse_chosen(state.ids, caller, create=body.create)
    if not chooses(state.ids, caller):
        await require_own_runs(ledger, [body.run_id])
    terms: dict[str, Any] = body.model_dump(
        include={"run_id", "branch", "reply_to", "on_open_calls", "rules", "resume"}
    )
    terms["create"] = NewThread(**body.create.model_dump()) if isinstance(body.create, ThreadFields) else body.create
    message = ChatMessage(role="assistant", message_id=body.message_id, name=body.name)
    terms |= {"message": message, "idempotency_key": idempotency_key, "expected": expected}
    draft = ledger.messages.stream(thread_id, pace=Pace(lease=body.lease), **terms)
    await open_for_others(draft)
    if draft.replayed:
        response.status_code = 200
    response.headers["Location"] = api_path("threads", thread_id, "messages", draft.message.message_id)
    token = "" if draft.replayed else draft.token
    return OpenedDraft.model_construct(token=token, offset=draft.offset, replayed=draft.replayed, message=draft.message)


@router.post("/{message_id}/pieces", response_model=GrownDraft)
async def add_pieces(ledger: Mine, thread_id: ThreadId, message_id: MessageId, body: NewPieces) -> Any:
    """Add pieces. Of those that are sent again, what is stored is dropped. If one before is missing, it is a 409
    `OffsetMoved`, with the `offset` to go on from.
    """
    await apart(lambda: require_small(body.pieces), body.pieces)
    asked = Asked.by(scope_of(ledger), thread_id, body.token)
    deltas = [delta_of(piece) for piece in body.pieces]
    posted = await _write(ledger, Pieces(asked, message_id, deltas, body.offset))
    if isinstance(posted, Response):
        return posted
    return GrownDraft(offset=posted.offset, state=posted.messages[0].state)


@router.post("/{message_id}/complete", response_model=EndedDraft)
async def complete_draft(
    ledger: Mine, caller: Who, state: Shared, thread_id: ThreadId, message_id: MessageId, body: Completion
) -> Any:
    """Complete the message. A repeat returns what is stored."""
    await apart(lambda: require_small([body.payload, body.response_metadata, body.custom_data]), body)
    response: Sequence[ChatMessage] | None = None
    losses: Sequence[Loss] = ()
    if body.payload is not None:
        payload = Payload(body.payload, body.format)
        response, losses = await read_messages(scope_of(ledger), thread_id, payload, "lenient")
        if not response or response[0].role != "assistant":
            raise InvalidArgument("payload", "must be the provider's response, which begins with the assistant's words")
        if not chooses(state.ids, caller):
            await require_own_runs(ledger, [message.run_id for message in response])
    elif body.format is not None:
        raise InvalidArgument("format", "goes with payload")
    fields = {"response_metadata": body.response_metadata, "custom_data": body.custom_data}
    added = {name: value for name, value in fields.items() if value is not None}
    asked = Asked.by(scope_of(ledger), thread_id, body.token)
    return await _ended(ledger, DraftEnd(asked, message_id, "complete", body.offset, response, added), losses)


@router.post("/{message_id}/interrupt", response_model=EndedDraft)
async def interrupt_draft(ledger: Mine, thread_id: ThreadId, message_id: MessageId, body: Interruption) -> Any:
    """End the message as interrupted, with synthetic results of its calls. One that has ended stays as it is."""
    asked = Asked.by(scope_of(ledger), thread_id, body.token)
    return await _ended(ledger, DraftEnd(asked, message_id, "interrupted", body.offset))


def delta_of(piece: Any) -> Delta:
    if isinstance(piece, ReasoningPiece):
        return ReasoningDelta(text=piece.text, signature=piece.signature)
    if isinstance(piece, CallPiece):
        return ToolCallDelta(**{name: getattr(piece, name) for name in ToolCallDelta.model_fields})
    delta: Delta = piece
    return delta


async def _ended(ledger: Ledger, end: DraftEnd, losses: Sequence[Loss] = ()) -> Any:
    posted = await _write(ledger, end)
    if isinstance(posted, Response):
        return posted
    lost = [LostValue(**asdict(loss)) for loss in losses]
    return EndedDraft.model_construct(state=posted.messages[-1].state, messages=list(posted.messages), losses=lost)


async def _write(ledger: Ledger, post: Post) -> Posted | Response:
    posted = await scope_of(ledger).write(post.write, moves=post.asked.request.thread)
    if posted.refused is None:
        return posted
    kind, detail = _REFUSED[posted.refused]
    return problem(409, kind, detail, offset=posted.offset)
