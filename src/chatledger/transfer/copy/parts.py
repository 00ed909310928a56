"""The rows of a tenant in the parts that a copy compares: its threads with all that is theirs, and the values beside.

The rows of a part belong to units: a thread is one, and so is a single value. A range of units goes in one transaction.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from sqlalchemy import Column, Table

from chatledger.storage.append.kv import keeping
from chatledger.storage.schema.columns import CodedText, JsonText
from chatledger.storage.schema.tables import INSERTION_ORDER, erasures, feedback, kept_scores, kv, run_leases, tenants
from chatledger.transfer.copy.cells import cell

COPIED = tuple(table for table in INSERTION_ORDER if table is not run_leases)
"""No lease is copied: a durable run without one does not continue, and ends as moved."""
APART = (tenants, erasures, kept_scores)
"""The tables that are no part: the facts about a tenant, and its tombstones, which are only ever added."""
PAGE_BYTES = 4 * 1024 * 1024
"""What the rows that are read at once hold; one row may be larger."""
UNITS = 2_000
"""The most units of the target that a range has: of those that the source has no more, there may be any number."""
CELL_BYTES = 64
"""What a cell takes in memory beside its text, about."""

Unit: TypeAlias = str | tuple[str, ...]
"""The key of a unit: the id of a thread; or the owner, the namespace and the key of a value."""


@dataclass(frozen=True)
class CopiedPart:
    """A part. `key`: the columns of a unit's key. `units`: the statement that lists some of its units after a key, with
    the columns of the key, user_id, moment and the number of rows.
    """

    name: str
    tables: tuple[Table, ...]
    key: tuple[str, ...]
    units: str

    @property
    def first(self) -> Unit:
        """Before every unit."""
        return ("",) * len(self.key) if len(self.key) > 1 else ""


def _values_of(kind: str) -> CopiedPart:
    return CopiedPart(
        kind,
        (kv,),
        ("scope_id", "namespace", "key"),
        "SELECT scope_id, namespace, key, NULL, 0, 1 FROM {schema}kv WHERE tenant_id = :tenant"
        f" AND kind = '{kind}' AND (scope_id, namespace, key) > (:low_a, :low_b, :low_c)"
        " ORDER BY scope_id, namespace, key LIMIT 1000",
    )


THREADS = CopiedPart(
    "thread",
    tuple(table for table in COPIED if table not in APART),
    ("thread_id",),
    "SELECT t.thread_id, t.user_id, {moment}, (SELECT coalesce(sum(b.last_seq), 0) FROM {schema}branches b"
    " WHERE b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id) FROM {schema}threads t"
    " WHERE t.tenant_id = :tenant AND t.thread_id > :low_a ORDER BY t.thread_id LIMIT 500",
)
PARTS = (THREADS, _values_of("user"), _values_of("tenant"))


@dataclass(frozen=True)
class Range:
    """The units after `low` up to `high`; None: to the last one. `units`: those that the source has."""

    low: Unit
    high: Unit | None
    units: Sequence[Unit] = ()

    def values(self, tenant: str) -> Mapping[str, Any]:
        high = {} if self.high is None else _numbered("high", self.high)
        return {"tenant": tenant, **_numbered("low", self.low), **high}

    def halves(self) -> tuple[Range, Range]:
        return self.parted(self.units[len(self.units) // 2 - 1])

    def parted(self, between: Unit) -> tuple[Range, Range]:
        """The range up to a unit, and the rest of it."""
        count = bisect_right(self.units, between)
        return Range(self.low, between, self.units[:count]), Range(between, self.high, self.units[count:])

    def holds(self, unit: Unit) -> bool:
        return self.low < unit and (self.high is None or unit <= self.high)  # type: ignore[operator]


def after(low: Unit, tenant: str) -> Mapping[str, Any]:
    """The values of the statement that lists the units after this one."""
    return Range(low, None).values(tenant)


def _numbered(name: str, unit: Unit) -> dict[str, str]:
    keys = unit if isinstance(unit, tuple) else (unit,)
    return {f"{name}_{letter}": key for letter, key in zip("abc", keys, strict=False)}


@dataclass(frozen=True)
class Selection:
    """A statement that selects rows, and one for PostgreSQL that counts the rows of each page of them: a cursor takes a
    number of rows, whatever they hold.
    """

    rows: str
    pages: str


@lru_cache(maxsize=256)
def select_rows(part: CopiedPart, table: Table, dialect: str, lacking: frozenset[str], *, bounded: bool) -> Selection:
    """The rows of a range: the key of its unit, and then the cells. `lacking`: the columns that an older source does
    not have; each is NULL, as after a migration.
    """
    unit, source, condition = _place(part, table)
    own = [column for column in table.columns if f"{table.name}.{column.name}" not in lacking]
    cells = [cell(column, dialect, f"x.{column.name}") if column in own else "NULL" for column in table.columns]
    key = [f"x.{column.name}" for column in table.primary_key if column.name != "tenant_id"]
    within = f"{source} WHERE {condition}{_within(part, unit, bounded=bounded)}"
    return _selection([*unit, *cells], own, within, [*unit, *key])


def _selection(cells: Sequence[str], own: Sequence[Column[Any]], within: str, order: Sequence[str]) -> Selection:
    texts = [f"coalesce(octet_length(x.{column.name}), 0)" for column in own if _is_text(column.type)]
    size = " + ".join([str(CELL_BYTES * len(cells)), *texts])
    by = ", ".join(dict.fromkeys(order))
    summed = f"(sum({size}) OVER (ORDER BY {by} ROWS UNBOUNDED PRECEDING))::bigint / {PAGE_BYTES}"
    return Selection(
        f"SELECT {', '.join(cells)} FROM {within} ORDER BY {by}",
        f"SELECT count(*) FROM (SELECT {summed} AS page FROM {within}) p GROUP BY page ORDER BY page",
    )


def _is_text(kind: object) -> bool:
    return isinstance(kind, (CodedText, JsonText))


@lru_cache(maxsize=8)
def select_kept_scores(dialect: str) -> Selection:
    """The scores that a tombstone `:id` kept."""
    cells = [cell(column, dialect, f"x.{column.name}") for column in kept_scores.columns]
    within = "{schema}kept_scores x WHERE x.tenant_id = :tenant AND x.erasure_id = :id"
    return _selection(cells, list(kept_scores.columns), within, ["x.idx"])


@lru_cache(maxsize=256)
def delete_rows(part: CopiedPart, table: Table) -> str:
    """The rows of a unit."""
    if table is feedback:
        runs = "SELECT r.run_id FROM {schema}runs r WHERE r.tenant_id = :tenant AND r.thread_id = :low_a"
        return f"DELETE FROM {{schema}}feedback WHERE tenant_id = :tenant AND run_id IN ({runs})"
    own = ["tenant_id = :tenant"]
    columns = part.key
    if table is kv:
        own.append(f"kind = '{part.name}'")
        columns = ("scope_id", *part.key[1:])
    own += [f"{column} = :low_{letter}" for column, letter in zip(columns, "abc", strict=False)]
    return f"DELETE FROM {{schema}}{table.name} WHERE {' AND '.join(own)}"


@lru_cache(maxsize=8)
def keep_versions(part: CopiedPart) -> str:
    """Before the values of a unit are deleted."""
    return keeping(f"SELECT tenant_id, max(version) {delete_rows(part, kv).removeprefix('DELETE ')} GROUP BY tenant_id")


def _place(part: CopiedPart, table: Table) -> tuple[tuple[str, ...], str, str]:
    """The columns of the unit, the tables, and the condition for the rows of the tenant."""
    if table is feedback:
        source = "{schema}feedback x JOIN {schema}runs r ON r.tenant_id = x.tenant_id AND r.run_id = x.run_id"
        return ("r.thread_id",), source, "x.tenant_id = :tenant AND r.tenant_id = :tenant"
    if table is kv:
        columns = tuple(f"x.{column}" for column in ("scope_id", *part.key[1:]))
        return columns, "{schema}kv x", f"x.tenant_id = :tenant AND x.kind = '{part.name}'"
    return ("x.thread_id",), f"{{schema}}{table.name} x", "x.tenant_id = :tenant"


def _within(part: CopiedPart, unit: Sequence[str], *, bounded: bool) -> str:
    key = ", ".join(unit)
    lows, highs = [", ".join(f":{end}_{letter}" for letter in "abc"[: len(unit)]) for end in ("low", "high")]
    return f" AND ({key}) > ({lows})" + (f" AND ({key}) <= ({highs})" if bounded else "")


@lru_cache(maxsize=256)
def is_there(part: CopiedPart, *, bounded: bool) -> str:
    """Whether a range has any unit."""
    unit, source, condition = _place(part, part.tables[0])
    return f"SELECT 1 FROM {source} WHERE {condition}{_within(part, unit, bounded=bounded)} LIMIT 1"


@lru_cache(maxsize=8)
def far_unit(part: CopiedPart, *, bounded: bool) -> str:
    """The last unit of a range that has as many as a range may have; no row if it has fewer."""
    unit, source, condition = _place(part, part.tables[0])
    key = ", ".join(unit)
    within = f"{condition}{_within(part, unit, bounded=bounded)}"
    return f"SELECT {key} FROM {source} WHERE {within} ORDER BY {key} LIMIT 1 OFFSET {UNITS - 1}"
