"""A chat service: server-sent events, tools, edits and other answers, feedback, erasure, clients that follow a thread
from another process, and going on after a crash.

    CHATLEDGER_URL=service.db uvicorn examples.service.app:app
    CHATLEDGER_URL=postgresql://user@host/db uvicorn examples.service.app:app

Add `--timeout-graceful-shutdown 5`, because a client that follows a thread never ends its request. Each request names
its user in the header `X-User`; put your own authentication in the place of `ledger_of`.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

import chatledger
from chatledger import ChatMessage, Feedback, Ledger, ThreadChange
from examples.service import model

STEPS = 8
"""The most responses of the model to one question."""
STATUS = {
    chatledger.NotFound: 404,
    chatledger.Conflict: 409,  # DraftLive too: another request still streams an answer
    chatledger.RuleViolation: 422,
    chatledger.LimitExceeded: 413,
    chatledger.InvalidCursor: 400,
    chatledger.InvalidArgument: 400,
    chatledger.StorageError: 503,
    chatledger.OutcomeUnknown: 503,  # the client sends the same request again
}


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Several processes may start at once: one of them makes the tables, and the others wait for it."""
    async with Ledger.open(os.environ["CHATLEDGER_URL"], migrate=True, notify=True) as ledger:
        app.state.ledger = ledger
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(chatledger.ChatLedgerError)
async def to_status(request: Request, error: chatledger.ChatLedgerError) -> JSONResponse:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    return JSONResponse({"error": type(error).__name__, "detail": str(error)}, status_code=status)


async def ledger_of(request: Request, x_user: Annotated[str, Header()]) -> Ledger:
    """The ledger as the user sees it: threads of others do not exist in it."""
    ledger: Ledger = request.app.state.ledger
    return ledger.user(x_user)


Mine = Annotated[Ledger, Depends(ledger_of)]


# --- Asking -----------------------------------------------------------------------------------------------------------


class Ask(BaseModel):
    """`request_id` is the client's, and the same when it tries again. `after` is the message that an edited question
    follows.
    """

    request_id: str
    text: str
    after: str | None = None


class Again(BaseModel):
    """Another answer to the message `question`."""

    request_id: str
    question: str


@app.post("/threads/{thread_id}/messages")
async def ask(thread_id: str, body: Ask, ledger: Mine) -> StreamingResponse:
    stored = await ledger.messages.append(
        thread_id,
        [ChatMessage(role="user", content=body.text)],
        idempotency_key=f"{body.request_id}/question",
        on_open_calls="close",
        after=body.after,
        create=body.after is None,
    )
    return await streamed(answer(ledger, thread_id, body.request_id, stored.messages[0].message_id or ""))


@app.post("/threads/{thread_id}/answers")
async def answer_again(thread_id: str, body: Again, ledger: Mine) -> StreamingResponse:
    return await streamed(answer(ledger, thread_id, body.request_id, body.question))


async def streamed(events: AsyncIterator[str]) -> StreamingResponse:
    await anext(events)  # enters the first draft, so that DraftLive is a status
    return StreamingResponse(or_error(events), media_type="text/event-stream")


async def or_error(events: AsyncIterator[str]) -> AsyncIterator[str]:
    """The events. An error that comes after the status is an event too: the client sends the same request again."""
    try:
        async for one in events:
            yield one
    except chatledger.ChatLedgerError as error:
        yield event("error", error=type(error).__name__, detail=str(error))


