"""Who the caller is."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import BaseModel, Field

from chatledger.server.callers.access import TokenScope
from chatledger.server.json_route import json_router
from chatledger.server.state import Who

router = json_router(tags=["caller"])


class Me(BaseModel):
    """Who sends the request."""

    tenant: str = Field(description="The tenant whose rows the requests read and write.")
    user_id: str | None = Field(None, description="The user; null for the administrator and an operator.")
    admin: bool = Field(description="Whether it is the tenant's administrator, who sees all threads.")
    scope: TokenScope = Field(description="What the caller may do: `read`, `ask`, `write` or `operator`.")


@router.get("/me")
async def get_me(caller: Who) -> Me:
    """Read whose token the request has."""
    return Me(**asdict(caller))
