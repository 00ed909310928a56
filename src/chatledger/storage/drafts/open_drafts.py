"""Partial messages: lists those that are being written and those that were abandoned, and interrupts them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, and_, literal_column, select

from chatledger.models import OpenDraft
from chatledger.rules import Lease
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.draft_rows import PartialKey
from chatledger.storage.append.preflight import preflight, read_tip
from chatledger.storage.append.request import AppendRequest, make_request
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import ReadSql, WriteSql
from chatledger.storage.rows.encryption import Tenant, decrypt_values
from chatledger.storage.rows.owned import owned
from chatledger.storage.schema.tables import branches, messages
from chatledger.storage.schema.text import CLOCK, encode_json, encode_key


async def find_open(scope: Scope, abandoned_for: timedelta | None) -> list[OpenDraft]:
    """Those with the oldest last write first."""
    drafts = await scope.read(lambda sql: _list(sql, scope.tenant))
    if abandoned_for is None:
        return [draft for draft, _ in drafts]
    return [draft for draft, lease in drafts if _is_abandoned(draft, lease, abandoned_for)]


async def interrupt_draft(scope: Scope, draft: OpenDraft) -> bool:
    """Returns False if it changed since it was listed."""
    request = make_request(scope.terms, draft.thread_id, [], branch=draft.branch)
    message_id = None if draft.message_id is None else encode_key(draft.message_id, "message_id")
    key = PartialKey(request.tenant, request.thread, draft.branch, draft.seq, message_id)
    return await scope.write(lambda sql: interrupt_partial(sql, request, key, since=draft.since), moves=request.thread)


def interrupt_partial(sql: WriteSql, request: AppendRequest, key: PartialKey, *, since: datetime | None = None) -> bool:
    """Interrupt a partial message, in a transaction. With `since`, only if its last write was at that time."""
    request = replace(
        request,
        messages=(),
        rows=(),
        branch=key.branch,
        expected=None,
        after=None,
        interrupt=True,
        now=datetime.now(UTC),
    )
    tip = preflight(sql, request, lock=True).tip
    if tip is None or tip.partial_seq != key.seq:
        return False
    if since is not None and tip.lease is not None and tip.lease.written != since:
        return False
    attempt_locked(sql, request)
    return True


def _list(sql: ReadSql, tenant: Tenant) -> list[tuple[OpenDraft, Lease | None]]:
    key = ("tenant_id", "thread_id", "branch")
    at_tip = and_(*(messages.c[name] == branches.c[name] for name in key), messages.c.seq == branches.c.partial_seq)
    clock: ColumnElement[int | None] = literal_column(CLOCK[sql.dialect]).label("clock")
    row = select(branches, clock, messages.c.message_id, messages.c.run_id, messages.c.created_at.label("opened_at"))
    statement = row.join(messages, at_tip).where(owned(branches, tenant), branches.c.partial_seq.is_not(None))
    drafts = []
    for cells in sql.execute(statement):
        place = {"thread_id": cells.thread_id, "branch": cells.branch}
        open_calls = decrypt_values(tenant, branches, {"open_calls": cells.open_calls}, **place)["open_calls"]
        tip = (cells.last_seq, None, encode_json(open_calls), cells.partial_seq, cells.clock)
        lease = read_tip(cells.thread_id, cells.branch, *tip).lease
        draft = OpenDraft(
            thread_id=cells.thread_id,
            branch=cells.branch,
            seq=cells.partial_seq,
            message_id=cells.message_id,
            run_id=cells.run_id,
            created_at=cells.opened_at,
            since=cells.opened_at if lease is None else lease.written,
        )
        drafts.append((draft, lease))
    return sorted(drafts, key=lambda opened: (opened[0].since, opened[0].thread_id, opened[0].branch))


def _is_abandoned(draft: OpenDraft, lease: Lease | None, period: timedelta) -> bool:
    if lease is None:
        return datetime.now(UTC) - draft.since >= period
    return not lease.holds and lease.age >= period
