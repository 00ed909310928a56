"""Runs: the executions of agents on a thread, with their model, duration and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import ColumnElement, and_, func, select, true, update

from chatledger.errors import DamagedCell, RunConflict, RunLost, RunNotFound, ThreadNotFound
from chatledger.models import Page, Run, RunStatus, Usage
from chatledger.models.json import same_json
from chatledger.models.secrets import masked
from chatledger.storage.append.request import is_answer
from chatledger.storage.append.takeover import ended_by_ledger
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql, insert_if_absent
from chatledger.storage.lists.bounded import fetch_rows
from chatledger.storage.lists.cursors import read_cursor, to_page, write_cursor
from chatledger.storage.lists.many import chunks, read_ids
from chatledger.storage.rows.encryption import Tenant, damaged_cell, encrypt_values
from chatledger.storage.rows.owned import of_thread, owned, owned_each
from chatledger.storage.rows.runs import RUN_COLUMNS, USAGE_COLUMNS, to_run, to_usage
from chatledger.storage.schema.columns import Undecoded
from chatledger.storage.schema.tables import run_leases, runs, threads

_SCANNED = 10_000
"""The most runs that a page of one status reads."""


def _key(tenant: Tenant, run_id: str) -> Any:
    return and_(owned_each(runs, tenant), runs.c.run_id == run_id)


def find_run(sql: ReadSql, tenant: Tenant, run_id: str, *, hold: bool = False) -> Run | None:
    """With `hold`, nobody can delete the run before the transaction ends."""
    statement = select(*RUN_COLUMNS).where(_key(tenant, run_id))
    held = statement.with_for_update(read=True, key_share=True) if hold else statement
    row = sql.execute(held).mappings().one_or_none()
    return None if row is None else to_run(tenant, row)


async def find_runs(scope: Scope, run_ids: Sequence[str]) -> dict[str, Run]:
    """The existing runs, keyed by id. One query reads up to 500 of them. Invalid ids are ignored."""
    ids = read_ids("run_ids", run_ids)
    return await scope.read(lambda sql: _find_runs(sql, scope.tenant, ids))


def _find_runs(sql: ReadSql, tenant: Tenant, run_ids: Sequence[str]) -> dict[str, Run]:
    runs_by_id: dict[str, Run] = {}
    for some in chunks(run_ids):
        rows = sql.execute(select(*RUN_COLUMNS).where(owned_each(runs, tenant), runs.c.run_id.in_(some))).mappings()
        runs_by_id |= {row["run_id"]: to_run(tenant, row) for row in rows}
    return runs_by_id


def _lock_run(sql: WriteSql, tenant: Tenant, run_id: str) -> Run | None:
    """The run, locked against changes until the transaction ends."""
    row = sql.execute(select(*RUN_COLUMNS).where(_key(tenant, run_id)).with_for_update()).mappings().one_or_none()
    return None if row is None else to_run(tenant, row)


def has_lease(sql: WriteSql, tenant: Tenant, run: Run) -> bool:
    """Whether the run is that of an answer that has not ended."""
    own = (run_leases.c.tenant_id == tenant.name, run_leases.c.thread_id == run.thread_id)
    return sql.execute(select(run_leases.c.attempt).where(*own, run_leases.c.run_id == run.run_id)).first() is not None


def without_secrets(run: Run) -> Run:
    return run.model_copy(update={"input": masked(run.input), "metadata": masked(run.metadata)})


def start_run(sql: WriteSql, tenant: Tenant, run: Run) -> Run:
    own_thread = and_(owned(threads, tenant), threads.c.thread_id == run.thread_id)
    # Hold the thread until the run is stored, so that nobody deletes the thread in between.
    held = select(threads.c.thread_id).where(own_thread).with_for_update(read=True, key_share=True)
    if sql.execute(held).one_or_none() is None:
        raise ThreadNotFound(run.thread_id)
    values = encrypt_values(tenant, runs, run.model_dump(exclude={"usage"}))
    if sql.execute(insert_if_absent(sql, runs).values(tenant_id=tenant.name, **values)).rowcount:
        return run
    stored = _lock_run(sql, tenant, run.run_id)
    if stored is None or stored.thread_id != run.thread_id:
        raise RunConflict(run.run_id, "belongs to another thread")
    return _complete(sql, tenant, stored, run)


def _complete(sql: WriteSql, tenant: Tenant, stored: Run, run: Run) -> Run:
    """Fill in the fields that the stored run lacks."""
    new: dict[str, Any] = {}
    for name in ("agent", "model", "input", "metadata"):
        earlier, wanted = getattr(stored, name), getattr(run, name)
        if wanted is None:
            continue
        if earlier is None:
            new[name] = wanted
        elif not same_json(earlier, wanted):
            raise RunConflict(run.run_id, f"was started with another {name}")
    if new:
        encrypted = encrypt_values(tenant, runs, new, run_id=run.run_id)
        sql.execute(update(runs).where(_key(tenant, run.run_id)).values(**encrypted))
    return stored.model_copy(update=new)


def finish_run(
    sql: WriteSql, tenant: Tenant, run_id: str, status: RunStatus, usage: Usage | None, error: str | None
) -> Run:
    stored = _lock_run(sql, tenant, run_id)
    if stored is None:
        raise RunNotFound(run_id)
    if is_answer(run_id) and has_lease(sql, tenant, stored):
        raise RunLost(run_id)
    usage = None if usage == Usage() else usage or stored.usage  # the columns cannot tell None and Usage() apart
    ended = Run.model_validate(stored.model_dump() | {"status": status, "usage": usage, "error": error})
    if stored.ended_at is not None:
        if ended == stored:
            return stored
        if not ended_by_ledger(stored.status, stored.error):
            raise RunConflict(run_id, f"has ended already, as {stored.status}")
    ended = ended.model_copy(update={"ended_at": None if status == "running" else datetime.now(UTC)})
    values = {"status": status, "error": error, "ended_at": ended.ended_at, **_usage_columns(usage or Usage())}
    encrypted = encrypt_values(tenant, runs, values, run_id=run_id)
    sql.execute(update(runs).where(_key(tenant, run_id)).values(**encrypted))
    return ended


def count_usage(sql: WriteSql, tenant: Tenant, run_id: str, usage: Usage) -> None:
    """Add the usage of a draft to its run, in the transaction that ends the draft. The sum of a run that the
    application ended as completed or failed stays as it is. So does one that would be beyond the columns: what a
    provider counts must not cost the message.
    """
    columns = [runs.c[name] for name in USAGE_COLUMNS]
    held = select(*columns).where(_key(tenant, run_id), runs.c.status.in_(("running", "cancelled"))).with_for_update()
    row = sql.execute(held).mappings().one_or_none()
    if row is None:
        return
    try:
        total = usage if (stored := to_usage(row)) is None else stored + usage
    except (ValidationError, DamagedCell):
        return
    sql.execute(update(runs).where(_key(tenant, run_id)).values(**_usage_columns(total)))


def _usage_columns(usage: Usage) -> dict[str, Any]:
    return {name: getattr(usage, name.removeprefix("usage_")) for name in USAGE_COLUMNS}


def list_runs(
    sql: ReadSql, tenant: Tenant, thread_id: str | None, status: RunStatus | None, limit: int, cursor: str | None
) -> Page[Run]:
    wanted = [owned(runs, tenant) if thread_id is None else of_thread(runs, tenant, thread_id)]
    if cursor is not None:
        wanted.append(runs.c.run_id > read_cursor(cursor, str)[0])
    if status is not None:
        return _list_of_status(sql, tenant, and_(*wanted), status, limit)
    return to_page(
        fetch_rows(sql, select(*RUN_COLUMNS).where(*wanted), limit, "run_id"), lambda row: to_run(tenant, row), "run_id"
    )


def _list_of_status(
    sql: ReadSql, tenant: Tenant, wanted: ColumnElement[bool], status: RunStatus, limit: int
) -> Page[Run]:
    """One statement. It reads the next runs in the order of their ids from the primary key, or from the key that begins
    with the thread, and returns a row with the last id even if none of them has the status.
    """
    near = select(runs.c.run_id, runs.c.status).where(wanted).order_by(runs.c.run_id).limit(_SCANNED)
    scanned = near.cte("scanned")
    end = select(func.max(scanned.c.run_id).label("last_id"), func.count().label("scanned")).select_from(scanned)
    matching = select(scanned.c.run_id).where(scanned.c.status == status).order_by(scanned.c.run_id).limit(limit + 1)
    ends, with_status = end.subquery("ends"), matching.subquery("found")
    own = and_(runs.c.tenant_id == tenant.name, runs.c.run_id == with_status.c.run_id)
    joined = ends.outerjoin(with_status.join(runs, own), true())
    rows = fetch_rows(sql, select(*RUN_COLUMNS, ends).select_from(joined), limit, "run_id")
    last_id, count = rows.rows[0]["last_id"], rows.rows[0]["scanned"]
    own_rows = [
        {column.name: row[column.name] for column in RUN_COLUMNS} for row in rows.rows if row["run_id"] is not None
    ]
    page = to_page(rows._replace(rows=own_rows), lambda row: to_run(tenant, row), "run_id")
    if page.next_cursor is not None or count < _SCANNED:
        return page
    if isinstance(last_id, Undecoded):
        raise damaged_cell(runs, "run_id", {})
    return replace(page, next_cursor=write_cursor(last_id))
