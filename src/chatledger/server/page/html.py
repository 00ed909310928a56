"""Responses in HTML: the templates, the headers that keep a page from harm, and errors as pages."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from chatledger.errors import ChatLedgerError
from chatledger.models.json import dumps
from chatledger.models.weight import in_thread
from chatledger.server.callers.request_cookies import PlainRoute
from chatledger.server.page.static import VERSION
from chatledger.server.problems import problem_of
from chatledger.server.state import caller_of, state_of

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: with it, browsers send forms with `Origin: null`, which the gate refuses.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_HALVES = re.compile("[\ud800-\udfff]")


def link(root: str, *segments: object, **query: object) -> str:
    """A path of this server, for an application that is mounted at `root`. An id may hold any character."""
    path = root + "/" + "/".join(quote(encodable(str(segment)), safe="") for segment in segments)
    parameters = {name: encodable(str(value)) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(parameters)}" if parameters else path


def encodable(text: str) -> str:
    """The text with a replacement character for each half of a surrogate pair, which UTF-8 does not have."""
    return _HALVES.sub("\ufffd", text)


def moment(when: datetime | None) -> str:
    return "" if when is None else when.strftime("%Y-%m-%d %H:%M")


def number(value: object) -> str:
    """A number for people: thousands apart, and no more digits than one can read."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def pretty(value: Any) -> str:
    """The value as indented JSON; compact where Python cannot indent it."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return dumps(value)


templates = Environment(
    loader=PackageLoader("chatledger.server.page"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.filters |= {"moment": moment, "number": number, "json": pretty}


def render(name: str, **context: Any) -> str:
    return encodable(templates.get_template(name).render(context))


async def page(
    request: Request, name: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **context: Any
) -> HTMLResponse:
    """The page of a template. A thread renders it, because a long conversation takes more than a moment."""
    root = request.scope.get("root_path", "")
    caller = getattr(request.state, "caller", None)
    shared = {
        "url": partial(link, root),
        "version": VERSION,
        "caller": caller,
        "may_ask": caller is not None and caller.may("ask"),
        "can_log_out": state_of(request).tokens is not None,
        "query": "",
        "in_file": False,
    }
    text = await in_thread(lambda: render(name, **{**shared, **context}))
    return HTMLResponse(text, status, {**HEADERS, **(headers or {})})


def user_of(request: Request) -> str | None:
    """The user who looks at the page; None for the administrator."""
    return caller_of(request).user_id


class HtmlRoute(PlainRoute):
    """A route whose errors are pages too."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def handling(request: Request) -> Response:
            try:
                return await handle(request)
            except ChatLedgerError as error:
                known = problem_of(error)
                after = {name: known.headers[name] for name in ("Retry-After",) if name in known.headers}
                return await _error(request, known.status_code, known.problem["title"], known.problem["detail"], after)
            except RequestValidationError as error:
                detail = "; ".join(f"{mistake['loc'][-1]}: {mistake['msg']}" for mistake in error.errors())
                return await _error(request, 400, "The address of this page is wrong", detail, {})
            except HTTPException as error:
                return await _http_error(request, error)

        return handling

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A method that the route does not have never comes to its handler."""
        try:
            await super().handle(scope, receive, send)
        except HTTPException as error:
            response = await _http_error(Request(scope, receive), error)
            await response(scope, receive, send)


async def _http_error(request: Request, error: HTTPException) -> Response:
    title = HTTPStatus(error.status_code).phrase.capitalize()
    return await _error(request, error.status_code, title, str(error.detail), error.headers or {})


async def _error(request: Request, status: int, title: str, detail: str, headers: Mapping[str, str]) -> Response:
    return await page(request, "error.html", status=status, headers=headers, title=title, detail=detail)


def html_router() -> APIRouter:
    return APIRouter(route_class=HtmlRoute)
