"""The counters of the server, for whoever runs it."""

from __future__ import annotations

from chatledger.models import Metrics
from chatledger.server.json_route import json_router
from chatledger.server.state import Operated

router = json_router(tags=["health"])


@router.get("/metrics")
async def get_metrics(ledger: Operated) -> Metrics:
    """Read the counters of this process since it started, over all tenants. Only a token of scope `operator` may, and
    it may read nothing else.
    """
    return ledger.metrics()
