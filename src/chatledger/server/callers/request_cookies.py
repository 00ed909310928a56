"""The cookies of a request, read in time by their length.

Starlette reads them with Python's `http.cookies`, which before 3.11.10 and 3.12.6 takes time by the square of the
length of a quoted value with backslashes. FastAPI reads them for every route, also where nobody asks for one.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

_ESCAPE = re.compile(r"\\(?:([0-3][0-7]{2})|(.))", re.DOTALL)


class PlainRequest(Request):
    """A request that reads its cookies itself."""

    @property
    def cookies(self) -> dict[str, str]:
        if not hasattr(self, "_cookies"):
            self._cookies = read_cookies(self.headers.getlist("cookie"))
        return self._cookies


class PlainRoute(APIRoute):
    """A route that gets such a request."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def handling(request: Request) -> Response:
            return await handle(PlainRequest(request.scope, request.receive))

        return handling


def read_cookies(lines: Sequence[str]) -> dict[str, str]:
    """The cookies of these headers by their names. The last one of a name counts, as with Starlette."""
    pairs = [pair.partition("=") for line in lines for pair in line.split(";")]
    return {name.strip(): _unquoted(value.strip()) for name, equals, value in pairs if equals}


def _unquoted(value: str) -> str:
    if len(value) < 2 or not value[0] == value[-1] == '"':
        return value
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 8)) if escape[1] else escape[2], value[1:-1])
