"""The usage of runs, summed by user, agent, model, day, thread, status and keys of their metadata.

The database sums, in one statement. Two things it cannot do. SQLite has no decimal type: it hands over the costs of a
group as one text, which Python sums exactly. Metadata is JSON text that may be encrypted: a sum by one of its keys
reads a row for each run. With prices, each run without a cost has a row of its own as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Date, Text, and_, case, cast, func, select, type_coerce
from sqlalchemy.sql.selectable import FromClause

from chatledger.arguments import STR, require_items
from chatledger.errors import InvalidArgument, LimitExceeded
from chatledger.models import RunPrices, Usage, UsageSummary
from chatledger.models.json import dumps
from chatledger.models.runs import EXACT
from chatledger.models.weight import in_thread
from chatledger.reports.prices import list_price, read_prices
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.asyncpg import apart_from_loop
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.rows.encryption import Tenant, damaged_cell, decrypt_values
from chatledger.storage.rows.owned import of_thread, owned
from chatledger.storage.schema.columns import Ciphertext, Undecoded
from chatledger.storage.schema.tables import runs, threads

GROUPS = {
    "user": "user_id",
    "agent": "agent",
    "model": "model",
    "day": "day",
    "thread": "thread_id",
    "status": "status",
}
"""The words of `by`, and the field of UsageSummary that each fills."""
METADATA = "metadata."
"""The beginning of a word of `by` that names a key of the runs' metadata."""
_MOST_GROUPS = 8
"""Each word takes time for each run."""
_PORTION = 250
"""Runs whose metadata is in memory at once."""
_MOST_VALUES = 8 * 1024 * 1024
"""Characters of the different values to group by."""
_FEW = 100
"""Rows without metadata that the event loop sums."""
_MICROSECONDS = 86_400_000_000
"""Of a day."""
_HALF = 2**32
_TOKENS = ("input_tokens", "output_tokens", "total_tokens")
_REST = {"rest_input": "input_tokens", "rest_output": "output_tokens"}
"""The input and output tokens of the runs without a total."""


@dataclass(frozen=True)
class UsageFilter:
    """The runs to count."""

    thread_id: str | None = None
    agent: str | None = None
    model: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def where(self, tenant: Tenant) -> list[ColumnElement[bool]]:
        equal = {"agent": self.agent, "model": self.model}
        chosen = [runs.c[name] == value for name, value in equal.items() if value is not None]
        own = owned(runs, tenant) if self.thread_id is None else of_thread(runs, tenant, self.thread_id)
        return [own, *chosen, *in_time(runs.c.started_at, self.since, self.until)]


def in_time(column: ColumnElement[Any], since: datetime | None, until: datetime | None) -> list[ColumnElement[bool]]:
    """From `since` on, and before `until`."""
    return [*([column >= since] if since is not None else []), *([column < until] if until is not None else [])]


# --- The words of `by` ------------------------------------------------------------------------------------------------


def read_groups(by: str | Sequence[str]) -> tuple[str, ...]:
    """Raises InvalidArgument for an unknown word, for one that comes twice, and for too many."""
    words = (by,) if isinstance(by, str) else by
    require_items(STR, by=words)
    if len(words) > _MOST_GROUPS:
        raise InvalidArgument("by", f"may have at most {_MOST_GROUPS} words, not {len(words):,}")
    if not all(word in GROUPS or is_metadata(word) for word in words):
        known = ", ".join(map(repr, GROUPS))
        raise InvalidArgument("by", f"has an unknown word; known are {known} and 'metadata.KEY'")
    if len(set(words)) < len(words):
        raise InvalidArgument("by", "has a word twice")
    return tuple(words)


def is_metadata(word: str) -> bool:
    return word.startswith(METADATA) and len(word) > len(METADATA)


def order(value: Any) -> tuple[bool, str]:
    """The place of a group in a list: by its text, None last."""
    return value is None, value if isinstance(value, str) else str(value)


# --- The statement ----------------------------------------------------------------------------------------------------


