"""Usage and scores over time, as plots with their tables."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, time, timedelta
from statistics import mean
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from chatledger.ledger import Ledger
from chatledger.server.page.html import html_router, page
from chatledger.server.page.plots import Plot
from chatledger.server.state import Mine

router = html_router()
_SCORES = 5_000
"""The most scores that the page reads, the newest first."""
_KEYS = 6
"""The most keys with a plot of their own."""


@router.get("/usage")
async def show_usage(request: Request, ledger: Mine, days: Annotated[int, Query(ge=1, le=366)] = 30) -> Response:
    today = datetime.now(UTC).date()
    span = [today - timedelta(days=back) for back in reversed(range(days))]
    since = datetime.combine(span[0], time.min, UTC)
    by_day = {sums.day: sums for sums in await ledger.runs.usage("day", since=since)}
    models = await ledger.runs.usage("model", since=since)

    def daily(name: str) -> list[float | None]:
        return [None if day not in by_day else getattr(by_day[day], name) for day in span]

    cost = [None if amount is None else float(amount) for amount in daily("cost")]
    plots = [
        Plot.bars("Tokens", span, {"input": daily("input_tokens"), "output": daily("output_tokens")}),
        Plot.bars("Runs", span, {"runs": daily("runs"), "of these, failed": daily("failed")}, stacked=False),
        Plot.bars("Cost", span, {"cost": cost}),
    ]
    scores, complete = await _scores(ledger, since)
    for key in sorted(scores)[:_KEYS]:
        means = [scores[key].get(day) for day in span]
        plots.append(Plot.line(f"Score: {key}", span, {"mean": means}))
    shown = [plot for plot in plots if not plot.is_empty]
    return await page(
        request,
        "usage.html",
        plots=shown,
        models=models,
        days=days,
        complete=complete,
        most=_SCORES,
        keys=len(scores),
        most_keys=_KEYS,
    )


async def _scores(ledger: Ledger, since: datetime) -> tuple[dict[str, dict[date, float]], bool]:
    """The mean of the current scores by key and day, and whether all of them were read."""
    read: defaultdict[str, defaultdict[date, list[float]]] = defaultdict(lambda: defaultdict(list))
    cursor, count = None, 0
    while True:
        page = await ledger.feedback.list(limit=1_000, cursor=cursor)
        recent = [score for score in page if score.created_at is not None and score.created_at >= since]
        for score in recent:
            assert score.created_at is not None
            read[score.key][score.created_at.date()].append(score.score)
        count, cursor = count + len(page), page.next_cursor
        if cursor is None or len(recent) < len(page) or count >= _SCORES:
            break
    # Exact: a sum of floats may be infinite.
    means = {key: {day: mean(all_) for day, all_ in days.items()} for key, days in read.items()}
    return means, cursor is None or count < _SCORES
