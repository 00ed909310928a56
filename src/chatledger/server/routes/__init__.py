"""The routes of the API. Each calls the caller's view of the ledger, and holds no rule of its own."""

from __future__ import annotations

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from chatledger.server.conversations import routes as conversations
from chatledger.server.query import refuse_unknown
from chatledger.server.routes import (
    branches,
    events,
    feedback,
    health,
    me,
    messages,
    metrics,
    prompts,
    runs,
    search,
    threads,
    usage,
)

_V1 = (me, threads, messages, prompts, branches, events, search, runs, feedback, usage, metrics, conversations)


def add_to(app: FastAPI) -> None:
    """Each router goes into the application itself, since every router within a router costs each request a search."""
    token = Depends(HTTPBearer(auto_error=False, description="A token of the server."))
    app.include_router(health.router)
    for module in _V1:
        # OpenAI's client may send what this release does not know.
        known = [] if module is conversations else [Depends(refuse_unknown)]
        app.include_router(module.router, prefix="/v1", dependencies=[token, *known])


def methods_of(path: str) -> list[str]:
    """The methods that a path of the API has. A router names those of the first route with that path only."""
    routes = [("", route) for route in health.router.routes]
    routes += [("/v1", route) for module in _V1 for route in module.router.routes]
    return sorted(
        method
        for prefix, route in routes
        if isinstance(route, APIRoute) and path.startswith(prefix) and route.path_regex.match(path.removeprefix(prefix))
        for method in route.methods or ()
    )
