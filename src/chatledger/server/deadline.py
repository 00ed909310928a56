"""Time limits for each request: until its response begins, and for each piece of the response that a client takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatledger.server.problems import problem

PIECE = 64 * 1024
"""Bytes that the server gives to a connection at once. The next piece waits until the client has taken this one, so a
connection holds little of a response that nobody reads.
"""

_LIMIT = "limit"


class Deadline:
    """A request that has no response in time gets 503. A write that it had begun may be stored or not, so the client
    sends the same request again with the same Idempotency-Key. A client that takes nothing of its response for as long
    is cut off, so that a stream that nobody reads does not stay open.
    """

    def __init__(self, app: ASGIApp, *, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun = False
        clock = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(self._seconds) as limit:
                scope.setdefault("state", {})[_LIMIT] = limit

                async def sending(message: Message) -> None:
                    nonlocal begun
                    if limit.expired():
                        raise TimeoutError  # the application went on although its time is over
                    begun = True
                    for piece in _pieces(message):
                        limit.reschedule(clock() + self._seconds)
                        await send(piece)
                    limit.reschedule(None)  # the next piece of a stream may take as long as it likes

                await self._app(scope, receive, sending)
        except TimeoutError:
            if not limit.expired():
                raise
            if not begun:
                detail = f"no answer within {self._seconds:g} seconds; a write may be stored or not: send it again"
                await problem(503, "Timeout", detail, headers={"Retry-After": "1"})(scope, receive, send)


def take_time(request: Request) -> None:
    """Let the answer begin whenever it likes: the route has limits of its own."""
    limit: asyncio.Timeout | None = getattr(request.state, _LIMIT, None)
    if limit is not None:
        limit.reschedule(None)


def _pieces(message: Message) -> Iterator[Message]:
    body = message.get("body", b"")
    last = max(len(body) - 1, 0) // PIECE * PIECE
    for start in range(0, last, PIECE):
        yield {"type": message["type"], "body": body[start : start + PIECE], "more_body": True}
    yield {**message, "body": body[last:]} if last else message
