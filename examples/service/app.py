"""A chat service: server-sent events, tools, edits, regenerated answers, feedback, erasure, clients that follow a
thread from another process, and recovery after a crash.

    CHATLEDGER_URL=service.db uvicorn examples.service.app:app
    CHATLEDGER_URL=postgresql://user@host/db uvicorn examples.service.app:app

Add `--timeout-graceful-shutdown 5`, because a client that follows a thread never ends its request. Each request names
its user in the header `X-User`; replace `ledger_of` with your own authentication.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

import chatledger
from chatledger import ChatMessage, Cursor, Draft, Feedback, Ledger, Newest, Oldest
from chatledger.types import ThreadChange
from examples.service import model, tools

STEPS = 8
"""Maximum number of model responses to one question."""
ATTEMPTS = 3
"""Maximum number of times that the model is asked for one response, if its answers are interrupted."""


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Several processes may start at once. One of them creates the tables, and the others wait for it."""
    async with Ledger.open(os.environ["CHATLEDGER_URL"], migrate=True, notify=True) as ledger:
        app.state.ledger = ledger
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(chatledger.ChatLedgerError)
async def to_status(request: Request, error: chatledger.ChatLedgerError) -> JSONResponse:
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return JSONResponse({"error": type(error).__name__, "detail": str(error)}, error.http_status, headers)


async def ledger_of(request: Request, x_user: Annotated[str, Header()]) -> Ledger:
    """The user's view of the ledger, in which threads of other users do not exist."""
    ledger: Ledger = request.app.state.ledger
    return ledger.user(x_user)


Mine = Annotated[Ledger, Depends(ledger_of)]


# --- Asking -----------------------------------------------------------------------------------------------------------


class Ask(BaseModel):
    """The client chooses `request_id`, and sends the same one when it retries. `edits` is the id of the question that
    this one replaces.
    """

    request_id: str
    text: str
    edits: str | None = None


class Again(BaseModel):
    """Asks for another answer to the message `question`."""

    request_id: str
    question: str


@app.post("/threads/{thread_id}/messages")
async def ask(thread_id: str, body: Ask, ledger: Mine) -> StreamingResponse:

    async def append(on_open_calls: Literal["error", "close"]) -> ChatMessage:
        stored = await ledger.messages.append(
            thread_id,
            ChatMessage.user(body.text),
            idempotency_key=f"{body.request_id}/question",
            on_open_calls=on_open_calls,
            alternative_to=body.edits,
            create=body.edits is None,
        )
        return stored.message

    try:
        question = await append("error")
    except chatledger.RuleViolation as error:
        if error.rule != "R8":
            raise
        (*_, open_) = (await ledger.messages.history(thread_id, Newest(1))).messages
        async with tools.claimed(ledger, thread_id, open_, await tools.claim_of(ledger, thread_id, open_)):
            question = await append("close")
    return await streamed(answer(ledger, thread_id, body.request_id, question))


@app.post("/threads/{thread_id}/answers")
async def answer_again(thread_id: str, body: Again, ledger: Mine) -> StreamingResponse:
    question = await ledger.messages.get(thread_id, body.question)
    return await streamed(answer(ledger, thread_id, body.request_id, question))


async def streamed(events: AsyncIterator[str]) -> StreamingResponse:
    await anext(events)  # opens the first draft here, so that DraftLive becomes an HTTP status
    return StreamingResponse(or_error(events), media_type="text/event-stream")


async def or_error(events: AsyncIterator[str]) -> AsyncIterator[str]:
    """The events, and an error event for an error after the HTTP status was sent. The client then sends the same
    request again.
    """
    try:
        async for one in events:
            yield one
    except chatledger.ChatLedgerError as error:
        yield event("error", error=type(error).__name__, detail=str(error))


async def answer(ledger: Ledger, thread_id: str, request_id: str, question: ChatMessage) -> AsyncIterator[str]:
    """The events of an answer: each piece, each result of a tool, and the end.

    Each step has its own key. So a retry replays completed steps, continues after the text of the step in which the
    process died, and asks the model for the rest.
    """
    run_id, after = f"{thread_id}/{request_id}", question
    for step in range(STEPS):
        key = f"{request_id}/{step}"
        async with attempt(ledger, thread_id, run_id, key, after) as draft:
            if step == 0:
                yield ""  # for `streamed`
            if draft.message.text:
                yield event("piece", text=draft.message.text)
            if draft.message.state == "partial":
                branch = draft.message.branch
                history = await ledger.messages.prompt(thread_id, "openai-chat", branch=branch)
                async for chunk in model.ask(history.payload, draft.message.text):
                    await draft.feed(chunk)
                    for choice in chunk["choices"]:
                        if piece := choice["delta"].get("content"):
                            yield event("piece", text=piece)
        message = draft.message
        if message.state == "interrupted":
            break
        results = await tools.answer_calls(ledger, thread_id, message, f"{key}/results")
        if not results:
            await ledger.runs.finish(run_id, status="completed")
            break
        message = after = results[-1]
        if after.state == "synthetic":
            break  # a later question closed the calls
        yield event("tools", results=[result.text for result in results])
    yield event("end", message_id=message.message_id, seq=message.seq, state=message.state)


