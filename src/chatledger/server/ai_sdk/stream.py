"""The stream of an answer: its chunks as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from fastapi import Request

from chatledger.annexes import load
from chatledger.errors import NotFound
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Cursor, Newest, ThreadChange
from chatledger.models.weight import apart
from chatledger.repositories import scope_of
from chatledger.repositories.answers import Answer
from chatledger.repositories.history import History
from chatledger.server.ai_sdk.chunks import Chunk, ChunkWriter
from chatledger.server.ai_sdk.known import Known
from chatledger.server.answers.event_stream import COMMENT, PING, EventStream
from chatledger.server.answers.json_response import to_utf8
from chatledger.server.changes import next_change, until_ended, with_end, with_pauses
from chatledger.server.state import State
from chatledger.server.watch import watching
from chatledger.storage.follow.follow_cursor import read_start
from chatledger.storage.follow.follower import changes_until_now
from chatledger.storage.follow.reported import Reported
from chatledger.storage.history.window_request import Window

_MOST = 100
"""The most messages of a turn that is read for a draft which no agent writes."""
_OPEN = 10
_PROTOCOL = {"x-vercel-ai-ui-message-stream": "v1"}


@dataclass(frozen=True, slots=True)
class ChatSource:
    """The changes of an answer from its beginning, and what makes chunks of them."""

    changes: AsyncGenerator[ThreadChange]
    writer: ChunkWriter


class BrokenOff(Exception):
    """The server leaves a stream before the answer has ended, and the connection breaks: a client that saw the response
    end would take the answer for whole, and one that sees it break comes back.
    """


class ChatStream(EventStream):
    def __init__(self, request: Request, state: State, source: ChatSource) -> None:
        super().__init__(_events(request, state, source))
        self.headers.update(_PROTOCOL)


async def _events(request: Request, state: State, source: ChatSource) -> AsyncGenerator[bytes, None]:
    end = asyncio.get_running_loop().time() + state.limits.stream_seconds
    writer = source.writer
    yield b": connected\n\n"
    async with (
        aclosing(source.changes) as changes,
        watching(request) as watch,
        aclosing(with_pauses(lambda: next_change(changes, state, watch, end), PING)) as coming,
    ):
        async for change in coming:
            if change is None:
                yield COMMENT
                continue
            event = await _encoded(writer, change)
            if event:
                yield event
            if writer.has_ended:
                break
    if not writer.has_ended:
        raise BrokenOff
    yield b"data: [DONE]\n\n"


async def _encoded(writer: ChunkWriter, change: ThreadChange) -> bytes:
    def encode() -> bytes:
        return b"".join(_event(chunk) for chunk in writer.write(change))

    return await apart(encode, change.message, change.pieces)


def _event(chunk: Chunk) -> bytes:
    return b"data: " + to_utf8(chunk) + b"\n\n"


# --- What is streamed -------------------------------------------------------------------------------------------------


async def of_answer(ledger: Ledger, answer: Answer, known: Known | None, refused: frozenset[str]) -> ChatSource:
    """The answer from its beginning, whether it has ended or not."""
    writer = ChunkWriter(answer.run.run_id, known, refused)
    start = Cursor(answer.mark)
    if answer.run.ended_at is None:
        following = ledger.messages.follow(answer.run.thread_id, cursor=start, deltas=True)
        return ChatSource(until_ended(ledger, answer, start, following), writer)
    return ChatSource(with_end(ledger, answer, start, answer.follow(cursor=start)), writer)


async def find_open(ledger: Ledger, thread_id: str) -> list[str]:
    """The runs of the answers of the thread that have not ended; none if the caller has no such thread."""
    list_live = load("chatledger.answers.live:list_live", "a chat of the AI SDK")
    page = await list_live(scope_of(ledger), thread_id, _OPEN, None)
    return [live.run.run_id for live in page.items]


async def find_source(ledger: Ledger, thread_id: str, known: Known | None) -> ChatSource | None:
    """The answer that is being written; else the draft that somebody writes without an agent; None if there is none."""
    for run_id in await find_open(ledger, thread_id):
        return await of_answer(ledger, await ledger.answers.get(run_id), known, frozenset())
    try:
        history = await ledger.messages.history(thread_id, Newest(_MOST))
    except NotFound:
        return None
    if history.draft is None or await _is_abandoned(ledger, history):
        return None
    messages = [*history.messages, history.draft]
    asked = max((at for at, message in enumerate(messages, 1) if message.role == "user"), default=0)
    changes = ledger.messages.follow(thread_id, cursor=history.mark, deltas=True)
    return ChatSource(_behind(messages[asked:], changes), ChunkWriter(None, known))


async def _is_abandoned(ledger: Ledger, history: History) -> bool:
    window = Window.of(scope_of(ledger).tenant, history.thread_id)
    start = read_start(history.mark, window.thread)
    async with aclosing(changes_until_now(scope_of(ledger), window, start, Reported())) as states:
        return any([state.kind == "abandoned" async for state in states])


async def _behind(
    messages: Sequence[ChatMessage], changes: AsyncGenerator[ThreadChange]
) -> AsyncGenerator[ThreadChange]:
    async with aclosing(changes):
        for message in messages:
            yield ThreadChange.model_construct(
                kind="appended",
                cursor=Cursor(""),
                thread_id=message.thread_id or "",
                branch=message.branch or 0,
                seq=message.seq or 0,
                message=message,
            )
        async for change in changes:
            yield change
