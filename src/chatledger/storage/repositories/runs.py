"""Runs: the executions of agents on a thread, with their model, duration and cost."""

from __future__ import annotations

from datetime import UTC, datetime
from types import NoneType
from typing import Any, get_args

from sqlalchemy import and_, select, update

from chatledger.arguments import DICT_OR_NONE, INT, STR, STR_OR_NONE, Kind, require
from chatledger.errors import RunConflict, RunNotFound, ThreadNotFound
from chatledger.ids import new_id
from chatledger.models import Page, Run, RunStatus, Usage
from chatledger.models.base import refuse_own_fields, refusing
from chatledger.models.json import JsonValue, same_json
from chatledger.models.secrets import masked, masked_text
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql, insert_if_absent
from chatledger.storage.repositories.cursors import page_size, read_cursor, to_page
from chatledger.storage.repositories.owned import owned
from chatledger.storage.rows.encryption import Tenant, decrypt_values, encrypt_values, to_model
from chatledger.storage.schema.tables import runs, threads
from chatledger.storage.schema.text import encode_key

_USAGE = ("input_tokens", "output_tokens", "total_tokens", "usage_details", "cost")


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

    async def list(self, *, thread_id: str | None = None, limit: int = 50, cursor: str | None = None) -> Page[Run]:
        """Runs of a thread, or all runs, in the order of their ids. For ids that the ledger makes, that is by time.

        The page's `damaged` tells of those that cannot be read.
        """
        require(STR_OR_NONE, thread_id=thread_id, cursor=cursor)
        require(INT, limit=limit)
        return await self._scope.read(lambda sql: _list(sql, self._scope.tenant, thread_id, page_size(limit), cursor))


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
    reported = {name.removeprefix("usage_"): row[name] for name in _USAGE}
    said = any(value is not None for value in reported.values())
    usage = to_model(Usage, runs, row, reported, {"details": "usage_details"}) if said else None
    return to_model(Run, runs, row, {**fields, "usage": usage})


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
    usage = None if usage == Usage() else usage  # the columns cannot tell the two apart
    ended = Run.model_validate(stored.model_dump() | {"status": status, "usage": usage, "error": error})
    if stored.ended_at is not None:
        if ended != stored:
            raise RunConflict(run_id, f"has ended already, as {stored.status}")
        return stored
    ended = ended.model_copy(update={"ended_at": None if status == "running" else datetime.now(UTC)})
    said = usage or Usage()
    columns = {name: getattr(said, name.removeprefix("usage_")) for name in _USAGE}
    values = {"status": status, "error": error, "ended_at": ended.ended_at, **columns}
    encrypted = encrypt_values(tenant, runs, values, run_id=run_id)
    sql.execute(update(runs).where(_key(tenant, run_id)).values(**encrypted))
    return ended


def _list(sql: Sql, tenant: Tenant, thread_id: str | None, limit: int, cursor: str | None) -> Page[Run]:
    statement = select(runs).where(owned(runs, tenant))
    if thread_id is not None:
        statement = statement.where(runs.c.thread_id == thread_id)
    if cursor is not None:
        statement = statement.where(runs.c.run_id > read_cursor(cursor, str)[0])
    rows = sql.execute(statement.order_by(runs.c.run_id).limit(limit + 1)).mappings().all()
    return to_page(rows, limit, lambda row: to_run(tenant, row), "run_id")
