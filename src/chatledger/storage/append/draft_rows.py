"""The update of a stored message in its own row. A partial message grows, and is completed.

The branch's stamp guards the update as it guards an append, and on PostgreSQL the update is one statement, unless the
tables are distributed by tenant. Rows of parts and calls are overwritten by their index. Rows that are known to be
stored already are not sent again. The same update appends the messages that follow, if a provider's response is more
than one message.

Redacting and revising a committed message overwrite its rows in the same way (`overwrite`), under locks of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from chatledger.models import ChatMessage, RulesLevel, State, Violation
from chatledger.rules import Tip
from chatledger.storage.append.preflight import read_tip
from chatledger.storage.append.write import (
    ACTIVITY_RESOLUTION,
    TIP,
    UPDATE_TIP,
    Columns,
    columns_of,
    insert_from,
    load_rows,
    move_tip,
    tip_columns,
)
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.rows.encrypted import refuse_recorded, unless_encrypted
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.messages import CALL_COLUMNS, GIVEN_COLUMNS, PART_COLUMNS, EncodedMessage, encode_all
from chatledger.storage.schema.text import decode_text, encode_json, encode_text

_FIXED = frozenset({"message_id", "role", "tool_call_id", "run_id"})
_GROWING = tuple(name for name in GIVEN_COLUMNS if name not in _FIXED)
_TABLES = {"message_parts": PART_COLUMNS[1:], "tool_calls": CALL_COLUMNS[1:]}  # idx, then what may change


@dataclass(frozen=True, slots=True)
class PartialKey:
    """The key of a partial message, as stored. `message_id` tells whether the row still holds the same message."""

    tenant: Tenant
    thread: str
    branch: int
    seq: int
    message_id: str | None

    @property
    def parameters(self) -> dict[str, Any]:
        return {"tenant": self.tenant.key, "thread": self.thread, "branch": self.branch, "seq": self.seq}


@dataclass(frozen=True, slots=True)
class HeldDraft:
    """The tip of the branch while the partial message stands at its end, and the rules of the thread."""

    tip: Tip
    stamp: int
    rules: RulesLevel | None


@dataclass(frozen=True, slots=True)
class PartialWrite:
    """The new row and the new tip. `before` is the known content of the row; None if it is unknown. `following` are the
    rows, by table, of the messages that follow.
    """

    key: PartialKey
    stamp: int
    new_stamp: int
    tip: Tip
    encoded: EncodedMessage
    before: EncodedMessage | None
    state: State
    violations: Sequence[Violation]
    now: datetime
    following: Mapping[str, Sequence[tuple[Any, ...]]] = field(default_factory=dict)

    @property
    def finishes(self) -> bool:
        return self.state != "partial"


_HELD = """
SELECT b.last_seq, b.last_role, b.open_calls, b.partial_seq, b.stamp, t.rules
FROM {schema}branches b
JOIN {schema}threads t ON t.tenant_id = b.tenant_id AND t.thread_id = b.thread_id
JOIN {schema}messages m
  ON m.tenant_id = b.tenant_id AND m.thread_id = b.thread_id AND m.branch = b.branch AND m.seq = b.partial_seq
WHERE b.tenant_id = :tenant AND b.thread_id = :thread AND b.branch = :branch AND b.partial_seq = :seq
  AND m.message_id = :message_id
