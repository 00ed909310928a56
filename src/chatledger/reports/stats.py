"""The counts of a ledger: messages, threads, users, runs and scores, in all, by day or by model.

Three statements in one snapshot, one for each of the tables messages, runs and feedback: a join of them would count a
run once for each of its messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_, func, null, select

from chatledger.arguments import STR_OR_NONE, require
from chatledger.errors import InvalidArgument
from chatledger.models import LedgerStats, RunPrices
from chatledger.reports.prices import read_prices
from chatledger.reports.usage import (
    UsageFilter,
    day_of,
    in_time,
    order,
    read_usage,
    readable,
    summarize_usage,
    thread_of,
    to_day,
)
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.repositories.feedback import current_scores
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.owned import owned
from chatledger.storage.schema.tables import feedback, messages, runs, threads

_NOTHING = {"messages": 0, "threads": 0, "users": 0, "scores": 0, "runs": 0, "runs_without_cost": 0}
_OF_RUNS = ("runs", "input_tokens", "output_tokens", "total_tokens", "cost", "runs_without_cost", "estimated_cost")


@dataclass(frozen=True)
class StatsFilter:
    """What to count, and by what: "day", "model" or None."""

    by: str | None
    since: datetime | None
    until: datetime | None


async def read_stats(
    scope: Scope, by: str | None, moments: tuple[datetime | None, datetime | None], prices: bool | RunPrices
) -> Sequence[LedgerStats]:
    """Raises InvalidArgument, DamagedCell and MissingExtra."""
    which = StatsFilter(by, *moments)
    require(STR_OR_NONE, by=which.by)
    if which.by not in (None, "day", "model"):
        raise InvalidArgument("by", "must be 'day', 'model' or None")
    tenant, list_price = scope.tenant, read_prices(prices)
    groups = () if which.by is None else (which.by,)
    chosen = UsageFilter(since=which.since, until=which.until)

    def work(sql: ReadSql) -> tuple[Any, Any, Any]:
        used = read_usage(sql, tenant, chosen, groups, priced=list_price is not None)
        return _messages(sql, tenant, which), used, _scores(sql, tenant, which)

    written, used, scored = await scope.read(work, snapshot=True)
    counts_of: dict[Any, dict[str, Any]] = {}
    for row in (*written, *scored):
        counts = {name: count for name, count in row.items() if name != "value"}
        counts_of.setdefault(_value(which.by, row["value"]), {}).update(counts)
    for usage in await summarize_usage(used, tenant, groups, list_price):
        value = None if which.by is None else getattr(usage, which.by)
        counts_of.setdefault(value, {}).update({name: getattr(usage, name) for name in _OF_RUNS})
    return [_stats(which.by, value, counts_of[value]) for value in sorted(counts_of, key=order)]


def _messages(sql: ReadSql, tenant: Tenant, which: StatsFilter) -> Sequence[Any]:
    source: Any = messages.join(threads, thread_of(messages))
    if which.by == "model":
        own_run = and_(runs.c.tenant_id == messages.c.tenant_id, runs.c.run_id == messages.c.run_id)
        source = source.outerjoin(runs, own_run)
    value = _group(sql, which, messages.c.created_at)
    here = (owned(messages, tenant), *in_time(messages.c.created_at, which.since, which.until))
    rows = select(value, messages.c.thread_id, threads.c.user_id).select_from(source).where(*here).subquery("rows")
    counts = (
        func.count().label("messages"),
        func.count(rows.c.thread_id.distinct()).label("threads"),
        func.count(rows.c.user_id.distinct()).label("users"),
    )
    return _by_value(sql, which, rows, counts)


def _scores(sql: ReadSql, tenant: Tenant, which: StatsFilter) -> Sequence[Any]:
    scores = current_scores(owned(feedback, tenant), columns=("run_id", "created_at"))
    own_run = and_(runs.c.tenant_id == tenant.name, runs.c.run_id == scores.c.run_id)
    source = scores.join(runs, own_run) if which.by == "model" else scores
    here = in_time(scores.c.created_at, which.since, which.until)
    scored = select(_group(sql, which, scores.c.created_at)).select_from(source).where(*here).subquery("scored")
    return _by_value(sql, which, scored, (func.count().label("scores"),))


def _group(sql: ReadSql, which: StatsFilter, moment: ColumnElement[Any]) -> ColumnElement[Any]:
    by: Any = {"day": day_of(sql.dialect, moment), "model": runs.c.model}.get(which.by or "", null())
    return by.label("value")  # type: ignore[no-any-return]


def _by_value(sql: ReadSql, which: StatsFilter, rows: FromClause, counts: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    if which.by is None:
        counted = select(null().label("value"), *counts).select_from(rows)
    else:
        counted = select(rows.c.value, *counts).group_by(rows.c.value)
    return [dict(row) for row in sql.execute(counted).mappings()]


def _value(by: str | None, value: Any) -> Any:
    return to_day(value) if by == "day" else readable(runs, "model", value)


def _stats(by: str | None, value: Any, counts: Mapping[str, Any]) -> LedgerStats:
    return LedgerStats(**{**_NOTHING, **counts}, **({} if by is None else {by: value}))
