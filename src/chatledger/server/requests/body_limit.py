"""Limits on the size of a request's body, which no encoding may hide."""

from __future__ import annotations

import re
import sys

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatledger.server.paths import path_within
from chatledger.server.problems import problem
from chatledger.server.shares import HeldBodies

_LOGIN = 8 * 1024
"""Maximum bytes of what the page sends before it has a token, and to give it back."""
_FORM = 64 * 1024
"""Maximum bytes of the page's other forms."""

FULL = "the server holds as many bytes of bodies as it may, in all or of one caller; send it again"
_OTHER = 512 * 1024
"""Maximum bytes of a request of the API that holds no message: a run, a score, the fields of a thread."""
UPLOAD = 64 * 1024 * 1024
"""Maximum bytes of an upload. Its route counts what the process holds of it."""
_UPLOADS = re.compile(r"/v1/threads/[^/]+/drafts/upload$")
_MESSAGES = re.compile(r"/v1/(threads/[^/]+/(messages|drafts)|conversations)(/|$)")


class BodyLimit:
    """A request whose body is larger gets 413: before the body is read if its length is announced, else as soon as more
    bytes have come. The forms of the page have lower limits than `size`, that of the API. FastAPI's own limit would
    answer with plain text instead of a problem. A body that does not fit beside those that the process holds gets 503.
    """

    def __init__(self, app: ASGIApp, *, size: int, held: HeldBodies) -> None:
        self._app = app
        self._size = size
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        encoding = headers.get("content-encoding", "").strip()
        if encoding.lower() not in ("", "identity"):
            coded = f"the body has the Content-Encoding {encoding:.100}; send it as it is"
            await problem(415, "EncodedBody", coded, headers={"Accept-Encoding": "identity"})(scope, receive, send)
            return
        path = path_within(scope)
        is_upload = _UPLOADS.match(path) is not None
        most = UPLOAD if is_upload else min(self._size, _most(path))
        detail = f"the body has more than {most:,} bytes"
        announced = headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > most:
            await problem(413, "BodyTooLarge", detail)(scope, receive, send)
            return
        received, held = 0, self._held.begin(scope)

        async def receiving() -> Message:
            nonlocal received
            message = await receive()
            size = len(message.get("body", b""))
            if received + size > most:
                raise HTTPException(413, detail)
            received += size
            if not is_upload and not held.take(size):
                raise HTTPException(503, FULL, {"Retry-After": "1"})
            return message

        try:
            await self._app(scope, receiving, send)
        finally:
            held.close()


def _most(path: str) -> int:
    if path in ("/login", "/logout"):
        return _LOGIN
    if not path.startswith("/v1/"):
        return _FORM
    return sys.maxsize if _MESSAGES.match(path) else _OTHER
