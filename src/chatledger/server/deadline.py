"""A time limit for each request, until its response begins."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatledger.server.problems import problem


class Deadline:
    """A request that has no response in time gets 503. A write that it had begun may be stored or not, so the client
    sends the same request again with the same Idempotency-Key.
    """

    def __init__(self, app: ASGIApp, *, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            async with asyncio.timeout(self._seconds) as limit:

                async def sending(message: Message) -> None:
                    limit.reschedule(None)  # the response has begun, and a stream may take as long as it likes
                    await send(message)

                await self._app(scope, receive, sending)
        except TimeoutError:
            if not limit.expired():
                raise
            detail = f"no answer within {self._seconds:g} seconds; a write may be stored or not: send it again"
            await problem(503, "Timeout", detail, headers={"Retry-After": "1"})(scope, receive, send)
