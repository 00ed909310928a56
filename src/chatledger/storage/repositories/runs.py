"""Runs: the executions of agents on a thread, with their model, duration and cost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import NoneType
from typing import Any, get_args

from pydantic import ValidationError
from sqlalchemy import ColumnElement, and_, func, select, true, update

from chatledger.arguments import DICT_OR_NONE, INT, STR, STR_OR_NONE, Kind, require
from chatledger.errors import DamagedCell, RunConflict, RunNotFound, ThreadNotFound
from chatledger.ids import new_id
from chatledger.models import Page, Run, RunStatus, Usage
from chatledger.models.base import refuse_own_fields, refusing
from chatledger.models.json import JsonValue, same_json
from chatledger.models.secrets import masked, masked_text
from chatledger.storage.append.run_end import ended_by_ledger
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql, insert_if_absent
from chatledger.storage.repositories.cursors import page_size, read_cursor, to_page, write_cursor
from chatledger.storage.repositories.owned import owned
from chatledger.storage.rows.encryption import Tenant, damaged_cell, decrypt_values, encrypt_values, to_model
from chatledger.storage.schema.columns import Undecoded
from chatledger.storage.schema.tables import runs, threads
from chatledger.storage.schema.text import encode_key

_USAGE = ("input_tokens", "output_tokens", "total_tokens", "usage_details", "cost")


_SCANNED = 10_000
"""The most runs that a page of one status reads."""
_STATUS = Kind("'running', 'completed', 'failed' or 'cancelled'", words=get_args(RunStatus))
_USAGE_OR_NONE = Kind("Usage or None", Usage, NoneType)


class RunRepository:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def start(
        self,
        thread_id: str,
        *,
        run_id: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        input: JsonValue = None,  # noqa: A002 - the column's name
        metadata: dict[str, Any] | None = None,
    ) -> Run:
        """Store a run with the status `running`, and return it. If the run exists, because an append named it first,
        the call fills in the fields that it lacks. Raises RunConflict if a field has another value already, or if the
        run belongs to another thread.

        Keys and passwords are never stored: a value in `input` or `metadata` under a name such as `api_key`,
        `authorization` or `password` becomes `"***"` (`SECRET_NAMES` in `chatledger.models.secrets`).
        """
        require(STR, thread_id=thread_id)
        require(STR_OR_NONE, run_id=run_id, agent=agent, model=model)
        require(DICT_OR_NONE, metadata=metadata)
        with refusing():
            run = Run(
                run_id=new_id() if run_id is None else run_id,
                thread_id=thread_id,
                agent=agent,
                model=model,
                input=input,
                metadata=metadata,
                started_at=datetime.now(UTC),
            )
        run = run.model_copy(update={"input": masked(run.input), "metadata": masked(run.metadata)})
        encode_key(run.run_id, "run_id")
        encode_key(thread_id, "thread_id")
        return await self._scope.write(lambda sql: _start(sql, self._scope.tenant, run))

    async def finish(
        self, run_id: str, *, status: RunStatus, usage: Usage | None = None, error: str | None = None
    ) -> Run:
        """End the run and return it. The same call again changes nothing. Raises RunConflict for an outcome other than
        the stored one.

        Without `usage`, the run keeps what its drafts counted: a draft with a run adds its provider's usage to the run
        when it ends. A given `usage` takes the place of that sum. A run that the ledger cancelled, because a draft of
        it was interrupted, can still be ended otherwise.

        An `error` may quote a request, so text in it that looks like a key is stored as `"***"`.
        """
        require(STR, run_id=run_id)
        require(_STATUS, status=status)
        require(_USAGE_OR_NONE, usage=usage)
        if usage is not None:
            refuse_own_fields(usage, Usage, "usage", "its details")
        require(STR_OR_NONE, error=error)
        with refusing("usage"):
            usage = None if usage is None else Usage.model_validate(dict(usage))
        error = None if error is None else masked_text(error)
        return await self._scope.write(lambda sql: _finish(sql, self._scope.tenant, run_id, status, usage, error))

    async def get(self, run_id: str) -> Run:
        """Raises RunNotFound."""
        require(STR, run_id=run_id)
        run = await self.find(run_id)
        if run is None:
            raise RunNotFound(run_id)
        return run

    async def find(self, run_id: str) -> Run | None:
        require(STR, run_id=run_id)
        return await self._scope.read(lambda sql: find_run(sql, self._scope.tenant, run_id))

    async def list(
        self,
        *,
        thread_id: str | None = None,
        status: RunStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Run]:
        """Runs of a thread, or all runs, in the order of their ids. For ids that the ledger makes, that is by time.

        With `status`, only those that are `running`, `completed`, `failed` or `cancelled`. No index knows the status,
        so a page reads at most 10,000 runs to find them. It may therefore have fewer items than `limit`, or none,
        although more follow: read on while there is a `next_cursor`.

        The page's `damaged` tells of those that cannot be read.
        """
        require(STR_OR_NONE, thread_id=thread_id, cursor=cursor)
        if status is not None:
            require(_STATUS, status=status)
        require(INT, limit=limit)
        tenant, size = self._scope.tenant, page_size(limit)
        return await self._scope.read(lambda sql: _list(sql, tenant, thread_id, status, size, cursor))


def _key(tenant: Tenant, run_id: str) -> Any:
    return and_(owned(runs, tenant), runs.c.run_id == run_id)


def find_run(sql: Sql, tenant: Tenant, run_id: str, *, hold: bool = False) -> Run | None:
    """With `hold`, nobody can delete the run before the transaction ends."""
    found = select(runs).where(_key(tenant, run_id))
    held = found.with_for_update(read=True, key_share=True) if hold else found
    row = sql.execute(held).mappings().one_or_none()
    return None if row is None else to_run(tenant, row)


def _lock_run(sql: Sql, tenant: Tenant, run_id: str) -> Run | None:
    """The run, locked against changes until the transaction ends."""
    row = sql.execute(select(runs).where(_key(tenant, run_id)).with_for_update()).mappings().one_or_none()
    return None if row is None else to_run(tenant, row)


def to_run(tenant: Tenant, row: Any) -> Run:
    """Raises DamagedCell and EncryptionError."""
    decrypted = decrypt_values(tenant, runs, row)
    fields = {name: decrypted[name] for name in row if name not in ("tenant_id", *_USAGE)}
    return to_model(Run, runs, row, {**fields, "usage": _usage(row)})


def _start(sql: Sql, tenant: Tenant, run: Run) -> Run:
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


def _complete(sql: Sql, tenant: Tenant, stored: Run, run: Run) -> Run:
    """Fill in the fields that the stored run lacks."""
    new: dict[str, Any] = {}
    for name in ("agent", "model", "input", "metadata"):
        said, given = getattr(stored, name), getattr(run, name)
        if given is None:
            continue
        if said is None:
            new[name] = given
        elif not same_json(said, given):
            raise RunConflict(run.run_id, f"was started with another {name}")
    if new:
        encrypted = encrypt_values(tenant, runs, new, run_id=run.run_id)
        sql.execute(update(runs).where(_key(tenant, run.run_id)).values(**encrypted))
    return stored.model_copy(update=new)


def _finish(sql: Sql, tenant: Tenant, run_id: str, status: RunStatus, usage: Usage | None, error: str | None) -> Run:
    stored = _lock_run(sql, tenant, run_id)
    if stored is None:
        raise RunNotFound(run_id)
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


def count_usage(sql: Sql, tenant: Tenant, run_id: str, usage: Usage) -> None:
    """Add the usage of a draft to its run, in the transaction that ends the draft. The sum of a run that the
    application ended as completed or failed stays as it is. So does one that would be beyond the columns: what a
    provider counts must not cost the message.
    """
    columns = [runs.c[name] for name in _USAGE]
    held = select(*columns).where(_key(tenant, run_id), runs.c.status.in_(("running", "cancelled"))).with_for_update()
    row = sql.execute(held).mappings().one_or_none()
    if row is None:
        return
    try:
        total = usage if (stored := _usage(row)) is None else stored + usage
    except (ValidationError, DamagedCell):
        return
    sql.execute(update(runs).where(_key(tenant, run_id)).values(**_usage_columns(total)))


def _usage(row: Any) -> Usage | None:
    reported = {name.removeprefix("usage_"): row[name] for name in _USAGE}
    said = any(value is not None for value in reported.values())
    return to_model(Usage, runs, row, reported, {"details": "usage_details"}) if said else None


def _usage_columns(usage: Usage) -> dict[str, Any]:
    return {name: getattr(usage, name.removeprefix("usage_")) for name in _USAGE}


def _list(
    sql: Sql, tenant: Tenant, thread_id: str | None, status: RunStatus | None, limit: int, cursor: str | None
) -> Page[Run]:
    wanted = [owned(runs, tenant)]
    if thread_id is not None:
        wanted.append(runs.c.thread_id == thread_id)
    if cursor is not None:
        wanted.append(runs.c.run_id > read_cursor(cursor, str)[0])
    if status is not None:
        return _list_of_status(sql, tenant, and_(*wanted), status, limit)
    rows = sql.execute(select(runs).where(*wanted).order_by(runs.c.run_id).limit(limit + 1)).mappings().all()
    return to_page(rows, limit, lambda row: to_run(tenant, row), "run_id")


def _list_of_status(sql: Sql, tenant: Tenant, wanted: ColumnElement[bool], status: RunStatus, limit: int) -> Page[Run]:
    """One statement. It reads the next runs in the order of their ids from the primary key, or from the key that begins
    with the thread, and returns a row with the last id even if none of them has the status.
    """
    near = select(runs.c.run_id, runs.c.status).where(wanted).order_by(runs.c.run_id).limit(_SCANNED)
    scanned = near.cte("scanned")
    end = select(func.max(scanned.c.run_id).label("last_id"), func.count().label("scanned")).select_from(scanned)
    said = select(scanned.c.run_id).where(scanned.c.status == status).order_by(scanned.c.run_id).limit(limit + 1)
    ends, found = end.subquery("ends"), said.subquery("found")
    own = and_(runs.c.tenant_id == tenant.name, runs.c.run_id == found.c.run_id)
    joined = ends.outerjoin(found.join(runs, own), true())
    rows = sql.execute(select(runs, ends).select_from(joined).order_by(runs.c.run_id)).mappings().all()
    last_id, count = rows[0]["last_id"], rows[0]["scanned"]
    own_rows = [{name: row[name] for name in runs.c.keys()} for row in rows if row["run_id"] is not None]  # noqa: SIM118
    page = to_page(own_rows, limit, lambda row: to_run(tenant, row), "run_id")
    if page.next_cursor is not None or count < _SCANNED:
        return page
    if isinstance(last_id, Undecoded):
        raise damaged_cell(runs, "run_id", {})
    return replace(page, next_cursor=write_cursor(last_id))