"""


def find_held(sql: WriteSql, key: PartialKey) -> HeldDraft | None:
    """None if the message is no longer partial, or no longer stored. Raises EncryptionError as `refuse_recorded`."""
    refuse_recorded(sql, key.tenant)
    rows = sql.fetch(_HELD, key.parameters | {"message_id": key.message_id})
    if not rows:
        return None
    *tip, stamp, rules = rows[0]
    return HeldDraft(read_tip(decode_text(key.thread), key.branch, *tip), stamp, rules)


def write_partial(sql: WriteSql, write: PartialWrite) -> bool:
    """Whether the write happened. False if the branch has another stamp, or if the ledger has no keys and the tenant or
    the database is encrypted by now; then nothing was written.
    """
    return (_write_by_table if sql.by_table else _write_at_once)(sql, write)


_KEY = "tenant_id = :tenant AND thread_id = :thread AND branch = :branch"
_UPDATE_MESSAGE = (
    f"UPDATE {{schema}}messages SET state = :state, violations = :violations,"
    f" {', '.join(f'{name} = :{name}' for name in _GROWING)} WHERE {_KEY} AND seq = :seq"
)
_TOUCH = (
    "UPDATE {schema}threads SET active_at = :now"
    " WHERE tenant_id = :tenant AND thread_id = :thread AND active_at < :stale"
)
_IF_GUARDED = " AND EXISTS (SELECT FROM tip)"


def _delete_from(table: str) -> str:
    return f"DELETE FROM {{schema}}{table} WHERE {_KEY} AND seq = :seq AND idx >= :{table}_count"


def _insert_into(table: str, values: str) -> str:
    idx, *changing = _TABLES[table]
    names = ("tenant_id", "thread_id", "branch", "seq", idx, *changing)
    return (
        f"INSERT INTO {{schema}}{table} ({', '.join(names)}) {values}"
        " ON CONFLICT (tenant_id, thread_id, branch, seq, idx)"
        f" DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in changing)}"
    )


def _values(write: PartialWrite) -> dict[str, Any]:
    return {
        **_message_values(write.key, write.encoded, write.state, write.violations),
        "stamp": write.stamp,
        "new_stamp": write.new_stamp,
        **tip_columns(write.tip),
    }


def _message_values(
    key: PartialKey, encoded: EncodedMessage, state: State, violations: Sequence[Violation]
) -> dict[str, Any]:
    given = dict(zip(GIVEN_COLUMNS, encoded.message, strict=True))
    grown = tuple(given[name] for name in _GROWING)
    if (encryption := key.tenant.encryption) is not None:
        (grown,) = encryption.encrypt("messages", _GROWING, [grown], *_cell_key(key))
    return {
        **key.parameters,
        **dict(zip(_GROWING, grown, strict=True)),
        "state": state,
        "violations": encode_json([violation.model_dump() for violation in violations] or None),
    }


@dataclass(frozen=True, slots=True)
class _Overwritten:
    """The rows of one table to overwrite. With `shrinks`, the rows from index `count` on are deleted."""

    table: str
    rows: Sequence[tuple[Any, ...]]
    count: int
    shrinks: bool


def _rows(key: PartialKey, encoded: EncodedMessage, before: EncodedMessage | None) -> list[_Overwritten]:
    """Compares plain rows, then encrypts the changed ones. The order matters: encrypting the same text twice never
    gives the same ciphertext.
    """
    changed = [
        _changed("message_parts", encoded.parts, None if before is None else before.parts),
        _changed("tool_calls", encoded.calls, None if before is None else before.calls),
    ]
    if (encryption := key.tenant.encryption) is None:
        return changed
    cell = _cell_key(key)
    return [replace(own, rows=encryption.encrypt(own.table, _TABLES[own.table], own.rows, *cell)) for own in changed]


def _cell_key(key: PartialKey) -> tuple[Any, ...]:
    return key.thread, key.branch, key.seq


def _changed(table: str, rows: tuple[tuple[Any, ...], ...], before: tuple[tuple[Any, ...], ...] | None) -> _Overwritten:
    if before is None:
        return _Overwritten(table, rows, len(rows), shrinks=True)
    known = dict(enumerate(before))
    changed = tuple(row for index, row in enumerate(rows) if known.get(index) != row)
    return _Overwritten(table, changed, len(rows), shrinks=len(rows) < len(before))


def _renews_only(write: PartialWrite) -> bool:
    return write.state == "partial" and write.before == write.encoded


# --- In one statement, on PostgreSQL ----------------------------------------------------------------------------------


def _write_at_once(sql: WriteSql, write: PartialWrite) -> bool:
    values, rows = _values(write), _rows(write.key, write.encoded, write.before)
    for own in rows:
        if own.rows:
            columns = zip(_TABLES[own.table], zip(*own.rows, strict=True), strict=True)
            values |= {f"own_{own.table}_{name}": column for name, column in columns}
        if own.shrinks:
            values[f"{own.table}_count"] = own.count
    if write.finishes:
        values |= {"now": write.now, "stale": write.now - ACTIVITY_RESOLUTION}
    filled = tuple(own.table for own in rows if own.rows)
    shrunk = tuple(own.table for own in rows if own.shrinks)
    following = tuple(columns_of(table, given, values) for table, given in write.following.items() if given)
    unless = unless_encrypted(write.key.tenant)
    statement = _statement(filled, shrunk, following, unless, renews_only=_renews_only(write), finishes=write.finishes)
    return bool(sql.fetch(statement, values)[0][0])


@lru_cache(maxsize=64)
def _statement(
    filled: tuple[str, ...],
    shrunk: tuple[str, ...],
    following: tuple[Columns, ...],
    unless: str,
    *,
    renews_only: bool,
    finishes: bool,
) -> str:
    parts = [f"WITH tip AS ({UPDATE_TIP}{unless} RETURNING 1)"]
    if not renews_only:
        parts.append(f"message AS ({_UPDATE_MESSAGE}{_IF_GUARDED})")
    if finishes:
        parts.append(f"touched AS ({_TOUCH}{_IF_GUARDED})")
    parts += [f"{table}_gone AS ({_delete_from(table)}{_IF_GUARDED})" for table in shrunk]
    parts += [f"{table}_now AS ({_insert_into(table, _unnested(table))})" for table in filled]
    parts += [f"{columns.table} AS ({insert_from(TIP, columns)})" for columns in following]
    return ",\n".join(parts) + "\nSELECT count(*) FROM tip"


def _unnested(table: str) -> str:
    arrays = ", ".join(f":own_{table}_{name}::{'int' if name == 'idx' else 'text'}[]" for name in _TABLES[table])
    return f"SELECT :tenant::text, :thread::text, :branch::int, :seq::bigint, u.* FROM tip, unnest({arrays}) AS u"


# --- In one statement for each table: on SQLite, and where the tables are distributed by tenant -----------------------


def _write_by_table(sql: WriteSql, write: PartialWrite) -> bool:
    """Inside a transaction."""
    values = _values(write)
    if not move_tip(sql, write.key.tenant, values):
        return False
    if not _renews_only(write):
        sql.fetch(_UPDATE_MESSAGE, values)
    if write.finishes:
        times = {"now": sql.moment(write.now), "stale": sql.moment(write.now - ACTIVITY_RESOLUTION)}
        sql.fetch(_TOUCH, values | times)
    _overwrite_rows(sql, write.key, _rows(write.key, write.encoded, write.before))
    load_rows(sql, write.following, write.key.parameters)
    return True


# --- A committed message, on both databases ---------------------------------------------------------------------------


def overwrite(sql: WriteSql, tenant: Tenant, message: ChatMessage) -> None:
    """Give the rows of a stored message the content of `message`, which names its place, in a transaction that holds
    the thread. Its id, role, run, answered call and outputs stay, and so do the ids of the rows of its calls.
    """
    (encoded,) = encode_all([message])
    thread, branch, seq = encode_text(message.thread_id or ""), message.branch or 0, message.seq or 0
    key = PartialKey(tenant, thread, branch, seq, encoded.message_id)
    sql.fetch(_UPDATE_MESSAGE, _message_values(key, encoded, message.state, message.violations))
    _overwrite_rows(sql, key, _rows(key, encoded, None))


def _overwrite_rows(sql: WriteSql, key: PartialKey, overwritten: Sequence[_Overwritten]) -> None:
    for own in overwritten:
        if own.shrinks:
            sql.fetch(_delete_from(own.table), key.parameters | {f"{own.table}_count": own.count})
        if own.rows:
            names = _TABLES[own.table]
            values_of_row = ", ".join((":tenant", ":thread", ":branch", ":seq", *(f":{name}" for name in names)))
            rows = [key.parameters | dict(zip(names, row, strict=True)) for row in own.rows]
            sql.insert(_insert_into(own.table, f"VALUES ({values_of_row})"), rows)
