"""The rows of a tenant in the parts that a copy compares: its threads with all that is theirs, and the values beside.

The rows of a part belong to units: threads, or the owners of values. A range of units goes in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Table

from chatledger.storage.schema.tables import INSERTION_ORDER, erasures, feedback, kept_scores, kv, tenants
from chatledger.transfer.copy.cells import cell

APART = (tenants, erasures, kept_scores)
"""The tables that are no part: the facts about a tenant, and its tombstones, which are only ever added."""


@dataclass(frozen=True)
class CopiedPart:
    """A part. `units`: the statement that lists some of its units after `:low`, with the columns unit, user_id, moment
    and the number of rows. None if it is one unit, which is not listed.
    """

    name: str
    tables: tuple[Table, ...]
    units: str | None = None


THREADS = CopiedPart(
    "threads",
    tuple(table for table in INSERTION_ORDER if table not in APART),
    "SELECT t.thread_id, t.user_id, {moment}, (SELECT coalesce(sum(b.last_seq), 0) FROM {schema}branches b"
    " WHERE b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id) FROM {schema}threads t"
    " WHERE t.tenant_id = :tenant AND t.thread_id > :low ORDER BY t.thread_id LIMIT 500",
)
USERS = CopiedPart(
    "users",
    (kv,),
    "SELECT scope_id, scope_id, NULL, count(*) FROM {schema}kv WHERE tenant_id = :tenant AND kind = 'user'"
    " AND scope_id > :low GROUP BY scope_id ORDER BY scope_id LIMIT 500",
)
TENANT = CopiedPart("tenant", (kv,))
PARTS = (THREADS, USERS, TENANT)


@dataclass(frozen=True)
class Range:
    """The units after `low` up to `high`; None: to the last one."""

    low: str = ""
    high: str | None = None

    def values(self, tenant: str) -> Mapping[str, Any]:
        values = {"tenant": tenant, "low": self.low}
        return values if self.high is None else {**values, "high": self.high}


@lru_cache(maxsize=256)
def select_rows(part: CopiedPart, table: Table, dialect: str, lacking: frozenset[str], *, bounded: bool) -> str:
    """The rows of a range: its unit, and then the cells. `lacking`: the columns that an older source does not have;
    each is NULL, as after a migration.
    """
    unit, source, condition = _place(part, table)
    cells = [
        "NULL" if f"{table.name}.{column.name}" in lacking else cell(column, dialect, f"x.{column.name}")
        for column in table.columns
    ]
    key = ", ".join(f"x.{column.name}" for column in table.primary_key if column.name != "tenant_id")
    within = _within(part, unit, bounded=bounded)
    return f"SELECT {unit}, {', '.join(cells)} FROM {source} WHERE {condition}{within} ORDER BY {unit}, {key}"


@lru_cache(maxsize=256)
def delete_rows(part: CopiedPart, table: Table) -> str:
    """The rows of a unit."""
    if table is feedback:
        runs = "SELECT r.run_id FROM {schema}runs r WHERE r.tenant_id = :tenant AND r.thread_id = :unit"
        return f"DELETE FROM {{schema}}feedback WHERE tenant_id = :tenant AND run_id IN ({runs})"
    if table is kv:
        kind = part.name.removesuffix("s")
        return f"DELETE FROM {{schema}}kv WHERE tenant_id = :tenant AND kind = '{kind}' AND scope_id = :unit"
    return f"DELETE FROM {{schema}}{table.name} WHERE tenant_id = :tenant AND thread_id = :unit"


def _place(part: CopiedPart, table: Table) -> tuple[str, str, str]:
    """The column of the unit, the tables, and the condition for the rows of the tenant."""
    if table is feedback:
        source = "{schema}feedback x JOIN {schema}runs r ON r.tenant_id = x.tenant_id AND r.run_id = x.run_id"
        return "r.thread_id", source, "x.tenant_id = :tenant AND r.tenant_id = :tenant"
    if table is kv:
        kind = part.name.removesuffix("s")
        return "x.scope_id", "{schema}kv x", f"x.tenant_id = :tenant AND x.kind = '{kind}'"
    return "x.thread_id", f"{{schema}}{table.name} x", "x.tenant_id = :tenant"


def _within(part: CopiedPart, unit: str, *, bounded: bool) -> str:
    if part.units is None:
        return ""
    return f" AND {unit} > :low" + (f" AND {unit} <= :high" if bounded else "")


@lru_cache(maxsize=256)
def is_there(part: CopiedPart, *, bounded: bool) -> str:
    """Whether a range has any row in the first of its tables that has its own."""
    unit, source, condition = _place(part, part.tables[0])
    return f"SELECT 1 FROM {source} WHERE {condition}{_within(part, unit, bounded=bounded)} LIMIT 1"
