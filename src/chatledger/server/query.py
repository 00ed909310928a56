"""Query parameters: one that a route does not have is an error, as an unknown field of a body is."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from chatledger.server.json_request import InvalidBody


async def refuse_unknown(request: Request) -> None:
    """Raises InvalidBody with the parameters that the route does not have. Their sender expects that they do
    something.
    """
    route = request.scope.get("route")
    if request.query_params and isinstance(route, APIRoute):
        unknown = sorted(set(request.query_params).difference(names_of(route.dependant)))
        if unknown:
            detail = "is no parameter of this request"
            raise InvalidBody(
                [{"path": f"query.{name:.100}", "detail": detail, "kind": "extra_forbidden"} for name in unknown]
            )


def names_of(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        yield field.alias
    for one in dependant.dependencies:
        yield from names_of(one)
