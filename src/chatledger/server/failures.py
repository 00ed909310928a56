"""What every response has, also that of a request at which the server fails."""

from __future__ import annotations

import logging

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatledger.server.problems import problem

_log = logging.getLogger("chatledger.server")
_PROTECTION = {
    "Cache-Control": "no-store",  # the cookie of the page reads conversations too
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of each response that does not set them itself."""


class Failures:
    """An error that nothing else handles goes to the log, and the request gets 500. It is not raised again: the server
    would then close the connection, which its headers keep open.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _PROTECTION.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception:
            if begun:
                raise  # only a closed connection tells the client that the response is cut off
            _log.exception("%s %s failed", scope["method"], scope["path"])
            failed = problem(500, "ServerError", "the server failed; its log says why")
            await failed(scope, receive, sending)
