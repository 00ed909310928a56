"""Bulk loading for imports: whole new threads, judged by the rules of an append, by COPY or one executemany per table.

A new thread has no tip to guard and no stored ids. So its rows can be made without the database, and sent together with
those of hundreds of other threads. Either all threads of a batch are stored, or none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import IdConflict, InvalidArgument
from chatledger.ids import new_stamp
from chatledger.models import ChatMessage, RulesLevel, Thread, Violation
from chatledger.models.base import refusing
from chatledger.models.json import dumps
from chatledger.rules import Tip, judge
from chatledger.storage.append.create import FIRST_LINEAGE
from chatledger.storage.append.guarded_write import KEYS, TABLES, as_on_sqlite
from chatledger.storage.append.request import Creation, Terms, make_request
from chatledger.storage.append.write import plan_rows, tip_columns
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drivers.errors import Kind, read_failure
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.rows.encrypted import mark, refuse_without_keys
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.secrets import refuse_erased
from chatledger.storage.schema.text import encode_key

_KEY = ("tenant_id", "thread_id")
_COLUMNS: Mapping[str, Sequence[str]] = {
    "threads": (
        *(*_KEY, "user_id", "title", "metadata", "rules", "kind"),
        *("active_branch", "created_at", "active_at", "archived_at"),
    ),
    "branches": (*_KEY, "branch", "lineage", "stamp", "created_at", *tip_columns(Tip())),
    **{name: (*KEYS[name], *columns) for name, columns in TABLES.items()},
}

RowsByTable = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class PreparedThread:
    """A judged thread that is not stored yet: `prepare_thread` makes it, and `load_threads` stores it."""

    tenant: Tenant
    """The tenant of the ledger that prepared it."""
    thread: Thread
    """The thread."""
    rows: RowsByTable
    """The rows by table."""
    violations: list[Violation]
    """The rules that its messages break, in their order. Empty at the level strict."""
    earlier_id: str | None = None
    """The id that an earlier release gave this thread. `load` refuses the thread if it is stored or was erased under
    that id.
    """


def prepare_thread(
    scope: Scope, thread: Thread, messages: Sequence[ChatMessage], *, rules: RulesLevel | None = None
) -> PreparedThread:
    """Judge a whole new thread and its messages for `load_threads`, without the database. `rules` is the level that
    judges them; None is the level of the ledger.

    Raises RuleViolation, IdConflict and LimitExceeded, as an append of all the messages to the thread would, and
    TenantOnly on a user's ledger.
    """
    scope.refuse_view("an import of whole threads")
    with refusing("thread"):
        thread = Thread.model_validate(dict(thread))
    tenant, level = scope.tenant, rules or scope.rules
    # The limits are those of an append, which is one round trip. Here the caller decides how much it batches.
    request = make_request(Terms(tenant), thread.thread_id, messages)
    judgement = judge(Tip(), request.messages, branch=0, level=thread.rules or level)
    key = (tenant.key, request.thread)
    place = (*key, 0)
    rows = {
        "threads": [_encrypted(tenant, (*key, *_thread_row(thread)))],
        "branches": [(*place, FIRST_LINEAGE, new_stamp(), thread.created_at, *tip_columns(judgement.tip).values())],
    }
    for name, own in plan_rows(request, judgement, 0, request.runs).items():
        rows[name] = [place[: len(KEYS[name])] + row for row in own]
    violations = [violation for judged in judgement.messages for violation in judged.violations]
    return PreparedThread(tenant, thread, rows, violations)


def _thread_row(thread: Thread) -> tuple[Any, ...]:
    created = Creation.of(thread)
    return (
        None if thread.user_id is None else encode_key(thread.user_id, "user_id"),
        created.title,
        created.metadata,
        created.rules,
        created.kind,
        thread.active_branch,
        thread.created_at,
        thread.active_at,
        thread.archived_at,
    )


def _encrypted(tenant: Tenant, row: tuple[Any, ...]) -> tuple[Any, ...]:
    if tenant.encryption is None:
        return row
    (encrypted,) = tenant.encryption.encrypt("threads", _COLUMNS["threads"], [row])
    return encrypted


async def load_threads(scope: Scope, new: Sequence[PreparedThread]) -> None:
    """Store whole new threads from `prepare_thread`, for imports: all in one transaction, a few statements in all.

    Raises IdConflict, Erased, EncryptionError, and TenantOnly on a user's ledger, and then stores none of them.
    """
    scope.refuse_view("an import of whole threads")
    await scope.write(lambda sql: _load(sql, scope.tenant, new))


def _load(sql: WriteSql, tenant: Tenant, new: Sequence[PreparedThread]) -> None:
    """Store all the threads, in a transaction. Raises IdConflict if a thread or one of its runs is stored already,
    and Erased if a thread of that id was erased. Raises EncryptionError if plain text would be stored among ciphertext,
    or ciphertext among plain text. The threads may be those of other tenants, so each tenant is marked or refused here.
    """
    if any((thread.tenant.encryption is None) != (tenant.encryption is None) for thread in new):
        raise InvalidArgument("new", "was prepared by a ledger with other keys; load it with that ledger")
    for owner, ids in _ids_by_tenant(new).items():
        if owner.encryption is not None:
            mark(sql, owner)
        refuse_without_keys(sql, owner)
        refuse_erased(sql, owner, ids)
        _refuse_stored(
            sql, owner, [thread.earlier_id for thread in new if thread.tenant == owner and thread.earlier_id]
        )
    # Sorted by key, so that rows that are neighbours in the tables and their indexes are inserted one after the other.
    new = sorted(new, key=lambda thread: thread.rows["threads"][0][:2])
    try:
        for table in _COLUMNS:
            load_rows_of(sql, table, [row for thread in new for row in thread.rows[table]])
    except Exception as error:
        failure = read_failure(error)
        if failure is None or failure.kind is not Kind.UNIQUE:
            raise
        raise IdConflict("thread", "", f"one of {len(new)} new threads is stored already: {failure.detail}") from error


def load_rows_of(sql: WriteSql, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    columns = _COLUMNS[table]
    if rows:
        sql.load(table, *((columns, rows) if sql.dialect == "postgresql" else as_on_sqlite(columns, rows)))


def _ids_by_tenant(new: Sequence[PreparedThread]) -> dict[Tenant, list[str]]:
    ids: dict[Tenant, list[str]] = defaultdict(list)
    for prepared in new:
        ids[prepared.tenant] += [id_ for id_ in (prepared.thread.thread_id, prepared.earlier_id) if id_ is not None]
    return ids


_STORED = {
    dialect: f"SELECT thread_id FROM {{schema}}threads WHERE tenant_id = :tenant AND thread_id {among} LIMIT 1"
    for dialect, among in (("postgresql", "= ANY(:ids::text[])"), ("sqlite", "IN (SELECT value FROM json_each(:ids))"))
}


def _refuse_stored(sql: WriteSql, tenant: Tenant, thread_ids: Sequence[str]) -> None:
    """Raises IdConflict if one of the threads is stored."""
    if not thread_ids:
        return
    ids = [encode_key(thread_id, "thread_id") for thread_id in thread_ids]
    id_list: object = ids if sql.dialect == "postgresql" else dumps(ids)
    if sql.fetch(_STORED[sql.dialect], {"tenant": tenant.key, "ids": id_list}):
        raise IdConflict("thread", "", f"one of {len(thread_ids)} new threads is stored already, under an earlier id")
