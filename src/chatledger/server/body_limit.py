"""Limits on the size of a request's body."""

from __future__ import annotations

import re
import sys

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatledger.server.paths import path_within
from chatledger.server.problems import problem

_LOGIN = 8 * 1024
"""Maximum bytes of what the page sends before it has a token, and to give it back."""
_FORM = 64 * 1024
"""Maximum bytes of the page's other forms."""

_OTHER = 512 * 1024
"""Maximum bytes of a request of the API that holds no message: a run, a score, the fields of a thread."""
_MESSAGES = re.compile(r"/v1/(threads/[^/]+/messages|conversations)(/|$)")


class BodyLimit:
    """A request whose body is larger gets 413: before the body is read if its length is announced, else as soon as more
    bytes have come. The forms of the page have lower limits than `size`, that of the API. FastAPI's own limit would
    answer with plain text instead of a problem.
    """

    def __init__(self, app: ASGIApp, *, size: int) -> None:
        self._app = app
        self._size = size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = min(self._size, _most(path_within(scope)))
        detail = f"the body has more than {most:,} bytes"
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > most:
            await problem(413, "BodyTooLarge", detail)(scope, receive, send)
            return
        received = 0

        async def receiving() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise HTTPException(413, detail)
            return message

        await self._app(scope, receiving, send)


def _most(path: str) -> int:
    if path in ("/login", "/logout"):
        return _LOGIN
    if not path.startswith("/v1/"):
        return _FORM
    return sys.maxsize if _MESSAGES.match(path) else _OTHER
