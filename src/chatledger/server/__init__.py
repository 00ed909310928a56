"""A server for the conversations of a ledger: an HTTP API, the OpenAI Conversations API, and a page for people.

    from chatledger.server import Caller, create_app

    async def authenticate(request: Request) -> Caller | None:
        user = await my_session(request)
        return None if user is None else Caller(user_id=user.id)

    app = create_app(Ledger.open("postgresql://app@db/chat", notify=True), authenticate=authenticate)

`chatledger serve` runs it alone. It needs the extra `server`.
"""

from __future__ import annotations

from chatledger.formats.agent_service import AgentInfo, ServiceMetadata
from chatledger.server.app import create_app
from chatledger.server.callers.access import Authenticate, Caller, TokenScope
from chatledger.server.callers.chosen_ids import IdsBy
from chatledger.server.callers.sessions import SessionFile
from chatledger.server.callers.token_entries import TokenEntry
from chatledger.server.callers.tokens import TokenFile
from chatledger.server.client_limits import ServerLimits

__all__ = [
    "AgentInfo",
    "Authenticate",
    "Caller",
    "IdsBy",
    "ServerLimits",
    "ServiceMetadata",
    "SessionFile",
    "TokenEntry",
    "TokenFile",
    "TokenScope",
    "create_app",
]
