"""Runs: the executions of agents on a thread, with their model, duration and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import NoneType
from typing import Any, get_args

from pydantic import ValidationError
from sqlalchemy import ColumnElement, and_, func, select, true, update

from chatledger.arguments import DICT_OR_NONE, INT, STR, STR_OR_NONE, Kind, require
from chatledger.errors import DamagedCell, RunConflict, RunNotFound, ThreadNotFound
from chatledger.ids import new_id
from chatledger.models import Page, Run, RunPrices, RunStatus, Usage, UsageSummary
from chatledger.models.base import read_moment, refuse_own_fields, refusing
from chatledger.models.json import JsonValue, same_json
from chatledger.models.secrets import masked, masked_text
from chatledger.models.weight import apart
from chatledger.storage.append.run_end import ended_by_ledger
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql, insert_if_absent
from chatledger.storage.repositories.bounded import Rows, fetch_rows
from chatledger.storage.repositories.cursors import page_size, read_cursor, to_page, write_cursor
from chatledger.storage.repositories.many import chunks, read_ids
from chatledger.storage.repositories.owned import owned
from chatledger.storage.repositories.prices import read_prices
from chatledger.storage.repositories.usage import UsageFilter, read_groups, read_usage, summarize_usage
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
    """The runs of agents: `ledger.runs`, and `tx.runs` in a transaction."""

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
        """Store a run with the status `running`, and return it.

            run = await ledger.runs.start(thread_id, agent="support", model="gpt-5", input={"question": "Tokyo?"})

        The ledger makes a `run_id` if you pass none. If the run exists, because an append named it first, the call
        fills in the fields that it lacks. Raises ThreadNotFound, and RunConflict if a field has another value already,
        or if the run belongs to another thread.

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
        run = await apart(lambda: _without_secrets(run), run.input, run.metadata)
        encode_key(run.run_id, "run_id")
        encode_key(thread_id, "thread_id")
        return await self._scope.write(lambda sql: _start(sql, self._scope.tenant, run))

    async def finish(
        self, run_id: str, *, status: RunStatus, usage: Usage | None = None, error: str | None = None
    ) -> Run:
        """End the run with a status, and return it. The same call again changes nothing.

            await ledger.runs.finish(run.run_id, status="completed", usage=Usage(input_tokens=812, output_tokens=96))

        Without `usage`, the run keeps the sum of its drafts: a draft with a run adds its provider's usage to the run
        when it ends. A given `usage` replaces that sum. If the ledger cancelled the run, because a draft of it was
        interrupted, the run can still be ended with another status. `error` says why it failed. It may quote a request,
        so text in it that looks like a key is stored as `"***"`.

        Raises RunNotFound, and RunConflict if the run has ended with another outcome.
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
        """The run. Raises RunNotFound."""
        require(STR, run_id=run_id)
        run = await self.find(run_id)
        if run is None:
            raise RunNotFound(run_id)
        return run

    async def find(self, run_id: str) -> Run | None:
        """The run, or None if it does not exist."""
        require(STR, run_id=run_id)
        return await self._scope.read(lambda sql: find_run(sql, self._scope.tenant, run_id))

    async def find_many(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """The existing runs, keyed by id. One query reads up to 500 of them. Invalid ids are ignored."""
        ids = read_ids("run_ids", run_ids)
        return await self._scope.read(lambda sql: _find_runs(sql, self._scope.tenant, ids))

    async def list(
        self,
        *,
        thread_id: str | None = None,
        status: RunStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Run]:
        """A page of the runs of a thread, or of all runs, in the order of their ids. Ids that the ledger makes are in
        the order of time, to the millisecond.

        With `status`, only runs of that status. No index contains the status, so a page reads at most 10,000 runs to
        find them. It may therefore have fewer items than `limit`, or none, although more follow: read on while there is
        a `next_cursor`.

        `limit` is the maximum number of runs, 50 by default and 1,000 at most. The page's `damaged` has the errors of
        runs that cannot be read. Raises InvalidCursor and LimitExceeded.
        """
        require(STR_OR_NONE, thread_id=thread_id, cursor=cursor)
        if status is not None:
            require(_STATUS, status=status)
        require(INT, limit=limit)
        tenant, size = self._scope.tenant, page_size(limit)
        return await self._scope.read(lambda sql: _list(sql, tenant, thread_id, status, size, cursor))

    async def usage(
        self,
        by: str | Sequence[str] = (),
        *,
        user_id: str | None = None,
        thread_id: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        prices: bool | RunPrices = False,
    ) -> Sequence[UsageSummary]:
        """The number of runs, their tokens and their cost, summed by the words of `by`: "user" (of the thread),
        "agent", "model", "day" (of the start, in UTC), "thread", "status" and "metadata.KEY", a key of the runs'
        metadata. Without a word, one sum of all. The list is in order of the groups, and a group of None comes last.

        A run that started at `since` is included, one that started at `until` is not. Sums are exact.

        With `prices=True`, the price list of the package genai-prices gives a cost, in dollars, to each run that has
        none: by its model, its input and output tokens, and the time of its start. It is an estimate, which takes the
        run for one request; `estimated_cost` says how much of `cost` is estimated. Nothing is stored, and no server is
        asked. Instead of True, `prices` can be a function: it gets the model, the usage and the time of the start, and
        returns a Decimal, or None if it does not know. Raises MissingExtra without the extra `prices`.

        One statement, which reads each chosen run. A key of the metadata takes a row for each run into memory, and
        `prices` one for each run without a cost; the price list takes about 80 µs for each. Raises DamagedCell if a
        cost or a value to group by cannot be read.
        """
        groups = read_groups(by)
        require(STR_OR_NONE, user_id=user_id, thread_id=thread_id, agent=agent, model=model)
        which = UsageFilter(thread_id, agent, model, read_moment("since", since), read_moment("until", until))
        tenant, list_price = self._scope.tenant.seen_by(user_id), read_prices(prices)
        priced = list_price is not None
        rows = await self._scope.read(lambda sql: read_usage(sql, tenant, which, groups, priced=priced))
        return await summarize_usage(rows, tenant, groups, list_price)


def _key(tenant: Tenant, run_id: str) -> Any:
    return and_(owned(runs, tenant), runs.c.run_id == run_id)


def find_run(sql: Sql, tenant: Tenant, run_id: str, *, hold: bool = False) -> Run | None:
    """With `hold`, nobody can delete the run before the transaction ends."""
    found = select(runs).where(_key(tenant, run_id))
    held = found.with_for_update(read=True, key_share=True) if hold else found
    row = sql.execute(held).mappings().one_or_none()
    return None if row is None else to_run(tenant, row)


def _find_runs(sql: Sql, tenant: Tenant, run_ids: Sequence[str]) -> dict[str, Run]:
    found: dict[str, Run] = {}
    for some in chunks(run_ids):
        rows = sql.execute(select(runs).where(owned(runs, tenant), runs.c.run_id.in_(some))).mappings()
        found |= {row["run_id"]: to_run(tenant, row) for row in rows}
    return found


def _lock_run(sql: Sql, tenant: Tenant, run_id: str) -> Run | None:
    """The run, locked against changes until the transaction ends."""
    row = sql.execute(select(runs).where(_key(tenant, run_id)).with_for_update()).mappings().one_or_none()
    return None if row is None else to_run(tenant, row)


def to_run(tenant: Tenant, row: Any) -> Run:
    """Raises DamagedCell and EncryptionError."""
    decrypted = decrypt_values(tenant, runs, row)
    fields = {name: decrypted[name] for name in row if name not in ("tenant_id", *_USAGE)}
    return to_model(Run, runs, row, {**fields, "usage": _usage(row)})


def _without_secrets(run: Run) -> Run:
    return run.model_copy(update={"input": masked(run.input), "metadata": masked(run.metadata)})


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
    return to_page(
        fetch_rows(sql, select(runs).where(*wanted), limit, "run_id"), lambda row: to_run(tenant, row), "run_id"
    )


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
    rows, more = fetch_rows(sql, select(runs, ends).select_from(joined), limit, "run_id")
    last_id, count = rows[0]["last_id"], rows[0]["scanned"]
    own_rows = [{name: row[name] for name in runs.c.keys()} for row in rows if row["run_id"] is not None]  # noqa: SIM118
    page = to_page(Rows(own_rows, more), lambda row: to_run(tenant, row), "run_id")
    if page.next_cursor is not None or count < _SCANNED:
        return page
    if isinstance(last_id, Undecoded):
        raise damaged_cell(runs, "run_id", {})
    return replace(page, next_cursor=write_cursor(last_id))
