"""The gate of a server without tokens: only this machine is served, and no proxy of it.

Without tokens, whoever sends a request is the administrator, because only the owner of the machine reaches its
loopback. A proxy or a tunnel that names the loopback as the host would let everybody be the administrator.
"""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from chatledger.server.problems import problem

_OF_PROXIES = frozenset({"forwarded", "via", "x-real-ip"})


class LocalOnly:
    """The middleware that refuses a request of another machine, and one that a proxy has passed on. `socket` tells
    that the server listens on a socket in the file system, whose file mode keeps others out.
    """

    def __init__(self, app: ASGIApp, *, socket: bool = False) -> None:
        self._app = app
        self._socket = socket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = self._refusal(scope) if scope["type"] in {"http", "websocket"} else None
        if reason is None:
            await self._app(scope, receive, send)
            return
        detail = f"{reason}, and without --tokens only this machine is served; start the server with --tokens FILE"
        await problem(421, "NotLocal", detail)(scope, receive, send)

    def _refusal(self, scope: Scope) -> str | None:
        for name in Headers(scope=scope):
            if name in _OF_PROXIES or name.startswith("x-forwarded-"):
                return f"a proxy passed this request on (it has the header {name})"
        if self._socket or _is_loopback(scope.get("client")):
            return None
        return "this request comes from another machine"


def _is_loopback(peer: tuple[str, int] | None) -> bool:
    try:
        address = ipaddress.ip_address(peer[0] if peer else "")
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
