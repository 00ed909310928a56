"""The update of a stored message in its own row. A partial message grows, and is completed.

The branch's stamp guards the update as it guards an append. Rows of parts and calls are overwritten by their index.
Rows that are known to be stored already are not sent again. The same update appends the messages that follow, if a
provider's response is more than one message.

Redacting and revising a committed message overwrite its rows in the same way (`overwrite`), under locks of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chatledger.models import ChatMessage, RulesLevel, State, Violation
from chatledger.rules import Tip
from chatledger.storage.append.guarded_write import TABLES, UNGUARDED, GuardedWrite, Step, write_by_table
from chatledger.storage.append.preflight import read_tip
from chatledger.storage.append.write import ACTIVITY_RESOLUTION, TOUCH, tip_columns, tip_guard
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.rows.encrypted import refuse_recorded
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
    guarded = _guarded(write)
    if sql.by_table:
        return write_by_table(sql, guarded) is not None
    return bool(sql.fetch(*guarded.at_once("SELECT count(*) FROM tip"))[0][0])


def _guarded(write: PartialWrite) -> GuardedWrite:
    steps, rows, parameters = _overwriting(write.key, write.encoded, write.before)
    parameters |= _message_values(write.key, write.encoded, write.state, write.violations)
    parameters |= {"stamp": write.stamp, "new_stamp": write.new_stamp, **tip_columns(write.tip)}
    if write.state != "partial" or write.before != write.encoded:  # else it renews the lease only
        steps.append(_UPDATE_MESSAGE)
    if write.finishes:
        steps.append(TOUCH)
        parameters |= {"now": write.now, "stale": write.now - ACTIVITY_RESOLUTION}
    rows = {table: [*rows.get(table, ()), *write.following.get(table, ())] for table in TABLES}
    return GuardedWrite(tip_guard(write.key.tenant), steps, rows, parameters, overwrites=True)


_KEY = "tenant_id = :tenant AND thread_id = :thread AND branch = :branch"
_UPDATE_MESSAGE = Step(
    "message",
    f"UPDATE {{schema}}messages SET state = :state, violations = :violations,"
    f" {', '.join(f'{name} = :{name}' for name in _GROWING)} WHERE {_KEY} AND seq = :seq{{guard}}",
)
_DELETES = {
    table: Step(
        f"{table}_gone",
        f"DELETE FROM {{schema}}{table} WHERE {_KEY} AND seq = :seq AND idx >= :{table}_count{{guard}}",
    )
    for table in _TABLES
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


def _overwriting(
    key: PartialKey, encoded: EncodedMessage, before: EncodedMessage | None
) -> tuple[list[Step], dict[str, Sequence[tuple[Any, ...]]], dict[str, Any]]:
    """The steps, the rows and the parameters that give the rows of parts and calls their new content. Rows that stay
    the same are left out. `before` None: any rows may be stored.
    """
    steps, rows, parameters = list[Step](), dict[str, Sequence[tuple[Any, ...]]](), dict[str, Any]()
    stored = (None, None) if before is None else (before.parts, before.calls)
    for table, own, earlier in zip(_TABLES, (encoded.parts, encoded.calls), stored, strict=True):
        if earlier is None or len(own) < len(earlier):
            steps.append(_DELETES[table])
            parameters[f"{table}_count"] = len(own)
        known = dict(enumerate(earlier or ()))
        rows[table] = _encrypted(key, table, [row for index, row in enumerate(own) if known.get(index) != row])
    return steps, rows, parameters


def _encrypted(key: PartialKey, table: str, rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """Encrypts the rows that changed, compared as plain rows: the same text never gives the same ciphertext twice."""
    if (encryption := key.tenant.encryption) is not None:
        rows = encryption.encrypt(table, _TABLES[table], rows, *_cell_key(key))
    return [(key.seq, *row) for row in rows]


def _cell_key(key: PartialKey) -> tuple[Any, ...]:
    return key.thread, key.branch, key.seq


def overwrite(sql: WriteSql, tenant: Tenant, message: ChatMessage) -> None:
    """Give the rows of a stored message the content of `message`, which names its place, in a transaction that holds
    the thread. Its id, role, run, answered call and outputs stay, and so do the ids of the rows of its calls.
    """
    (encoded,) = encode_all([message])
    thread, branch, seq = encode_text(message.thread_id or ""), message.branch or 0, message.seq or 0
    key = PartialKey(tenant, thread, branch, seq, encoded.message_id)
    steps, rows, parameters = _overwriting(key, encoded, None)
    parameters |= _message_values(key, encoded, message.state, message.violations)
    write_by_table(sql, GuardedWrite(UNGUARDED, [*steps, _UPDATE_MESSAGE], rows, parameters, overwrites=True))
