"""The current scores under one key, compared by model, agent or a key of the runs' metadata.

One statement. It sums the scores of each run, and then the runs of each group with their costs, so that a run with
several scores costs once. A metadata key is JSON text that may be encrypted, so then a row for each run is read and
Python sums the groups. The sums of squares are those of the distances from a number in the middle, the mean of some of
the scores: the squares of the scores themselves would leave no digits for scores that are large and close together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Float,
    FromClause,
    Integer,
    Select,
    Text,
    and_,
    case,
    cast,
    func,
    literal_column,
    null,
    select,
)

from chatledger.arguments import STR, require
from chatledger.errors import InvalidArgument
from chatledger.models import FeedbackComparison
from chatledger.models.json import dumps
from chatledger.models.runs import EXACT
from chatledger.models.weight import in_thread
from chatledger.reports.intervals import student, wilson
from chatledger.reports.usage import (
    in_time,
    is_metadata,
    metadata_value,
    order,
    readable,
    sum_of_costs,
    total_cost,
    with_metadata,
)
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.repositories.feedback import ScoreFilter, current_scores
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.schema.columns import ExactDecimal
from chatledger.storage.schema.tables import feedback, kept_scores, runs

_SUMS = ("count", "score", "distance", "square", "above", "binary")
"""What is summed of the scores of a run, and of a group."""
_SMALLEST = 1e-100
"""Distances up to it have no square."""
_SAMPLE = 1_000
"""The number of scores whose mean is the number in the middle."""


def require_by(by: Any) -> str:
    """Raises InvalidArgument for a word that names no group."""
    require(STR, by=by)
    if by not in ("model", "agent") and not is_metadata(by):
        raise InvalidArgument("by", "must be 'model', 'agent' or 'metadata.KEY'")
    return str(by)


def read_scores(
    sql: ReadSql,
    tenant: Tenant,
    scores: Any,
    key: str,
    by: str,
    moments: tuple[datetime | None, datetime | None],
    of_erased: Sequence[ColumnElement[bool]] | None,
) -> Sequence[Any]:
    """A row for each group, in one statement. With a key of the metadata, a row for each run, and further statements
    read the key. `scores` are the current scores, `of_erased` chooses those of erased threads that count as well.
    """
    some = select(feedback.c.score).where(feedback.c.tenant_id == tenant.name, feedback.c.key == key).limit(_SAMPLE)
    centre = select(func.avg(some.subquery("some").c.score))
    own = [scores.c.run_id, *_sums_of(scores.c.score, centre.scalar_subquery())]
    each = select(*own).where(*in_time(scores.c.created_at, *moments)).group_by(scores.c.run_id).subquery("each")
    tokens = func.coalesce(
        cast(runs.c.total_tokens, Float), cast(runs.c.input_tokens, Float) + cast(runs.c.output_tokens, Float)
    )
    of_run = [runs.c.cost, tokens.label("tokens")]
    joined = each.join(runs, and_(runs.c.tenant_id == tenant.name, runs.c.run_id == each.c.run_id))
    if is_metadata(by):
        counted = literal_column("1", Integer).label("runs")
        statement = select(runs.c.run_id, counted, *of_run, *_columns(each)).select_from(joined)
        return with_metadata(sql, tenant, sql.execute(statement).mappings().all(), [by])
    run = select(runs.c[by].label("value"), *of_run, *_columns(each)).select_from(joined).subquery("run")
    grouped: Any = _grouped(sql.dialect, run)
    if of_erased is not None:
        which = [*of_erased, *in_time(kept_scores.c.created_at, *moments)]
        grouped = grouped.union_all(_kept(sql.dialect, by, centre.scalar_subquery(), which))
    return sql.execute(grouped).mappings().all()


def _columns(each: FromClause) -> list[Any]:
    return [each.c[name] for name in (*_SUMS, "low", "high")]


def _sums_of(score: ColumnElement[Any], centre: ColumnElement[Any]) -> list[Any]:
    return [
        func.count().label("count"),
        func.sum(score).label("score"),
        func.sum(score - centre).label("distance"),
        func.sum(_square(score - centre)).label("square"),
        func.count().filter(score > 0.5).label("above"),
        func.count().filter((score == 0) | (score == 1)).label("binary"),
        func.min(score).label("low"),
        func.max(score).label("high"),
    ]


def _square(distance: ColumnElement[Any]) -> ColumnElement[Any]:
    """PostgreSQL raises an error where a square is too small for a number."""
    return case((func.abs(distance) > _SMALLEST, distance * distance), else_=literal_column("0.0", Float))


def _grouped(dialect: str, run: FromClause) -> Select[Any]:
    return select(
        run.c.value,
        *(func.sum(run.c[name]).label(name) for name in _SUMS),
        func.min(run.c.low).label("low"),
        func.max(run.c.high).label("high"),
        func.count().label("runs"),
        func.sum(run.c.tokens).label("tokens"),
        func.count(run.c.tokens).label("with_tokens"),
        sum_of_costs(dialect, run.c.cost).label("cost"),
        func.count(run.c.cost).label("with_cost"),
    ).group_by(run.c.value)


def _kept(dialect: str, by: str, centre: ColumnElement[Any], which: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """The kept scores of erased threads, which have no run."""
    zero = literal_column("0", Integer)
    no_run = [zero, cast(null(), Float), zero, cast(null(), ExactDecimal if dialect == "postgresql" else Text), zero]
    value = kept_scores.c[by].label("value")
    return select(value, *_sums_of(kept_scores.c.score, centre), *no_run).where(*which).group_by(value)


# --- The groups -------------------------------------------------------------------------------------------------------


def compare_rows(rows: Iterable[Any], tenant: Tenant, by: str) -> Sequence[FeedbackComparison]:
    """The comparison of the rows that `read_scores` read, in order of the values. Raises DamagedCell and
    EncryptionError.
    """
    groups: dict[str, _ScoreGroup] = {}
    for row in rows:
        value = _value(tenant, by, row)
        groups.setdefault(dumps(value), _ScoreGroup(value)).add(row)
    compared = [group for group in groups.values() if group.count]
    yes_or_no = all(group.binary == group.count for group in compared)
    shares = all(group.low >= 0 and group.high <= 1 for group in compared)
    ordered = sorted(compared, key=lambda group: order(group.value))
    return [group.comparison(yes_or_no=yes_or_no, shares=shares) for group in ordered]


def _value(tenant: Tenant, by: str, row: Mapping[str, Any]) -> Any:
    if not is_metadata(by):
        return readable(runs, by, row["value"])
    return metadata_value(row["metadata"], by)


class _ScoreGroup:
    """The scores of one value."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.count = self.binary = 0
        self.low, self.high = math.inf, -math.inf
        self._runs = self._above = self._with_cost = self._with_tokens = 0
        self._score = self._square = self._tokens = 0.0
        self._distance = 0.0
        self._cost = Decimal(0)

    def add(self, row: Mapping[str, Any]) -> None:
        """A row of the group, or of one run of it."""
        cost = total_cost(row["cost"])
        self.count += int(row["count"])  # PostgreSQL's sum of sums is NUMERIC
        self.binary += int(row["binary"])
        self._above += int(row["above"])
        self._runs += int(row["runs"])
        self._score += row["score"]
        self._distance += row["distance"]
        self._square += row["square"]
        self.low, self.high = min(self.low, row["low"]), max(self.high, row["high"])
        if row["tokens"] is not None:
            self._tokens += row["tokens"]
            self._with_tokens += row.get("with_tokens", 1)
        if cost is not None:
            self._cost = EXACT.add(self._cost, cost)
            self._with_cost += row.get("with_cost", 1)

    def comparison(self, *, yes_or_no: bool, shares: bool) -> FeedbackComparison:
        mean = self._score / self.count
        interval = wilson(self._above, self.count) if yes_or_no else student(self.count, mean, self._variance())
        return FeedbackComparison(
            value=self.value,
            count=self.count,
            mean=mean,
            share=self._above / self.count if shares else None,
            low=None if interval is None else interval[0],
            high=None if interval is None else interval[1],
            method="wilson" if yes_or_no else "t",
            runs=self._runs,
            mean_cost=self._cost / self._with_cost if self._with_cost else None,
            mean_tokens=self._tokens / self._with_tokens if self._with_tokens else None,
            runs_without_cost=self._runs - self._with_cost,
        )

    def _variance(self) -> float:
        """Of the sample. Equal scores have none, whatever rounding left."""
        if self.low == self.high:
            return 0.0
        return max(0.0, self._square - self._distance**2 / self.count) / (self.count - 1)


async def compare_scores(
    scope: Scope, key: str, by: str, which: ScoreFilter, moments: tuple[datetime | None, datetime | None]
) -> Sequence[FeedbackComparison]:
    """Raises InvalidArgument for a word that names no group."""
    by, tenant = require_by(by), scope.tenant
    scores = current_scores(*which.of(tenant), columns=("run_id", "score", "created_at"))
    of_erased = which.of_kept(tenant)
    rows = await scope.read(
        lambda sql: read_scores(sql, tenant, scores, key, by, moments, of_erased), snapshot=is_metadata(by)
    )
    return await in_thread(lambda: compare_rows(rows, tenant, by))
