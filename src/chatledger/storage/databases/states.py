"""The states of followed threads, in one statement for all of them, or in one for each tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from chatledger.models.json import dumps
from chatledger.storage.drivers.sql import ReadSql, Row, WriteSql
from chatledger.storage.rows.encryption import Tenant

Followed: TypeAlias = tuple[Tenant, str]
"""A tenant, and the key of one of its threads as stored."""
State: TypeAlias = tuple[int, int, int]
"""The active branch, its last seq and its stamp. Every change that a follower reports changes one of them."""
States: TypeAlias = Mapping[tuple[str, str], State]
"""By the keys of tenant and thread, as stored. A thread that does not exist has none."""

_COLUMNS = "SELECT t.tenant_id, t.thread_id, t.active_branch, b.last_seq, b.stamp"
_STATES = """
FROM {followed} JOIN {schema}threads t ON t.tenant_id = f.tenant_id AND t.thread_id = f.thread_id
JOIN {schema}branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
"""
_FOLLOWED = {
    # In a subquery the arrays do not count for the plan, which is then the same at each call and is kept.
    "postgresql": "unnest((SELECT :tenants::text[]), (SELECT :threads::text[])) AS f (tenant_id, thread_id)",
    "sqlite": "(SELECT json_extract(value, '$[0]') AS tenant_id, json_extract(value, '$[1]') AS thread_id"
    " FROM json_each(:followed)) AS f",
}
_STATEMENTS = {dialect: _COLUMNS + _STATES.replace("{followed}", followed) for dialect, followed in _FOLLOWED.items()}
_OF_TENANT = f"""
{_COLUMNS}
FROM unnest((SELECT :threads::text[])) AS f (thread_id)
JOIN {{schema}}threads t ON t.tenant_id = :tenant AND t.thread_id = f.thread_id
JOIN {{schema}}branches b ON b.tenant_id = :tenant AND b.thread_id = t.thread_id AND b.branch = t.active_branch
"""
"""Of one tenant, for a PostgreSQL that shows or holds the rows of one tenant at a time."""


def read_states(sql: ReadSql, followed: Sequence[Followed]) -> States:
    keys = [(tenant.key, thread) for tenant, thread in followed]
    if sql.dialect == "postgresql":
        tenants, threads = zip(*keys, strict=True)
        rows = sql.fetch(_STATEMENTS["postgresql"], {"tenants": tenants, "threads": threads})
    else:
        rows = sql.fetch(_STATEMENTS["sqlite"], {"followed": dumps(keys)})
    return _by_thread(rows)


def read_states_of(sql: WriteSql, tenant: Tenant, threads: Sequence[str]) -> States:
    """The states of threads of one tenant."""
    return _by_thread(sql.fetch(_OF_TENANT, {"tenant": tenant.key, "threads": threads}))


def _by_thread(rows: Sequence[Row]) -> States:
    return {(tenant, thread): (active, last_seq, stamp) for tenant, thread, active, last_seq, stamp in rows}
