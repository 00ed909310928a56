"""Sums: the usage of runs, and the counts of a ledger."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Query

from chatledger.models import LedgerStats, UsageSummary
from chatledger.server.json_route import json_router
from chatledger.server.requests.bodies import Items, all_items
from chatledger.server.state import OfUser

router = json_router(tags=["usage"])

_BY = "`user`, `agent`, `model`, `day`, `thread`, `status` or `metadata.KEY`. Repeat it for finer groups."
Prices = Annotated[bool, Query(description="Estimate the cost of runs that have none, by the server's price list.")]


@router.get("/usage")
async def sum_usage(
    ledger: OfUser,
    by: Annotated[list[str], Query(description=_BY)] = [],  # noqa: B006 - FastAPI copies it
    thread_id: Annotated[str | None, Query(description="Only runs of this thread.")] = None,
    agent: Annotated[str | None, Query(description="Only runs of this agent.")] = None,
    model: Annotated[str | None, Query(description="Only runs of this model.")] = None,
    since: Annotated[datetime | None, Query(description="Only runs that started from this time on.")] = None,
    until: Annotated[datetime | None, Query(description="Only runs that started before this time.")] = None,
    prices: Prices = False,
) -> Items[UsageSummary]:
    """Total runs, tokens and cost, grouped by `by`. Without `by`, one total."""
    sums = await ledger.runs.usage(
        by,
        thread_id=thread_id,
        agent=agent,
        model=model,
        since=since,
        until=until,
        prices=prices,
    )
    return await all_items(sums)


@router.get("/stats")
async def count_stats(
    ledger: OfUser,
    by: Annotated[Literal["day", "model"] | None, Query(description="Count by day or by model.")] = None,
    since: Annotated[datetime | None, Query(description="Only what happened from this time on.")] = None,
    until: Annotated[datetime | None, Query(description="Only what happened before this time.")] = None,
    prices: Prices = False,
) -> Items[LedgerStats]:
    """Count messages, threads, users, runs and current scores; in all, by day or by model."""
    counts = await ledger.stats(by, since=since, until=until, prices=prices)
    return await all_items(counts)
