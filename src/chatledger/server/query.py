"""Query parameters: those of each list, and a refusal of one that a route does not have, as of an unknown field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from chatledger.errors import InvalidArgument
from chatledger.server.requests.json_request import InvalidBody
from chatledger.server.state import state_of

_USUAL_PAGE = 50


async def _page_size(
    request: Request,
    limit: Annotated[
        int | None,
        Query(description="Maximum number of items, 50 by default and often 200 at most."),
    ] = None,
) -> int:
    """Raises InvalidArgument beyond the largest page."""
    most = state_of(request).limits.page
    if limit is None:
        return min(_USUAL_PAGE, most)
    if not 1 <= limit <= most:
        raise InvalidArgument("limit", f"must be 1 to {most}, not {limit}")
    return limit


Limit = Annotated[int, Depends(_page_size)]
"""The maximum number of items to return: the query parameter `limit`."""
Cursor = Annotated[str | None, Query(description="The `next_cursor` of the page before.")]


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
    for dependency in dependant.dependencies:
        yield from names_of(dependency)
