"""The states of followed threads, in one statement for all of them, or in one for each tenant. Those of the runs that a
follower told are in another statement, if there are any.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from chatledger.models.json import dumps
from chatledger.storage.drivers.sql import ReadSql, Row, WriteSql
from chatledger.storage.rows.encryption import Tenant


class Followed(NamedTuple):
    """A tenant, the key of one of its threads as stored, and those of runs of the thread whose changes are told."""

    tenant: Tenant
    thread: str
    runs: tuple[str, ...] = ()

    @property
    def key(self) -> FollowedKey:
        return self.tenant.key, self.thread, self.runs


FollowedKey: TypeAlias = tuple[str, str, tuple[str, ...]]
State: TypeAlias = tuple[int, int, int, tuple[str | None, ...]]
"""The active branch, its last seq and its stamp; and the status of each run, None if it does not exist. Every change
that a follower reports changes one of them, but for a lease that ends.
"""
States: TypeAlias = Mapping[FollowedKey, State]
"""A thread that does not exist has none."""

_COLUMNS = "SELECT t.tenant_id, t.thread_id, t.active_branch, b.last_seq, b.stamp"
_STATES = """
FROM {followed} JOIN {schema}threads t ON t.tenant_id = f.tenant_id AND t.thread_id = f.thread_id
JOIN {schema}branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
"""
_STATUS = "CASE WHEN l.paused_at IS NULL THEN r.status ELSE 'paused' END"
_LEASE = (
    "LEFT JOIN {schema}run_leases l ON l.tenant_id = r.tenant_id AND l.thread_id = r.thread_id AND l.run_id = r.run_id"
)
_RUNS = f"""
SELECT r.tenant_id, r.run_id, {_STATUS}
FROM {{followed}} JOIN {{schema}}runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.{{id}}
{_LEASE}
"""
_FOLLOWED = {
    # In a subquery the arrays do not count for the plan, which is then the same at each call and is kept.
    "postgresql": "unnest((SELECT :tenants::text[]), (SELECT :ids::text[])) AS f (tenant_id, {id})",
    "sqlite": "(SELECT json_extract(value, '$[0]') AS tenant_id, json_extract(value, '$[1]') AS {id}"
    " FROM json_each(:followed)) AS f",
}


def _of_all(statement: str, id_: str) -> Mapping[str, str]:
    return {
        dialect: statement.replace("{followed}", followed).replace("{id}", id_)
        for dialect, followed in _FOLLOWED.items()
    }


_STATEMENTS, _RUN_STATEMENTS = _of_all(_COLUMNS + _STATES, "thread_id"), _of_all(_RUNS, "run_id")
# Of one tenant, for a PostgreSQL that shows or holds the rows of one tenant at a time.
_OF_TENANT = f"""
{_COLUMNS}
FROM unnest((SELECT :ids::text[])) AS f (thread_id)
JOIN {{schema}}threads t ON t.tenant_id = :tenant AND t.thread_id = f.thread_id
JOIN {{schema}}branches b ON b.tenant_id = :tenant AND b.thread_id = t.thread_id AND b.branch = t.active_branch
"""
_RUNS_OF_TENANT = f"""
SELECT r.tenant_id, r.run_id, {_STATUS}
FROM unnest((SELECT :ids::text[])) AS f (run_id) JOIN {{schema}}runs r ON r.tenant_id = :tenant AND r.run_id = f.run_id
{_LEASE}
"""


def read_states(sql: ReadSql, followed: Collection[Followed]) -> States:
    threads = _fetch(sql, _STATEMENTS, {(asked.tenant.key, asked.thread) for asked in followed})
    runs = _fetch(sql, _RUN_STATEMENTS, {(asked.tenant.key, run) for asked in followed for run in asked.runs})
    return _states(followed, threads, runs)


def _fetch(sql: ReadSql, statements: Mapping[str, str], keys: Collection[tuple[str, str]]) -> Sequence[Row]:
    if not keys:
        return ()
    if sql.dialect == "postgresql":
        tenants, ids = zip(*keys, strict=True)
        return sql.fetch(statements["postgresql"], {"tenants": tenants, "ids": ids})
    return sql.fetch(statements["sqlite"], {"followed": dumps([list(key) for key in keys])})


def read_states_of(sql: WriteSql, tenant: Tenant, followed: Collection[Followed]) -> States:
    """The states of threads of one tenant."""
    threads = sql.fetch(_OF_TENANT, {"tenant": tenant.key, "ids": list({asked.thread for asked in followed})})
    runs = list({run for asked in followed for run in asked.runs})
    return _states(followed, threads, sql.fetch(_RUNS_OF_TENANT, {"tenant": tenant.key, "ids": runs}) if runs else ())


def read_statuses(sql: WriteSql, tenant: Tenant, runs: Collection[str]) -> Mapping[str, str]:
    """The status of each of the runs that exist; `paused` for an answer that waits for a decision about its calls."""
    if sql.dialect == "postgresql":
        rows = sql.fetch(_RUNS_OF_TENANT, {"tenant": tenant.key, "ids": list(runs)}) if runs else ()
    else:
        rows = _fetch(sql, _RUN_STATEMENTS, [(tenant.key, run) for run in runs])
    return {run: status for _, run, status in rows}


def _states(followed: Iterable[Followed], threads: Sequence[Row], runs: Sequence[Row]) -> States:
    state_of = {(tenant, thread): tuple(state) for tenant, thread, *state in threads}
    status_of = {(tenant, run): status for tenant, run, status in runs}
    return {
        asked.key: (*state, tuple([status_of.get((asked.tenant.key, run)) for run in asked.runs]))
        for asked in followed
        if (state := state_of.get((asked.tenant.key, asked.thread))) is not None
    }