def read_usage(
    sql: ReadSql, tenant: Tenant, which: UsageFilter, groups: Sequence[str], *, priced: bool
) -> Sequence[Any]:
    """A row for each group, in one statement; if `priced`, a row for each run without a cost, with all that its price
    depends on. With a key of the metadata among the groups, a row for each run, and further statements read the keys.
    """
    run = _chosen_runs(sql.dialect, tenant, which, groups)
    keys = [run.c[f"by_{word}"] for word in groups if word in GROUPS]
    columns = list(keys)
    by_metadata = any(map(is_metadata, groups))
    if by_metadata:
        keys.append(run.c.run_id)
        columns.append(run.c.run_id)
    if priced:
        keys.append(run.c.unpriced)
        columns += [func.min(run.c[name]).label(f"own_{name}") for name in ("model", "started_at", "usage_details")]
    counts = [
        func.count().label("runs"),
        func.count(run.c.failed).label("failed"),
        func.count(run.c.cost).label("with_cost"),
        sum_of_costs(sql.dialect, run.c.cost).label("cost"),
        *(_sum_of_integers(sql.dialect, run.c[name]).label(name) for name in (*_TOKENS, *_REST)),
    ]
    rows = sql.execute(select(*columns, *counts).group_by(*keys)).mappings().all()
    return with_metadata(sql, tenant, rows, groups) if by_metadata else rows


def _chosen_runs(dialect: str, tenant: Tenant, which: UsageFilter, groups: Sequence[str]) -> FromClause:
    """A subquery, because PostgreSQL groups by an expression with parameters only under a name."""
    columns_of = {"user": threads.c.user_id, "day": day_of(dialect, runs.c.started_at)}
    by = [columns_of.get(word, runs.c.get(GROUPS[word])).label(f"by_{word}") for word in groups if word in GROUPS]  # type: ignore[union-attr]
    used = ("run_id", "model", "started_at", "usage_details", "cost", *_TOKENS)
    columns = [
        *by,
        *(runs.c[name] for name in used),
        case((runs.c.status == "failed", 1)).label("failed"),
        case((runs.c.cost.is_(None), runs.c.run_id)).label("unpriced"),
        *(case((runs.c.total_tokens.is_(None), runs.c[of])).label(name) for name, of in _REST.items()),
    ]
    source = runs.join(threads, thread_of(runs)) if "user" in groups else runs
    return select(*columns).select_from(source).where(*which.where(tenant)).subquery("run")


def thread_of(table: FromClause) -> ColumnElement[bool]:
    """The condition that joins a row with its thread."""
    return and_(threads.c.tenant_id == table.c.tenant_id, threads.c.thread_id == table.c.thread_id)


def day_of(dialect: str, moment: ColumnElement[Any]) -> ColumnElement[Any]:
    """The day in UTC, as `to_day` reads it: a date on PostgreSQL, the days since 1970 on SQLite."""
    if dialect == "postgresql":
        return cast(func.timezone("UTC", moment), Date)
    stored = type_coerce(moment, BigInteger)
    return (stored - (stored % _MICROSECONDS + _MICROSECONDS) % _MICROSECONDS) // _MICROSECONDS  # `/` rounds to zero


def to_day(days: int | date | None) -> date | None:
    return date(1970, 1, 1) + timedelta(days=days) if isinstance(days, int) else days


def sum_of_costs(dialect: str, cost: ColumnElement[Any]) -> ColumnElement[Any]:
    """The sum on PostgreSQL; on SQLite the costs as a text, which `total_cost` sums."""
    return func.sum(cost) if dialect == "postgresql" else func.group_concat(type_coerce(cost, Text))


def total_cost(costs: Any) -> Decimal | None:
    """The exact sum. Raises DamagedCell for a cost that is no decimal number."""
    if costs is None or isinstance(costs, Decimal):
        return costs
    total = Decimal(0)
    try:
        for cost in str(costs).split(","):
            total = EXACT.add(total, Decimal(cost))
    except InvalidOperation:
        raise damaged_cell(runs, "cost", {}) from None
    return total


