"""Query parameters: those of each list, and a refusal of what a route does not have, as of an unknown field."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from chatledger.errors import InvalidArgument
from chatledger.server.requests.json_request import InvalidBody, is_number
from chatledger.server.state import state_of

if TYPE_CHECKING:
    from fastapi._compat import ModelField

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
OfBranch = Annotated[int | None, Query(ge=0, description="The branch; the active one by default.")]
Cursor = Annotated[str | None, Query(description="The `next_cursor` of the page before.")]


async def refuse_unfit(request: Request) -> None:
    """Raises InvalidBody with the parameters that do not fit the route, wherever it stands: one that it does not have,
    since its sender expects that it does something; one that is there twice, since only one of them would count; and a
    text that Pydantic would take for a value which the description of the API does not call by it.
    """
    if not (request.query_params or request.path_params):
        return
    route = request.scope.get("route")
    dependant = route.dependant if isinstance(route, APIRoute) else Dependant()  # the description has no parameters
    mistakes = [
        *_mistakes("query", request.query_params.multi_items(), parameters_of(dependant, "query")),
        *_mistakes("path", list(request.path_params.items()), parameters_of(dependant, "path")),
    ]
    if mistakes:
        raise InvalidBody(mistakes)


def parameters_of(dependant: Dependant, place: Literal["query", "path"]) -> dict[str, ModelField]:
    """The parameters of a route and of what it depends on, by their names."""
    own = dependant.query_params if place == "query" else dependant.path_params
    fields = {field.alias: field for field in own}
    for dependency in dependant.dependencies:
        fields |= parameters_of(dependency, place)
    return fields


def _mistakes(
    place: str, texts: Sequence[tuple[str, str]], declared: Mapping[str, ModelField]
) -> Iterator[dict[str, str]]:
    count = Counter(name for name, _ in texts)
    for name, text in sorted(dict(texts).items()):
        path, field = f"{place}.{name:.100}", declared.get(name)
        if field is None:
            yield {"path": path, "detail": "is no parameter of this request", "kind": "extra_forbidden"}
            continue
        types = set(_types(field.field_info.annotation))
        if count[name] > 1 and list not in types:
            yield {"path": path, "detail": f"is there {count[name]} times, and has one value", "kind": "repeated"}
        elif form := next((form for kind, form in _FORMS.items() if kind in types and not form.fits(text)), None):
            yield {"path": path, "detail": form.detail, "kind": form.kind}


def _types(annotation: Any) -> Iterator[Any]:
    """The types of a parameter: those of a union by themselves, and `list` for a list of whatever."""
    origin = get_origin(annotation)
    if origin in (Annotated, Union, UnionType):
        for part in get_args(annotation)[: 1 if origin is Annotated else None]:
            yield from _types(part)
    else:
        yield origin or annotation


@dataclass(frozen=True, slots=True)
class _Form:
    """How a text writes a value of a type."""

    fits: Callable[[str], object]
    detail: str
    kind: str


_FORMS = {
    bool: _Form({"true", "false"}.__contains__, "must be true or false", "bool_parsing"),
    int: _Form(re.compile("-?[0-9]+").fullmatch, "must be a whole number", "int_parsing"),
    # Pydantic takes a number for the seconds since 1970, or for milliseconds if it is large.
    datetime: _Form(
        lambda text: not is_number(text),
        "must be a time such as 2026-01-31T08:00:00Z, and not a number",
        "datetime_parsing",
    ),
}