@asynccontextmanager
async def attempt(ledger: Ledger, thread_id: str, run_id: str, key: str, after: ChatMessage) -> AsyncIterator[Draft]:
    """The draft of a step. An interrupted draft is followed by another one on a new branch, unless that would hide a
    later question.
    """
    for number in range(ATTEMPTS):
        async with ledger.messages.stream(
            thread_id,
            run_id=run_id,
            idempotency_key=f"{key}/{number}",
            format="openai-chat",
            branch=after.branch,
            reply_to=after,
            resume=True,
        ) as draft:
            if not draft.replayed and draft.message.tool_calls:
                await draft.interrupt()  # a model cannot continue half a call
            message = draft.message
            last = message.state != "interrupted" or number == ATTEMPTS - 1
            if last or await has_later_question(ledger, thread_id, message):
                yield draft
                return


async def has_later_question(ledger: Ledger, thread_id: str, message: ChatMessage) -> bool:
    """Whether a question follows the message and the results of its calls."""
    limit = len(message.tool_calls or []) + 1
    later = await ledger.messages.history(thread_id, Oldest(limit, after=message.seq), branch=message.branch)
    return any(one.role == "user" for one in later.messages)


def event(event_name: str, event_id: str = "", **data: Any) -> str:
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {event_name}\ndata: {json.dumps(data)}\n\n"


# --- Reading ----------------------------------------------------------------------------------------------------------


@app.get("/threads")
async def threads(ledger: Mine, cursor: str | None = None) -> dict[str, Any]:
    page = await ledger.threads.list(cursor=cursor)
    return {"threads": [thread.model_dump(mode="json") for thread in page], "next": page.next_cursor}


@app.get("/threads/{thread_id}/messages")
async def read(thread_id: str, ledger: Mine, branch: int | None = None, before: Cursor | None = None) -> dict[str, Any]:
    """The newest messages of the displayed branch, or those `before` a cursor. The client scrolls back with `previous`
    until that is null, and shows the draft below the newest page.
    """
    history = await ledger.messages.history(thread_id, Newest(50, before=before), branch=branch)
    return {
        "branch": history.branch,
        "messages": [message.model_dump(mode="json") for message in history.messages],
        "draft": history.draft and history.draft.model_dump(mode="json"),
        "previous": history.previous_cursor,
        "mark": history.mark,
    }


@app.get("/threads/{thread_id}/changes")
async def changes(
    thread_id: str, ledger: Mine, cursor: Cursor | None = None, last_event_id: Annotated[Cursor | None, Header()] = None
) -> StreamingResponse:
    """Each change after the `cursor`, such as the mark of the messages that the client has, from any process. When a
    browser's EventSource reconnects, it names the last event that it received and continues after it.
    """
    await ledger.threads.get(thread_id)  # a missing thread becomes an HTTP status
    told = tell(ledger.messages.follow(thread_id, cursor=last_event_id or cursor))
    return StreamingResponse(or_error(told), media_type="text/event-stream")


async def tell(following: AsyncGenerator[ThreadChange, None]) -> AsyncIterator[str]:
    async with aclosing(following):
        async for change in following:
            yield event(change.kind, change.cursor, **change.model_dump(mode="json", exclude={"cursor"}))


@app.get("/threads/{thread_id}/messages/{message_id:path}/alternatives")
async def alternatives(thread_id: str, message_id: str, ledger: Mine) -> list[dict[str, Any]]:
    """The alternatives to a message, which a client shows as "2 of 3". The displayed one has `current` set."""
    found = await ledger.messages.alternatives(thread_id, message_id)
    return [one.model_dump(mode="json") for one in found]


@app.put("/threads/{thread_id}/branch/{branch}")
async def show(thread_id: str, branch: int, ledger: Mine) -> None:
    await ledger.branches.activate(thread_id, branch)


# --- The user's own ---------------------------------------------------------------------------------------------------


class Score(BaseModel):
    score: float
    comment: str | None = None


@app.put("/threads/{thread_id}/answers/{request_id}/score")
async def score(thread_id: str, request_id: str, body: Score, ledger: Mine, x_user: Annotated[str, Header()]) -> None:
    kwargs: dict[str, Any] = {} if body.comment is None else {"comment": body.comment}
    run_id = f"{thread_id}/{request_id}"
    await ledger.feedback.record(Feedback(run_id=run_id, key="user", score=body.score, user_id=x_user, kwargs=kwargs))


@app.delete("/me")
async def erase_me(ledger: Mine, x_user: Annotated[str, Header()]) -> dict[str, int]:
    """Permanently erase the user's threads, feedback and values. Send the request again if it was interrupted."""
    return dict((await ledger.erasures.erase(("user", x_user))).rows)
