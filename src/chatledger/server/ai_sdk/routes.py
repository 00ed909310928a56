"""The routes of a chat: ask, come back to the answer, and stop it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from chatledger.ledger import Ledger
from chatledger.models.weight import apart
from chatledger.repositories.answers import Answer
from chatledger.server.agents import agent_of, warn_unless_served
from chatledger.server.ai_sdk.asked import (
    ChatRequest,
    decisions_of,
    find_question,
    question_of,
    require_own_run,
    require_seen,
)
from chatledger.server.ai_sdk.known import of_message, read_have
from chatledger.server.ai_sdk.stream import ChatSource, ChatStream, find_open, find_source, of_answer
from chatledger.server.answers.headers import IdempotencyKey
from chatledger.server.callers.access import Caller
from chatledger.server.callers.approvals import require_approver
from chatledger.server.callers.chosen_ids import chooses
from chatledger.server.json_route import JsonRoute
from chatledger.server.paths import PathId, ThreadId
from chatledger.server.state import Asking, Mine, Shared, State, Who

router = APIRouter(prefix="/ai-sdk/{agent}", tags=["AI SDK"], route_class=JsonRoute, include_in_schema=False)


async def _open_chat(
    ledger: Asking, caller: Who, state: Shared, agent: PathId, body: ChatRequest, idempotency_key: IdempotencyKey
) -> AsyncIterator[ChatSource]:
    """Runs before the response begins, so that what is wrong with the request has its status."""
    with state.stream_of(caller):
        if body.last.get("role") == "assistant" and body.trigger == "submit-message":
            yield await _decide(ledger, caller, state, body)
        else:
            answer = await _ask(ledger, caller, state, agent, body, idempotency_key)
            yield await of_answer(ledger, answer, None, frozenset())


async def _ask(ledger: Ledger, caller: Caller, state: State, agent: str, body: ChatRequest, key: str | None) -> Answer:
    agent = agent_of(state, agent)
    warn_unless_served(ledger, state, agent)
    if body.trigger == "regenerate-message":
        asked = await find_question(ledger, body.id, body.last_id)
        await require_seen(ledger, body, asked.seq)
        return await ledger.answers.start(body.id, agent=agent, idempotency_key=key, reply_to=asked.message_id)
    question = await apart(lambda: question_of(body, caller), body.last)
    if body.message_id is not None:
        asked = await find_question(ledger, body.id, body.message_id)
        await require_seen(ledger, body, asked.seq)
        return await ledger.answers.start(
            body.id, question, agent=agent, idempotency_key=key, alternative_to=asked.message_id
        )
    await require_seen(ledger, body, None)
    return await ledger.answers.start(
        body.id,
        question.model_copy(update={"message_id": body.last_id}),
        agent=agent,
        idempotency_key=key or f"ai-sdk/{body.last_id}",
        create=chooses(state.ids, caller),
    )


async def _decide(ledger: Ledger, caller: Caller, state: State, body: ChatRequest) -> ChatSource:
    decided = decisions_of(body)
    await require_own_run(ledger, decided.run_id, body.id)  # a stranger's is not found, whoever may decide
    require_approver(state.approvals, caller)
    answer = await ledger.answers.resume(decided.run_id, approve=decided.approve, refuse=decided.refuse)
    return await of_answer(ledger, answer, of_message(body.last), frozenset(decided.refuse))


@router.post("")
async def chat(request: Request, state: Shared, source: Annotated[ChatSource, Depends(_open_chat)]) -> ChatStream:
    """Store the last message of the user, or decide about calls, and stream the answer, which goes on if the client
    leaves. A message with `messageId` takes the place of that question, on a branch; the trigger `regenerate-message`
    asks for another answer.
    """
    return ChatStream(request, state, source)


async def _open_stream(
    ledger: Mine,
    caller: Who,
    state: Shared,
    agent: PathId,
    thread_id: ThreadId,
    have: Annotated[str | None, Query(description="What the client has of the answer, as JSON.")] = None,
) -> AsyncIterator[ChatSource | None]:
    known = None if have is None else read_have(have)
    source = await find_source(ledger, thread_id, known)
    if source is None:
        yield None
        return
    with state.stream_of(caller):
        yield source


@router.get("/{thread_id}/stream")
async def resume_chat(
    request: Request, state: Shared, source: Annotated[ChatSource | None, Depends(_open_stream)]
) -> Response:
    """The answer that is being written, from its beginning or behind what the client has; 204 if there is none."""
    return Response(status_code=204) if source is None else ChatStream(request, state, source)


@router.post("/{thread_id}/stop")
async def stop_chat(ledger: Asking, agent: PathId, thread_id: ThreadId) -> Response:
    """End the answers of the thread. 204 also if there is none."""
    for run_id in await find_open(ledger, thread_id):
        await ledger.answers.stop(run_id)
    return Response(status_code=204)