def _sum_of_integers(dialect: str, column: ColumnElement[Any]) -> ColumnElement[str]:
    """The sum as a text that `_integer` reads. SQLite's own fails beyond 63 bits, so it sums both halves."""
    if dialect == "postgresql":
        return cast(func.sum(column), Text)
    return cast(func.sum(column // _HALF), Text) + ":" + cast(func.sum(column % _HALF), Text)


def _integer(text: str | None) -> int | None:
    if text is None:
        return None
    high, _, low = text.rpartition(":")
    return int(high or 0) * _HALF + int(low)


# --- The sums ---------------------------------------------------------------------------------------------------------


async def report_usage(
    scope: Scope,
    by: str | Sequence[str],
    chosen: tuple[str | None, str | None, str | None, datetime | None, datetime | None],
    prices: bool | RunPrices,
) -> Sequence[UsageSummary]:
    """`chosen` has the fields of a UsageFilter. Raises InvalidArgument, DamagedCell, LimitExceeded and MissingExtra."""
    groups, which, run_prices = read_groups(by), UsageFilter(*chosen), read_prices(prices)
    tenant, priced = scope.tenant, run_prices is not None
    rows = await scope.read(
        lambda sql: read_usage(sql, tenant, which, groups, priced=priced), snapshot=any(map(is_metadata, groups))
    )
    return await summarize_usage(rows, tenant, groups, run_prices)


async def summarize_usage(
    rows: Sequence[Any], tenant: Tenant, groups: Sequence[str], prices: RunPrices | None
) -> Sequence[UsageSummary]:
    """`sum_usage`, in a thread if it takes long: the price list takes some 80 µs for a run, and the metadata of a run
    may be long. A function of the application's stays in the event loop.
    """
    long = len(rows) > _FEW or any(map(is_metadata, groups))
    if prices is list_price or (prices is None and long):
        return await in_thread(lambda: sum_usage(rows, tenant, groups, prices))
    return sum_usage(rows, tenant, groups, prices)


def sum_usage(
    rows: Iterable[Any], tenant: Tenant, groups: Sequence[str], prices: RunPrices | None
) -> Sequence[UsageSummary]:
    """The summaries of the rows of `read_usage`, in order of their groups. Raises DamagedCell and EncryptionError."""
    sums: dict[tuple[Any, ...], _Sum] = {} if groups else {(): _Sum()}  # without groups, also no runs are a sum
    fields: dict[tuple[Any, ...], dict[str, Any]] = {(): {}}
    for row in rows:
        values = _group(tenant, groups, row)
        key = tuple(value if isinstance(value, date) else dumps(value) for value in values)
        if key not in sums:
            sums[key], fields[key] = _Sum(), dict(zip(groups, values, strict=True))
        sums[key].add(row, prices)
    ordered = sorted(sums, key=lambda key: [order(value) for value in fields[key].values()])
    return [sums[key].summary(fields[key]) for key in ordered]


def _group(tenant: Tenant, groups: Sequence[str], row: Mapping[str, Any]) -> list[Any]:
    """The values of the words of `by`."""
    metadata = row.get("metadata")
    return [
        metadata_value(metadata, word) if is_metadata(word) else _readable(word, row[f"by_{word}"]) for word in groups
    ]


def with_metadata(sql: ReadSql, tenant: Tenant, rows: Sequence[Any], by: Sequence[str]) -> list[Mapping[str, Any]]:
    """The rows, each with those keys of its run's metadata that `by` names. The metadata, which may be long, is read in
    portions. Raises LimitExceeded, DamagedCell and EncryptionError.
    """
    keys = [word.removeprefix(METADATA) for word in by if is_metadata(word)]
    metadata_of: dict[str, dict[str, Any]] = {}
    known = _Distinct()
    run_ids = [readable(runs, "run_id", row["run_id"]) for row in rows]
    for at in range(0, len(run_ids), _PORTION):
        metadata_of |= _read_metadata(sql, tenant, run_ids[at : at + _PORTION], keys, known)
    return [{**row, "metadata": metadata_of.get(row["run_id"])} for row in rows]


def _read_metadata(
    sql: ReadSql, tenant: Tenant, run_ids: Sequence[str], keys: Sequence[str], known: _Distinct
) -> dict[str, dict[str, Any]]:
    """The keys of the metadata by run. PostgreSQL's driver would decode the JSON in the event loop, so it is selected
    as text and decoded in a thread.
    """
    stored = type_coerce(runs.c.metadata, Text).label("metadata")
    statement = select(runs.c.run_id, stored).where(runs.c.tenant_id == tenant.name, runs.c.run_id.in_(run_ids))
    rows = sql.execute(statement).mappings().all()
    decode = runs.c.metadata.type.process_result_value  # type: ignore[attr-defined]

    def read() -> Iterator[tuple[str, dict[str, Any]]]:
        for row in rows:
            cells = {"run_id": row["run_id"], "metadata": decode(row["metadata"], None)}
            metadata = decrypt_values(tenant, runs, cells)["metadata"]
            if metadata is not None:
                yield row["run_id"], known.keep({key: metadata[key] for key in keys if key in metadata})

    return apart_from_loop(lambda: dict(read()))


class _Distinct:
    """The different values that runs have under the keys. Each is in memory once."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        self._size = 0

    def keep(self, values: dict[str, Any]) -> dict[str, Any]:
        """Raises LimitExceeded if they are too long together."""
        text = dumps(values)
        if text not in self._known:
            self._size += len(text)
            if self._size > _MOST_VALUES:
                raise LimitExceeded("characters of the values to group by", self._size, _MOST_VALUES)
            self._known[text] = values
        return self._known[text]


def metadata_value(metadata: Any, word: str) -> Any:
    """The value of the key that the word names; None if the run has no such key."""
    return None if metadata is None else metadata.get(word.removeprefix(METADATA))


def _readable(word: str, value: Any) -> Any:
    if word == "day":
        return to_day(value)
    return readable(runs if word != "user" else threads, GROUPS[word], value)


def readable(table: Any, column: str, value: Any) -> Any:
    """Raises DamagedCell for a value of a group that is no text."""
    if type(value) in (Undecoded, Ciphertext):
        raise damaged_cell(table, column, {})
    return value


class _Sum:
    """The usage of one group."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(("runs", "failed", "with_cost", "estimated_runs"), 0)
        self._tokens: dict[str, int] = {}
        self._costs: dict[str, Decimal] = {}

    def add(self, row: Mapping[str, Any], prices: RunPrices | None) -> None:
        for name in ("runs", "failed", "with_cost"):
            self._counts[name] += row[name]
        tokens = {name: _integer(row[name]) for name in (*_TOKENS, *_REST)}
        for name, count in tokens.items():
            if count is not None:
                self._tokens[name] = self._tokens.get(name, 0) + count
        self._add_cost("cost", total_cost(row["cost"]))
        if prices is not None and not row["with_cost"]:  # a row without a cost is one run
            estimate = _estimate(row, tokens, prices)
            self._counts["estimated_runs"] += estimate is not None
            self._add_cost("estimated_cost", estimate)

    def _add_cost(self, name: str, cost: Decimal | None) -> None:
        if cost is not None:
            self._costs[name] = EXACT.add(self._costs.get(name, Decimal(0)), cost)

    def summary(self, group: Mapping[str, Any]) -> UsageSummary:
        counts, tokens, costs = self._counts, self._tokens, self._costs
        totals = [tokens[name] for name in ("total_tokens", *_REST) if name in tokens]
        metadata = {word.removeprefix(METADATA): value for word, value in group.items() if is_metadata(word)}
        return UsageSummary(
            **{GROUPS[word]: value for word, value in group.items() if word in GROUPS},
            metadata=metadata or None,
            runs=counts["runs"],
            failed=counts["failed"],
            input_tokens=tokens.get("input_tokens"),
            output_tokens=tokens.get("output_tokens"),
            total_tokens=sum(totals) if totals else None,
            cost=EXACT.add(*(costs.get(name, Decimal(0)) for name in ("cost", "estimated_cost"))) if costs else None,
            runs_without_cost=counts["runs"] - counts["with_cost"] - counts["estimated_runs"],
            estimated_cost=costs.get("estimated_cost"),
            estimated_runs=counts["estimated_runs"],
        )


def _estimate(row: Mapping[str, Any], tokens: Mapping[str, int | None], prices: RunPrices) -> Decimal | None:
    """The cost of a run by the function. None for a run without a model or without usage."""
    details, started_at = row["own_usage_details"], row["own_started_at"]
    for column, value in (("usage_details", details), ("started_at", started_at)):
        readable(runs, column, value)
    model = readable(runs, "model", row["own_model"])
    usage = Usage(details=details, **{name: tokens[name] for name in _TOKENS})
    if model is None or usage == Usage():
        return None
    cost = prices(model, usage, started_at)
    if cost is not None and not (isinstance(cost, Decimal) and cost.is_finite()):
        raise InvalidArgument("prices", "must return a finite Decimal or None")
    return cost
