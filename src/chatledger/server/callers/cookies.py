"""The cookie of the page's login: its name, and where it may be sent.

Over TLS its name begins with `__Host-`, so that no other host of the domain, and no page without TLS, can set it. Such
a cookie belongs to the whole host, so the path of a mounted server stands in the name. The loopback has no TLS.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from starlette.requests import Request

from chatledger.server.callers.access import LOOPBACK, without_port
from chatledger.server.callers.request_cookies import read_cookies


class Cookie(NamedTuple):
    name: str
    path: str
    secure: bool


def cookie_of(request: Request) -> Cookie | None:
    """The cookie of the server that the request is for; None where nothing protects a cookie on its way."""
    root = request.scope.get("root_path", "")
    name = "chatledger" + (f"-{quote(root[1:], safe='')}" if root else "")
    if request.url.scheme == "https":
        return Cookie(f"__Host-{name}", "/", secure=True)
    if without_port(request.headers.get("host", "")) in LOOPBACK:
        return Cookie(name, root or "/", secure=False)
    return None


def secret_of(request: Request) -> str | None:
    """The secret of the session that the browser sends."""
    cookie = cookie_of(request)
    return None if cookie is None else read_cookies(request.headers.getlist("cookie")).get(cookie.name)
