"""The methods of a path: HEAD is GET without its body, and a wrong method is told the others."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.routing import Match, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ALL = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
ONLY_HEAD = "only_head"
"""In the state of a request that asks for the headers alone. A stream of events then has none to wait for."""


class Methods:
    """The middleware before the router, which names in `Allow` the methods of the first route with a path only."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 405:
                    MutableHeaders(scope=message)["Allow"] = ", ".join(_methods_of(scope))
                await send(message)
            elif not head:
                await send(message)
            elif not message.get("more_body", False):
                await send({"type": "http.response.body", "body": b""})

        state = {**scope.get("state", {}), ONLY_HEAD: True}
        await self._app({**scope, "method": "GET", "state": state} if head else scope, receive, sending)


def _methods_of(scope: Scope) -> list[str]:
    router: Router = scope["app"].router

    def has(method: str) -> bool:
        asked = {**scope, "method": "GET" if method == "HEAD" else method}
        return any(route.matches(asked)[0] is Match.FULL for route in router.routes)

    return [method for method in _ALL if has(method)]
