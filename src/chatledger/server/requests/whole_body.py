"""A body has one length, and an answer that does not wait for all of a body ends its connection."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatledger.server.problems import problem

REST = 16 << 20
"""Most bytes of the rest of a body that are still read, so that a client which sends on gets its answer."""
_SECONDS = 5.0
"""Seconds for which they are read."""


class WholeBody:
    """The middleware around all others. It refuses a body with two lengths, of which a proxy may have believed the
    other one. After an answer that came before the end of the body, for a missing token say, it ends the connection, so
    that the server does not read on what it has refused. First it reads the rest for a while: a connection that ends
    with unread bytes is reset, and then many clients do not see the answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        chunked = "transfer-encoding" in headers
        body = _Body(receive, send, ended=not chunked and headers.get("content-length", "0") == "0")
        if chunked and "content-length" in headers:
            detail = "a request has Content-Length or Transfer-Encoding, and not both"
            await problem(400, "InvalidRequest", detail)(scope, body.receive, body.send)
        else:
            await self._app(scope, body.receive, body.send)


class _Body:
    """The body of one request, and its answer."""

    def __init__(self, receive: Receive, send: Send, *, ended: bool) -> None:
        self._receive, self._send = receive, send
        self._ended = ended

    async def receive(self) -> Message:
        message = await self._receive()
        self._ended = not message.get("more_body", False)  # so has that of a client that is gone
        return message

    async def send(self, message: Message) -> None:
        if self._ended:
            await self._send(message)
        elif message["type"] == "http.response.start":
            MutableHeaders(scope=message)["Connection"] = "close"
            await self._send(message)
        elif message.get("more_body", False):
            await self._send(message)
        else:
            await self._send({**message, "more_body": True})
            await self._read_on()
            await self._send({"type": "http.response.body", "body": b""})

    async def _read_on(self) -> None:
        read = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS):
                while not self._ended and read <= REST:
                    read += len((await self.receive()).get("body", b""))
