"""The routes of the API. Each calls the caller's view of the ledger, and holds no rule of its own."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from fastapi.security import HTTPBearer

from chatledger.server.routes import branches, events, feedback, health, me, messages, runs, search, threads, usage

api = APIRouter()
api.include_router(health.router)
v1 = APIRouter(prefix="/v1", dependencies=[Depends(HTTPBearer(auto_error=False, description="A token of the server."))])
for _module in (me, threads, messages, branches, events, search, runs, feedback, usage):
    v1.include_router(_module.router)
api.include_router(v1)
