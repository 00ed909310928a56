"""The routes of the API. Each calls the caller's view of the ledger, and holds no rule of its own."""

from __future__ import annotations

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer

from chatledger.server.ai_sdk import routes as ai_sdk
from chatledger.server.conversations import routes as conversations
from chatledger.server.query import refuse_unfit
from chatledger.server.routes import (
    answers,
    branches,
    drafts,
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
    uploads,
    usage,
)

_V1 = (
    me,
    threads,
    messages,
    drafts,
    uploads,
    prompts,
    branches,
    events,
    search,
    runs,
    answers,
    feedback,
    usage,
    metrics,
    conversations,
    ai_sdk,
)


def add_to(app: FastAPI) -> None:
    """Each router goes into the application itself, since every router within a router costs each request a search."""
    token = Depends(HTTPBearer(auto_error=False, description="A token of the server."))
    app.include_router(health.router)
    for module in _V1:
        app.include_router(module.router, prefix="/v1", dependencies=[token, Depends(refuse_unfit)])
