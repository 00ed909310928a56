"""A limit on the size of a request's body."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatledger.server.problems import problem


class BodyLimit:
    """A request whose body is larger gets 413: before the body is read if its length is announced, else as soon as more
    bytes have come. FastAPI's own limit would answer with plain text instead of a problem.
    """

    def __init__(self, app: ASGIApp, *, size: int) -> None:
        self._app = app
        self._size = size
        self._detail = f"the body has more than {size:,} bytes"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > self._size:
            await problem(413, "BodyTooLarge", self._detail)(scope, receive, send)
            return
        received = 0

        async def receiving() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._size:
                raise HTTPException(413, self._detail)
            return message

        await self._app(scope, receiving, send)
