"""A chat service: answers that outlive the request, with tools, stop, reconnect and approval; edits, other answers,
feedback, erasure, and clients that follow a thread from another process.

    CHATLEDGER_URL=service.db uvicorn examples.service.app:app
    CHATLEDGER_URL=postgresql://user@host/db uvicorn examples.service.app:app

Add `--timeout-graceful-shutdown 5`, because a client that follows a thread never ends its request. Each request names
its user in the header `X-User`; replace `ledger_of` with your own authentication.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from chatledger import Cursor, Feedback, Ledger, Newest
from chatledger.answers import Answer, Turn
from chatledger.errors import ChatLedgerError, ModelFailed
from chatledger.types import Alternative, Run, ThreadChange
from examples.service import model

STEPS = 8  # the most responses of the model to one question, with those that broke off


async def chat(turn: Turn) -> None:
    """The agent. Each attempt at an answer runs it from the top, and repeats nothing that is stored."""
    for step in range(1, STEPS + 1):
        try:
            message = await turn.ask(model.ask, format="openai-chat", resume=True)
        except ModelFailed:
            if step == STEPS:
                raise
            continue
        if not message.tool_calls:
            return
        await turn.call_tools(model.run_tool, again=False)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Several processes may start at once: one creates the tables. Each serves what a dead process left, too."""
    opened = Ledger.open(os.environ["CHATLEDGER_URL"], migrate=True, notify=True)
    async with opened as ledger, ledger.answers.serve({"chat": chat}):
        app.state.ledger = ledger
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(ChatLedgerError)
async def to_status(request: Request, error: ChatLedgerError) -> JSONResponse:
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return JSONResponse({"error": type(error).__name__, "detail": str(error)}, error.http_status, headers)


async def ledger_of(request: Request, x_user: Annotated[str, Header()]) -> Ledger:
    """The user's view of the ledger, in which threads and answers of other users do not exist."""
    ledger: Ledger = request.app.state.ledger
    return ledger.user(x_user)


Mine = Annotated[Ledger, Depends(ledger_of)]
Last = Annotated[Cursor | None, Header(alias="Last-Event-ID")]  # of a browser's EventSource that reconnects


# --- Answers ----------------------------------------------------------------------------------------------------------


class Ask(BaseModel):
    """A `text`, which may replace the question with the id `edits`; or the id of a `question` that gets another answer.
    The client chooses `request_id`, and sends the same one when it retries.
    """

    request_id: str
    text: str | None = None
    edits: str | None = None
    question: str | None = None
    when_live: Literal["error", "stop"] = "error"


class Decisions(BaseModel):
    approve: list[str] = []
    refuse: dict[str, str | None] = {}


@app.post("/threads/{thread_id}/answers")
async def ask(thread_id: str, body: Ask, ledger: Mine) -> dict[str, Any]:
    answer = await ledger.answers.start(
        thread_id,
        body.text,
        agent="chat",
        idempotency_key=body.request_id,
        reply_to=body.question,
        alternative_to=body.edits,
        when_live=body.when_live,
        create=body.edits is None,
    )
    return shown(answer)


@app.get("/answers/{run_id}")
async def answer(run_id: str, ledger: Mine) -> dict[str, Any]:
    return shown(await ledger.answers.get(run_id))


@app.get("/answers/{run_id}/events")
async def events(run_id: str, ledger: Mine, last: Last = None, cursor: Cursor | None = None) -> StreamingResponse:
    """What happens from the question on, or after an event, until a `run` says that the answer has ended or waits."""
    return streamed((await ledger.answers.get(run_id)).follow(cursor=last or cursor))


@app.post("/answers/{run_id}/stop")
async def stop(run_id: str, ledger: Mine) -> Run:
    return await ledger.answers.stop(run_id)


@app.post("/answers/{run_id}/resume")
async def resume(run_id: str, body: Decisions, ledger: Mine) -> dict[str, Any]:
    return shown(await ledger.answers.resume(run_id, approve=body.approve, refuse=body.refuse))


def shown(answer: Answer) -> dict[str, Any]:
    return {"run": answer.run, "question": answer.question, "waiting": answer.waiting, "replayed": answer.replayed}


# --- Threads ----------------------------------------------------------------------------------------------------------


@app.get("/threads")
async def threads(ledger: Mine, cursor: str | None = None) -> dict[str, Any]:
    page = await ledger.threads.list(cursor=cursor)
    return {"threads": [*page], "next": page.next_cursor}


@app.get("/threads/{thread_id}/messages")
async def read(thread_id: str, ledger: Mine, branch: int | None = None, before: Cursor | None = None) -> dict[str, Any]:
    """The newest messages of the displayed branch, or those `before` a cursor. The client scrolls back with `previous`
    until that is null, and shows the draft below the newest page.
    """
    history = await ledger.messages.history(thread_id, Newest(50, before=before), branch=branch)
    shown = {"branch": history.branch, "messages": history.messages, "draft": history.draft}
    return {**shown, "previous": history.previous_cursor, "mark": history.mark}


@app.get("/threads/{thread_id}/changes")
async def changes(thread_id: str, ledger: Mine, last: Last = None, cursor: Cursor | None = None) -> StreamingResponse:
    """Each change after the `cursor`, such as the mark of the messages that the client has, from any process."""
    await ledger.threads.get(thread_id)  # a missing thread becomes an HTTP status
    return streamed(ledger.messages.follow(thread_id, cursor=last or cursor, deltas=True))


def streamed(following: AsyncGenerator[ThreadChange, None]) -> StreamingResponse:
    return StreamingResponse(tell(following), media_type="text/event-stream")


async def tell(following: AsyncGenerator[ThreadChange, None]) -> AsyncIterator[str]:
    async with aclosing(following):
        with suppress(ChatLedgerError):  # the client reconnects with its last event, and gets the HTTP status
            async for change in following:
                fields = json.dumps(change.model_dump(mode="json", exclude_none=True))
                yield f"id: {change.cursor}\nevent: {change.kind}\ndata: {fields}\n\n"


@app.get("/threads/{thread_id}/messages/{message_id:path}/alternatives")
async def alternatives(thread_id: str, message_id: str, ledger: Mine) -> list[Alternative]:
    """The alternatives to a message, which a client shows as "2 of 3". The displayed one has `current` set."""
    return [*await ledger.messages.alternatives(thread_id, message_id)]


@app.put("/threads/{thread_id}/branch/{branch}")
async def show(thread_id: str, branch: int, ledger: Mine) -> None:
    await ledger.branches.activate(thread_id, branch)


@app.put("/answers/{run_id}/score")
async def score(run_id: str, value: float, ledger: Mine, x_user: Annotated[str, Header()]) -> None:
    await ledger.feedback.record(Feedback(run_id=run_id, key="user", score=value, user_id=x_user))


@app.delete("/me")
async def erase_me(ledger: Mine, x_user: Annotated[str, Header()]) -> dict[str, int]:
    """Permanently erase the user's threads, feedback and values. Send the request again if it was interrupted."""
    return dict((await ledger.erasures.erase(("user", x_user))).rows)
