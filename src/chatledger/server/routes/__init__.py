"""The routes of the API. Each calls the caller's view of the ledger, and holds no rule of its own."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from fastapi.security import HTTPBearer

from chatledger.server.routes import events, health, messages, threads

api = APIRouter()
api.include_router(health.router)
v1 = APIRouter(prefix="/v1", dependencies=[Depends(HTTPBearer(auto_error=False, description="A token of the server."))])
for _module in (threads, messages, events):
    v1.include_router(_module.router)
api.include_router(v1)
