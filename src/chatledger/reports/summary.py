"""The count, mean, lowest and highest of the scores under each key, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import FromClause, Select, func, select

from chatledger.models import FeedbackSummary
from chatledger.storage.databases.scope import Scope
from chatledger.storage.repositories.feedback import ScoreFilter, current_scores
from chatledger.storage.schema.tables import feedback, kept_scores


async def summarize_scores(
    scope: Scope, which: ScoreFilter, since: datetime | None, until: datetime | None, *, events: bool
) -> Sequence[FeedbackSummary]:
    chosen = which.of(scope.tenant)
    columns = ("key", "score", "created_at")
    scores = select(feedback).where(*chosen).subquery() if events else current_scores(*chosen, columns=columns)
    counted = _in_time(scores, since, until)
    if (of_erased := which.of_kept(scope.tenant)) is not None:
        counted = counted.union_all(_in_time(kept_scores, since, until).where(*of_erased))  # type: ignore[assignment]
    statement = _summary(counted.subquery())
    rows = await scope.read(lambda sql: sql.execute(statement).mappings().all())
    return [FeedbackSummary(**row) for row in rows]


def _summary(scores: FromClause) -> Select[Any]:
    return (
        select(
            scores.c.key,
            func.count().label("count"),
            func.avg(scores.c.score).label("mean"),
            func.min(scores.c.score).label("min"),
            func.max(scores.c.score).label("max"),
        )
        .group_by(scores.c.key)
        .order_by(scores.c.key)
    )


def _in_time(scores: FromClause, since: datetime | None, until: datetime | None) -> Select[Any]:
    bounds = []
    if since is not None:
        bounds.append(scores.c.created_at >= since)
    if until is not None:
        bounds.append(scores.c.created_at < until)
    return select(scores.c.key, scores.c.score).where(*bounds)
