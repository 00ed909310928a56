"""Routes that read bodies with json_request and write answers with json_response, where FastAPI would use Pydantic."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from chatledger.server.answers.headers import is_known
from chatledger.server.answers.json_response import respond
from chatledger.server.requests.json_request import JsonRequest


class JsonRoute(APIRoute):
    """A route that takes and returns every JSON value that the ledger stores, and no other."""

    def __init__(
        self, path: str, endpoint: Callable[..., Any], *, status_code: int | None = None, **options: Any
    ) -> None:
        if inspect.iscoroutinefunction(endpoint):  # a stream of events is a generator
            endpoint = _answering(endpoint, status_code or 200)
        super().__init__(path, endpoint, status_code=status_code, **options)

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def handling(request: Request) -> Response:
            response = await handle(JsonRequest(request.scope, request.receive, self.body_field))
            if "location" in response.headers:  # an endpoint does not know where the application is mounted
                response.headers["Location"] = quote(request.scope.get("root_path", "")) + response.headers["Location"]
            if request.method == "GET" and is_known(request.headers.get("if-none-match"), response.headers.get("etag")):
                return Response(status_code=304, headers={"ETag": response.headers["ETag"]})
            return response

        return handling


def json_router(**options: Any) -> APIRouter:
    return APIRouter(route_class=JsonRoute, **options)


def _answering(endpoint: Callable[..., Awaitable[Any]], status: int) -> Callable[..., Awaitable[Response]]:
    """The endpoint with its answer as a response, and with what it has set on the response that FastAPI gives it."""

    @wraps(endpoint)
    async def answer(**arguments: Any) -> Response:
        returned = await endpoint(**arguments)
        if isinstance(returned, Response):
            return returned
        begun = next((argument for argument in arguments.values() if isinstance(argument, Response)), None)
        response = await respond(returned, (begun and begun.status_code) or status)
        response.headers.update({} if begun is None else begun.headers)
        return response

    return answer
