"""Partial messages: lists those that are being written and those that were abandoned, and interrupts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import NoneType

from sqlalchemy import and_, select

from chatledger.arguments import Kind, require, require_between
from chatledger.models import PartialMessage
from chatledger.rules import Lease
from chatledger.storage.append.attempt import attempt_locked
from chatledger.storage.append.partial import PartialKey
from chatledger.storage.append.preflight import preflight, read_tip
from chatledger.storage.append.request import AppendRequest, make_request
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.repositories.owned import owned
from chatledger.storage.rows.encryption import Tenant, decrypt_values
from chatledger.storage.schema.tables import branches, messages
from chatledger.storage.schema.text import encode_json, encode_key

_AGE = Kind("a timedelta, a number or None", timedelta, int, float, NoneType)
_LONGEST_AGE = 10_000 * 366 * 86_400
"""Seconds of more years than the calendar has."""
_PARTIAL = Kind("a PartialMessage", PartialMessage)


class PartialRepository:
    """The messages that are still being written, or were abandoned: `ledger.partials`, and `tx.partials` in a
    transaction.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(self) -> Sequence[PartialMessage]:
        """All partial messages of the tenant, or of the user, those with the oldest last write first. One statement.
        Its cost grows only with their number, because an index contains only them.
        """
        found = await self._scope.read(lambda sql: _list(sql, self._scope.tenant))
        return [partial for partial, _ in found]

    async def abandoned(self, *, older_than: timedelta | float | None = None) -> Sequence[PartialMessage]:
        """The partial messages whose lease has expired or, with `older_than` (a timedelta, or seconds), those without a
        write for that long. Costs as much as `list`.
        """
        require(_AGE, older_than=older_than)
        if isinstance(older_than, (int, float)):
            require_between(0, _LONGEST_AGE, older_than=older_than)
            older_than = timedelta(seconds=older_than)
        age = older_than
        found = await self._scope.read(lambda sql: _list(sql, self._scope.tenant))
        now = datetime.now(UTC)
        return [partial for partial, lease in found if _is_abandoned(partial, lease, now, age)]

    async def interrupt(self, partial: PartialMessage) -> bool:
        """Mark the message as interrupted, and answer its calls with synthetic results, even while its writer holds the
        lease. Returns False, and writes nothing, if the message was written, completed or interrupted after it was
        listed, or if its thread was deleted.
        """
        require(_PARTIAL, partial=partial)
        request = make_request(
            self._scope.tenant, partial.thread_id, [], limits=self._scope.limits, branch=partial.branch, interrupt=True
        )
        message_id = None if partial.message_id is None else encode_key(partial.message_id, "message_id")
        key = PartialKey(request.tenant, request.thread, partial.branch, partial.seq, message_id)
        return await self._scope.write(
            lambda sql: interrupt_partial(sql, request, key, since=partial.since), moves=request.thread
        )


def interrupt_partial(sql: Sql, request: AppendRequest, key: PartialKey, *, since: datetime | None = None) -> bool:
    """Interrupt a partial message, in a transaction. With `since`, only if its last write was at that time."""
    request = replace(
        request,
        messages=(),
        rows=(),
        branch=key.branch,
        expected=None,
        expected_version=None,
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


def _list(sql: Sql, tenant: Tenant) -> list[tuple[PartialMessage, Lease | None]]:
    key = ("tenant_id", "thread_id", "branch")
    at_tip = and_(*(messages.c[name] == branches.c[name] for name in key), messages.c.seq == branches.c.partial_seq)
    row = select(branches, messages.c.message_id, messages.c.run_id, messages.c.created_at.label("opened_at"))
    found = row.join(messages, at_tip).where(owned(branches, tenant), branches.c.partial_seq.is_not(None))
    partials = []
    for one in sql.execute(found):
        place = {"thread_id": one.thread_id, "branch": one.branch}
        open_calls = decrypt_values(tenant, branches, {"open_calls": one.open_calls}, **place)["open_calls"]
        tip = (one.last_seq, None, encode_json(open_calls), one.partial_seq)
        lease = read_tip(one.thread_id, one.branch, *tip).lease
        partial = PartialMessage(
            thread_id=one.thread_id,
            branch=one.branch,
            seq=one.partial_seq,
            message_id=one.message_id,
            run_id=one.run_id,
            created_at=one.opened_at,
            since=one.opened_at if lease is None else lease.written,
        )
        partials.append((partial, lease))
    return sorted(partials, key=lambda found: (found[0].since, found[0].thread_id, found[0].branch))


def _is_abandoned(partial: PartialMessage, lease: Lease | None, now: datetime, age: timedelta | None) -> bool:
    if age is not None:
        return now - partial.since >= age
    return lease is None or not lease.holds(now)
