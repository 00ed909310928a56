"""Server-sent events as bytes, encoded once for all streams that send them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from weakref import WeakValueDictionary

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from chatledger.models import ChatMessage, Piece, ThreadChange
from chatledger.models.weight import apart
from chatledger.server.answers.json_response import to_json, to_utf8
from chatledger.server.methods import ONLY_HEAD

PING = 15.0
"""Seconds after which an idle stream sends a comment, so that nobody between takes it for dead."""
COMMENT = b": ping\n\n"


class EventStream(StreamingResponse):
    """A response of events. Whatever ends it closes the generator too, which ends what it waits for."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # a proxy must not hold events back
        self._events = events
        super().__init__(events, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if ONLY_HEAD in scope.get("state", {}):
            answer = Response(headers=self.headers)
            del answer.headers["Content-Length"]  # that of GET has none
            await answer(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._events):
            await super().stream_response(send)


class EncodedEvent:
    """A change as an event, for as long as a stream sends it."""

    def __init__(self, change: ThreadChange, *, deltas: bool) -> None:
        self.change = change
        self._write = (lambda: to_utf8(_in_short(change))) if deltas else (lambda: to_json(change).encode())
        self._encoding = asyncio.create_task(self._encode())

    async def read(self) -> bytes:
        return await asyncio.shield(self._encoding)

    async def _encode(self) -> bytes:
        change = self.change
        data = await apart(self._write, change.message, change.pieces)
        return event_of(data, event=change.kind, id=change.cursor)


def _in_short(change: ThreadChange) -> dict[str, Any]:
    """The filled fields that a client needs beside the name and the id of the event."""
    fields: dict[str, Any] = {"seq": change.seq}
    if change.kind == "activated":
        fields["branch"] = change.branch
    if change.kind in ("retracted", "abandoned"):
        fields["message_id"] = change.message_id
    if change.kind == "run":
        fields |= {"run_id": change.run_id, "status": change.status}
        fields |= {} if change.waiting is None else {"waiting": change.waiting}
    if change.message is not None:
        fields["message"] = change.message if change.pieces is None else _filled(change.message)
    if change.pieces is not None:
        fields["pieces"] = [_filled(piece) for piece in change.pieces]
    return fields


def _filled(model: Piece | ChatMessage) -> dict[str, Any]:
    return {name: value for name, value in model if value not in (None, "")}


class EncodedOnce:
    """The events that streams are sending. Streams that read together have the same object of a change."""

    def __init__(self) -> None:
        self._sent: WeakValueDictionary[int, EncodedEvent] = WeakValueDictionary()

    def of(self, change: ThreadChange, *, deltas: bool) -> EncodedEvent:
        """Streams with deltas and without do not read together."""
        event = self._sent.get(id(change))
        if event is None:  # the entry holds its change, so that no other object has the number
            event = self._sent[id(change)] = EncodedEvent(change, deltas=deltas)
        return event


def event_of(data: bytes, **fields: str) -> bytes:
    """The event with these fields; `data` is JSON, which has no lines."""
    return "".join(f"{name}: {value}\n" for name, value in fields.items()).encode() + b"data: " + data + b"\n\n"