async def answer(ledger: Ledger, thread_id: str, request_id: str, question: str) -> AsyncIterator[str]:
    """The events of an answer: each piece, each result of a tool, and the end.

    Each step has a key of its own. So a retry replays the steps that are done, goes on after the words of the one in
    which a process died, and asks the model for the rest.
    """
    run_id, after = f"{thread_id}/{request_id}", question
    for step in range(STEPS):
        key = f"{request_id}/{step}"
        async with ledger.stream(
            thread_id, run_id=run_id, idempotency_key=key, format="openai-chat", resume="continue", after=after
        ) as draft:
            if step == 0:
                yield ""  # for `streamed`
            if draft.message.text:
                yield event("piece", text=draft.message.text)
            if not draft.replayed and draft.message.tool_calls:
                await draft.interrupt()  # no model goes on with half a call, so it is asked again
            elif not draft.replayed:
                branch = draft.message.branch
                history = await ledger.history(
                    thread_id, format="openai-chat", view="model", branch=branch, partials=False
                )
                async for chunk in model.ask(history.payload, draft.message.text):
                    await draft.feed(chunk)
                    for choice in chunk["choices"]:
                        if piece := choice["delta"].get("content"):
                            yield event("piece", text=piece)
        results = await answer_calls(ledger, thread_id, draft.message, f"{key}/results")
        if not results:
            break
        yield event("tools", results=[result.text for result in results])
        after = results[-1].message_id or ""
    if draft.message.state == "complete":
        await ledger.runs.finish(run_id, status="completed")
    yield event("end", message_id=draft.message.message_id, seq=draft.message.seq, state=draft.message.state)


async def answer_calls(ledger: Ledger, thread_id: str, message: ChatMessage, key: str) -> list[ChatMessage]:
    """Run the tools that the message calls, and store the results. An interrupted message has them already."""
    calls, branch = message.tool_calls or [], message.branch
    if message.state == "interrupted" and calls:
        stored = await ledger.messages.history(thread_id, branch=branch, after=message.seq, limit=len(calls))
        return list(stored.messages)
    results = [
        ChatMessage(role="tool", tool_call_id=call.id, content=model.weather(**json.loads(str(call.arguments))))
        for call in calls
    ]
    appended = await ledger.messages.append(
        thread_id, results, run_id=message.run_id, branch=branch, idempotency_key=key
    )
    return list(appended.messages)


def event(event_name: str, event_id: str = "", **data: Any) -> str:
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {event_name}\ndata: {json.dumps(data)}\n\n"


# --- Reading ----------------------------------------------------------------------------------------------------------


@app.get("/threads")
async def threads(ledger: Mine, cursor: str | None = None) -> dict[str, Any]:
    page = await ledger.threads.list(cursor=cursor)
    return {"threads": [thread.model_dump(mode="json") for thread in page], "next": page.next_cursor}


@app.get("/threads/{thread_id}/messages")
async def read(thread_id: str, ledger: Mine, before: int | None = None) -> dict[str, Any]:
    """The newest messages, or those `before` a seq: the client scrolls back with `previous`, until that is null."""
    history = await ledger.messages.history(thread_id, newest=50, before=before, partials=False)
    return {
        "messages": [message.model_dump(mode="json") for message in history.messages],
        "previous": history.previous_cursor,
        "mark": history.mark,
    }


@app.get("/threads/{thread_id}/changes")
async def changes(
    thread_id: str, ledger: Mine, after: str | None = None, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    """Each change `after` the mark of the messages that the client has, whichever process writes it. A browser's
    EventSource that lost its connection names the last event that it got, and goes on after that.
    """
    await ledger.threads.get(thread_id)  # so that a thread that does not exist is a status
    told = tell(ledger.follow(thread_id, after=last_event_id or after))
    return StreamingResponse(or_error(told), media_type="text/event-stream")


async def tell(following: AsyncGenerator[ThreadChange, None]) -> AsyncIterator[str]:
    async with aclosing(following):
        async for change in following:
            yield event(change.kind, change.cursor, **change.model_dump(mode="json", exclude={"cursor"}))


@app.get("/threads/{thread_id}/messages/{seq}/alternatives")
async def alternatives(thread_id: str, seq: int, ledger: Mine) -> list[dict[str, Any]]:
    """What a client shows as "2 of 3": the one that is `current` has this number among them."""
    found = await ledger.branches.alternatives(thread_id, seq)
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
    """Erase the user's threads, feedback and values for good. An erasure that broke off goes on when asked again."""
    return dict((await ledger.erasures.erase_user(x_user)).rows)
