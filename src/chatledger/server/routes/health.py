"""Whether the server works, for a load balancer. It asks for no token."""

from __future__ import annotations

from chatledger.errors import StorageError
from chatledger.server.json_route import json_router
from chatledger.server.state import Shared

router = json_router()


@router.get("/healthz", tags=["health"])
async def healthz(state: Shared) -> dict[str, float]:
    """Check that the database answers. Returns the seconds that its answer took, at most a second ago; 503 if there was
    none, and while the server stops. A server without the keys of an encrypted database is not well.
    """
    if state.ledger is None or state.draining:
        raise StorageError("the server is starting or stopping", retryable=True)
    await state.require_keys(state.ledger)
    return {"seconds": await state.ping(state.ledger)}
